"""Models of sequences: attention, caches and decoding, recurrences, state spaces, and experts."""

import jax
import jax.numpy as jnp
from jax import lax

from .kept import BF16, BOOL, C64, F32, I8, I32, KEY, U8, of, posted

FP8 = of(jnp.float8_e4m3fn)


@posted((BF16(6, 512, 768), BF16(6, 512, 512)), BF16(6, 2, 4, 1024, 2, 64), BF16(4, 512), I32(),
        donate=(1,))  # fmt: skip
def decode_with_grouped_cache(stacked, caches, x, at):
    def layer(x, given):
        (qkv, out), cache = given
        h = x @ qkv
        q, new = h[:, :512].reshape(4, 2, 4, 64), h[:, 512:].reshape(4, 2, 2, 64)
        cache = lax.dynamic_update_slice(cache, new.swapaxes(0, 1)[:, :, None], (0, 0, at, 0, 0))
        scores = jnp.einsum("bgrd,bkgd->bgrk", q, cache[0]) / 8
        scores = jnp.where(jnp.arange(1024) <= at, scores, -jnp.inf)
        mixed = jnp.einsum("bgrk,bkgd->bgrd", jax.nn.softmax(scores), cache[1])
        return x + mixed.reshape(4, 512) @ out, cache

    return lax.scan(layer, x, (stacked, caches))


@posted(BF16(2048, 256), BF16(256, 256), BF16(512, 256), I32(8, 32))
def greedy_until_end(table, hidden, mix, prompt):
    def go_on(state):
        return (state[2] < 32) & ~state[3].all()

    def step(state):
        tokens, h, at, done = state
        h = jnp.tanh(jnp.concatenate([h @ hidden, table[tokens[:, at - 1]]], -1) @ mix)
        new = jnp.where(done, 0, (h @ table.T).argmax(-1)).astype(jnp.int32)
        return tokens.at[:, at].set(new), h, at + 1, done | (new == 0)

    start = prompt, jnp.zeros((8, 256), jnp.bfloat16), 1, jnp.zeros(8, bool)
    return lax.while_loop(go_on, step, start)[0]


@posted(F32(1000, 128), F32(128, 128), F32(4, 128))
def beam_search(table, weights, start):
    def step(state, _):
        h, scores, tokens = state
        h = jnp.tanh(h @ weights + table[tokens])
        logs = jax.nn.log_softmax(h @ table.T) + scores[..., None]
        scores, best = lax.top_k(logs.reshape(4, 5 * 1000), 5)
        parents, tokens = best // 1000, best % 1000
        h = jnp.take_along_axis(h, parents[..., None], axis=1)
        return (h, scores, tokens), (parents, tokens)

    first = jnp.repeat(start[:, None], 5, axis=1), jnp.zeros((4, 5)), jnp.zeros((4, 5), jnp.int32)
    (_, scores, _), (parents, tokens) = lax.scan(step, first, None, length=24)

    def back(place, now):
        parents, tokens = now
        token = jnp.take_along_axis(tokens, place, axis=1)
        return jnp.take_along_axis(parents, place, axis=1), token

    path = jnp.broadcast_to(jnp.arange(5), (4, 5))
    return scores, lax.scan(back, path, (parents, tokens), reverse=True)[1]


@posted(F32(16, 32000), KEY, F32())
def nucleus_sampling(logits, key, share):
    order = jnp.argsort(-logits, axis=-1)
    ranked = jnp.take_along_axis(logits, order, axis=-1)
    before = jnp.cumsum(jax.nn.softmax(ranked), axis=-1) - jax.nn.softmax(ranked)
    drawn = jax.random.categorical(key, jnp.where(before < share, ranked, -jnp.inf))
    return jnp.take_along_axis(order, drawn[:, None], axis=-1)[:, 0]


@posted(F32(8, 6, 4096), F32(8, 6, 4096), I32(8, 5), KEY)
def speculative_acceptance(target, draft, tokens, key):
    p, q = jax.nn.softmax(target), jax.nn.softmax(draft)
    chosen = tokens[..., None]
    ratio = jnp.take_along_axis(p[:, :5], chosen, -1) / jnp.take_along_axis(q[:, :5], chosen, -1)
    accepted = jax.random.uniform(key, (8, 5)) < ratio[..., 0]
    count = jnp.cumprod(accepted, axis=1).sum(1)
    left = jnp.maximum(p - q, 0)[jnp.arange(8), count]
    return count, jax.random.categorical(key, jnp.log(left + 1e-9))


