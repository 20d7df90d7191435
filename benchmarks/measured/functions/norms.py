"""Normalizations along one axis."""

from typing import Any

import jax.numpy as jnp
from jax import lax

from .shapes import array


def layer(x: str, scale: str, offset: str, axis: int = -1, residuals: bool = False) -> Any:
    """Tokamax's reference. residuals: mean and 1 / deviation are outputs too."""

    def normalize(x: Any, scale: Any, offset: Any) -> Any:
        out, mean, deviation = standardize(x, scale, offset, axis)
        return (out, mean, deviation) if residuals else out

    return normalize, [array(text) for text in (x, scale, offset)]


def standardize(x: Any, scale: Any, offset: Any, axis: int = -1) -> tuple[Any, Any, Any]:
    """Returns x normalized in f32, its mean and 1 / deviation."""
    axis %= x.ndim
    y = x.astype(jnp.float32)
    mean = jnp.mean(y, axis, keepdims=True)
    y -= mean
    deviation = lax.rsqrt(jnp.mean(jnp.square(y), axis, keepdims=True) + 1e-6)
    others = [one for one in range(x.ndim) if one != axis]
    y *= deviation
    y *= jnp.expand_dims(scale.astype(y.dtype), others)
    y += jnp.expand_dims(offset.astype(y.dtype), others)
    return y.astype(x.dtype), mean, deviation


def layer_backward(x: str, scale: str, axis: int = -1) -> Any:
    """The gradients of `layer` by all arguments, from the mean and 1 / deviation that it left."""
    given = array(x)
    axis %= len(given.shape)
    others = [one for one in range(len(given.shape)) if one != axis]
    left = given.update(
        shape=tuple(1 if one == axis else n for one, n in enumerate(given.shape)), dtype="float32"
    )

    def gradients(x: Any, scale: Any, mean: Any, deviation: Any, above: Any) -> Any:
        wide = above.astype(jnp.float32)
        normal = (x.astype(jnp.float32) - mean) * deviation
        by_offset = jnp.sum(wide, others).astype(scale.dtype)
        by_scale = jnp.sum(wide * normal, others).astype(scale.dtype)
        wide *= jnp.expand_dims(scale.astype(wide.dtype), others)
        by_x = wide - jnp.mean(wide * normal, axis=axis, keepdims=True) * normal
        by_x -= jnp.mean(wide, axis=axis, keepdims=True)
        return (by_x * deviation).astype(x.dtype), by_scale, by_offset

    return gradients, [given, array(scale), left, left, given]


def root_mean_square(x: str) -> Any:
    """JAXBench's 12p."""

    def normalize(x: Any, scale: Any) -> Any:
        wide = jnp.asarray(x, jnp.float32)
        square = jnp.mean(lax.square(wide), axis=-1, keepdims=True)
        return jnp.asarray(wide * lax.rsqrt(square + 1e-5), x.dtype) * scale

    shape = array(x)
    return normalize, [shape, shape.update(shape=shape.shape[-1:])]
