"""Models of the size that people run: thousands of instructions, or loops over whole layers.

Decoding and training give up the arrays that they replace (donation), as programs in use do.
"""

import math

import jax
import jax.numpy as jnp
from jax import lax

from .language import llama_layer, tokens
from .layers import attention, block, conv, cross_entropy, dense, layer_norm, mlp, rms_norm
from .parameters import BF16, F32, I32, Program, Shape, inference, repeated, training

_LLAMA_8B = {"heads": 32, "kv_heads": 8, "widened": 14336}
_WIDTH, _WORDS, _HEAD = 4096, 128256, 128


def llama_8b_decode(batch: int, layers: int, cached: int, scan: bool = False) -> Program:
    """One new token for each sequence, with layers of the size of Llama 3 8B.

    scan: whether the layers are passes of one loop; then the cache is one array for all of them.
    """

    def layer(p, x, cache, position):
        return llama_layer(p, x, **_LLAMA_8B, cache=cache, position=position)

    def model(p, cache, ids, position):
        x = p(_WORDS, _WIDTH)[ids]
        if scan:
            x, new = repeated(p, lambda q, x, one: layer(q, x, one, position), layers, x, cache)
        else:
            new = []
            for one in cache:
                x, changed = layer(p, x, one, position)
                new.append(changed)
        return rms_norm(p, x)[:, -1] @ p(_WIDTH, _WORDS), new

    lead = (layers,) if scan else ()
    kv = Shape((*lead, batch, cached, _LLAMA_8B["kv_heads"], _HEAD), BF16)
    cache = (kv, kv) if scan else [(kv, kv)] * layers
    function, args = inference(model, cache, tokens(batch, 1), Shape((), I32))
    return jax.jit(function, donate_argnums=1), args


def gpt2_training(batch: int, length: int, scan: bool = False) -> Program:
    """A step of AdamW on GPT-2 small: 12 layers, 124 million parameters.

    scan: whether the layers are passes of one loop that keeps only what goes in, and works out the
    rest again on the way back.
    """
    layers, width, heads, words = 12, 768, 12, 50257

    def loss(p, ids, labels):
        table = p(words, width)
        x = table[ids] + p(length, width)
        if scan:
            x, _ = repeated(
                p, lambda q, x, _: (block(q, x, heads, causal=True), None), layers, x, remat=True
            )
        else:
            for _ in range(layers):
                x = block(p, x, heads, causal=True)
        return cross_entropy(layer_norm(p, x) @ table.T, labels)

    function, args = training(loss, tokens(batch, length), tokens(batch, length), optimizer="adamw")
    return jax.jit(function, donate_argnums=(0, 1, 2)), args


def _group_norm(p, x, groups=32):
    channels = x.shape[-1]
    wide = x.astype(F32).reshape(*x.shape[:-1], groups, channels // groups)
    axes = (*range(1, x.ndim - 1), x.ndim)
    mean, variance = wide.mean(axes, keepdims=True), wide.var(axes, keepdims=True)
    normal = ((wide - mean) * lax.rsqrt(variance + 1e-5)).reshape(x.shape).astype(x.dtype)
    return normal * p(channels) + p(channels)


def _residual(p, x, time, channels):
    """Two convolutions that know the time, beside a way around them."""
    y = conv(p, jax.nn.silu(_group_norm(p, x)), channels)
    y = y + dense(p, jax.nn.silu(time), channels)[:, None, None]
    y = conv(p, jax.nn.silu(_group_norm(p, y)), channels)
    return y + (x if x.shape[-1] == channels else conv(p, x, channels, 1))


def _spatial_transformer(p, x, text, heads=8):
    """Attention of the positions to each other and to a text, and a gated mlp."""
    batch, height, width, channels = x.shape
    y = conv(p, _group_norm(p, x), channels, 1).reshape(batch, height * width, channels)
    for memory in (None, text):
        h = layer_norm(p, y)
        seen = h if memory is None else memory
        q, k, v = (dense(p, z, channels, False) for z in (h, seen, seen))
        y = y + dense(p, attention(q, k, v, heads), channels)
    value, gate = jnp.split(dense(p, layer_norm(p, y), 8 * channels), 2, -1)
    y = y + dense(p, value * jax.nn.gelu(gate), channels)
    return x + conv(p, y.reshape(x.shape), channels, 1)


def time_embedding(p, t, waves, width):
    """Of [batch] times: [batch, width], by a network on sines and cosines of them."""
    half = waves // 2
    angle = t.astype(F32)[:, None] * jnp.exp(-math.log(1e4) * jnp.arange(half) / half)
    waves = jnp.concatenate([jnp.cos(angle), jnp.sin(angle)], -1).astype(BF16)
    return mlp(p, waves, width, width, activation=jax.nn.silu)


def unet(p, x, t, text, widths=(320, 640, 1280, 1280), per_level=2):
    """The network of Stable Diffusion 1 on latents: what noise to take away.

    There is attention at the first three of its four resolutions.
    """
    time = time_embedding(p, t, widths[0], 4 * widths[0])
    x = conv(p, x, widths[0])
    kept = [x]
    for level, width in enumerate(widths):
        for _ in range(per_level):
            x = _residual(p, x, time, width)
            x = _spatial_transformer(p, x, text) if level < 3 else x
            kept.append(x)
        if level < 3:
            x = conv(p, x, width, stride=2)
            kept.append(x)
    x = _residual(p, x, time, widths[-1])
    x = _residual(p, _spatial_transformer(p, x, text), time, widths[-1])
    for level, width in reversed([*enumerate(widths)]):
        for _ in range(per_level + 1):
            x = _residual(p, jnp.concatenate([x, kept.pop()], -1), time, width)
            x = _spatial_transformer(p, x, text) if level < 3 else x
        if level:
            x = conv(p, x.repeat(2, 1).repeat(2, 2), width)
    return conv(p, jax.nn.silu(_group_norm(p, x)), 4)


def noisy_latents(batch: int, size: int) -> tuple[Shape, Shape, Shape]:
    """What unet() takes: latents of [size, size, 4], times, and texts of 77 words."""
    latents, text = Shape((batch, size, size, 4), BF16), Shape((batch, 77, 768), BF16)
    return latents, Shape((batch,), I32), text


def diffusion_unet(batch: int, size: int) -> Program:
    return inference(unet, *noisy_latents(batch, size))
