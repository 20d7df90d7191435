"""PPO whose whole training is one compiled JAX program, as in PureJaxRL: rollouts, advantages and
updates are a scan, with the environments inside it as custom calls on the CPU.

python examples/jax_ppo.py [PROGRAM [UPDATES]] prints mean returns as it learns, and then what the
policy plays greedily. It needs JAX (pip install 'mallocgame[jit]') and nothing else.
"""

import sys
from functools import partial

import jax
import jax.numpy as jnp

import mallocgame as mg

ENVS, STEPS, EPOCHS, MINIBATCHES, WIDTH = 64, 32, 4, 4, 64
RATE, DISCOUNT, LAMBDA, CLIP, ENTROPY = 1e-3, 1.0, 0.95, 0.2, 0.01


def make_network(key, inputs, actions):
    """Weights of a policy and of a value, with a hidden layer each."""

    def layers(key, outputs, scale):
        first, last = jax.random.split(key)
        hidden = jax.nn.initializers.orthogonal(2**0.5)(first, (inputs, WIDTH))
        return hidden, jax.nn.initializers.orthogonal(scale)(last, (WIDTH, outputs))

    policy, value = jax.random.split(key)
    return layers(policy, actions, 0.01), layers(value, 1, 1.0)


def evaluate(network, observation, mask):
    """Log-probabilities of the actions, and the value."""
    (a, b), (c, d) = network
    logits = jnp.where(mask, jnp.tanh(observation @ a) @ b, -1e9)
    return jax.nn.log_softmax(logits), (jnp.tanh(observation @ c) @ d)[:, 0]


def loss(network, batch):
    observation, mask, action, before, advantage, target = batch
    logs, value = evaluate(network, observation, mask)
    ratio = jnp.exp(logs[jnp.arange(len(action)), action] - before)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage)
    entropy = -(jnp.exp(logs) * jnp.where(mask, logs, 0)).sum(1)
    return -gain.mean() + 0.5 * ((value - target) ** 2).mean() - ENTROPY * entropy.mean()


def adam(network, moments, gradients, count):
    first, second = moments
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = jax.tree.map(lambda m, g: 0.999 * m + 0.001 * g * g, second, gradients)

    def step(w, m, v):
        return w - RATE * m / (1 - 0.9**count) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-5)

    return jax.tree.map(step, network, first, second), (first, second)


def train(env, key, updates):
    """Returns the network, and the mean return of the episodes that each update saw end."""
    handle, reset, step = env

    def play(carry, key):
        handle, network, observation, mask, so_far = carry
        logs, value = evaluate(network, observation, mask)
        action = jax.random.categorical(key, logs).astype(jnp.int32)
        handle, (seen, reward, end, _, info) = step(handle, action)
        total = so_far + reward
        row = (observation, mask, action, logs[jnp.arange(ENVS), action], value, reward, end, total)
        carry = (handle, network, seen, info["action_mask"] > 0, jnp.where(end, 0.0, total))
        return carry, row

    def advantages(network, observation, mask, rows):
        *_, values, rewards, ends, _ = rows
        _, last = evaluate(network, observation, mask)

        def back(carry, row):
            advantage, after = carry
            value, reward, end = row
            delta = reward + DISCOUNT * jnp.where(end, 0.0, after) - value
            advantage = delta + DISCOUNT * LAMBDA * jnp.where(end, 0.0, advantage)
            return (advantage, value), advantage

        start = (jnp.zeros(ENVS), last)
        return jax.lax.scan(back, start, (values, rewards, ends), reverse=True)[1]

    def update(carry, key):
        handle, network, moments, count, observation, mask, so_far = carry
        keys = jax.random.split(key, STEPS + EPOCHS)
        start = (handle, network, observation, mask, so_far)
        (handle, _, observation, mask, so_far), rows = jax.lax.scan(play, start, keys[:STEPS])
        advantage = advantages(network, observation, mask, rows)
        batch = (*rows[:4], advantage, advantage + rows[4])
        flat = jax.tree.map(lambda rows: rows.reshape((ENVS * STEPS, *rows.shape[2:])), batch)

        def epoch(carry, key):
            order = jax.random.permutation(key, ENVS * STEPS).reshape(MINIBATCHES, -1)

            def learn(carry, places):
                network, moments, count = carry
                gradients = jax.grad(loss)(network, jax.tree.map(lambda rows: rows[places], flat))
                return (*adam(network, moments, gradients, count + 1), count + 1), None

            return jax.lax.scan(learn, carry, order)

        (network, moments, count), _ = jax.lax.scan(epoch, (network, moments, count), keys[STEPS:])
        ends, totals = rows[6], rows[7]
        mean = jnp.where(ends, totals, 0).sum() / jnp.maximum(ends.sum(), 1)
        return (handle, network, moments, count, observation, mask, so_far), mean

    key, first = jax.random.split(key)
    handle, (observation, info) = reset(handle, 0)
    mask = info["action_mask"] > 0
    network = make_network(first, observation.shape[1], mask.shape[1])
    zeros = jax.tree.map(jnp.zeros_like, network)
    carry = (handle, network, (zeros, zeros), 0, observation, mask, jnp.zeros(ENVS))
    carry, means = jax.lax.scan(update, carry, jax.random.split(key, updates))
    return carry[1], means


def main(program="wavernn_64steps_b8.tpu_v4i", updates=60):
    with jax.default_device(jax.devices("cpu")[0]):
        envs = mg.VectorEnv(ENVS, program, observation="compact", autoreset_mode="SameStep")
        network, means = jax.jit(partial(train, envs.xla(), updates=updates))(jax.random.key(0))
        for i in range(0, updates, max(1, updates // 10)):
            print(f"update {i}: mean return {means[i]:.4f}")
        # The policy's likeliest actions, in the environment of Gymnasium.
        game = mg.MallocGameEnv(program, observation="compact")
        observation, info = game.reset(seed=0)
        total, terminated = 0.0, False
        while not terminated:
            logs, _ = evaluate(network, observation[None], info["action_mask"][None] > 0)
            observation, reward, terminated, _, info = game.step(int(logs[0].argmax()))
            total += reward
    print(f"greedily: {total:.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
