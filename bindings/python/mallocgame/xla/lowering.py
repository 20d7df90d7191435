"""From a JAX function to the StableHLO text that XLA:TPU takes, without a TPU and libtpu."""

import contextlib
import functools
import hashlib
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

from mallocgame._address_space import check_address_space
from mallocgame.by_name import in_a_line
from mallocgame.errors import InvalidInputError
from mallocgame.xla.compiler import missing_extra
from mallocgame.xla.stablehlo import attribute

_NAME = re.compile(r'loc\("((?:[^"\\]|\\.)*)"[()]')
# What JAX adds to a program whose arguments say that they are on one device.
_ONE_DEVICE = re.compile(r"sdy\.sharding = #sdy\.sharding<@empty_mesh, [^>]*>(, )?")
# Attributes that are said or left out without a difference.
_DEFAULT = re.compile(r"\[((\{\}|#stablehlo<precision DEFAULT>)(, )?)*\]")


def lower(function: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    """Returns what jax.jit(function) hands to the compiler for arguments of these shapes.

    function: a function, or one that jax.jit or mallocgame.xla.jit has wrapped already (with
    donated or static arguments, say).
    args, kwargs: arrays, or jax.ShapeDtypeStruct, in any pytree.

    Both may carry shardings over a mesh of several devices: those of a topology, or an
    AbstractMesh. The devices count in the order of the topology, whatever the mesh makes of it.

    InvalidInputError: the function can't be traced with these arguments, or has replicas, as
    jax.pmap makes them. MallocGameError: the process may not have the memory that JAX needs.
    """
    check_address_space("JAX")
    try:
        import jax
    except ModuleNotFoundError as error:
        raise missing_extra(error.name or "jax") from None

    function = getattr(function, "untuned", function)
    name = getattr(function, "__name__", repr(function))
    traced: Any = None
    try:
        jitted: Any = function if hasattr(function, "trace") else jax.jit(function)
        with _without_file_names(jax):
            # The compiler names parameters and other instructions after their locations, and
            # options go by names.
            traced = jitted.trace(*args, **kwargs)
            text: str = traced.lower(lowering_platforms=("tpu",)).as_text(debug_info=True)
    except Exception as error:  # The function may raise anything while it is traced.
        if traced is not None and (callbacks := set(_callbacks(traced.jaxpr.jaxpr))):
            names = ", ".join(sorted(callbacks))
            raise InvalidInputError(
                f"{name}: it calls back into Python ({names}), which JAX can't lower for a TPU "
                "that isn't there; leave callbacks and jax.debug.print out of what is captured"
            ) from error
        raise InvalidInputError(f"{name}: JAX can't lower it: {in_a_line(error)}") from error
    replicas = attribute(text, "num_replicas")
    if replicas != 1:
        raise InvalidInputError(
            f"{name}: found {replicas} replicas, allowed: 1; "
            "shard its arguments over a mesh instead"
        )
    return text


def compiler_options(function: Callable[..., Any]) -> dict[str, str]:
    """Returns what jax.jit was given as compiler_options, as text; empty: nothing.

    JAX compiles no function that has some inside another one.
    """
    jitted = getattr(function, "untuned", function)
    given = getattr(getattr(jitted, "_jit_info", None), "compiler_options_kvs", ())
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given
    }


def _callbacks(jaxpr: Any) -> Iterator[str]:
    """Yields the primitives of a jaxpr, and of those inside it, that run Python on the host."""
    from jax.extend.core import jaxprs_in_params

    for equation in jaxpr.eqns:
        name = equation.primitive.name
        if "callback" in name or name == "debug_print":
            yield name
        for inner in jaxprs_in_params(equation.params):
            yield from _callbacks(inner)


@functools.lru_cache(maxsize=4)
def fingerprint(module: str) -> str:
    """Returns a hash of StableHLO text that is the same wherever the program was lowered.

    Names of source files are left out, and that all is on the one device that there is. What values
    are called counts, because the compiler calls instructions so and options go by their names.

    InvalidInputError: it is no StableHLO text.
    """
    try:
        from jax._src.interpreters import mlir
        from jaxlib.mlir import ir
    except ModuleNotFoundError as error:
        raise missing_extra(error.name or "jax") from None

    with mlir.make_ir_context():
        try:
            parsed = ir.Module.parse(module)
        except ir.MLIRError as error:
            raise InvalidInputError(f"no StableHLO text: {str(error).splitlines()[0]}") from None
        lines = list(_lines(parsed.operation, {}, itertools.count()))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _lines(operation: Any, values: dict[Any, str], number: Iterator[int]) -> Iterator[str]:
    """Yields what an operation and those inside do, and fills `values`: what each value is called.

    Constants are called after what they are, because the runtime moves and shares them.
    """
    name = operation.name
    settings = ", ".join(sorted(_settings(operation.attributes)))
    called = [values[operand] for operand in operation.operands]
    types = [str(result.type) for result in operation.results]
    line = f"{name} {called} {{{settings}}} {types}"
    if name == "stablehlo.constant":
        values[operation.results[0]] = hashlib.sha256(line.encode()).hexdigest()
        return
    if name == "sdy.mesh" and "axes = []" in settings:
        return
    yield f"{line} {_name_at(operation.location)}"
    for result in operation.results:
        values[result] = f"%{next(number)}"
    for region in operation.regions:
        for block in region:
            for argument in block.arguments:
                values[argument] = f"%{next(number)}"
                yield f"{values[argument]}: {argument.type} {_name_at(argument.location)}"
            for inner in block:
                yield from _lines(inner.operation, values, number)


def _settings(attributes: Any) -> Iterator[str]:
    """Yields those attributes of an operation that make a difference."""
    for place in range(len(attributes)):
        key, value = attributes[place].name, _ONE_DEVICE.sub("", str(attributes[place].attr))
        if key != "sym_visibility" and not _DEFAULT.fullmatch(value):
            yield f"{key} = {value}"


def _name_at(location: Any) -> str:
    """Returns the name that a location gives, without the place in a source file."""
    found = _NAME.match(str(location))
    return found[1] if found else ""


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
