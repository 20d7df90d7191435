"""How a posted function is kept: by its name, with the shapes of its arguments."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

DEVICES = 4
AXIS = "devices"


@dataclasses.dataclass(frozen=True)
class Posted:
    """A function as people post it, for one chip or for several."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    devices: int
    number: int  # in its module


FUNCTIONS: dict[str, Posted] = {}


def posted(*arguments: Any, donate: Sequence[int] = (), devices: int = 1) -> Callable:
    """Keeps the function below it, with these arguments. donate: those that it may overwrite."""

    def keep(function: Callable) -> Callable:
        name, module = function.__name__, function.__module__
        assert name not in FUNCTIONS, name
        number = sum(one.function.__module__ == module for one in FUNCTIONS.values())
        jitted = jax.jit(function, donate_argnums=tuple(donate))
        FUNCTIONS[name] = Posted(jitted, arguments, devices, number)
        return function

    return keep


def of(dtype: Any) -> Callable[..., jax.ShapeDtypeStruct]:
    """Returns what makes an array's shape from its sizes."""
    return lambda *sizes, **more: jax.ShapeDtypeStruct(sizes, dtype, **more)


F32, BF16, I32, U32, C64 = map(
    of, (jnp.float32, jnp.bfloat16, jnp.int32, jnp.uint32, jnp.complex64)
)
BOOL, I8, U8 = map(of, (jnp.bool, jnp.int8, jnp.uint8))
KEY = U32(2)  # of random numbers


def mesh() -> AbstractMesh:
    """Returns that of a function for several chips."""
    return AbstractMesh((DEVICES,), (AXIS,), axis_types=(AxisType.Auto,))


def split(shape: jax.ShapeDtypeStruct, *axes: str | None) -> jax.ShapeDtypeStruct:
    """Returns a shape of which each chip has a part along the axes that are named."""
    sharding = NamedSharding(mesh(), PartitionSpec(*axes))
    return jax.ShapeDtypeStruct(shape.shape, shape.dtype, sharding=sharding)


def on_host(shape: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
    """Returns a shape that lies in the host's memory."""
    one = AbstractMesh((1,), ("host",), axis_types=(AxisType.Auto,))
    sharding = NamedSharding(one, PartitionSpec(), memory_kind="pinned_host")
    return jax.ShapeDtypeStruct(shape.shape, shape.dtype, sharding=sharding)