@posted(BF16(4, 1024, 64), BF16(4, 1024, 64), BF16(4, 1024, 64))
def blockwise_causal_attention(q, k, v):
    def rows(i):
        queries = lax.dynamic_slice_in_dim(q, i * 256, 256, 1)

        def columns(j, state):
            top, total, out = state
            keys = lax.dynamic_slice_in_dim(k, j * 256, 256, 1)
            values = lax.dynamic_slice_in_dim(v, j * 256, 256, 1)
            s = jnp.einsum("hqd,hkd->hqk", queries, keys).astype(jnp.float32) / 8
            causal = (i * 256 + jnp.arange(256))[:, None] >= j * 256 + jnp.arange(256)
            s = jnp.where(causal, s, -1e30)
            new = jnp.maximum(top, s.max(-1))
            p, old = jnp.exp(s - new[..., None]), jnp.exp(top - new)
            out = out * old[..., None] + jnp.einsum("hqk,hkd->hqd", p, values.astype(jnp.float32))
            return new, total * old + p.sum(-1), out

        start = jnp.full((4, 256), -1e30), jnp.zeros((4, 256)), jnp.zeros((4, 256, 64))
        _, total, out = lax.fori_loop(0, i + 1, columns, start)
        return out / total[..., None]

    return lax.map(rows, jnp.arange(4)).swapaxes(0, 1).reshape(4, 1024, 64)


@posted(BF16(8, 1024, 64), BF16(8, 1024, 64), BF16(8, 1024, 64))
def sliding_window_chunks(q, k, v):
    q, k, v = (x.reshape(8, 8, 128, 64) for x in (q, k, v))
    k, v = (jnp.concatenate([jnp.roll(x, 1, axis=1), x], axis=2) for x in (k, v))
    scores = jnp.einsum("hcqd,hckd->hcqk", q, k).astype(jnp.float32) / 8
    distance = jnp.arange(128)[:, None] + 128 - jnp.arange(256)
    inside = (distance >= 0) & (distance < 128)
    first = (jnp.arange(8) > 0)[:, None, None] | (jnp.arange(256) >= 128)
    weights = jax.nn.softmax(jnp.where(inside & first, scores, -1e9)).astype(v.dtype)
    return jnp.einsum("hcqk,hckd->hcqd", weights, v).reshape(8, 1024, 64)


@posted(BF16(8, 1024), BF16(1024, 512), BF16(1024, 16, 64), BF16(512, 16, 64), BF16(512, 16, 64),
        BF16(8, 2048, 512), I32(8), donate=(5,))  # fmt: skip
def latent_attention_decode(x, down, query, up_key, up_value, cache, at):
    cache = cache.at[jnp.arange(8), at].set(x @ down)
    absorbed = jnp.einsum("bhd,lhd->bhl", jnp.einsum("bw,whd->bhd", x, query), up_key)
    scores = jnp.einsum("bhl,bkl->bhk", absorbed, cache).astype(jnp.float32) / 8
    scores = jnp.where(jnp.arange(2048) <= at[:, None, None], scores, -1e9)
    mixed = jnp.einsum("bhk,bkl->bhl", jax.nn.softmax(scores).astype(cache.dtype), cache)
    return jnp.einsum("bhl,lhd->bhd", mixed, up_value), cache


@posted(BF16(256, 16, 4, 64), BF16(256, 16, 4, 64), I32(8, 32), I32(8), BF16(8, 4, 4, 64))
def gathered_pages(keys, values, pages, lengths, q):
    k, v = (x[pages].reshape(8, 512, 4, 64) for x in (keys, values))
    scores = jnp.einsum("bgrd,bkgd->bgrk", q, k).astype(jnp.float32) / 8
    scores = jnp.where(jnp.arange(512) < lengths[:, None, None, None], scores, -1e9)
    return jnp.einsum("bgrk,bkgd->bgrd", jax.nn.softmax(scores).astype(v.dtype), v)


