"""A JAX function to the StableHLO text that XLA:TPU takes. No TPU and no libtpu are needed for
it.
"""

import contextlib
import re
from collections.abc import Callable
from typing import Any

from mallocgame.errors import InvalidInputError
from mallocgame.xla.compiler import MissingExtraError


def lower(function: Callable, *args: Any) -> str:
    """What jax.jit(function) hands to the compiler for arguments of these shapes.

    function: a function, or one that jax.jit has wrapped already (with donated or static arguments,
    say). args: arrays, or jax.ShapeDtypeStruct, in any pytree. InvalidInputError: it can't be
    traced with these arguments, or is for more than one chip.
    """
    try:
        import jax
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or "jax") from None

    jitted = function if hasattr(function, "trace") else jax.jit(function)
    name = getattr(function, "__name__", repr(function))
    try:
        with _without_file_names(jax):
            # With locations: the compiler names parameters and other instructions after them, and
            # options go by names.
            text = jitted.trace(*args).lower(lowering_platforms=("tpu",)).as_text(debug_info=True)
    except Exception as error:  # whatever the function raises while it is traced
        message = str(error).strip().splitlines()
        raise InvalidInputError(
            f"{name}: JAX can't lower it: {type(error).__name__}: {message[0] if message else ''}"
        ) from error
    for count in re.findall(r"mhlo\.num_(?:partitions|replicas) = (\d+)", text):
        if count != "1":
            raise InvalidInputError(f"{name}: is for {count} chips; allowed is a program for one")
    return text


@contextlib.contextmanager
def _without_file_names(jax):
    """Locations say what a value is called, not which line of whose file it is from: the same
    program, the same text.
    """
    option = "jax_traceback_in_locations_limit"
    before = getattr(jax.config, option)
    jax.config.update(option, 0)
    try:
        yield
    finally:
        jax.config.update(option, before)
