"""What several models are made of.

`p` hands out parameters (parameters.py); images are [batch, height, width, channels].
"""

import math

import jax
import jax.numpy as jnp
from jax import lax

from .parameters import F32


def dense(p, x, width, bias=True):
    y = x @ p(x.shape[-1], width)
    return y + p(width) if bias else y


def mlp(p, x, *widths, activation=jax.nn.relu, last=False):
    """Dense layers with activations between them, and after the last one if `last`."""
    for i, width in enumerate(widths):
        x = dense(p, x, width)
        if last or i + 1 < len(widths):
            x = activation(x)
    return x


def layer_norm(p, x):
    wide = x.astype(F32)
    mean = wide.mean(-1, keepdims=True)
    variance = jnp.square(wide - mean).mean(-1, keepdims=True)
    return ((wide - mean) * lax.rsqrt(variance + 1e-6)).astype(x.dtype) * p(x.shape[-1]) + p(
        x.shape[-1]
    )


def rms_norm(p, x):
    wide = x.astype(F32)
    return (wide * lax.rsqrt(jnp.square(wide).mean(-1, keepdims=True) + 1e-6)).astype(x.dtype) * p(
        x.shape[-1]
    )


def batch_norm(p, x):
    """As in training: with the statistics of the batch."""
    wide = x.astype(F32)
    mean, variance = wide.mean((0, 1, 2)), wide.var((0, 1, 2))
    return ((wide - mean) * lax.rsqrt(variance + 1e-5)).astype(x.dtype) * p(x.shape[-1]) + p(
        x.shape[-1]
    )


def conv(p, x, channels, size=3, stride=1, groups=1, padding="SAME", bias=True):
    kernel = p(size, size, x.shape[-1] // groups, channels)
    y = lax.conv_general_dilated(
        x,
        kernel,
        (stride, stride),
        padding,
        rhs_dilation=(1, 1),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )
    return y + p(channels) if bias else y


def max_pool(x, size=3, stride=2):
    return lax.reduce_window(
        x, -jnp.inf, lax.max, (1, size, size, 1), (1, stride, stride, 1), "SAME"
    )


def attention(q, k, v, heads, causal=False):
    """Softmax attention of several heads; q, k and v are [..., positions, width]."""

    def split(x):
        return x.reshape((*x.shape[:-1], heads, x.shape[-1] // heads))

    q, k, v = split(q), split(k), split(v)
    scores = jnp.einsum("...qhd,...khd->...hqk", q, k).astype(F32) / math.sqrt(q.shape[-1])
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
    weights = jax.nn.softmax(scores, -1).astype(v.dtype)
    mixed = jnp.einsum("...hqk,...khd->...qhd", weights, v)
    return mixed.reshape((*mixed.shape[:-2], -1))


def block(p, x, heads, causal=False, memory=None, widening=4):
    """A transformer block with norms before its parts.

    It has cross attention to `memory` if there is one.
    """
    width = x.shape[-1]
    h = layer_norm(p, x)
    q, k, v = jnp.split(dense(p, h, 3 * width), 3, -1)
    x = x + dense(p, attention(q, k, v, heads, causal), width)
    if memory is not None:
        h = layer_norm(p, x)
        k, v = jnp.split(dense(p, memory, 2 * width), 2, -1)
        x = x + dense(p, attention(dense(p, h, width), k, v, heads), width)
    return x + dense(p, jax.nn.gelu(dense(p, layer_norm(p, x), widening * width)), width)


def cross_entropy(logits, labels):
    log_p = jax.nn.log_softmax(logits.astype(F32))
    return -jnp.take_along_axis(log_p, labels[..., None], -1).mean()
