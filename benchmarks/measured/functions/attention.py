"""Attention that is written out, with the logits in main memory."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from .shapes import array, dims

_LEAST = float(jnp.finfo(jnp.float32).min)


def dot_product(
    q: str,
    k: str,
    v: str,
    bias: str | None = None,
    mask: str | None = None,
    causal: bool = False,
    residuals: bool = False,
) -> Any:
    """Tokamax's reference: [batch, length, heads, dim], logits and softmax in f32.

    residuals: the softmax's largest logit and denominator are outputs too.
    """
    scale, length_q, length_k = 1 / math.sqrt(dims(q)[-1]), dims(q)[-3], dims(k)[-3]
    given = [array(text) for text in (q, k, v)]
    given += [array(text) for text in (bias, mask) if text is not None]

    def attention(q: Any, k: Any, v: Any, *rest: Any) -> Any:
        found = list(rest)
        if k.shape[-2] != q.shape[-2]:
            k, v = (jnp.repeat(x, q.shape[-2] // k.shape[-2], axis=-2) for x in (k, v))
        precise = None if q.dtype == jnp.float32 else jnp.float32
        logits = scale * jnp.einsum("...qhd,...khd->...hqk", q, k, preferred_element_type=precise)
        if bias is not None:
            logits = logits + found.pop(0)
        allowed = found.pop(0) if mask is not None else None
        if causal:
            allowed = jnp.arange(length_q)[:, None] >= jnp.arange(length_k)[None, :]
        if allowed is not None:
            logits = jnp.where(allowed, logits, _LEAST)
        largest = jnp.max(logits, axis=-1, keepdims=True)
        weights = jnp.exp(logits - largest)
        total = jnp.sum(weights, axis=-1, keepdims=True)
        out = jnp.einsum(
            "...hqk,...khd->...qhd", weights / total, v, preferred_element_type=precise
        )
        out = out.astype(q.dtype)
        return (out, largest[..., 0], total[..., 0]) if residuals else out

    return attention, given


def dot_product_backward(
    q: str, k: str, v: str, bias: str | None = None, mask: str | None = None, causal: bool = False
) -> Any:
    """The gradients of `dot_product`, from the largest logit and denominator that it left."""
    _, given = dot_product(q, k, v, bias, mask)
    scale, (*batch, length_q, heads, _), length_k = 1 / math.sqrt(dims(q)[-1]), dims(q), dims(k)[-3]
    wide = {"preferred_element_type": jnp.float32}
    left = jax.ShapeDtypeStruct((*batch, heads, length_q), jnp.float32)

    def gradients(q: Any, k: Any, v: Any, *rest: Any) -> Any:
        *found, largest, total, above = rest
        logits = scale * jnp.einsum("...qhd,...khd->...hqk", q, k, **wide)
        if bias is not None:
            logits = logits + found[0]
        allowed = found[-1] if mask is not None else None
        if causal:
            allowed = jnp.arange(length_q)[:, None] >= jnp.arange(length_k)[None, :]
        if allowed is not None:
            logits = jnp.where(allowed, logits, _LEAST)
        weights = jnp.exp(logits - largest[..., None]) / total[..., None]
        by_v = jnp.einsum("...hqk,...qhd->...khd", weights, above, **wide)
        by_weights = jnp.einsum("...qhd,...khd->...hqk", above, v, **wide)
        by_logits = weights * (by_weights - jnp.sum(weights * by_weights, axis=-1, keepdims=True))
        if allowed is not None:
            by_logits = jnp.where(allowed, by_logits, 0.0)
        by_q = scale * jnp.einsum("...hqk,...khd->...qhd", by_logits, k, **wide)
        by_k = scale * jnp.einsum("...hqk,...qhd->...khd", by_logits, q, **wide)
        by_bias = [jnp.sum(by_logits, axis=0, keepdims=True)] if bias is not None else []
        narrow = [one.astype(q.dtype) for one in (by_q, by_k, by_v, *by_bias)]
        return tuple(narrow)

    return gradients, [*given, left, left, given[0]]


def grouped_causal(heads: int, kv_heads: int, length: int, dim: int) -> Any:
    """JAXBench's 4p: one sequence, keys and values repeated for each group of heads."""

    def attention(q: Any, k: Any, v: Any) -> Any:
        k, v = (jnp.repeat(x, heads // kv_heads, axis=0) for x in (k, v))
        logits = jnp.einsum("hqd,hkd->hqk", q, k)
        weights = jax.nn.softmax(jnp.where(_lower(length)[None], logits, -1e30), axis=-1)
        return jnp.einsum("hqk,hkd->hqd", weights, v)

    return attention, _bf16([heads, length, dim], *[[kv_heads, length, dim]] * 2)


def causal(batch: int, heads: int, length: int, dim: int, bias: bool = False) -> Any:
    """JAXBench's 1p, and with a bias for each head its 5p."""

    def attention(q: Any, k: Any, v: Any, *biases: Any) -> Any:
        logits = jnp.einsum("bhqd,bhkd->bhqk", q, k) * dim**-0.5
        for one in biases:
            logits = logits + one[None]
        weights = jax.nn.softmax(jnp.where(_lower(length), logits, -1e9), axis=-1)
        return jnp.einsum("bhqk,bhkd->bhqd", weights, v)

    given = [[batch, heads, length, dim]] * 3
    return attention, _bf16(*given, *([[heads, length, length]] if bias else []))


def retention(batch: int, heads: int, length: int, dim: int) -> Any:
    """JAXBench's 15p: RetNet's retention, with a decay for each head and no softmax."""

    def retained(query: Any, key: Any, value: Any) -> Any:
        gammas = 1.0 - jnp.exp2(-5.0 - jnp.arange(heads, dtype=jnp.float32))
        positions = jnp.arange(length, dtype=jnp.float32)
        distance = positions[:, None] - positions[None, :]
        decay = jnp.exp(jnp.log(gammas)[:, None, None] * distance[None])
        decay = decay * (distance >= 0).astype(jnp.float32)[None]
        query32, key32 = query.astype(jnp.float32), key.astype(jnp.float32)
        weights = jnp.einsum("bhsd,bhtd->bhst", query32, key32) * decay[None]
        total = jnp.sum(jnp.abs(weights), axis=-1, keepdims=True)
        weights = weights / jnp.maximum(total, 1.0)
        return jnp.einsum("bhst,bhtd->bhsd", weights.astype(query.dtype), value)

    return retained, _bf16(*[[batch, heads, length, dim]] * 3)


def _lower(length: int) -> Any:
    return jnp.tril(jnp.ones((length, length), dtype=jnp.bool_))


def _bf16(*shapes: Sequence[int]) -> list[Any]:
    return [jax.ShapeDtypeStruct(tuple(shape), jnp.bfloat16) for shape in shapes]
