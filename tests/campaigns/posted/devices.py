"""Pallas kernels, the host's memory, and functions for four devices."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention
from jax.experimental.pallas.ops.tpu.megablox import gmm
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
from jax.experimental.pallas.ops.tpu.splash_attention import (
    splash_attention_kernel,
    splash_attention_mask,
)
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from .kept import AXIS, BF16, DEVICES, F32, I32, mesh, on_host, posted, split


@posted(BF16(1, 256, 1024), BF16(1024, 3072), BF16(1024, 1024))
def flash_attention_between_products(x, qkv, out):
    def loss(qkv):
        q, k, v = jnp.split((x @ qkv).reshape(1, 256, 24, 128).swapaxes(1, 2), 3, axis=1)
        mixed = flash_attention(q, k, v, causal=True, sm_scale=0.088)
        return (mixed.swapaxes(1, 2).reshape(1, 256, 1024) @ out).astype(jnp.float32).sum()

    return jax.value_and_grad(loss)(qkv)


@posted(BF16(8, 512, 128), BF16(8, 512, 128), BF16(8, 512, 128))
def splash_attention_with_a_window(q, k, v):
    mask = splash_attention_mask.LocalMask((512, 512), (127, 0), 0)
    kernel = splash_attention_kernel.make_splash_mha_single_device(
        splash_attention_mask.MultiHeadMask([mask] * 8)
    )
    return kernel(q * 0.088, k, v)


@posted(BF16(8, 16, 128), BF16(2, 128, 32, 128), BF16(2, 128, 32, 128), I32(8), I32(8, 16),
        BF16(2048, 1024))  # fmt: skip
def paged_attention_and_projection(q, keys, values, lengths, pages, out):
    mixed = paged_attention(q, keys, values, lengths, pages, pages_per_compute_block=4)
    return jax.nn.relu(mixed.reshape(8, 2048).astype(out.dtype) @ out)


@posted(BF16(512, 256), BF16(4, 256, 512), BF16(4, 512, 256), I32(4))
def grouped_products(x, up, down, sizes):
    h = jax.nn.gelu(gmm(x, up, sizes, preferred_element_type=jnp.bfloat16))
    return x + gmm(h, down, sizes, preferred_element_type=jnp.bfloat16)


@posted(F32(8, 512, 512), F32(256, 512))
def fused_normalization_in_a_scan(weights, x):
    def kernel(x_ref, out_ref):
        x = x_ref[...]
        x = x - x.mean(-1, keepdims=True)
        out_ref[...] = x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)

    rows = pl.BlockSpec((64, 512), lambda i: (i, 0))

    def layer(h, w):
        shape = jax.ShapeDtypeStruct(h.shape, h.dtype)
        h = h + jnp.tanh(
            pl.pallas_call(kernel, out_shape=shape, grid=(4,), in_specs=[rows], out_specs=rows)(h)
            @ w
        )
        return h, None

    return lax.scan(layer, x, weights)[0]


@posted(F32(1024, 512), F32(1024, 512))
def copies_by_a_kernel(x, y):
    def kernel(x_ref, out_ref, scratch, semaphore):
        def chunk(i, _):
            copy = pltpu.make_async_copy(x_ref.at[pl.ds(i * 128, 128)], scratch, semaphore)
            copy.start()
            copy.wait()
            scratch[...] = jnp.exp(scratch[...])
            back = pltpu.make_async_copy(scratch, out_ref.at[pl.ds(i * 128, 128)], semaphore)
            back.start()
            back.wait()

        lax.fori_loop(0, 8, chunk, None)

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    doubled = pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[anywhere],
        out_specs=anywhere,
        scratch_shapes=[pltpu.VMEM((128, 512), jnp.float32), pltpu.SemaphoreType.DMA],
    )(jnp.sin(x) * y)
    return doubled + y


@posted(I32(16), F32(4096, 256), F32(16, 8, 256))
def rows_by_prefetched_scalars(rows, table, x):
    def kernel(rows_ref, table_ref, x_ref, out_ref):
        out_ref[...] = x_ref[...] * table_ref[...] + 1.0

    one = pl.BlockSpec((None, 8, 256), lambda i, rows: (i, 0, 0))
    grid = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(16,),
        in_specs=[pl.BlockSpec((8, 256), lambda i, rows: (rows[i], 0)), one],
        out_specs=one,
    )
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(kernel, grid_spec=grid, out_shape=shape)(rows, jnp.tanh(table), x).sum(0)


@posted(BF16(512, 1024), BF16(1024, 1024))
def result_pinned_to_fast_memory(x, weights):
    def kernel(x_ref, out_ref):
        out_ref[...] = jax.nn.relu(x_ref[...]) * 2

    y = pl.pallas_call(
        kernel,
        out_shape=pltpu.VMEM(x.shape, x.dtype),
        in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_specs=pl.BlockSpec(memory_space=pltpu.VMEM),
    )(x @ weights)
    return y @ weights


@posted([on_host(F32(512, 512))] * 4, [F32(512, 512)] * 4, F32(128, 512))
def momentum_kept_on_the_host(momentum, weights, x):
    def loss(weights):
        h = x
        for w in weights:
            h = jnp.tanh(h @ w)
        return (h**2).mean()

    grads = jax.grad(loss)(weights)
    on_device = [jax.device_put(m, jax.memory.Space.Device) for m in momentum]
    momentum = [0.9 * m + g for m, g in zip(on_device, grads, strict=True)]
    weights = [w - 0.01 * m for w, m in zip(weights, momentum, strict=True)]
    return weights, [jax.device_put(m, jax.memory.Space.Host) for m in momentum]


@posted(BF16(6, 512, 512), BF16(256, 512))
def activations_offloaded(weights, x):
    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[], names_which_can_be_offloaded=["kept"],
        offload_src="device", offload_dst="pinned_host",
    )  # fmt: skip

    @functools.partial(jax.checkpoint, policy=policy)
    def layer(h, w):
        h = jax.ad_checkpoint.checkpoint_name(h, "kept")
        return jnp.tanh(jnp.sin(h @ w) @ w.T), None

    def loss(weights):
        return lax.scan(layer, x, weights)[0].astype(jnp.float32).sum()

    return jax.grad(loss)(weights)


def _shared(specs_in, specs_out):
    """Makes a function one of what each device does with its parts."""
    return functools.partial(
        jax.shard_map, mesh=mesh(), in_specs=specs_in, out_specs=specs_out, check_vma=False
    )


_ROWS = P(AXIS)
_RING = [(i, (i + 1) % DEVICES) for i in range(DEVICES)]


@posted(F32(512, 512), F32(512, 512), split(F32(512, 512), AXIS), devices=4, donate=(0,))
def gradients_averaged_over_devices(weights, momentum, x):
    @_shared((P(), P(), _ROWS), (P(), P()))
    def step(weights, momentum, x):
        grads = jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).mean())(weights)
        momentum = 0.9 * momentum + lax.pmean(grads, AXIS)
        return weights - 0.1 * momentum, momentum

    return step(weights, momentum, x)


@posted(split(BF16(8, 1024, 64), None, AXIS), split(BF16(8, 1024, 64), None, AXIS),
        split(BF16(8, 1024, 64), None, AXIS), devices=4)  # fmt: skip
def ring_attention(q, k, v):
    @_shared(P(None, AXIS), P(None, AXIS))
    def ring(q, k, v):
        def turn(state, _):
            k, v, top, total, out = state
            s = jnp.einsum("hqd,hkd->hqk", q, k).astype(jnp.float32) / 8
            new = jnp.maximum(top, s.max(-1))
            p, old = jnp.exp(s - new[..., None]), jnp.exp(top - new)
            out = out * old[..., None] + jnp.einsum("hqk,hkd->hqd", p, v.astype(jnp.float32))
            k, v = (lax.ppermute(one, AXIS, _RING) for one in (k, v))
            return (k, v, new, total * old + p.sum(-1), out), None

        start = jnp.full((8, 256), -jnp.inf), jnp.zeros((8, 256)), jnp.zeros((8, 256, 64))
        *_, total, out = lax.scan(turn, (k, v, *start), None, length=DEVICES)[0]
        return out / total[..., None]

    return ring(q, k, v)


@posted([split(BF16(512, 1024), AXIS), split(BF16(1024, 512), AXIS)] * 2,
        split(BF16(256, 512), AXIS), devices=4)  # fmt: skip
def weights_gathered_and_scattered(weights, x):
    @_shared(_ROWS, _ROWS)
    def step(weights, x):
        def loss(weights):
            h = x
            for w in weights:
                h = jax.nn.relu(h @ lax.all_gather(w, AXIS, tiled=True))
            return h.astype(jnp.float32).sum()

        return [w - 0.01 * g for w, g in zip(weights, jax.grad(loss)(weights), strict=True)]

    return step(weights, x)


@posted(split(BF16(1024, 256), AXIS), BF16(256, 4), split(BF16(4, 256, 256), AXIS), devices=4)
def experts_on_other_devices(x, router, experts):
    @_shared((_ROWS, P(), _ROWS), _ROWS)
    def layer(x, router, expert):
        _, best = lax.top_k((x @ router).T, 64)
        sent = lax.all_to_all(x[best], AXIS, 0, 0, tiled=True)
        back = lax.all_to_all(jax.nn.relu(sent @ expert[0]), AXIS, 0, 0, tiled=True)
        return x.at[best.reshape(-1)].add(back.reshape(-1, 256))

    return layer(x, router, experts)


@posted(split(F32(1024, 512), AXIS), I32(), devices=4)
def borders_exchanged(u, steps):
    @_shared((_ROWS, P()), _ROWS)
    def run(u, steps):
        def step(_, u):
            above = lax.ppermute(u[-1:], AXIS, _RING)
            below = lax.ppermute(u[:1], AXIS, [(b, a) for a, b in _RING])
            wide = jnp.concatenate([above, u, below])
            sides = jnp.roll(u, 1, axis=1) + jnp.roll(u, -1, axis=1)
            return u + 0.2 * (wide[:-2] + wide[2:] + sides - 4 * u)

        return lax.fori_loop(0, steps, step, u)

    return run(u, steps)


@posted(split(BF16(4, 512, 512), AXIS), BF16(8, 64, 512), devices=4)
def stages_of_a_pipeline(weights, batches):
    @_shared((_ROWS, P()), P())
    def run(weights, batches):
        me = lax.axis_index(AXIS)

        def tick(state, at):
            h, out = state
            h = jnp.where(me == 0, batches[jnp.minimum(at, 7)], h)
            h = jnp.tanh(h @ weights[0])
            out = jnp.where(me == DEVICES - 1, out.at[jnp.maximum(at - 3, 0)].set(h), out)
            return (lax.ppermute(h, AXIS, _RING), out), None

        start = jnp.zeros((64, 512), jnp.bfloat16), jnp.zeros_like(batches)
        out = lax.scan(tick, start, jnp.arange(11))[0][1]
        return lax.psum(jnp.where(me == DEVICES - 1, out, 0), AXIS)

    return run(weights, batches)


@posted(BF16(8, 128, 512), split(BF16(512, 1536), None, AXIS), split(BF16(512, 512), AXIS),
        devices=4)  # fmt: skip
def heads_split_by_constraints(x, qkv, out):
    def by_heads(y):
        sharding = NamedSharding(mesh(), P(None, None, AXIS))
        return lax.with_sharding_constraint(y, sharding)

    q, k, v = (by_heads(y.reshape(8, 128, 8, 64)) for y in jnp.split(x @ qkv, 3, axis=-1))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) / 8
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores).astype(x.dtype), v)
    return x + mixed.reshape(8, 128, 512) @ out
