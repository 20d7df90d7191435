"""Gated linear units."""

from typing import Any

import jax
import jax.numpy as jnp

from .shapes import array

_ACTIVATIONS = {"sigmoid": jax.nn.sigmoid, "silu": jax.nn.silu}


def gated(x: str, weights: str, activation: str) -> Any:
    """Tokamax's reference: one product with both weights, f32 behind it."""
    precision = jax.lax.DotAlgorithmPreset.BF16_BF16_F32
    activate = _ACTIVATIONS[activation]

    def unit(x: Any, weights: Any) -> Any:
        y = jnp.einsum("...k,kjn->...jn", x, weights, precision=precision)
        both = jax.lax.collapse(y, -2).astype(jnp.float32)
        gate, projection = jnp.split(both, 2, axis=-1)
        return (activate(gate) * projection).astype(x.dtype)

    return unit, [array(x), array(weights)]
