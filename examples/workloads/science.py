"""Recurrent networks, graphs, point clouds, rendering, ranking, tensor networks."""

import jax
import jax.numpy as jnp
from jax import lax

from .layers import cross_entropy, dense, layer_norm, mlp
from .parameters import BF16, F32, I32, Program, Shape, inference, training


def _lstm(p, xs, width):
    """[time, batch, any] -> [time, batch, width], as a loop."""
    weights, bias = p(xs.shape[-1] + width, 4 * width), p(4 * width)

    def step(state, x):
        h, c = state
        i, f, g, o = jnp.split(jnp.concatenate([x, h], -1) @ weights + bias, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros((xs.shape[1], width), BF16)
    return lax.scan(step, (zero, zero), xs)[1]


def lstm_language_training(batch: int, length: int) -> Program:
    def loss(p, ids, labels):
        x = p(10000, 512)[ids.T]
        for _ in range(2):
            x = _lstm(p, x, 512)
        return cross_entropy(dense(p, x, 10000), labels.T)

    return training(loss, Shape((batch, length), I32), Shape((batch, length), I32))


def wavernn(batch: int, steps: int) -> Program:
    """Sound, sample by sample, each of two bytes."""
    width = 896

    def model(p, conditions, first):
        from_input, from_state, bias = (
            p(3 + conditions.shape[-1], 3 * width),
            p(width, 3 * width),
            p(3 * width),
        )
        coarse, fine = (p(width // 2, 448), p(448, 256)), (p(width // 2, 448), p(448, 256))

        def step(carry, condition):
            h, x = carry
            inner, outer = jnp.concatenate([x, condition], -1) @ from_input, h @ from_state
            r, z, e = (gate for gate in jnp.split(inner + bias, 3, -1))
            r2, z2, e2 = jnp.split(outer, 3, -1)
            r, z = jax.nn.sigmoid(r + r2), jax.nn.sigmoid(z + z2)
            h = z * h + (1 - z) * jnp.tanh(e + r * e2)
            h_coarse, h_fine = jnp.split(h, 2, -1)
            p_coarse, p_fine = (
                jax.nn.relu(h_coarse @ coarse[0]) @ coarse[1],
                jax.nn.relu(h_fine @ fine[0]) @ fine[1],
            )
            n_coarse, n_fine = jnp.argmax(p_coarse, -1), jnp.argmax(p_fine, -1)
            x = jnp.stack([n_coarse, n_fine, n_coarse], -1).astype(BF16) / 128 - 1
            return (h, x), (n_coarse, n_fine)

        return lax.scan(step, (jnp.zeros((batch, width), BF16), first), conditions)[1]

    return inference(model, Shape((steps, batch, 80), BF16), Shape((batch, 3), BF16))


def nerf(points: int) -> Program:
    """Colours of rays with 64 points each."""

    def encode(x, octaves):
        angle = x[..., None] * (2.0 ** jnp.arange(octaves))
        return (
            jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], -1)
            .reshape(x.shape[0], -1)
            .astype(BF16)
        )

    def model(p, positions, directions):
        encoded = encode(positions, 10)
        h = encoded
        for layer in range(8):
            h = jax.nn.relu(dense(p, h, 256))
            if layer == 4:
                h = jnp.concatenate([h, encoded], -1)
        density = jax.nn.relu(dense(p, h, 1))
        h = jnp.concatenate([dense(p, h, 256), encode(directions, 4)], -1)
        colour = jax.nn.sigmoid(dense(p, jax.nn.relu(dense(p, h, 128)), 3))
        colour, density = colour.reshape(-1, 64, 3).astype(F32), density.reshape(-1, 64).astype(F32)
        opacity = 1 - jnp.exp(-density * 0.03)
        reaches = jnp.exp(-jnp.cumsum(density * 0.03, 1))
        return ((opacity * reaches)[..., None] * colour).sum(1)

    return inference(model, Shape((points, 3), F32), Shape((points, 3), F32))


def mesh_graph_network(nodes: int, edges: int) -> Program:
    """Message passing with gathers and segment sums."""

    def model(p, node_inputs, edge_inputs, senders, receivers):
        n, e = mlp(p, node_inputs, 128, 128), mlp(p, edge_inputs, 128, 128)
        for _ in range(4):
            e = e + layer_norm(
                p, mlp(p, jnp.concatenate([n[senders], n[receivers], e], -1), 128, 128)
            )
            received = jax.ops.segment_sum(e, receivers, nodes)
            n = n + layer_norm(p, mlp(p, jnp.concatenate([n, received], -1), 128, 128))
        return mlp(p, n, 128, 3)

    ends = Shape((edges,), I32)
    return inference(model, Shape((nodes, 16), BF16), Shape((edges, 4), BF16), ends, ends)


def graph_convolution(nodes: int) -> Program:
    """A dense adjacency matrix, six times."""

    def model(p, adjacency, x):
        for layer in range(6):
            x = jax.nn.relu(adjacency @ dense(p, x, 512)) + (x if layer else 0)
        return dense(p, x, 64)

    return inference(model, Shape((nodes, nodes), BF16), Shape((nodes, 256), BF16))


def tensor_train(batch: int) -> Program:
    """Five layers 4096 -> 4096, each of four cores of rank 64."""

    def model(p, x):
        for _ in range(5):
            t = x.reshape(batch, 8, 8, 8, 8)
            t = jnp.einsum("bijkl,iar->bjklar", t, p(8, 8, 64))
            t = jnp.einsum("bjklar,rjcs->bklacs", t, p(64, 8, 8, 64))
            t = jnp.einsum("bklacs,skdt->blacdt", t, p(64, 8, 8, 64))
            t = jnp.einsum("blacdt,tle->bacde", t, p(64, 8, 8))
            x = jax.nn.relu(t.reshape(batch, 4096) + p(4096))
        return dense(p, x, 10)

    return inference(model, Shape((batch, 4096), BF16))


def mlp_training(batch: int) -> Program:
    def loss(p, x, labels):
        return cross_entropy(mlp(p, x, 2048, 2048, 2048, 2048, 1000), labels)

    return training(loss, Shape((batch, 1024), BF16), Shape((batch,), I32), optimizer="adam")


def pointnet(batch: int, points: int) -> Program:
    def transform(p, x, size):
        h = mlp(p, x, 64, 128, 1024, last=True).max(1)
        return mlp(p, h, 512, 256, size * size).reshape(-1, size, size)

    def model(p, x):
        x = jnp.einsum("bnk,bkj->bnj", x, transform(p, x, 3))
        h = mlp(p, x, 64, 64, last=True)
        h = jnp.einsum("bnk,bkj->bnj", h, transform(p, h, 64))
        whole = mlp(p, h, 64, 128, 1024, last=True).max(1)
        each = jnp.concatenate([h, jnp.broadcast_to(whole[:, None], (*h.shape[:2], 1024))], -1)
        return mlp(p, whole, 512, 256, 40), mlp(p, each, 512, 256, 128, 50)

    return inference(model, Shape((batch, points, 3), BF16))


def wide_and_deep(batch: int) -> Program:
    """A ranker: embeddings of 24 features, three cross layers beside a deep network."""

    def model(p, ids, features):
        embedded = p(200000, 32)[ids].reshape(batch, -1)
        first = jnp.concatenate([embedded, features], -1)
        x = first
        for _ in range(3):
            x = first * dense(p, x, first.shape[-1]) + x
        return dense(p, jnp.concatenate([x, mlp(p, first, 1024, 1024, 512, last=True)], -1), 1)

    return inference(model, Shape((batch, 24), I32), Shape((batch, 32), BF16))