@posted(I8(2, 8, 1024, 128), F32(2, 8, 1024), BF16(2, 8, 1, 128), BF16(8, 4, 128), I32(),
        donate=(0, 1))  # fmt: skip
def quantized_ring_cache(cache, scales, new, q, step):
    place = step % 1024
    scale = jnp.abs(new).max(-1).astype(jnp.float32) / 127
    rounded = jnp.round(new / scale[..., None]).astype(jnp.int8)
    cache = lax.dynamic_update_slice(cache, rounded, (0, 0, place, 0))
    scales = lax.dynamic_update_slice(scales, scale, (0, 0, place))
    keys, values = cache.astype(jnp.float32) * scales[..., None]
    scores = jnp.einsum("hrd,hkd->hrk", q.astype(jnp.float32), keys) / 11.3
    seen = jnp.where(jnp.arange(1024) <= step, scores, -1e9)
    return cache, scales, jnp.einsum("hrk,hkd->hrd", jax.nn.softmax(seen), values)


@posted(F32(4, 512, 64), F32(4, 512, 64), F32(4, 512, 64))
def linear_attention_chunks(q, k, v):
    def chunk(state, given):
        q, k, v = given
        inside = jnp.tril(jnp.einsum("hqd,hkd->hqk", q, k)) @ v
        out = q @ state + inside
        return state + jnp.einsum("hkd,hke->hde", k, v), out

    q, k, v = (jax.nn.elu(x) + 1 for x in (q, k, v))
    pieces = [x.reshape(4, 8, 64, 64).swapaxes(0, 1) for x in (q, k, v)]
    return lax.scan(chunk, jnp.zeros((4, 64, 64)), pieces)[1]


@posted(F32(4, 512, 64), F32(4, 512), F32(512, 16), F32(512, 16))
def state_space_duality(x, decay, b, c):
    def head(x, decay):
        log = jnp.cumsum(-jax.nn.softplus(decay).reshape(8, 64), axis=1)
        between = log[:, :, None] - log[:, None]
        mask = jnp.where(jnp.tril(jnp.ones((64, 64), bool)), jnp.exp(between), 0)
        x, into, out = x.reshape(8, 64, 64), b.reshape(8, 64, 16), c.reshape(8, 64, 16)
        inside = jnp.einsum("ctn,csn,cts,csd->ctd", out, into, mask, x)
        states = jnp.einsum("csn,cs,csd->cnd", into, jnp.exp(log[:, -1:] - log), x)

        def join(left, right):
            return left[0] * right[0], left[1] * right[0] + right[1]

        whole = jnp.broadcast_to(jnp.exp(log[:, -1])[:, None, None], states.shape)
        carried = lax.associative_scan(join, (whole, states))[1]
        before = jnp.concatenate([jnp.zeros((1, 16, 64)), carried[:-1]])
        return inside + jnp.einsum("ctn,ct,cnd->ctd", out, jnp.exp(log), before)

    return jax.vmap(head)(x, decay)


@posted(F32(256), F32(256), F32(256, 64), F32(256, 64), F32(64, 256), F32(64, 256), F32(512, 64))
def complex_linear_recurrence(size, angle, b_real, b_imaginary, c_real, c_imaginary, x):
    decay = jnp.exp(-jnp.exp(size) + 1j * jnp.exp(angle))
    inputs = x @ (b_real + 1j * b_imaginary).T

    def join(left, right):
        return left[0] * right[0], left[1] * right[0] + right[1]

    _, states = lax.associative_scan(join, (jnp.broadcast_to(decay, inputs.shape), inputs))
    return (states @ (c_real + 1j * c_imaginary).T).real


@posted(F32(256), F32(256), F32(128, 8, 256), F32(128, 8, 256))
def receptance_weighted_keys(decay, bonus, keys, values):
    def step(state, given):
        above, below, top = state
        k, v = given
        best = jnp.maximum(top, k + bonus)
        a, b = jnp.exp(top - best), jnp.exp(k + bonus - best)
        out = (a * above + b * v) / (a * below + b)
        best = jnp.maximum(top - jnp.exp(decay), k)
        a, b = jnp.exp(top - jnp.exp(decay) - best), jnp.exp(k - best)
        return (a * above + b * v, a * below + b, best), out

    start = jnp.zeros((8, 256)), jnp.zeros((8, 256)), jnp.full((8, 256), -1e30)
    return lax.scan(step, start, (keys, values))[1]


