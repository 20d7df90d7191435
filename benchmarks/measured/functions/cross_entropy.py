"""The loss of a linear layer over a vocabulary."""

from typing import Any

import jax
import jax.numpy as jnp

from .shapes import array


def linear_softmax(x: str, labels: str, w: str, reduction: str) -> Any:
    """Tokamax's reference: all logits, their log-softmax, and the labels one-hot."""
    reduce = {"sum": jnp.sum, "mean": jnp.mean}[reduction]

    def loss(x: Any, labels: Any, w: Any) -> Any:
        logits = x @ w
        one_hot = jax.nn.one_hot(labels, num_classes=w.shape[1], dtype=x.dtype)
        losses = -one_hot * jax.nn.log_softmax(logits, axis=-1)
        each = jnp.sum(losses, axis=-1, dtype=jnp.float32)
        return reduce(each, dtype=jnp.float32)

    return loss, [array(text) for text in (x, labels, w)]


def linear_softmax_backward(x: str, labels: str, w: str, reduction: str) -> Any:
    """The gradients of `linear_softmax` by x and w, from the logits' log-sum-exp that it left."""
    given = array(x)
    scalar, total = (given.update(shape=shape) for shape in ((), given.shape[:1]))

    def gradients(x: Any, labels: Any, w: Any, total: Any, above: Any) -> Any:
        one_hot = jax.nn.one_hot(labels, num_classes=w.shape[1], dtype=x.dtype)
        errors = jnp.exp(x @ w - total[:, None]) - one_hot
        by_x, by_w = errors @ w.T, x.T @ errors
        if reduction == "mean":
            by_x, by_w = by_x / x.shape[0], by_w / x.shape[0]
        return above * by_x, above * by_w

    return gradients, [given, array(labels), array(w), total, scalar]
