"""Transformers over text, and text beside pictures and sound."""

import math

import jax
import jax.numpy as jnp
from jax import lax

from .layers import attention, block, conv, cross_entropy, dense, layer_norm, rms_norm
from .parameters import BF16, F32, I32, Program, Shape, inference, training
from .vision import images, vision_tower


def tokens(batch: int, length: int) -> Shape:
    return Shape((batch, length), I32)


def _encoder_block(p, x, heads):
    """BERT's: norms behind the parts."""
    width = x.shape[-1]
    q, k, v = dense(p, x, width), dense(p, x, width), dense(p, x, width)
    x = layer_norm(p, x + dense(p, attention(q, k, v, heads), width))
    return layer_norm(p, x + dense(p, jax.nn.gelu(dense(p, x, 4 * width)), width))


def bert(batch: int, length: int, layers: int = 12, width: int = 768) -> Program:
    def model(p, ids):
        x = layer_norm(p, p(30522, width)[ids] + p(512, width)[:length] + p(2, width)[0])
        for _ in range(layers):
            x = _encoder_block(p, x, width // 64)
        return x

    return inference(model, tokens(batch, length))


def t5_small(batch: int, length: int, output_length: int) -> Program:
    """Encoder and decoder with relative positions and shared embeddings."""
    width, heads, buckets = 512, 8, 32

    def bias(p, queries, keys):
        distance = jnp.arange(keys)[None] - jnp.arange(queries)[:, None]
        near = jnp.clip(distance + buckets // 2, 0, buckets - 1)
        return p(buckets, heads)[near].transpose(2, 0, 1)

    def attend(p, x, memory, positions, causal=False):
        def split(y):
            return y.reshape((*y.shape[:-1], heads, 64))

        q, k, v = (split(dense(p, y, heads * 64, False)) for y in (x, memory, memory))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(F32)
        scores = scores if positions is None else scores + positions.astype(F32)
        if causal:
            scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
        weights = jax.nn.softmax(scores, -1).astype(BF16)
        return dense(
            p, jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape((*x.shape[:-1], -1)), width, False
        )

    def feed_forward(p, x):
        return dense(p, jax.nn.relu(dense(p, rms_norm(p, x), 2048, False)), width, False)

    def model(p, source, target):
        table = p(32128, width)
        x, positions = table[source], bias(p, length, length)
        for _ in range(6):
            h = rms_norm(p, x)
            x = x + attend(p, h, h, positions)
            x = x + feed_forward(p, x)
        memory = rms_norm(p, x)
        y, positions = table[target], bias(p, output_length, output_length)
        for _ in range(6):
            h = rms_norm(p, y)
            y = y + attend(p, h, h, positions, causal=True)
            y = y + attend(p, rms_norm(p, y), memory, None)
            y = y + feed_forward(p, y)
        return (rms_norm(p, y) * width**-0.5) @ table.T

    return inference(model, tokens(batch, length), tokens(batch, output_length))


def llama_layer(p, x, heads, kv_heads, widened, cache=None, position=None):
    """A decoder layer with rotary positions and grouped queries, and its new cache.

    `cache`: keys and values of the positions before.
    """
    batch, length, width = x.shape
    size = width // heads
    h = rms_norm(p, x)
    q = dense(p, h, width, False).reshape(batch, length, heads, size)
    k = dense(p, h, kv_heads * size, False).reshape(batch, length, kv_heads, size)
    v = dense(p, h, kv_heads * size, False).reshape(batch, length, kv_heads, size)
    at = (jnp.arange(length) if position is None else position + jnp.arange(length)).astype(F32)
    angle = at[:, None] * jnp.exp(-jnp.arange(size // 2) / (size // 2) * 9.2)
    cos, sin = (
        jnp.cos(angle)[None, :, None].astype(BF16),
        jnp.sin(angle)[None, :, None].astype(BF16),
    )

    def rotate(z):
        a, b = jnp.split(z, 2, -1)
        return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)

    q, k = rotate(q), rotate(k)
    if cache is not None:
        k = lax.dynamic_update_slice(cache[0], k, (0, position, 0, 0))
        v = lax.dynamic_update_slice(cache[1], v, (0, position, 0, 0))
    grouped = q.reshape(batch, length, kv_heads, heads // kv_heads, size)
    scores = jnp.einsum("btkgd,bskd->bkgts", grouped, k).astype(F32) / math.sqrt(size)
    seen = (
        jnp.tril(jnp.ones((length, length), bool))
        if cache is None
        else jnp.arange(k.shape[1]) <= position
    )
    weights = jax.nn.softmax(jnp.where(seen, scores, -1e9), -1).astype(BF16)
    mixed = jnp.einsum("bkgts,bskd->btkgd", weights, v).reshape(batch, length, width)
    x = x + dense(p, mixed, width, False)
    h = rms_norm(p, x)
    x = x + dense(
        p, jax.nn.silu(dense(p, h, widened, False)) * dense(p, h, widened, False), width, False
    )
    return x, (k, v)


def _llama(p, x, layers, heads, kv_heads, widened, cache=None, position=None):
    """Decoder layers and a norm. `cache`: of each layer, as llama_layer() takes it."""
    new = []
    for i in range(layers):
        of_layer = None if cache is None else cache[i]
        x, changed = llama_layer(p, x, heads, kv_heads, widened, of_layer, position)
        if cache is not None:
            new.append(changed)
    return rms_norm(p, x), new


def llama_decode(batch: int, layers: int, cached: int) -> Program:
    """One new token for each sequence, with `cached` positions of keys and values."""

    def model(p, cache, ids, position):
        x, new = _llama(p, p(32000, 2048)[ids], layers, 32, 8, 5632, cache, position)
        return x[:, -1] @ p(2048, 32000), new

    kv = Shape((batch, cached, 8, 64), BF16)
    return inference(model, [(kv, kv)] * layers, tokens(batch, 1), Shape((), I32))


def llama_prefill(batch: int, layers: int, length: int) -> Program:
    def model(p, ids):
        return _llama(p, p(32000, 2048)[ids], layers, 32, 8, 5632)[0][:, -1] @ p(2048, 32000)

    return inference(model, tokens(batch, length))


def transformer_training(batch: int, layers: int, length: int) -> Program:
    def loss(p, ids, labels):
        table = p(8192, 512)
        x = table[ids] + p(length, 512)
        for _ in range(layers):
            x = block(p, x, 8, causal=True)
        return cross_entropy(layer_norm(p, x) @ table.T, labels)

    return training(loss, tokens(batch, length), tokens(batch, length), optimizer="adam")


def mixture_of_experts(batch: int, layers: int, length: int) -> Program:
    """The best two of eight experts for each token.

    They are dispatched densely. Each expert has room for a quarter more than its share of tokens.
    """
    width, experts = 768, 8
    capacity = 2 * batch * length // experts * 5 // 4

    def experts_layer(p, x):
        h = layer_norm(p, x).reshape(-1, width)
        gates = jax.nn.softmax((h @ p(width, experts)).astype(F32))
        best, chosen = lax.top_k(gates, 2)
        one_hot = jax.nn.one_hot(chosen, experts).transpose(1, 0, 2).reshape(-1, experts)
        place = jnp.cumsum(one_hot, 0) * one_hot - 1
        dispatch = jax.nn.one_hot(place.max(-1), capacity)[:, None] * one_hot[:, :, None]
        dispatch = dispatch.reshape(2, -1, experts, capacity)
        combine = (dispatch * best.T[:, :, None, None]).sum(0).astype(BF16)
        y = jnp.einsum("tec,td->ecd", dispatch.sum(0).astype(BF16), h)
        y = jax.nn.gelu(jnp.einsum("ecd,edf->ecf", y, p(experts, width, 3072)))
        y = jnp.einsum("ecf,efd->ecd", y, p(experts, 3072, width))
        return jnp.einsum("tec,ecd->td", combine, y).reshape(x.shape)

    def model(p, ids):
        x = p(32000, width)[ids]
        for _ in range(layers):
            q, k, v = jnp.split(dense(p, layer_norm(p, x), 3 * width), 3, -1)
            x = x + dense(p, attention(q, k, v, 12, True), width)
            x = x + experts_layer(p, x)
        return layer_norm(p, x) @ p(width, 32000)

    return inference(model, tokens(batch, length))


def clip_vit_b32(batch: int) -> Program:
    """Pictures and captions into one space; how well each fits each."""

    def unit(x):
        return x / jnp.linalg.norm(x.astype(F32), axis=-1, keepdims=True).astype(x.dtype)

    def model(p, pixels, ids):
        picture = dense(p, vision_tower(p, pixels, 32, 768, 12, 12)[:, 0], 512, False)
        x = p(49408, 512)[ids] + p(77, 512)
        for _ in range(12):
            x = block(p, x, 8, causal=True)
        caption = dense(p, layer_norm(p, x)[:, -1], 512, False)
        return jnp.exp(p()) * unit(picture) @ unit(caption).T

    return inference(model, images(batch), tokens(batch, 77))


def whisper_tiny(batch: int) -> Program:
    """Thirty seconds of sound, and the words so far."""
    width, heads = 384, 6

    def model(p, sound, ids):
        x = sound[:, :, None, :]
        x = jax.nn.gelu(conv(p, x, width))
        x = jax.nn.gelu(conv(p, x, width, stride=2))[:, :, 0]
        x = x + p(x.shape[1], width)
        for _ in range(4):
            x = block(p, x, heads)
        memory = layer_norm(p, x)
        table = p(51865, width)
        y = table[ids] + p(448, width)[: ids.shape[1]]
        for _ in range(4):
            y = block(p, y, heads, causal=True, memory=memory)
        return layer_norm(p, y) @ table.T

    return inference(model, Shape((batch, 3000, 80), BF16), tokens(batch, 32))
