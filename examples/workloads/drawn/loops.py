"""Families with loops and branches. Each function draws one program."""

import jax
import jax.numpy as jnp
from jax import lax

from ..layers import attention, conv, dense, layer_norm, mlp
from ..parameters import BF16, F32, I32, Program, Shape, inference, repeated
from .dice import Dice
from .parts import draw_style, feed_forward, finished, tokens, transformer_layer


def _cell(p, kind: str, inputs: int, width: int):
    """A recurrent cell: its step, and its state before the first."""
    gates = {"lstm": 4, "gru": 3, "simple": 1}[kind]
    inner, outer, bias = p(inputs, gates * width), p(width, gates * width), p(gates * width)

    def step(state, x):
        h, c = state
        a, b = x @ inner + bias, h @ outer
        if kind == "lstm":
            i, f, g, o = jnp.split(a + b, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
        elif kind == "gru":
            (r, z, n), (r2, z2, n2) = jnp.split(a, 3, -1), jnp.split(b, 3, -1)
            z = jax.nn.sigmoid(z + z2)
            h = z * h + (1 - z) * jnp.tanh(n + jax.nn.sigmoid(r + r2) * n2)
        else:
            h = jnp.tanh(a + b)
        return (h, c), h

    return step


def recurrent(dice: Dice) -> Program:
    """Recurrent layers over a sequence."""
    batch, length = dice.pick(4, 16, 64), dice.pick(8, 16, 32, 64)
    width, layers = dice.pick(256, 512, 768, 1024), dice.pick(1, 2)
    kind, words = dice.pick("lstm", "gru", "simple"), dice.pick(0, 5000, 20000)
    both_ways = dice.chance(0.3)

    def model(p, x):
        x = p(words, width)[x.T] if words else x.swapaxes(0, 1)
        for _ in range(layers):
            zero = jnp.zeros((batch, width), BF16)
            forward = lax.scan(_cell(p, kind, x.shape[-1], width), (zero, zero), x)[1]
            if both_ways:
                step = _cell(p, kind, x.shape[-1], width)
                backward = lax.scan(step, (zero, zero), x, reverse=True)[1]
                forward = jnp.concatenate([forward, backward], -1)
            x = forward
        return dense(p, x, words or 256)

    shape = tokens(batch, length) if words else Shape((batch, length, 128), BF16)
    return finished(dice, model, shape, share_trained=0.2)


def stacked(dice: Dice) -> Program:
    """Layers of one shape in a loop, with parameters of their own."""
    batch, length = dice.pick(1, 2, 4, 8), dice.pick(64, 128, 256)
    width, layers, style = dice.pick(256, 512, 768, 1024), dice.pick(3, 4, 6, 8), draw_style(dice)
    attends, words = dice.chance(0.6), dice.pick(4096, 16384)
    remat = dice.chance(0.5)

    def layer(p, x, _):
        if attends:
            return transformer_layer(p, x, style, width // 64, causal=True), None
        return x + feed_forward(p, style.norm(p, x), style), None

    def model(p, ids):
        x, _ = repeated(p, layer, layers, p(words, width)[ids], remat=remat)
        return dense(p, style.norm(p, x), words)

    return finished(dice, model, tokens(batch, length), share_trained=0.2)


def iterative(dice: Dice) -> Program:
    """Numerical methods that repeat a step until little changes, or so many times."""
    kind = dice.pick("sinkhorn", "power", "newton", "clusters", "equilibrium")
    size, inner = dice.pick(512, 1024, 2048), dice.pick(128, 256, 512)
    steps, until_small = dice.pick(5, 10, 20), dice.chance(0.5)

    def repeat(step, first, change):
        if not until_small:
            return lax.fori_loop(0, steps, lambda _, x: step(x), first)

        def go_on(state):
            return jnp.logical_and(state[1] < steps, state[2] > 1e-3)

        def once(state):
            x = step(state[0])
            return x, state[1] + 1, change(x, state[0])

        return lax.while_loop(go_on, once, (first, jnp.int32(0), jnp.float32(1)))[0]

    def moved(a, b):
        return jnp.abs(jax.tree.leaves(a)[0] - jax.tree.leaves(b)[0]).max().astype(F32)

    def model(p, x):
        if kind == "sinkhorn":
            cost = jnp.exp(-jnp.square(x.astype(F32)))
            u, v = repeat(
                lambda uv: (1 / (cost @ uv[1] + 1e-6), 1 / (cost.T @ uv[0] + 1e-6)),
                (jnp.ones(size, F32), jnp.ones(x.shape[1], F32)),
                moved,
            )
            return u[:, None] * cost * v
        if kind == "power":
            square = x @ x.T

            def step(v):
                return square @ v / jnp.linalg.norm((square @ v).astype(F32)).astype(BF16)

            return repeat(step, jnp.ones((size, 8), BF16), moved)
        if kind == "newton":
            square = (x @ x.T) / size
            return repeat(lambda y: y @ (2 * jnp.eye(size, dtype=BF16) - square @ y), square, moved)
        if kind == "clusters":
            centres = p(inner, x.shape[1])

            def step(c):
                nearest = jnp.argmax(x @ c.T - jnp.square(c).sum(-1) / 2, -1)
                members = jax.nn.one_hot(nearest, inner, dtype=BF16)
                return members.T @ x / (members.sum(0)[:, None] + 1)

            return repeat(step, centres, moved)
        widths = x.shape[1], 2 * x.shape[1]
        up, down, norm = p(*widths), p(widths[1], widths[0]), p(widths[0])
        return repeat(lambda h: jnp.tanh((jax.nn.relu(h @ up) @ down + x) * norm), x, moved)

    return inference(model, Shape((size, inner), BF16))


def rollout(dice: Dice) -> Program:
    """A learned model of the world, unrolled: dynamics, value, and one branch or another."""
    batch, width, steps = dice.pick(8, 32, 128), dice.pick(256, 512, 1024), dice.pick(4, 8, 16)
    layers, style, actions = dice.pick(1, 2, 3), draw_style(dice), dice.pick(4, 18, 64)
    branches = dice.chance(0.6)

    def network(p):
        up = [p(width, style.widening * width) for _ in range(layers)]
        down = [p(style.widening * width, width) for _ in range(layers)]

        def apply(h):
            for a, b in zip(up, down, strict=True):
                h = h + style.activation(h @ a) @ b
            return h

        return apply

    def model(p, observed, drawn):
        first, dynamics = mlp(p, observed, width, width), network(p)
        policy, value, embedded = p(width, actions), p(width, 1), p(actions, width)
        other = network(p) if branches else None

        def step(h, given):
            action = jnp.argmax((h @ policy).astype(F32) + given, -1)
            h = h + embedded[action]
            h = dynamics(h) if other is None else lax.cond(h.mean() > 0, dynamics, other, h)
            return h, (action, h @ value)

        return lax.scan(step, first, drawn)[1]

    shapes = Shape((batch, dice.pick(64, 256)), BF16), Shape((steps, batch, actions), F32)
    return inference(model, *shapes)


def sampler(dice: Dice) -> Program:
    """Noise that a network takes away step by step."""
    steps, kind = dice.pick(4, 8, 16), dice.pick("dense", "attention", "convolution")
    batch, width = dice.pick(1, 2, 4), dice.pick(128, 256, 384, 512)
    layers, style, guided = dice.pick(1, 2, 3), draw_style(dice), dice.chance(0.4)
    positions = dice.pick(64, 128, 256)
    size = {64: 8, 128: 16, 256: 32}[positions]

    def denoise(p, x, time):
        h = dense(p, x, width) + dense(p, jnp.cos(time * jnp.arange(64)).astype(BF16), width)
        for _ in range(layers):
            if kind == "attention":
                h = transformer_layer(p, h, style, width // 64)
            elif kind == "convolution":
                h = h + conv(p, style.activation(layer_norm(p, h)), width)
            else:
                h = h + feed_forward(p, style.norm(p, h), style)
        return dense(p, h, x.shape[-1])

    shape = (batch, size, size, 16) if kind == "convolution" else (batch, positions, 64)
    network, (shapes, *_) = inference(denoise, Shape(shape, BF16), Shape((), F32))

    def model(p, noise):
        values = [p(*one.shape) for one in shapes]

        def step(i, x):
            time = 1 - i.astype(F32) / steps
            change = network(values, x, time)
            if guided:
                change = change + 2 * (change - network(values, 0 * x, time))
            return (x - change * (1 / steps)).astype(BF16)

        return lax.fori_loop(0, steps, step, noise)

    return inference(model, Shape(shape, BF16))


def state_space(dice: Dice) -> Program:
    """Linear recurrences along a sequence, as a loop over its pieces or as a parallel scan."""
    batch, length = dice.pick(1, 2, 4), dice.pick(128, 256, 512)
    width, layers, style = dice.pick(256, 512, 768), dice.pick(1, 2), draw_style(dice)
    parallel, piece, states = dice.chance(0.3), dice.pick(16, 32), dice.pick(8, 16, 32)

    def mix(p, h):
        decay = jax.nn.sigmoid(dense(p, h, h.shape[-1]))
        if parallel:

            def join(a, b):
                return a[0] * b[0], a[1] * b[0] + b[1]

            return lax.associative_scan(join, (decay, (1 - decay) * h), axis=1)[1]
        into, out = dense(p, h, states), dense(p, h, states)
        pieces = [
            one.reshape(batch, length // piece, piece, -1).swapaxes(0, 1)
            for one in (h, decay, into, out)
        ]

        def step(state, given):
            x, d, b, c = given
            y = jnp.einsum("bts,bsw->btw", c, state)
            inside = jnp.tril(jnp.einsum("bts,bus->btu", c, b))
            state = state * d[:, -1:, :] + jnp.einsum("bts,btw->bsw", b, x)
            return state, y + jnp.einsum("btu,buw->btw", inside, x)

        first = jnp.zeros((batch, states, h.shape[-1]), BF16)
        return lax.scan(step, first, tuple(pieces))[1].swapaxes(0, 1).reshape(h.shape)

    def model(p, ids):
        x = p(8192, width)[ids]
        for _ in range(layers):
            h = style.norm(p, x)
            gate = style.activation(dense(p, h, 2 * width))
            x = x + dense(p, gate * mix(p, dense(p, h, 2 * width)), width)
        return dense(p, style.norm(p, x), 8192)

    return finished(dice, model, tokens(batch, length), share_trained=0.15)


def generator(dice: Dice) -> Program:
    """Several words, one after the other, until one ends the text: a cache in a loop."""
    batch, room, steps = dice.pick(1, 4, 8), dice.pick(64, 128, 256), dice.pick(4, 8, 16)
    width, style = dice.pick(256, 512, 768), draw_style(dice)
    words, ends = dice.pick(2000, 8192, 16384), dice.chance(0.5)

    def model(p, cache, word):
        table, qkv, out = p(words, width), p(width, 3 * width), p(width, width)
        up, down = p(width, style.widening * width), p(style.widening * width, width)

        def step(state):
            cache, word, i = state
            h = table[word]
            q, k, v = jnp.split(h @ qkv, 3, -1)
            kept = lax.dynamic_update_slice(cache, jnp.stack([k, v], 1)[:, None], (0, i, 0, 0))
            mixed = attention(q[:, None], kept[:, :, 0], kept[:, :, 1], width // 64)
            h = h + mixed[:, 0] @ out
            h = h + style.activation(h @ up) @ down
            return kept, jnp.argmax(h @ table.T, -1).astype(I32), i + 1

        def go_on(state):
            more = state[2] < steps
            return jnp.logical_and(more, (state[1] != 0).any()) if ends else more

        return lax.while_loop(go_on, step, (cache, word, jnp.int32(0)))[:2]

    return inference(model, Shape((batch, room, 2, width), BF16), Shape((batch,), I32))
