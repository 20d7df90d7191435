"""Models with Pallas kernels: the attentions that come with JAX, and a kernel of our own.

The compiler prices no kernel, so its time is a model (docs/kernels.md). Of the attentions only
flash attention says what it costs. The dense parts are those of Llama 3.2 3B.
"""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
from jax.experimental.pallas.ops.tpu.splash_attention import (
    splash_attention_kernel,
    splash_attention_mask,
)

from .language import tokens
from .layers import dense, rms_norm
from .parameters import BF16, F32, I32, Program, Shape, inference

_WIDTH, _HEADS, _KV_HEADS, _SIZE, _WIDENED = 3072, 24, 8, 128, 8192


def _layer(p, x, attend):
    """attend(q, k, v) of [batch, heads, positions, size] gives what q has."""
    batch, length, width = x.shape

    def heads(count):
        y = dense(p, h, count * _SIZE, False).reshape(batch, length, count, _SIZE)
        return y.transpose(0, 2, 1, 3)

    h = rms_norm(p, x)
    mixed = attend(heads(_HEADS) * _SIZE**-0.5, heads(_KV_HEADS), heads(_KV_HEADS))
    x = x + dense(p, mixed.transpose(0, 2, 1, 3).reshape(batch, length, -1), width, False)
    h = rms_norm(p, x)
    gate = jax.nn.silu(dense(p, h, _WIDENED, False))
    return x + dense(p, gate * dense(p, h, _WIDENED, False), width, False)


def flash_prefill(batch: int, layers: int, length: int) -> Program:
    """Reads a prompt with flash attention, which wants as many keys as queries."""

    def attend(q, k, v):
        k, v = (jnp.repeat(y, _HEADS // _KV_HEADS, axis=1) for y in (k, v))
        return flash_attention(q, k, v, causal=True)

    def model(p, ids):
        x = p(128256, _WIDTH)[ids]
        for _ in range(layers):
            x = _layer(p, x, attend)
        return rms_norm(p, x)[:, -1]

    return inference(model, tokens(batch, length))


def splash_prefill(batch: int, layers: int, length: int, window: int) -> Program:
    """Reads a prompt with splash attention: every second layer sees a window only, as in Gemma."""

    def kernel(windowed):
        shape = (length, length)
        mask = (
            splash_attention_mask.LocalMask(shape, (window - 1, 0), 0)
            if windowed
            else splash_attention_mask.CausalMask(shape)
        )
        masks = splash_attention_mask.MultiHeadMask([mask] * _HEADS)
        return jax.vmap(splash_attention_kernel.make_splash_mha_single_device(masks))

    def model(p, ids):
        x = p(128256, _WIDTH)[ids]
        for i in range(layers):
            x = _layer(p, x, kernel(i % 2 == 0))
        return rms_norm(p, x)[:, -1]

    return inference(model, tokens(batch, length))


def paged_decode(batch: int, layers: int, cached: int, page: int = 64) -> Program:
    """One new token for each sequence, whose keys and values lie in pages.

    There are as many pages as all sequences fill with `cached` positions each.
    """
    pages = cached // page

    def model(p, cache, ids, lengths, table):
        new: list = []

        def attend(q, k, v):
            at = (slice(None), table[jnp.arange(batch), lengths // page], lengths % page)
            keys, values = (
                old.at[at].set(y[:, :, 0].transpose(1, 0, 2))
                for old, y in zip(cache[len(new)], (k, v), strict=True)
            )
            new.append((keys, values))
            mixed = paged_attention(
                q[:, :, 0], keys, values, lengths + 1, table, pages_per_compute_block=8
            )
            return mixed[:, :, None].astype(BF16)

        x = p(128256, _WIDTH)[ids]
        for _ in range(layers):
            x = _layer(p, x, attend)
        return rms_norm(p, x)[:, -1] @ p(_WIDTH, 128256), new

    kv = Shape((_KV_HEADS, batch * pages, page, _SIZE), BF16)
    inputs = tokens(batch, 1), Shape((batch,), I32), Shape((batch, pages), I32)
    return inference(model, [(kv, kv)] * layers, *inputs)


def dense_gelu(x, weights, block: int = 512):
    """gelu(x @ weights) as one kernel, which says what it costs."""
    (rows, inner), columns = x.shape, weights.shape[1]
    grid = (rows // block, columns // block, inner // block)

    def kernel(x_ref, weights_ref, out_ref, sum_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            sum_ref[...] = jnp.zeros_like(sum_ref)

        sum_ref[...] += jnp.dot(x_ref[...], weights_ref[...], preferred_element_type=F32)

        @pl.when(pl.program_id(2) == grid[2] - 1)
        def _():
            out_ref[...] = jax.nn.gelu(sum_ref[...]).astype(out_ref.dtype)

    # A block of rows is read again for each block of columns, and the other way round.
    moved = x.size * grid[1] + weights.size * grid[0] + rows * columns
    return pl.pallas_call(
        kernel,
        grid=grid,
        in_specs=[
            pl.BlockSpec((block, block), lambda i, j, k: (i, k)),
            pl.BlockSpec((block, block), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((block, block), lambda i, j, k: (i, j)),
        out_shape=Shape((rows, columns), x.dtype),
        scratch_shapes=[pltpu.VMEM((block, block), F32)],
        cost_estimate=pl.CostEstimate(
            flops=2 * rows * inner * columns,
            transcendentals=rows * columns,
            bytes_accessed=moved * x.dtype.itemsize,
        ),
    )(x, weights)


def mlp_kernel(batch: int, layers: int, width: int = 2048) -> Program:
    """Layers that widen in our kernel and narrow in XLA's own matrix product."""

    def model(p, x):
        for _ in range(layers):
            x = x + dense_gelu(rms_norm(p, x), p(width, 4 * width)) @ p(4 * width, width)
        return x

    return inference(model, Shape((batch, width), BF16))
