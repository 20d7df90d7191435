"""Twelve programs that no corpus, level or other table of this repository has.

They were drawn up after `tune` was written, one of each kind, at sizes at which people run them on
one chip, and none was exchanged for what came out. `tune_table.py --suite unseen` tunes them.
"""

import functools
import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

Source = tuple[Callable[..., Any], tuple[Any, ...]]
BF16, F32, I32 = jnp.bfloat16, jnp.float32, jnp.int32


def shaped(*shape: int, dtype: Any = BF16) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def normed(x):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5).astype(x.dtype)


def attended(q, k, v):
    """Attention of (batch, tokens, heads, width)."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores.astype(F32)).astype(q.dtype), v)


def heads_of(x, weights, heads: int):
    return (x @ weights).reshape(*x.shape[:-1], heads, -1)


def convolved(x, kernel, stride: int = 1):
    return lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def descended(loss, parameters, *data, rate: float = 1e-3):
    """One step of gradient descent with momentum; returns parameters, momenta and the loss."""
    values, momenta = parameters
    found, gradients = jax.value_and_grad(loss)(values, *data)
    momenta = jax.tree.map(lambda m, g: 0.9 * m + g.astype(m.dtype), momenta, gradients)
    values = jax.tree.map(lambda p, m: p - (rate * m).astype(p.dtype), values, momenta)
    return (values, momenta), found


def with_momenta(shapes):
    return shapes, jax.tree.map(lambda shape: shaped(*shape.shape, dtype=F32), shapes)


def denoiser() -> Source:
    """A step of a U-Net that denoises 4 latents of 64 x 64."""
    widths = (64, 128, 256)

    def step(x, down, up, mixed, last):
        kept = []
        for first, second in down:
            x = jax.nn.silu(convolved(normed(x), first, 2))
            x = x + convolved(jax.nn.silu(normed(x)), second)
            kept.append(x)
        flat = x.reshape(x.shape[0], -1, x.shape[-1])
        q, k, v = (heads_of(normed(flat), weights, 4) for weights in mixed)
        x = x + attended(q, k, v).reshape(x.shape)
        for (first, second), skipped in zip(up, reversed(kept), strict=True):
            x = jnp.concatenate([x, skipped], -1)
            x = jax.nn.silu(convolved(normed(x), first))
            x = x + convolved(jax.nn.silu(normed(x)), second)
            x = jax.image.resize(
                x, (x.shape[0], 2 * x.shape[1], 2 * x.shape[2], x.shape[3]), "nearest"
            )
        return convolved(x, last)

    ins = (4, *widths)
    down = [(shaped(3, 3, a, b), shaped(3, 3, b, b)) for a, b in zip(ins, widths, strict=False)]
    outs = (256, 128, 64)
    below = (256, 256, 128)
    up = [
        (shaped(3, 3, a + skipped, b), shaped(3, 3, b, b))
        for a, skipped, b in zip(below, reversed(widths), outs, strict=True)
    ]
    mixed = [shaped(256, 256)] * 3
    return step, (shaped(4, 64, 64, 4), down, up, mixed, shaped(3, 3, 64, 4))


def ranking_step() -> Source:
    """A training step of a recommender: looked-up tables, dot products, two perceptrons."""

    def loss(parameters, dense, rows, clicked):
        tables, bottom, top = parameters
        x = dense
        for weights in bottom:
            x = jax.nn.relu(x @ weights)
        found = [x, *(table[rows[:, i]] for i, table in enumerate(tables))]
        every = jnp.stack(found, 1)
        dots = jnp.einsum("bid,bjd->bij", every, every).reshape(len(x), -1)
        x = jnp.concatenate([x, dots], -1)
        for weights in top[:-1]:
            x = jax.nn.relu(x @ weights)
        logits = (x @ top[-1])[:, 0].astype(F32)
        return jnp.mean(jax.nn.softplus(logits) - clicked * logits)

    tables = [shaped(20000, 64)] * 8
    bottom = [shaped(13, 512), shaped(512, 256), shaped(256, 64)]
    top = [shaped(64 + 81, 512), shaped(512, 256), shaped(256, 1)]
    data = (shaped(2048, 13), shaped(2048, 8, dtype=I32), shaped(2048, dtype=F32))
    return functools.partial(descended, loss), (with_momenta((tables, bottom, top)), *data)


def conformer() -> Source:
    """Four blocks of a speech encoder over 4 x 400 frames."""

    def block(x, weights):
        first, second, q, k, v, out, gate, depth, back, third, fourth = weights
        x = x + 0.5 * (jax.nn.silu(normed(x) @ first) @ second)
        y = normed(x)
        heads = attended(*(heads_of(y, part, 4) for part in (q, k, v)))
        x = x + heads.reshape(x.shape) @ out
        a, b = jnp.split(normed(x) @ gate, 2, -1)
        y = lax.conv_general_dilated(
            a * jax.nn.sigmoid(b), depth, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"),
            feature_group_count=x.shape[-1],
        )  # fmt: skip
        x = x + jax.nn.silu(normed(y)) @ back
        return normed(x + 0.5 * (jax.nn.silu(normed(x) @ third) @ fourth))

    def encode(x, blocks):
        for weights in blocks:
            x = block(x, weights)
        return x

    d = 256
    wide, narrow, square = shaped(d, 4 * d), shaped(4 * d, d), shaped(d, d)
    weights = (
        *(wide, narrow, square, square, square, square),
        *(shaped(d, 2 * d), shaped(31, 1, d), square, wide, narrow),
    )
    return encode, (shaped(4, 400, d), [weights] * 4)


def latent_reader() -> Source:
    """256 latents that read 4,096 inputs by attention, and think about it in a loop of 6."""

    def read(latents, inputs, cross, inner):
        q, k, v, out = cross
        heads = attended(heads_of(latents, q, 8), heads_of(inputs, k, 8), heads_of(inputs, v, 8))
        latents = latents + heads.reshape(latents.shape) @ out

        def think(x, weights):
            q, k, v, out, first, second = weights
            y = normed(x)
            heads = attended(*(heads_of(y, part, 8) for part in (q, k, v)))
            x = x + heads.reshape(x.shape) @ out
            return x + jax.nn.gelu(normed(x) @ first) @ second, None

        return lax.scan(think, latents, inner)[0]

    d = 512
    cross = (shaped(d, d), shaped(128, d), shaped(128, d), shaped(d, d))
    inner = (*[shaped(6, d, d)] * 4, shaped(6, d, 2 * d), shaped(6, 2 * d, d))
    return read, (shaped(2, 256, d), shaped(2, 4096, 128), cross, inner)


def next_token() -> Source:
    """One token of a 124M decoder for 8 requests with 512 tokens of cache each."""
    d, layers, heads = 768, 12, 12

    def decode(token, position, tables, blocks, caches):
        words, places = tables
        x = words[token] + places[position]
        kept = []
        for (qkv, out, first, second), (keys, values) in zip(blocks, caches, strict=True):
            q, k, v = jnp.split(normed(x) @ qkv, 3, -1)
            keys = lax.dynamic_update_slice(keys, k[:, None], (0, position, 0))
            values = lax.dynamic_update_slice(values, v[:, None], (0, position, 0))
            kept.append((keys, values))
            of = [part.reshape(len(x), -1, heads, d // heads) for part in (q, keys, values)]
            x = x + attended(*of).reshape(len(x), d) @ out
            x = x + jax.nn.gelu(normed(x) @ first) @ second
        return normed(x) @ words.T, kept

    block = (shaped(d, 3 * d), shaped(d, d), shaped(d, 4 * d), shaped(4 * d, d))
    caches = [(shaped(8, 512, d), shaped(8, 512, d))] * layers
    tables = (shaped(50304, d), shaped(1024, d))
    data = (shaped(8, dtype=I32), shaped(dtype=I32))
    return decode, (*data, tables, [block] * layers, caches)


def autoencoder_step() -> Source:
    """A training step of a convolutional variational autoencoder on 32 images of 64 x 64."""

    def loss(parameters, images, noise):
        encoder, (mean, spread), decoder = parameters
        x = images
        for kernel in encoder:
            x = jax.nn.relu(convolved(x, kernel, 2))
        shape, x = x.shape, x.reshape(len(x), -1)
        mu, log_sigma = x @ mean, x @ spread
        x = (mu + jnp.exp(log_sigma) * noise) @ decoder[0]
        x = x.reshape(shape)
        for kernel in decoder[1:]:
            x = lax.conv_transpose(jax.nn.relu(x), kernel, (2, 2), "SAME")
        likely = jnp.square(x - images).astype(F32).sum()
        prior = (jnp.exp(2 * log_sigma) + mu**2 - 2 * log_sigma).astype(F32).sum()
        return likely + 0.5 * prior

    encoder = [shaped(4, 4, a, b) for a, b in ((3, 32), (32, 64), (64, 128))]
    decoder = [shaped(64, 8192), *(shaped(4, 4, a, b) for a, b in ((128, 64), (64, 32), (32, 3)))]
    parameters = (encoder, (shaped(8192, 64), shaped(8192, 64)), decoder)
    data = (shaped(32, 64, 64, 3), shaped(32, 64))
    return functools.partial(descended, loss), (with_momenta(parameters), *data)


def actor_critic_step() -> Source:
    """An update of two critics and an actor from 1,024 transitions."""

    def through(x, layers):
        for weights in layers[:-1]:
            x = jax.nn.relu(x @ weights)
        return x @ layers[-1]

    def loss(parameters, targets, seen, taken, rewarded, then, noise):
        critics, actor = parameters
        acted = jnp.tanh(through(then, actor) + noise)
        after = [through(jnp.concatenate([then, acted], -1), critic) for critic in targets]
        wanted = lax.stop_gradient(rewarded + 0.99 * jnp.minimum(*after))
        now = [through(jnp.concatenate([seen, taken], -1), critic) for critic in critics]
        wrong = sum(jnp.mean(jnp.square(q - wanted)) for q in now)
        chosen = jnp.tanh(through(seen, actor) + noise)
        fixed = lax.stop_gradient(critics)
        worth = [through(jnp.concatenate([seen, chosen], -1), critic) for critic in fixed]
        return wrong - jnp.mean(jnp.minimum(*worth))

    def step(parameters, targets, *data):
        parameters, found = descended(loss, parameters, targets, *data)
        critics = parameters[0][0]
        targets = jax.tree.map(lambda old, new: 0.995 * old + 0.005 * new, targets, critics)
        return parameters, targets, found

    def layers(first, last):
        sizes = (first, 1024, 1024, 512, last)
        return [shaped(a, b, dtype=F32) for a, b in itertools.pairwise(sizes)]

    critics = [layers(76 + 17, 1), layers(76 + 17, 1)]
    data = tuple(shaped(1024, width, dtype=F32) for width in (76, 17, 1, 76, 17))
    return step, (with_momenta((critics, layers(76, 17))), critics, *data)


def adapter_step() -> Source:
    """A training step of low-rank adapters in four frozen blocks of a language model."""
    d, rank = 1024, 16

    def loss(adapters, blocks, x, wanted):
        for (qkv, out, first, second), (a, b, c, e) in zip(blocks, adapters, strict=True):
            y = normed(x)
            q, k, v = jnp.split(y @ qkv + (y @ a) @ b, 3, -1)
            of = [part.reshape(*part.shape[:-1], 16, -1) for part in (q, k, v)]
            x = x + attended(*of).reshape(x.shape) @ out
            y = normed(x)
            x = x + jax.nn.gelu(y @ first + (y @ c) @ e) @ second
        return jnp.mean(jnp.square((x - wanted).astype(F32)))

    def step(adapters, *data):
        return descended(loss, adapters, *data)

    block = (shaped(d, 3 * d), shaped(d, d), shaped(d, 4 * d), shaped(4 * d, d))
    adapter = (shaped(d, rank), shaped(rank, 3 * d), shaped(d, rank), shaped(rank, 4 * d))
    x = shaped(4, 256, d)
    return step, (with_momenta([adapter] * 4), [block] * 4, x, x)


def tracker() -> Source:
    """A filter over 512 states of 24 numbers, 32 observations one after the other."""

    def track(states, covariances, observed, moves, sees, noise):
        def update(carry, seen):
            x, p = carry
            x = x @ moves.T
            p = jnp.einsum("ij,bjk,lk->bil", moves, p, moves) + noise
            told = jnp.einsum("oi,bij,pj->bop", sees, p, sees) + jnp.eye(len(sees))
            gain = jnp.einsum("bij,oj,bop->bip", p, sees, jnp.linalg.inv(told))
            x = x + jnp.einsum("bio,bo->bi", gain, seen - x @ sees.T)
            p = p - jnp.einsum("bio,oj,bjk->bik", gain, sees, p)
            return (x, p), x

        return lax.scan(update, (states, covariances), observed)

    shapes = ((512, 24), (512, 24, 24), (32, 512, 6), (24, 24), (6, 24), (24, 24))
    return track, tuple(shaped(*shape, dtype=F32) for shape in shapes)


def neural_ode() -> Source:
    """Eight Runge-Kutta steps through a perceptron as the right-hand side."""

    def integrate(x, first, second, third):
        def slope(x):
            return jnp.tanh(jnp.tanh(x @ first) @ second) @ third

        h = jnp.asarray(0.125, x.dtype)
        for _ in range(8):
            a = slope(x)
            b = slope(x + h / 2 * a)
            c = slope(x + h / 2 * b)
            d = slope(x + h * c)
            x = x + h / 6 * (a + 2 * b + 2 * c + d)
        return x

    return integrate, (shaped(4096, 512), shaped(512, 1024), shaped(1024, 1024), shaped(1024, 512))


def wide_residual_step() -> Source:
    """A training step of a wide residual network on 64 images of 32 x 32."""

    def loss(parameters, images, labels):
        stem, groups, head = parameters
        x = convolved(images, stem)
        for number, blocks in enumerate(groups):
            for place, (first, second, short) in enumerate(blocks):
                stride = 2 if number and not place else 1
                y = jax.nn.relu(normed(x))
                skipped = x if short is None else convolved(y, short, stride)
                y = convolved(y, first, stride)
                x = skipped + convolved(jax.nn.relu(normed(y)), second)
        logits = (x.mean((1, 2)) @ head).astype(F32)
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1))

    groups, below = [], 16
    for width in (64, 128, 256):
        square = shaped(3, 3, width, width)
        first = (shaped(3, 3, below, width), square, shaped(1, 1, below, width))
        groups.append([first, (square, square, None)])
        below = width
    parameters = (shaped(3, 3, 3, 16), groups, shaped(256, 10))
    data = (shaped(64, 32, 32, 3), shaped(64, dtype=I32))
    return functools.partial(descended, loss), (with_momenta(parameters), *data)


def beam_reader() -> Source:
    """Eight greedy tokens of a gated recurrent decoder that looks at 200 encoded frames."""
    d, vocabulary = 512, 8192

    def read(frames, state, words, gates, keys, out):
        looked = frames @ keys

        def step(carry, _):
            h, token = carry
            weights = jax.nn.softmax(jnp.einsum("bd,btd->bt", h, looked).astype(F32))
            seen = jnp.einsum("bt,btd->bd", weights.astype(h.dtype), frames)
            x = jnp.concatenate([words[token], seen, h], -1)
            update, reset, new = jnp.split(x @ gates, 3, -1)
            h = h + jax.nn.sigmoid(update) * (jnp.tanh(jax.nn.sigmoid(reset) * new) - h)
            token = jnp.argmax(h @ out, -1).astype(I32)
            return (h, token), token

        start = (state, jnp.zeros(len(state), I32))
        return lax.scan(step, start, None, length=8)[1]

    words, out = shaped(vocabulary, d), shaped(d, vocabulary)
    arrays = (shaped(16, 200, d), shaped(16, d), words, shaped(3 * d, 3 * d), shaped(d, d), out)
    return read, arrays


PROGRAMS: dict[str, Callable[[], Source]] = {
    function.__name__: function
    for function in (
        denoiser,
        ranking_step,
        conformer,
        latent_reader,
        next_token,
        autoencoder_step,
        actor_critic_step,
        adapter_step,
        tracker,
        neural_ode,
        wide_residual_step,
        beam_reader,
    )
}
HARDWARE = ("tpu_v5e", "tpu_v6e")
