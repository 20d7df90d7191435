"""Families without loops. Each function draws one program."""

import math

import jax
import jax.numpy as jnp
from jax import lax

from ..layers import attention, batch_norm, conv, dense, layer_norm, mlp
from ..parameters import BF16, F32, I32, Program, Shape, inference
from .dice import Dice
from .parts import (
    draw_style,
    feed_forward,
    finished,
    residual,
    self_attention,
    tokens,
    transformer_layer,
)


def perceptron(dice: Dice) -> Program:
    """Dense layers: plain, residual or with shortcuts to the input."""
    batch, width = dice.pick(16, 64, 256, 1024), dice.pick(512, 1024, 1536, 2048, 3072)
    depth, kind = dice.pick(2, 3, 4), dice.pick("plain", "residual", "dense")
    style = draw_style(dice)
    inputs, outputs = dice.pick(128, 512, 1024), dice.pick(10, 256, 1000, 4096)

    def model(p, x):
        first = x = dense(p, x, width)
        for _ in range(depth):
            if kind == "residual":
                x = residual(p, x, style, lambda h: feed_forward(p, h, style))
            elif kind == "dense":
                x = style.activation(dense(p, jnp.concatenate([x, first], -1), width))
            else:
                x = style.activation(dense(p, x, width))
        return dense(p, x, outputs)

    return finished(dice, model, Shape((batch, inputs), BF16), share_trained=0.3)


