"""From a JAX function to the StableHLO text that XLA:TPU takes, without a TPU and libtpu."""

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

from mallocgame.errors import InvalidInputError
from mallocgame.xla.compiler import MissingExtraError


def lower(function: Callable[..., Any], *args: Any) -> str:
    """Returns what jax.jit(function) hands to the compiler for arguments of these shapes.

    function: a function, or one that jax.jit has wrapped already (with donated or static arguments,
    say).
    args: arrays, or jax.ShapeDtypeStruct, in any pytree.

    Both may carry shardings over a mesh of several devices: those of a topology, or an
    AbstractMesh. The devices count in the order of the topology, whatever the mesh makes of it.

    InvalidInputError: the function can't be traced with these arguments, or has replicas, as
    jax.pmap makes them.
    """
    try:
        import jax
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or "jax") from None

    jitted: Any = function if hasattr(function, "trace") else jax.jit(function)
    name = getattr(function, "__name__", repr(function))
    try:
        with _without_file_names(jax):
            # The compiler names parameters and other instructions after their locations, and
            # options go by names.
            text: str = (
                jitted.trace(*args).lower(lowering_platforms=("tpu",)).as_text(debug_info=True)
            )
    except Exception as error:  # The function may raise anything while it is traced.
        message = str(error).strip().splitlines()
        raise InvalidInputError(
            f"{name}: JAX can't lower it: {type(error).__name__}: {message[0] if message else ''}"
        ) from error
    replicas = _attribute(text, "num_replicas")
    if replicas != 1:
        raise InvalidInputError(
            f"{name}: found {replicas} replicas, allowed: 1; "
            "shard its arguments over a mesh instead"
        )
    return text


def device_count(module: str) -> int:
    """Returns how many devices a StableHLO module is for."""
    return _attribute(module, "num_partitions")


def _attribute(module: str, name: str) -> int:
    found = re.search(rf"mhlo\.{name} = (\d+)", module)
    return int(found[1]) if found else 1


@contextlib.contextmanager
def _without_file_names(jax: Any) -> Iterator[None]:
    """Makes locations say what a value is called, not which line of which file it is from.

    So the same program gives the same text.
    """
    option = "jax_traceback_in_locations_limit"
    before = getattr(jax.config, option)
    jax.config.update(option, 0)
    try:
        yield
    finally:
        jax.config.update(option, before)