@posted(F32(2, 256, 1024), F32(2, 256, 1024), F32(2, 1024), F32(32, 16, 256))
def bidirectional_lstm(inputs, recurrent, bias, x):
    def one_way(w, u, b, reverse):
        def step(state, x):
            h, c = state
            i, f, g, o = jnp.split(x @ w + h @ u + b, 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros((16, 256))
        return lax.scan(step, (zero, zero), x, reverse=reverse)[1]

    ways = [one_way(inputs[i], recurrent[i], bias[i], i == 1) for i in range(2)]
    return jnp.concatenate(ways, axis=-1)


@posted(F32(512, 1536), F32(256, 768), F32(256, 256), F32(64, 8, 256), F32(24, 8, 256))
def attentive_translator(weights, recurrent, score, encoded, words):
    def loss(weights, recurrent, score):
        def step(h, word):
            e = jnp.einsum("bd,de,tbe->tb", h, score, encoded)
            context = jnp.einsum("tb,tbe->be", jax.nn.softmax(e, axis=0), encoded)
            z, r, n = jnp.split(jnp.concatenate([word, context], -1) @ weights[:, :768], 3, -1)
            uz, ur, un = jnp.split(h @ recurrent, 3, axis=-1)
            z = jax.nn.sigmoid(z + uz)
            h = z * h + (1 - z) * jnp.tanh(n + jax.nn.sigmoid(r + ur) * un)
            return h, h

        return (lax.scan(step, jnp.zeros((8, 256)), words)[1] ** 2).mean()

    return jax.grad(loss, argnums=(0, 1, 2))(weights, recurrent, score)


@posted(BF16(512, 256), BF16(256, 8), BF16(8, 256, 512), BF16(8, 512, 256))
def experts_sorted_and_ragged(x, router, up, down):
    gates, chosen = lax.top_k(jax.nn.softmax((x @ router).astype(jnp.float32)), 2)
    order = jnp.argsort(chosen.reshape(-1))
    sizes = jnp.bincount(chosen.reshape(-1), length=8).astype(jnp.int32)
    h = jax.nn.silu(lax.ragged_dot(x[order // 2], up, sizes))
    y = lax.ragged_dot(h, down, sizes) * gates.reshape(-1)[order][:, None].astype(x.dtype)
    return jnp.zeros_like(x).at[order // 2].add(y)


@posted(BF16(512, 256), BF16(256, 8), BF16(8, 256, 512), BF16(8, 512, 256))
def experts_with_capacity(x, router, up, down):
    gates = jax.nn.softmax((x @ router).astype(jnp.float32))
    hot = jax.nn.one_hot(gates.argmax(-1), 8)
    place = (jnp.cumsum(hot, axis=0) - 1) * hot
    sent = hot[..., None] * jax.nn.one_hot(place.sum(-1), 80)[:, None]
    inputs = jnp.einsum("bec,bd->ecd", sent.astype(x.dtype), x)
    y = jnp.einsum("ecf,efd->ecd", jax.nn.gelu(jnp.einsum("ecd,edf->ecf", inputs, up)), down)
    return jnp.einsum("bec,be,ecd->bd", sent, gates, y.astype(jnp.float32))


@posted(F32(512, 256), F32(256, 8), F32(8, 256, 512), F32(8, 512, 256))
def experts_choose_tokens(x, router, up, down):
    def loss(x, router, up, down):
        gates, chosen = lax.top_k(jax.nn.softmax(x @ router).T, 64)
        y = jnp.einsum("ecd,edf->ecf", x[chosen], up)
        y = jnp.einsum("ecf,efd->ecd", jax.nn.relu(y), down) * gates[..., None]
        return (jnp.zeros_like(x).at[chosen.reshape(-1)].add(y.reshape(-1, 256)) ** 2).mean()

    return jax.grad(loss, argnums=(1, 2, 3))(x, router, up, down)


@posted(F32(16, 32, 128), I32(16), F32(4, 128, 128))
def layers_switched_in_a_map(x, kinds, weights):
    branches = [lambda h, w=w: jnp.tanh(h @ w) for w in weights]

    def one(given):
        return lax.switch(given[0], branches, given[1])

    return lax.map(one, (kinds, x))


@posted(C64(32, 64), C64(32, 64), F32(8, 1024, 32))
def vandermonde_kernel(poles, weights, x):
    powers = jnp.exp(poles[..., None] * jnp.arange(1024))
    kernel = 2 * jnp.einsum("dn,dnt->dt", weights, powers).real
    spread = jnp.fft.rfft(x, n=2048, axis=1) * jnp.fft.rfft(kernel.T, n=2048, axis=0)
    return jnp.fft.irfft(spread, n=2048, axis=1)[:, :1024]


@posted(F32(64, 64), F32(64), F32(8, 200, 64), I32(8))
def most_likely_path(transitions, start, scores, lengths):
    def one(scores, length):
        def forward(best, given):
            at, now = given
            paths = best[:, None] + transitions
            better = paths.max(0) + now
            return jnp.where(at < length, better, best), paths.argmax(0)

        last, from_where = lax.scan(forward, start + scores[0], (jnp.arange(1, 200), scores[1:]))

        def backward(state, given):
            at, came = given
            state = jnp.where(at < length, came[state], state)
            return state, state

        path = lax.scan(
            backward, last.argmax(), (jnp.arange(1, 200), from_where), reverse=True
        )[1]  # fmt: skip
        return last.max(), path

    return jax.vmap(one)(scores, lengths)


@posted(F32(32, 32), F32(16, 100, 32), I32(16, 100), BOOL(16, 100))
def conditional_random_field(transitions, scores, tags, present):
    def loss(transitions, scores):
        def step(alpha, given):
            now, present = given
            new = jax.nn.logsumexp(alpha[:, :, None] + transitions, axis=1) + now
            return jnp.where(present[:, None], new, alpha), None

        steps = scores.swapaxes(0, 1)[1:], present.T[1:]
        whole = jax.nn.logsumexp(lax.scan(step, scores[:, 0], steps)[0], axis=-1)
        own = jnp.take_along_axis(scores, tags[..., None], -1)[..., 0] * present
        moves = transitions[tags[:, :-1], tags[:, 1:]] * present[:, 1:]
        return (whole - own.sum(1) - moves.sum(1)).mean()

    return jax.value_and_grad(loss, argnums=(0, 1))(transitions, scores)


@posted(BF16(64, 4096), U8(2048, 2048), BF16(64, 2048))
def weights_of_four_bits_in_groups(x, packed, scales):
    halves = jnp.stack([packed & 15, packed >> 4], axis=1).reshape(4096, 2048)
    weights = (halves.astype(jnp.bfloat16) - 8).reshape(64, 64, 2048) * scales[:, None]
    return x @ weights.reshape(4096, 2048)


@posted(BF16(256, 512), FP8(512, 1024), F32(), FP8(1024, 512), F32())
def eight_bit_floats_with_scales(x, up, up_scale, down, down_scale):
    def product(x, w, scale):
        own = jnp.abs(x).max().astype(jnp.float32) / 448
        y = lax.dot((x / own).astype(w.dtype), w, preferred_element_type=jnp.float32)
        return (y * own * scale).astype(jnp.bfloat16)

    return product(jax.nn.relu(product(x, up, up_scale)), down, down_scale)


@posted([BF16(512, 512)] * 6, BF16(16, 512), BF16(512, 2))
def leaves_early_when_sure(layers, x, exits):
    stacked = jnp.stack(layers)

    def go_on(state):
        return (state[1] < 6) & (state[2] < 0.9)

    def step(state):
        h, at, _ = state
        h = h + jax.nn.gelu(h @ stacked[at])
        return h, at + 1, jax.nn.softmax((h @ exits).astype(jnp.float32)).max(-1).min()

    return lax.while_loop(go_on, step, (x, 0, jnp.float32(0)))


@posted(BF16(2, 512, 512), I32(2, 512), BF16(512, 1536))
def packed_documents(x, segments, weights):
    q, k, v = jnp.split((x @ weights).reshape(2, 512, 24, 64), 3, axis=2)
    same = segments[:, :, None] == segments[:, None]
    mask = same & jnp.tril(jnp.ones((512, 512), bool)) & (segments > 0)[:, None]
    return jax.nn.dot_product_attention(q, k, v, mask=mask[:, None])
