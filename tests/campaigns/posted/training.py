"""Steps of training: optimizers, losses, and what is done about memory and precision."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from .kept import BF16, F32, I32, KEY, posted

_LAYERS = (F32(512, 1024), F32(1024, 512))


def _mlp(weights, x):
    for w in weights[:-1]:
        x = jax.nn.gelu(x @ w)
    return x @ weights[-1]


def _convolved(x, kernel, stride=1):
    """Convolves images of [batch, height, width, channels] without making them smaller."""
    numbers = ("NHWC", "HWIO", "NHWC")
    strides = stride, stride
    return lax.conv_general_dilated(x, kernel, strides, "SAME", dimension_numbers=numbers)


def _square(weights, x, y):
    return ((_mlp(weights, x) - y) ** 2).mean()


@posted(_LAYERS, _LAYERS, _LAYERS, F32(), F32(256, 512), F32(256, 512), donate=(0, 1, 2))
def adam_with_decay(weights, first, second, step, x, y):
    loss, grads = jax.value_and_grad(_square)(weights, x, y)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, grads)
    scale = jnp.sqrt(1 - 0.999**step) / (1 - 0.9**step)

    def update(w, m, v):
        return w - 1e-3 * (scale * m / (jnp.sqrt(v) + 1e-8) + 0.01 * w)

    return jax.tree.map(update, weights, first, second), first, second, step + 1, loss


@posted(_LAYERS, F32(), I32(), BF16(256, 512), F32(256, 512), donate=(0,))
def scaled_loss_skips_infinite_steps(weights, scale, good, x, y):
    def scaled(weights):
        cast = jax.tree.map(lambda w: w.astype(jnp.bfloat16), weights)
        return _square(cast, x, y).astype(jnp.float32) * scale

    grads = jax.tree.map(lambda g: g / scale, jax.grad(scaled)(weights))
    finite = jnp.array([jnp.isfinite(g).all() for g in grads]).all()

    def apply(weights):
        return tuple(w - 0.01 * g for w, g in zip(weights, grads, strict=True))

    weights = lax.cond(finite, apply, lambda weights: weights, weights)
    good = jnp.where(finite, good + 1, 0)
    scale = jnp.where(finite, jnp.where(good > 2000, scale * 2, scale), scale / 2)
    return weights, scale, good


@posted(_LAYERS, F32(8, 64, 512), F32(8, 64, 512), donate=(0,))
def accumulated_gradients(weights, xs, ys):
    def add(total, batch):
        loss, grads = jax.value_and_grad(_square)(weights, *batch)
        return jax.tree.map(jnp.add, total, grads), loss

    total, losses = lax.scan(add, jax.tree.map(jnp.zeros_like, weights), (xs, ys))
    return jax.tree.map(lambda w, g: w - 0.01 / 8 * g, weights, total), losses.mean()


@posted([(F32(256, 1024), F32(1024, 256))] * 6, F32(512, 256))
def rematerialized_blocks(layers, x):
    @functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_saveable)
    def block(layer, x):
        x = x - x.mean(-1, keepdims=True)
        return x + jnp.sin(x @ layer[0]) @ layer[1]

    def loss(layers):
        h = x
        for layer in layers:
            h = block(layer, h)
        return (h**2).sum()

    return jax.grad(loss)(layers)


@posted((BF16(6, 256, 768), BF16(6, 256, 256), BF16(6, 256, 1024), BF16(6, 1024, 256)),
        BF16(4, 128, 256))  # fmt: skip
def transformer_scanned_over_layers(stacked, x):
    def layer(h, weights):
        qkv, out, up, down = weights
        q, k, v = jnp.split((h @ qkv).reshape(4, 128, 12, 64), 3, axis=2)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) / 8
        mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores).astype(h.dtype), v)
        h = h + mixed.reshape(4, 128, 256) @ out
        return h + jax.nn.relu(h @ up) @ down, None

    def loss(stacked):
        h = lax.scan(jax.checkpoint(layer), x, stacked)[0]
        return jnp.square(h.astype(jnp.float32)).mean()

    return jax.value_and_grad(loss)(stacked)


@posted(_LAYERS, _LAYERS, F32(), F32(256, 512), F32(256, 512), donate=(0, 1))
def clipped_by_global_norm(weights, momentum, rate, x, y):
    grads = jax.grad(_square)(weights, x, y)
    norm = jnp.sqrt(sum(jnp.vdot(g, g) for g in jax.tree.leaves(grads)))
    grads = jax.tree.map(lambda g: g * jnp.minimum(1, 1 / (norm + 1e-6)), grads)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
    return jax.tree.map(lambda w, m: w - rate * jnp.sign(m), weights, momentum), momentum, norm


@posted({"table": F32(4096, 256), "out": F32(256, 4096)}, I32(8, 64), I32(8, 64))
def smoothed_cross_entropy(weights, tokens, labels):
    def loss(weights):
        logits = weights["table"][tokens] @ weights["out"]
        target = 0.9 * jax.nn.one_hot(labels, 4096) + 0.1 / 4096
        return -(target * jax.nn.log_softmax(logits)).sum(-1).mean()

    return jax.value_and_grad(loss)(weights)


@posted([BF16(1024, 1024)] * 4, [(F32(1024, 8), F32(8, 1024))] * 4, BF16(128, 1024))
def low_rank_adapters(frozen, adapters, x):
    def loss(adapters):
        h = x
        for w, (a, b) in zip(frozen, adapters, strict=True):
            h = jax.nn.silu(h @ w + (h @ a.astype(h.dtype)) @ b.astype(h.dtype))
        return (h.astype(jnp.float32) ** 2).mean()

    grads = jax.grad(loss)(adapters)
    return jax.tree.map(lambda p, g: p - 1e-3 * g, adapters, grads)


@posted(F32(768, 256), F32(512, 256), F32(), F32(512, 768), F32(512, 512))
def contrastive_pairs(image, text, temperature, images, texts):
    def loss(image, text, temperature):
        a, b = images @ image, texts @ text
        a, b = (v / jnp.linalg.norm(v, axis=-1, keepdims=True) for v in (a, b))
        logits = jnp.exp(temperature) * a @ b.T
        rows, columns = jax.nn.log_softmax(logits), jax.nn.log_softmax(logits, axis=0)
        return -(jnp.diagonal(rows) + jnp.diagonal(columns)).mean() / 2

    return jax.grad(loss, argnums=(0, 1, 2))(image, text, temperature)


@posted(_LAYERS, _LAYERS, F32(256, 512))
def distilled(student, teacher, x):
    def loss(student):
        soft = lax.stop_gradient(jax.nn.softmax(_mlp(teacher, x) / 2))
        return -(soft * jax.nn.log_softmax(_mlp(student, x) / 2)).sum(-1).mean()

    grads = jax.grad(loss)(student)
    student = jax.tree.map(lambda w, g: w - 0.1 * g, student, grads)
    return student, jax.tree.map(lambda t, s: 0.99 * t + 0.01 * s, teacher, student)


@posted([F32(512, 512)] * 4, F32(256, 512), KEY)
def dropped_units(weights, x, key):
    def loss(weights):
        h = x
        for number, w in enumerate(weights):
            kept = jax.random.bernoulli(jax.random.fold_in(key, number), 0.8, h.shape)
            h = jnp.where(kept, jax.nn.relu(h @ w) / 0.8, 0)
        return h.sum()

    return jax.grad(loss)(weights)


@posted((F32(3, 3, 32, 64), F32(64), F32(64)), (F32(64), F32(64)), F32(8, 32, 32, 32))
def batch_normalized_convolution(weights, running, x):
    kernel, gain, bias = weights

    def forward(kernel, gain, bias):
        y = _convolved(x, kernel, 2)
        mean, variance = y.mean((0, 1, 2)), y.var((0, 1, 2))
        out = jax.nn.relu(gain * (y - mean) * lax.rsqrt(variance + 1e-5) + bias)
        return (out**2).mean(), (mean, variance)

    grads, seen = jax.grad(forward, argnums=(0, 1, 2), has_aux=True)(kernel, gain, bias)
    return grads, jax.tree.map(lambda r, s: 0.9 * r + 0.1 * s, running, seen)


@posted([F32(3, 3, 16, 32), F32(3, 3, 32, 64), F32(2, 2, 64, 32), F32(3, 3, 64, 16)],
        F32(4, 64, 64, 16))  # fmt: skip
def small_u_net(kernels, x):
    def loss(kernels):
        first, second, up, last = kernels
        a = jax.nn.relu(_convolved(x, first))
        b = lax.reduce_window(a, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        b = jax.nn.relu(_convolved(b, second))
        c = lax.conv_transpose(b, up, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        d = jnp.concatenate([a, c], axis=-1)
        return ((_convolved(d, last) - x) ** 2).mean()

    return jax.grad(loss)(kernels)


@posted(_LAYERS, (F32(512, 256), F32(256, 1)), F32(128, 512), KEY)
def adversarial_step(generator, critic, real, key):
    noise = jax.random.normal(key, real.shape)

    def critic_loss(critic):
        fake = _mlp(critic, _mlp(generator, noise))
        return (jax.nn.softplus(fake) + jax.nn.softplus(-_mlp(critic, real))).mean()

    critic = jax.tree.map(lambda w, g: w - 1e-3 * g, critic, jax.grad(critic_loss)(critic))

    def generator_loss(generator):
        return jax.nn.softplus(-_mlp(critic, _mlp(generator, noise))).mean()

    grads = jax.grad(generator_loss)(generator)
    return jax.tree.map(lambda w, g: w - 1e-3 * g, generator, grads), critic


@posted((F32(784, 400), F32(400, 40)), (F32(20, 400), F32(400, 784)), F32(128, 784), KEY)
def variational_autoencoder(encoder, decoder, x, key):
    def loss(encoder, decoder):
        mean, log_variance = jnp.split(_mlp(encoder, x), 2, axis=-1)
        z = mean + jnp.exp(log_variance / 2) * jax.random.normal(key, mean.shape)
        logits = _mlp(decoder, z)
        seen = (jnp.maximum(logits, 0) - logits * x + jnp.log1p(jnp.exp(-abs(logits)))).sum(-1)
        kl = -0.5 * (1 + log_variance - mean**2 - jnp.exp(log_variance)).sum(-1)
        return (seen + kl).mean()

    return jax.value_and_grad(loss, argnums=(0, 1))(encoder, decoder)


@posted((F32(128, 512), F32(512, 18)), (F32(128, 512), F32(512, 18)), F32(256, 128), I32(256),
        F32(256), F32(256, 128), F32(256))  # fmt: skip
def double_q_learning(online, target, seen, actions, rewards, after, goes_on):
    best = _mlp(online, after).argmax(-1)
    value = jnp.take_along_axis(_mlp(target, after), best[:, None], axis=1)[:, 0]
    aim = lax.stop_gradient(rewards + 0.99 * goes_on * value)

    def loss(online):
        q = jnp.take_along_axis(_mlp(online, seen), actions[:, None], axis=1)[:, 0]
        error = jnp.abs(q - aim)
        return jnp.where(error < 1, 0.5 * error**2, error - 0.5).mean()

    return jax.tree.map(lambda w, g: w - 1e-3 * g, online, jax.grad(loss)(online))


@posted((F32(64, 256), F32(256, 9)), F32(64, 32, 64), I32(64, 32), F32(64, 32), F32(64, 32), KEY)
def proximal_policy_epochs(weights, seen, actions, old_log, rewards, key):
    def values(weights):
        return _mlp(weights, seen)

    def advantage(later, now):
        reward, value, after = now
        later = reward + 0.99 * after - value + 0.94 * later
        return later, later

    value = values(weights)[..., -1]
    after = jnp.concatenate([value[1:], jnp.zeros((1, 32))])
    _, gains = lax.scan(advantage, jnp.zeros(32), (rewards, value, after), reverse=True)
    flat = seen.reshape(-1, 64), actions.reshape(-1), old_log.reshape(-1), gains.reshape(-1)

    def loss(weights, seen, actions, old_log, gains):
        out = _mlp(weights, seen)
        logs = jax.nn.log_softmax(out[:, :-1])[jnp.arange(len(actions)), actions]
        ratio = jnp.exp(logs - old_log)
        policy = jnp.minimum(ratio * gains, jnp.clip(ratio, 0.8, 1.2) * gains)
        return ((out[:, -1] - gains) ** 2 - policy).mean()

    def epoch(weights, key):
        order = jax.random.permutation(key, 2048).reshape(4, 512)

        def minibatch(weights, chosen):
            grads = jax.grad(loss)(weights, *(one[chosen] for one in flat))
            return jax.tree.map(lambda w, g: w - 3e-4 * g, weights, grads), None

        return lax.scan(minibatch, weights, order)

    return lax.scan(epoch, weights, jax.random.split(key, 3))[0]


@posted((F32(4, 128), F32(128, 2)), F32(256, 4), KEY)
def cart_pole_rollout(weights, start, key):
    def step(state, key):
        x, v, angle, spin = state.T
        action = jax.random.categorical(key, _mlp(weights, state))
        force = jnp.where(action == 1, 10.0, -10.0)
        push = (force + 0.05 * spin**2 * jnp.sin(angle)) / 1.1
        turn = 9.8 * jnp.sin(angle) - jnp.cos(angle) * push
        turn = turn / (0.5 * (4 / 3 - 0.1 * jnp.cos(angle) ** 2 / 1.1))
        after = state.T + 0.02 * jnp.stack([v, push, spin, turn])
        done = (jnp.abs(x) > 2.4) | (jnp.abs(angle) > 0.2)
        return jnp.where(done[:, None], start, after.T), (state, action, done)

    return lax.scan(step, start, jax.random.split(key, 100))[1]


@posted([F32(512, 512)] * 2, [F32(512, 512)] * 2, F32(128, 512), F32(128, 512), donate=(0, 1))
def orthogonalized_momentum(weights, momentum, x, y):
    def orthogonal(g):
        g = g.astype(jnp.bfloat16)

        def step(_, m):
            square = m @ m.T
            return 3.4445 * m + (-4.775 * square + 2.0315 * square @ square) @ m

        return lax.fori_loop(0, 5, step, g / (jnp.linalg.norm(g) + 1e-7)).astype(jnp.float32)

    grads = jax.grad(_square)(weights, x, y)
    momentum = [0.95 * m + g for m, g in zip(momentum, grads, strict=True)]
    return [w - 0.02 * orthogonal(m) for w, m in zip(weights, momentum, strict=True)], momentum


@posted((F32(512, 256), F32(256, 1)), F32(128, 512), F32(128, 512), F32(128, 1))
def gradient_penalty(critic, real, fake, mix):
    def loss(critic):
        between = mix * real + (1 - mix) * fake
        slope = jax.grad(lambda x: _mlp(critic, x).sum())(between)
        penalty = (jnp.linalg.norm(slope, axis=-1) - 1) ** 2
        return (_mlp(critic, fake) - _mlp(critic, real)).mean() + 10 * penalty.mean()

    return jax.value_and_grad(loss)(critic)


@posted(_LAYERS, F32(128, 512), F32(128, 512))
def newton_by_hessian_products(weights, x, y):
    gradient = jax.grad(_square)
    grads = gradient(weights, x, y)

    def product(v):
        moved = jax.jvp(lambda w: gradient(w, x, y), (weights,), (v,))[1]
        return jax.tree.map(lambda h, v: h + 0.1 * v, moved, v)

    step, _ = jax.scipy.sparse.linalg.cg(product, grads, maxiter=8)
    return jax.tree.map(jnp.subtract, weights, step)


@posted((F32(128, 256), F32(256, 10)), F32(64, 128), F32(64, 10), KEY)
def private_gradients(weights, x, y, key):
    each = jax.vmap(jax.grad(_square), (None, 0, 0))(weights, x, y)
    norms = jnp.sqrt(sum((g.reshape(64, -1) ** 2).sum(-1) for g in each))
    clip = jnp.minimum(1, 1 / norms)
    keys = jax.random.split(key, len(each))
    return [
        jnp.einsum("b,b...->...", clip, g) / 64 + 0.01 * jax.random.normal(k, g.shape[1:])
        for g, k in zip(each, keys, strict=True)
    ]


@posted((F32(64, 256), F32(256, 64)), F32(8, 32, 64), F32(8, 32, 64))
def meta_learning(weights, xs, ys):
    def task(weights, x, y):
        def inner(weights, _):
            grads = jax.grad(_square)(weights, x[:16], y[:16])
            return jax.tree.map(lambda w, g: w - 0.1 * g, weights, grads), None

        return _square(lax.scan(inner, weights, None, length=3)[0], x[16:], y[16:])

    def loss(weights):
        return jax.vmap(task, (None, 0, 0))(weights, xs, ys).mean()

    return jax.value_and_grad(loss)(weights)


@posted(F32(8, 100, 64), I32(8, 20))
def connectionist_temporal_loss(logits, labels):
    def one(logits, labels):
        logs = jax.nn.log_softmax(logits)
        extended = jnp.zeros(41, jnp.int32).at[1::2].set(labels)
        skips = (extended != 0) & (extended != jnp.roll(extended, 2)) & (jnp.arange(41) > 1)
        start = jnp.full(41, -1e9).at[:2].set(logs[0, extended[:2]])

        def step(alpha, now):
            one = jnp.roll(alpha, 1).at[0].set(-1e9)
            two = jnp.where(skips, jnp.roll(alpha, 2), -1e9)
            return jnp.logaddexp(jnp.logaddexp(alpha, one), two) + now[extended], None

        last = lax.scan(step, start, logs[1:])[0]
        return -jnp.logaddexp(last[-1], last[-2])

    return jax.value_and_grad(lambda logits: jax.vmap(one)(logits, labels).mean())(logits)


@posted(F32(8, 512, 512), F32(128, 512), KEY)
def stochastic_depth(weights, x, key):
    def loss(weights):
        def layer(h, given):
            w, key = given
            kept = jax.random.bernoulli(key, 0.7)
            return lax.cond(kept, lambda h: h + jnp.tanh(h @ w), lambda h: h, h), None

        return lax.scan(layer, x, (weights, jax.random.split(key, 8)))[0].sum()

    return jax.grad(loss)(weights)


@posted(F32(20000, 128), F32(20000, 128), I32(512), I32(512), I32(64), donate=(0, 1))
def negative_sampling(inputs, outputs, words, contexts, negatives):
    def loss(inputs, outputs):
        center = inputs[words]
        good = jax.nn.log_sigmoid((center * outputs[contexts]).sum(-1))
        return -(good + jax.nn.log_sigmoid(-center @ outputs[negatives].T).sum(-1)).mean()

    grads = jax.grad(loss, argnums=(0, 1))(inputs, outputs)
    return inputs - 0.1 * grads[0], outputs - 0.1 * grads[1]


@posted(_LAYERS, F32(128, 512), F32(128, 512))
def sharpness_aware_step(weights, x, y):
    grads = jax.grad(_square)(weights, x, y)
    norm = jnp.sqrt(sum((g**2).sum() for g in grads)) + 1e-12
    moved = jax.tree.map(lambda w, g: w + 0.05 * g / norm, weights, grads)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, jax.grad(_square)(moved, x, y))


@jax.custom_vjp
def _rounded(w):
    scale = jnp.abs(w).max() / 127
    return jnp.round(w / scale) * scale


_rounded.defvjp(lambda w: (_rounded(w), None), lambda _, g: (g,))


@posted([F32(512, 512)] * 3, F32(256, 512))
def quantization_aware(weights, x):
    def loss(weights):
        h = x
        for w in weights:
            h = jax.nn.relu(_rounded(h) @ _rounded(w))
        return (h**2).mean()

    return jax.value_and_grad(loss)(weights)


@posted((F32(3, 3, 4, 64), F32(32, 64), F32(3, 3, 64, 4)), F32(8, 32, 32, 4), KEY)
def denoising_step(weights, images, key):
    when, chance = jax.random.split(key)
    time = jax.random.randint(when, (8,), 0, 1000)
    kept = jnp.cos(time / 1000 * jnp.pi / 2)[:, None, None, None] ** 2
    noise = jax.random.normal(chance, images.shape)
    angles = time[:, None] * jnp.exp(-jnp.arange(16) / 2)

    def loss(weights):
        first, embed, last = weights
        x = jnp.sqrt(kept) * images + jnp.sqrt(1 - kept) * noise
        h = _convolved(x, first)
        h = h + (jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], 1) @ embed)[:, None, None]
        return ((_convolved(jax.nn.silu(h), last) - noise) ** 2).mean()

    return jax.tree.map(lambda w, g: w - 1e-4 * g, weights, jax.grad(loss)(weights))
