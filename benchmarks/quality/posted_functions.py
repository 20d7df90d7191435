"""Small JAX functions of the kinds that people post in bug reports and questions.

`FUNCTIONS` has name -> function without arguments that gives (function, shapes of its arguments).
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

Shape = jax.ShapeDtypeStruct
BF16, F32, I32 = jnp.bfloat16, jnp.float32, jnp.int32


def linear_recurrence(reverse=False):
    def combine(left, right):
        return left[0] * right[0], left[1] * right[0] + right[1]

    def function(a, x):
        return lax.associative_scan(combine, (a, x), reverse=reverse)[1]

    return function, (Shape((2048, 128), F32),) * 2


def scanned(operation, shape, dtype=F32, axis=0):
    return functools.partial(operation, axis=axis), (Shape(shape, dtype),)


def selective_state_space():
    def function(x, delta, a, b, c):
        def step(state, inputs):
            x, delta, b, c = inputs
            decay = jnp.exp(delta[:, :, None] * a)
            state = decay * state + (delta * x)[:, :, None] * b[:, None, :]
            return state, (state * c[:, None, :]).sum(-1)

        start = jnp.zeros((x.shape[1], x.shape[2], a.shape[1]), F32)
        return lax.scan(step, start, (x, delta, b, c))[1]

    rows, batch, width, state = 64, 4, 256, 16
    return function, (
        Shape((rows, batch, width), F32),
        Shape((rows, batch, width), F32),
        Shape((width, state), F32),
        Shape((rows, batch, state), F32),
        Shape((rows, batch, state), F32),
    )


def diagonal_state_space():
    def function(a, b, c, u):
        def combine(left, right):
            return left[0] * right[0], left[1] * right[0] + right[1]

        inputs = u[:, None] * b[None]
        states = lax.associative_scan(combine, (jnp.broadcast_to(a, inputs.shape), inputs))[1]
        return (states * c).sum(-1)

    return function, (*(Shape((64,), F32),) * 3, Shape((1024,), F32))


def split_projections():
    def function(x, weights):
        q, k, v = jnp.split(x @ weights, 3, axis=-1)
        return jax.nn.softmax(q @ k.T) @ v

    return function, (Shape((512, 512), BF16), Shape((512, 1536), BF16))


def grouped_projections():
    def function(x, weights, out):
        projected = x @ weights
        q, k, v = projected[:, :1024], projected[:, 1024:1280], projected[:, 1280:]
        mixed = jax.nn.silu(q) * jnp.repeat(k, 4, axis=1) + jnp.repeat(v, 4, axis=1)
        return mixed @ out

    return function, (
        Shape((256, 1024), BF16),
        Shape((1024, 1536), BF16),
        Shape((1024, 1024), BF16),
    )


def heat(steps=40):
    def step(_, u):
        inner = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        return u.at[1:-1, 1:-1].set(inner + 0.1 * (around - 4 * inner))

    return lambda u: lax.fori_loop(0, steps, step, u), (Shape((512, 512), F32),)


def wave(steps=30):
    def step(pair, _):
        now, before = pair
        around = sum(jnp.roll(now, shift, axis) for axis in (0, 1, 2) for shift in (-1, 1))
        return (2 * now - before + 0.05 * (around - 6 * now), now), None

    def function(u, v):
        return lax.scan(step, (u, v), None, length=steps)[0][0]

    return function, (Shape((48, 64, 128), F32),) * 2


def conjugate_gradient():
    def function(a, b):
        def going(state):
            return (state[3] > 1e-6) & (state[4] < 200)

        def step(state):
            x, r, p, rr, k = state
            ap = a @ p
            alpha = rr / (p @ ap)
            x, r = x + alpha * p, r - alpha * ap
            new = r @ r
            return x, r, r + (new / rr) * p, new, k + 1

        return lax.while_loop(going, step, (jnp.zeros_like(b), b, b, b @ b, 0))[0]

    return function, (Shape((1024, 1024), F32), Shape((1024,), F32))


def jacobi():
    def function(a, b, count):
        diagonal = jnp.diagonal(a)
        return lax.fori_loop(
            0, count, lambda _, x: (b - a @ x + diagonal * x) / diagonal, jnp.zeros_like(b)
        )

    return function, (Shape((512, 512), F32), Shape((512,), F32), Shape((), I32))


def power_iteration():
    def function(a, x):
        def step(_, x):
            y = a @ x
            return y / jnp.linalg.norm(y)

        return lax.fori_loop(0, 50, step, x)

    return function, (Shape((2048, 2048), BF16), Shape((2048,), BF16))


def ragged_experts():
    def function(x, up, down, sizes):
        hidden = jax.nn.gelu(lax.ragged_dot(x, up, sizes))
        return lax.ragged_dot(hidden, down, sizes)

    return function, (
        Shape((256, 512), BF16),
        Shape((4, 512, 1024), BF16),
        Shape((4, 1024, 512), BF16),
        Shape((4,), I32),
    )


def routed_experts():
    def function(x, router, experts):
        gates, chosen = lax.top_k(jax.nn.softmax(x @ router), 2)
        hot = jax.nn.one_hot(chosen, experts.shape[0], dtype=x.dtype) * gates[..., None]
        return jnp.einsum("td,edh,tke->th", x, experts, hot)

    return function, (Shape((128, 256), BF16), Shape((256, 8), BF16), Shape((8, 256, 256), BF16))


def donated_cache():
    def function(keys, values, key, value, query, at):
        keys = lax.dynamic_update_slice(keys, key, (0, at, 0))
        values = lax.dynamic_update_slice(values, value, (0, at, 0))
        scores = jax.nn.softmax(jnp.einsum("hd,hkd->hk", query, keys))
        return keys, values, jnp.einsum("hk,hkd->hd", scores, values)

    cache, one = Shape((8, 2048, 128), BF16), Shape((8, 1, 128), BF16)
    return jax.jit(function, donate_argnums=(0, 1)), (
        cache, cache, one, one, Shape((8, 128), BF16), Shape((), I32)
    )  # fmt: skip


def donated_training():
    def loss(weights, x, y):
        return ((jnp.tanh(x @ weights[0]) @ weights[1] - y) ** 2).mean()

    def function(weights, momentum, x, y):
        grads = jax.grad(loss)(weights, x, y)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
        return jax.tree.map(lambda w, m: w - 0.01 * m, weights, momentum), momentum

    weights = (Shape((512, 1024), F32), Shape((1024, 512), F32))
    batch = Shape((256, 512), F32)
    return jax.jit(function, donate_argnums=(0, 1)), (weights, weights, batch, batch)


def callback():
    def function(x):
        y = jnp.tanh(x) @ x
        return jax.pure_callback(lambda v: v * 2, Shape(y.shape, y.dtype), y) + x

    return function, (Shape((512, 512), F32),)


def printed():
    def function(x):
        jax.debug.print("mean {}", x.mean())
        return jnp.tanh(x) @ x

    return function, (Shape((512, 512), BF16),)


def _on_host():
    mesh = AbstractMesh((1,), ("x",), axis_types=(AxisType.Auto,))
    return NamedSharding(mesh, PartitionSpec(), memory_kind="pinned_host")


def weights_on_host():
    def function(weights, x):
        return jnp.tanh(x @ jax.device_put(weights, jax.memory.Space.Device))

    return function, (Shape((1024, 2048), BF16, sharding=_on_host()), Shape((128, 1024), BF16))


def layers_on_host():
    def function(weights, x):
        def step(x, w):
            return jnp.tanh(x @ jax.device_put(w, jax.memory.Space.Device)), None

        return lax.scan(step, x, weights)[0]

    return function, (Shape((6, 1024, 1024), BF16, sharding=_on_host()), Shape((256, 1024), BF16))


def int8_matmul():
    def function(x, weights, scale):
        y = lax.dot_general(x, weights, (((1,), (0,)), ((), ())), preferred_element_type=I32)
        return y.astype(F32) * scale

    return function, (
        Shape((512, 1024), jnp.int8),
        Shape((1024, 1024), jnp.int8),
        Shape((1024,), F32),
    )


def int4_weights():
    def function(x, weights, scale):
        return (x @ weights.astype(BF16)) * scale

    return function, (Shape((64, 2048), BF16), Shape((2048, 1024), jnp.int4), Shape((1024,), BF16))


def float8_matmul():
    def function(x, weights):
        product = x.astype(jnp.float8_e4m3fn).astype(BF16) @ weights.astype(BF16)
        return jax.nn.relu(product) @ weights.astype(BF16).T

    return function, (Shape((256, 1024), BF16), Shape((1024, 1024), jnp.float8_e4m3fn))


def float8_cache():
    def function(cache, new, at, query):
        cache = lax.dynamic_update_slice(cache, new.astype(jnp.float8_e5m2), (at, 0))
        return cache, jax.nn.softmax(query @ cache.astype(BF16).T)

    return function, (
        Shape((4096, 256), jnp.float8_e5m2), Shape((1, 256), BF16), Shape((), I32),
        Shape((8, 256), BF16),
    )  # fmt: skip


def rolled_attention():
    def function(q, k, v):
        def step(carry, block):
            top, total, out = carry
            k, v = block
            scores = (q @ k.T).astype(F32)
            new = jnp.maximum(top, scores.max(-1))
            weight, old = jnp.exp(scores - new[:, None]), jnp.exp(top - new)
            out = out * old[:, None] + weight @ v.astype(F32)
            return (new, total * old + weight.sum(-1), out), None

        blocks = (k.reshape(8, 256, 128), v.reshape(8, 256, 128))
        start = (jnp.full(512, -jnp.inf), jnp.zeros(512), jnp.zeros((512, 128)))
        _, total, out = lax.scan(step, start, blocks)[0]
        return out / total[:, None]

    return function, (Shape((512, 128), BF16), *(Shape((2048, 128), BF16),) * 2)


def causal_attention():
    def function(q, k, v):
        scores = jnp.einsum("hqd,hkd->hqk", q, k) / 8
        mask = jnp.tril(jnp.ones(scores.shape[1:], bool))
        return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(jnp.where(mask, scores, -1e9)), v)

    return function, (Shape((8, 512, 64), BF16),) * 3


def rotary_embedding():
    def function(x, positions):
        angles = positions[:, None] / 1e4 ** (jnp.arange(0, 128, 2) / 128)
        a, b = x[..., ::2], x[..., 1::2]
        sin, cos = jnp.sin(angles), jnp.cos(angles)
        return jnp.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(x.shape)

    return function, (Shape((16, 512, 128), F32), Shape((512,), F32))


def gated_recurrent():
    def function(weights, recurrent, x):
        def step(h, x):
            z, r, n = jnp.split(x @ weights, 3, axis=-1)
            uz, ur, un = jnp.split(h @ recurrent, 3, axis=-1)
            z, r = jax.nn.sigmoid(z + uz), jax.nn.sigmoid(r + ur)
            h = (1 - z) * jnp.tanh(n + r * un) + z * h
            return h, h

        return lax.scan(step, jnp.zeros((16, 512), F32), x)[1]

    return function, (Shape((256, 1536), F32), Shape((512, 1536), F32), Shape((32, 16, 256), F32))


def convolution(groups=1, transpose=False):
    def function(x, kernel):
        if transpose:
            return lax.conv_transpose(x, kernel, (2, 2), "SAME", dimension_numbers=numbers)
        return lax.conv_general_dilated(
            x, kernel, (1, 1), "SAME", dimension_numbers=numbers, feature_group_count=groups
        )

    numbers = ("NHWC", "HWIO", "NHWC")
    return function, (Shape((8, 32, 32, 128), BF16), Shape((3, 3, 128 // groups, 128), BF16))


def embedding_gradient():
    def function(table, tokens, grads):
        return table.at[tokens].add(-0.1 * grads)

    return function, (Shape((8192, 256), F32), Shape((1024,), I32), Shape((1024, 256), F32))


def segment_sum():
    def function(x, segments):
        return jax.ops.segment_sum(x, segments, num_segments=128)

    return function, (Shape((4096, 128), F32), Shape((4096,), I32))


def sorted_rows():
    return lambda x: jnp.take_along_axis(x, jnp.argsort(x, axis=-1), axis=-1), (
        Shape((256, 1024), F32),
    )


def cholesky_solve():
    def function(a, b):
        factor = jnp.linalg.cholesky(a @ a.T + jnp.eye(a.shape[0]))
        return jax.scipy.linalg.cho_solve((factor, True), b)

    return function, (Shape((256, 256), F32), Shape((256, 64), F32))


def fourier_convolution():
    def function(x, kernel):
        return jnp.fft.irfft(jnp.fft.rfft(x) * jnp.fft.rfft(kernel), n=x.shape[-1])

    return function, (Shape((32, 1024), F32), Shape((1024,), F32))


def switched():
    def function(which, x, a, b):
        return lax.switch(
            which, [lambda x: x @ a, lambda x: jnp.tanh(x @ b), lambda x: x + 1], x
        )  # fmt: skip

    return function, (Shape((), I32), *(Shape((512, 512), BF16),) * 3)


def rematerialized():
    @jax.checkpoint
    def layer(x, w):
        return jnp.tanh(x @ w)

    def loss(weights, x):
        return lax.scan(lambda x, w: (layer(x, w), None), x, weights)[0].sum()

    return jax.grad(loss), (Shape((6, 512, 512), F32), Shape((256, 512), F32))


def dropped_out():
    def function(key, x, w):
        kept = jax.random.bernoulli(jax.random.wrap_key_data(key), 0.9, x.shape)
        return jnp.where(kept, x / 0.9, 0) @ w

    return function, (
        Shape((2,), jnp.uint32), Shape((512, 512), BF16), Shape((512, 512), BF16)
    )  # fmt: skip


def windowed():
    def function(x, at):
        parts = [lax.dynamic_slice(x, (at[i], 0), (256, 512)) for i in range(4)]
        return sum(jnp.tanh(part) for part in parts)

    return function, (Shape((8192, 512), F32), Shape((4,), I32))


def padded_differences():
    def function(x):
        padded = jnp.pad(x, ((1, 1), (1, 1)), mode="edge")
        return padded[2:, 1:-1] - padded[:-2, 1:-1], padded[1:-1, 2:] - padded[1:-1, :-2]

    return function, (Shape((1024, 1024), F32),)


def kernel_in_place():
    def doubled(x, out):
        out[...] = x[...] * 2

    def function(x, y):
        shape = Shape(x.shape, x.dtype)
        return pl.pallas_call(doubled, out_shape=shape, input_output_aliases={0: 0})(
            jnp.sin(x)
        ) * y  # fmt: skip

    return function, (Shape((256, 1024), F32),) * 2


def clusters():
    def function(points, centers):
        def step(_, centers):
            distances = ((points[:, None] - centers[None]) ** 2).sum(-1)
            hot = jax.nn.one_hot(distances.argmin(1), centers.shape[0])
            return (hot.T @ points) / (hot.sum(0)[:, None] + 1e-6)

        return lax.fori_loop(0, 10, step, centers)

    return function, (Shape((4096, 64), F32), Shape((32, 64), F32))


FUNCTIONS = {
    "associative_scan": linear_recurrence,
    "associative_scan_reversed": functools.partial(linear_recurrence, reverse=True),
    "cumsum": functools.partial(scanned, jnp.cumsum, (1024, 256)),
    "cumprod_rows": functools.partial(scanned, jnp.cumprod, (256, 768), axis=1),
    "cummax": functools.partial(scanned, lax.cummax, (768, 384)),
    "cumlogsumexp": functools.partial(scanned, lax.cumlogsumexp, (512, 640)),
    "selective_state_space": selective_state_space,
    "diagonal_state_space": diagonal_state_space,
    "split_projections": split_projections,
    "grouped_projections": grouped_projections,
    "heat": heat,
    "wave": wave,
    "conjugate_gradient": conjugate_gradient,
    "jacobi": jacobi,
    "power_iteration": power_iteration,
    "ragged_experts": ragged_experts,
    "routed_experts": routed_experts,
    "donated_cache": donated_cache,
    "donated_training": donated_training,
    "callback": callback,
    "printed": printed,
    "weights_on_host": weights_on_host,
    "layers_on_host": layers_on_host,
    "int8_matmul": int8_matmul,
    "int4_weights": int4_weights,
    "float8_matmul": float8_matmul,
    "float8_cache": float8_cache,
    "rolled_attention": rolled_attention,
    "causal_attention": causal_attention,
    "rotary_embedding": rotary_embedding,
    "gated_recurrent": gated_recurrent,
    "depthwise_convolution": functools.partial(convolution, groups=128),
    "transposed_convolution": functools.partial(convolution, transpose=True),
    "embedding_gradient": embedding_gradient,
    "segment_sum": segment_sum,
    "sorted_rows": sorted_rows,
    "cholesky_solve": cholesky_solve,
    "fourier_convolution": fourier_convolution,
    "switched": switched,
    "rematerialized": rematerialized,
    "dropped_out": dropped_out,
    "windowed": windowed,
    "padded_differences": padded_differences,
    "kernel_in_place": kernel_in_place,
    "clusters": clusters,
}
