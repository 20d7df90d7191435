"""Networks of agents that plan: AlphaZero, MuZero, AlphaTensor."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from .layers import attention, batch_norm, block, conv, dense, layer_norm, mlp
from .parameters import BF16, F32, I32, Program, Shape, inference, training


def _tower(p, x, blocks, channels, norm=None):
    norm = norm or (lambda p, y: y)
    x = jax.nn.relu(norm(p, conv(p, x, channels)))
    for _ in range(blocks):
        y = jax.nn.relu(norm(p, conv(p, x, channels)))
        x = jax.nn.relu(x + norm(p, conv(p, y, channels)))
    return x


def _policy_and_value(p, x, actions):
    batch = x.shape[0]
    policy = dense(p, jax.nn.relu(conv(p, x, 2, 1)).reshape(batch, -1), actions)
    value = jnp.tanh(mlp(p, jax.nn.relu(conv(p, x, 1, 1)).reshape(batch, -1), 256, 1))
    return policy, value


def alphazero_go(batch: int) -> Program:
    def model(p, board):
        return _policy_and_value(p, _tower(p, board, 20, 256), 362)

    return inference(model, Shape((batch, 19, 19, 17), BF16))


def alphazero_chess_training(batch: int) -> Program:
    def loss(p, board, visits, outcome):
        policy, value = _policy_and_value(p, _tower(p, board, 6, 128, batch_norm), 4672)
        policy_loss = -(visits * jax.nn.log_softmax(policy.astype(F32))).sum(-1).mean()
        return policy_loss + jnp.square(outcome - value[:, 0]).mean()

    return training(
        loss, Shape((batch, 8, 8, 119), BF16), Shape((batch, 4672), F32), Shape((batch,), F32)
    )


def muzero_unroll(batch: int) -> Program:
    """Representation, then five steps of the dynamics network with its three heads."""
    channels, blocks, steps = 256, 6, 5

    def model(p, observation, actions):
        state = _tower(p, observation, blocks, channels)
        kernels = [p(3, 3, channels + 1, channels)] + [
            p(3, 3, channels, channels) for _ in range(2 * blocks)
        ]
        policy, value, reward = (
            p(6 * 6 * channels, 18),
            p(6 * 6 * channels, 601),
            p(6 * 6 * channels, 601),
        )
        convolve = partial(
            lax.conv_general_dilated,
            window_strides=(1, 1),
            padding="SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )
        heads = []
        for step in range(steps):
            action = actions[:, step, None, None, None].astype(BF16) / 18
            plane = jnp.broadcast_to(action, (*state.shape[:3], 1))
            state = jax.nn.relu(convolve(jnp.concatenate([state, plane], -1), kernels[0]))
            for i in range(blocks):
                inner = jax.nn.relu(convolve(state, kernels[1 + 2 * i]))
                state = jax.nn.relu(state + convolve(inner, kernels[2 + 2 * i]))
            flat = state.reshape(batch, -1)
            heads.append((flat @ policy, flat @ value, flat @ reward))
        return heads

    return inference(model, Shape((batch, 6, 6, 128), BF16), Shape((batch, steps), I32))


def alphatensor(batch: int) -> Program:
    """AlphaTensor: a torso of attentions, an autoregressive decoder and a value head.

    The attentions go over the three faces of a 9 x 9 x 9 tensor.
    """
    size, width, heads = 9, 512, 16

    def model(p, tensor, tokens):
        faces = [
            dense(p, jnp.transpose(tensor, order), width)
            for order in ((0, 1, 2, 3), (0, 2, 3, 1), (0, 3, 1, 2))
        ]
        for _ in range(4):
            for i, j in ((0, 1), (0, 2), (1, 2)):
                z = jnp.concatenate([faces[i], jnp.swapaxes(faces[j], 1, 2)], 2)
                q, k, v = jnp.split(dense(p, layer_norm(p, z), 3 * width), 3, -1)
                z = z + dense(p, attention(q, k, v, heads), width)
                z = z + dense(p, jax.nn.gelu(dense(p, layer_norm(p, z), 4 * width)), width)
                faces[i], faces[j] = z[:, :, :size], jnp.swapaxes(z[:, :, size:], 1, 2)
        torso = jnp.concatenate([face.reshape(batch, size * size, width) for face in faces], 1)
        x = p(1000, width)[tokens] + p(tokens.shape[1], width)
        for _ in range(2):
            x = block(p, x, heads, causal=True, memory=torso)
        return dense(p, x, 1000), mlp(p, x[:, 0], 512, 512, 8)

    return inference(model, Shape((batch, size, size, size), BF16), Shape((batch, 12), I32))