def convolution(dice: Dice) -> Program:
    """Image classifiers of two or three stages."""
    batch, size = dice.pick(1, 2, 4, 8, 16), dice.pick(32, 56, 64, 112)
    channels, stages, layers = dice.pick(32, 48, 64, 96), dice.pick(2, 3), dice.pick(1, 2)
    kind = dice.pick("basic", "bottleneck", "separable", "dense")
    activation = dice.pick(jax.nn.relu, jax.nn.silu)
    with_statistics = dice.chance(0.3)

    def norm(p, x):
        return batch_norm(p, x) if with_statistics else x * p(x.shape[-1]) + p(x.shape[-1])

    def step(p, x, channels):
        if kind == "bottleneck":
            h = activation(norm(p, conv(p, x, channels // 4, 1)))
            return norm(p, conv(p, activation(norm(p, conv(p, h, channels // 4))), channels, 1))
        if kind == "separable":
            h = activation(norm(p, conv(p, x, 4 * channels, 1)))
            h = activation(norm(p, conv(p, h, 4 * channels, groups=4 * channels)))
            return norm(p, conv(p, h, channels, 1))
        return norm(p, conv(p, activation(norm(p, conv(p, x, channels))), channels))

    def model(p, x):
        x = activation(norm(p, conv(p, x, channels, 3, 2)))
        for stage in range(stages):
            wide = channels << stage
            x = activation(norm(p, conv(p, x, wide, 3, 2))) if stage else x
            for _ in range(layers):
                h = step(p, x, wide)
                x = jnp.concatenate([x, h], -1) if kind == "dense" else activation(x + h)
        return dense(p, x.mean((1, 2)), 1000)

    return finished(dice, model, Shape((batch, size, size, 3), BF16), share_trained=0.15)


def encoder(dice: Dice) -> Program:
    """Attention over all positions, of words or patches."""
    batch, length = dice.pick(1, 2, 4, 8), dice.pick(64, 128, 256, 512)
    width, layers, style = dice.pick(256, 384, 512, 768, 1024), dice.pick(1, 2), draw_style(dice)
    words, causal = dice.pick(0, 1000, 8192, 32000), dice.chance(0.3)
    pooled = dice.chance(0.5)

    def model(p, x):
        x = p(words, width)[x] if words else dense(p, x, width)
        x = x + p(length, width)
        for _ in range(layers):
            x = transformer_layer(p, x, style, width // 64, causal)
        x = style.norm(p, x)
        return dense(p, x.mean(1) if pooled else x, words or 1000)

    shape = tokens(batch, length) if words else Shape((batch, length, 256), BF16)
    return finished(dice, model, shape)


def translator(dice: Dice) -> Program:
    """An encoder, and a decoder that looks at what it gives."""
    batch, source, target = dice.pick(1, 4, 8), dice.pick(64, 128, 256), dice.pick(16, 32, 64)
    width, layers, style = dice.pick(256, 512, 768), dice.pick(1, 2), draw_style(dice)
    words = dice.pick(4096, 16384, 32000)

    def model(p, read, written):
        table = p(words, width)
        x = table[read]
        for _ in range(layers):
            x = transformer_layer(p, x, style, width // 64)
        y = table[written]
        for _ in range(layers):
            y = residual(
                p, y, style, lambda h: self_attention(p, h, style, width // 64, causal=True)
            )

            def cross(h):
                k, v = dense(p, x, width), dense(p, x, width)
                return dense(p, attention(dense(p, h, width), k, v, width // 64), width)

            y = residual(p, y, style, cross)
            y = residual(p, y, style, lambda h: feed_forward(p, h, style))
        return y @ table.T

    return finished(dice, model, tokens(batch, source), tokens(batch, target), share_trained=0.15)


def ranker(dice: Dice) -> Program:
    """Embeddings of many features, crossed, beside a deep network."""
    batch, fields = dice.pick(64, 256, 1024, 4096), dice.pick(8, 16, 26)
    rows, size = dice.pick(10000, 50000, 100000), dice.pick(16, 32, 64)
    crosses, interaction = dice.pick(0, 1, 2, 3), dice.pick("cross", "dot", "machine")
    widths = [dice.pick(256, 512, 1024, 2048) for _ in range(dice.pick(2, 3, 4))]

    def model(p, ids, features):
        each = p(rows, size)[ids]
        first = x = jnp.concatenate([each.reshape(batch, -1), features], -1)
        if interaction == "dot":
            x = jnp.concatenate([x, (each @ each.swapaxes(1, 2)).reshape(batch, -1)], -1)
        elif interaction == "machine":
            x = jnp.concatenate([x, each.sum(1) ** 2 - (each**2).sum(1)], -1)
        else:
            for _ in range(crosses):
                x = first * dense(p, x, first.shape[-1]) + x
        return dense(p, mlp(p, x, *widths, last=True), 1)

    shapes = tokens(batch, fields), Shape((batch, dice.pick(13, 64)), BF16)
    return finished(dice, model, *shapes, share_trained=0.3)


def autoencoder(dice: Dice) -> Program:
    """Convolutions down to few pixels and up again, with what was on the way down."""
    batch, size = dice.pick(1, 2, 4, 8), dice.pick(32, 48, 64)
    channels, depth = dice.pick(32, 48, 64), dice.pick(2, 3)
    skips, activation = dice.chance(0.7), dice.pick(jax.nn.relu, jax.nn.silu)

    def model(p, x):
        x, seen = conv(p, x, channels), []
        for level in range(depth):
            x = activation(conv(p, x, channels << level))
            seen.append(x)
            x = activation(conv(p, x, channels << (level + 1), stride=2))
        x = x + conv(p, activation(conv(p, x, x.shape[-1])), x.shape[-1])
        for level in reversed(range(depth)):
            x = jax.image.resize(x, (batch, size >> level, size >> level, x.shape[-1]), "nearest")
            x = jnp.concatenate([x, seen.pop()], -1) if skips else x
            x = activation(conv(p, x, channels << level))
        return conv(p, x, 3)

    return finished(dice, model, Shape((batch, size, size, 3), BF16), share_trained=0.15)


def mixer(dice: Dice) -> Program:
    """Dense layers over positions and over channels in turn, without attention."""
    batch, length = dice.pick(1, 4, 8, 16), dice.pick(64, 128, 196, 256)
    width, layers, style = dice.pick(256, 512, 768), dice.pick(1, 2, 3), draw_style(dice)
    gating = dice.chance(0.4)

    def over_positions(p, h, hidden):
        h = h.swapaxes(1, 2)
        if gating:
            a, b = jnp.split(dense(p, h, 2 * length), 2, -1)
            return (a * jax.nn.sigmoid(b)).swapaxes(1, 2)
        return dense(p, style.activation(dense(p, h, hidden)), length).swapaxes(1, 2)

    def model(p, x):
        x = dense(p, x, width)
        for _ in range(layers):
            x = residual(p, x, style, lambda h: over_positions(p, h, 2 * width))
            x = residual(p, x, style, lambda h: feed_forward(p, h, style))
        return dense(p, x.mean(1), 1000)

    return finished(dice, model, Shape((batch, length, 3 * 64), BF16))


def retrieval(dice: Dice) -> Program:
    """Two towers, and the best of many stored vectors."""
    batch, width = dice.pick(8, 64, 256), dice.pick(128, 256, 512)
    stored, best = dice.pick(4096, 16384, 65536), dice.pick(1, 10, 100)
    layers, style, ids = dice.pick(1, 2, 3), draw_style(dice), dice.pick(10000, 50000)

    def tower(p, x):
        for _ in range(layers):
            x = residual(p, x, style, lambda h: feed_forward(p, h, style))
        return x / jnp.linalg.norm(x.astype(F32) + 1e-3, axis=-1, keepdims=True).astype(BF16)

    def model(p, history, features, items):
        query = p(ids, width)[history].mean(1) + dense(p, features, width)
        scores = tower(p, query) @ tower(p, dense(p, items, width)).T
        return lax.top_k(scores.astype(F32), best)

    shapes = (
        tokens(batch, dice.pick(8, 32)),
        Shape((batch, 64), BF16),
        Shape((stored, dice.pick(64, 128)), BF16),
    )
    return inference(model, *shapes)


def mixture(dice: Dice) -> Program:
    """Tokens that are sent to some of several experts."""
    batch, length, width = dice.pick(1, 4, 8), dice.pick(32, 64, 128), dice.pick(256, 512, 768)
    experts, chosen, layers = dice.pick(4, 8, 16), dice.pick(1, 2), dice.pick(1, 2)
    style, attends, words = draw_style(dice), dice.chance(0.6), dice.pick(1000, 8192)
    dense_dispatch = dice.chance(0.5)
    count = batch * length
    capacity = max(8, chosen * count // experts * 5 // 4)

    def expert_layer(p, h):
        h = h.reshape(count, width)
        gates = jax.nn.softmax((h @ p(width, experts)).astype(F32))
        best, places = lax.top_k(gates, chosen)
        up = p(experts, width, style.widening * width)
        down = p(experts, style.widening * width, width)
        if dense_dispatch:  # every expert sees every token
            share = (jax.nn.one_hot(places, experts) * best[..., None]).sum(1).astype(BF16)
            y = style.activation(jnp.einsum("td,edf->etf", h, up))
            y = jnp.einsum("etf,efd,te->td", y, down, share)
            return y.reshape(batch, length, width)
        one_hot = jax.nn.one_hot(places, experts).transpose(1, 0, 2).reshape(-1, experts)
        place = (jnp.cumsum(one_hot, 0) * one_hot - 1).max(-1)
        sent = jax.nn.one_hot(place, capacity)[:, None] * one_hot[:, :, None]
        sent = sent.reshape(chosen, count, experts, capacity)
        combine = (sent * best.T[:, :, None, None]).sum(0).astype(BF16)
        y = jnp.einsum("tec,td->ecd", sent.sum(0).astype(BF16), h)
        y = style.activation(jnp.einsum("ecd,edf->ecf", y, up))
        y = jnp.einsum("tec,ecd->td", combine, jnp.einsum("ecf,efd->ecd", y, down))
        return y.reshape(batch, length, width)

    def model(p, ids):
        x = p(8192, width)[ids]
        for _ in range(layers):
            if attends:
                x = residual(p, x, style, lambda h: self_attention(p, h, style, width // 64))
            x = residual(p, x, style, lambda h: expert_layer(p, h))
        return dense(p, style.norm(p, x), words)

    return finished(dice, model, tokens(batch, length), share_trained=0.1)


def graph(dice: Dice) -> Program:
    """Messages along the edges of a graph: gathers and sums by segment, or attention on edges."""
    nodes, degree = dice.pick(1024, 2048, 4096, 8192), dice.pick(2, 4, 8)
    width, layers, style = dice.pick(64, 128, 256), dice.pick(1, 2, 3), draw_style(dice)
    kind, edges = dice.pick("sum", "edges", "attention"), nodes * degree
    pooled = dice.chance(0.5)

    def model(p, x, features, senders, receivers):
        x, e = dense(p, x, width), dense(p, features, width)
        for _ in range(layers):
            sent = x[senders]
            if kind == "edges":
                e = e + mlp(p, jnp.concatenate([sent, x[receivers], e], -1), width, width)
                sent = e
            elif kind == "attention":
                score = jax.nn.leaky_relu(dense(p, jnp.concatenate([sent, x[receivers]], -1), 1))
                weight = jnp.exp(jnp.clip(score.astype(F32), -10, 10))
                total = jax.ops.segment_sum(weight, receivers, nodes)
                sent = (weight / (total[receivers] + 1e-6)).astype(BF16) * sent
            received = jax.ops.segment_sum(sent, receivers, nodes)
            x = x + layer_norm(p, mlp(p, jnp.concatenate([x, received], -1), 2 * width, width))
        return feed_forward(p, x, style).mean(0) if pooled else dense(p, x, 16)

    ends = Shape((edges,), I32)
    shapes = Shape((nodes, 32), BF16), Shape((edges, 8), BF16), ends, ends
    return finished(dice, model, *shapes, share_trained=0.15)


def cached_decoder(dice: Dice) -> Program:
    """The next token, with keys and values of those before: one head for several queries."""
    batch, cached = dice.pick(1, 4, 8, 16), dice.pick(256, 512, 1024, 2048)
    width, layers, style = dice.pick(512, 1024, 2048), dice.pick(1, 2, 3), draw_style(dice)
    heads = width // dice.pick(64, 128)
    shared = dice.pick(1, 2, 4)
    kv_heads, size = heads // shared, width // heads
    words = dice.pick(4096, 16384, 32000)

    def attend(p, h, cache, position):
        q = dense(p, h, width, style.bias).reshape(batch, kv_heads, shared, size)
        k, v = (
            lax.dynamic_update_slice(
                one, dense(p, h, kv_heads * size).reshape(batch, 1, kv_heads, size), at
            )
            for one, at in zip(cache, [(0, position, 0, 0)] * 2, strict=True)
        )
        scores = jnp.einsum("bksd,btkd->bkst", q, k).astype(F32) / math.sqrt(size)
        scores = jnp.where(jnp.arange(cached) <= position, scores, -1e9)
        mixed = jnp.einsum("bkst,btkd->bksd", jax.nn.softmax(scores, -1).astype(BF16), v)
        return dense(p, mixed.reshape(batch, width), width, style.bias), (k, v)

    def model(p, caches, ids, position):
        x, after = p(words, width)[ids], []
        for cache in caches:
            mixed, cache = attend(p, style.norm(p, x), cache, position)
            after.append(cache)
            x = residual(p, x + mixed, style, lambda h: feed_forward(p, h, style))
        return dense(p, style.norm(p, x), words, False), after

    kv = Shape((batch, cached, kv_heads, size), BF16)
    return inference(model, [(kv, kv)] * layers, Shape((batch,), I32), Shape((), I32))
