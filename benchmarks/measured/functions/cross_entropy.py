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
