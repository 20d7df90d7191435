"""Parts that several families share, in the form that was drawn."""

import dataclasses
from collections.abc import Callable

import jax

from ..layers import attention, dense, layer_norm, rms_norm
from ..parameters import I32, Program, Shape, inference, training
from .dice import Dice


@dataclasses.dataclass(frozen=True)
class Style:
    """How the layers of one network look."""

    norm: Callable
    activation: Callable
    gated: bool  # act(a) * b in feed-forward layers instead of act(a)
    norm_first: bool
    widening: int
    bias: bool


def draw_style(dice: Dice) -> Style:
    return Style(
        norm=dice.pick(layer_norm, rms_norm),
        activation=dice.pick(jax.nn.gelu, jax.nn.relu, jax.nn.silu),
        gated=dice.chance(0.4),
        norm_first=dice.chance(0.75),
        widening=dice.pick(2, 3, 4),
        bias=dice.chance(0.6),
    )


def feed_forward(p, x, style: Style, hidden: int = 0):
    width = x.shape[-1]
    hidden = hidden or style.widening * width
    h = style.activation(dense(p, x, hidden, style.bias))
    if style.gated:
        h = h * dense(p, x, hidden, style.bias)
    return dense(p, h, width, style.bias)


def residual(p, x, style: Style, part: Callable):
    """x plus a part of it, normalised before the part or behind the sum."""
    if style.norm_first:
        return x + part(style.norm(p, x))
    return style.norm(p, x + part(x))


def self_attention(p, x, style: Style, heads: int, causal: bool = False):
    width = x.shape[-1]
    q, k, v = (dense(p, x, width, style.bias) for _ in range(3))
    return dense(p, attention(q, k, v, heads, causal), width, style.bias)


def transformer_layer(p, x, style: Style, heads: int, causal: bool = False):
    x = residual(p, x, style, lambda h: self_attention(p, h, style, heads, causal))
    return residual(p, x, style, lambda h: feed_forward(p, h, style))


def tokens(batch: int, length: int) -> Shape:
    return Shape((batch, length), I32)


def finished(dice: Dice, model: Callable, *inputs, share_trained: float = 0.15) -> Program:
    """The model as inference, or as a training step on the mean square of what it gives."""
    if not dice.chance(share_trained):
        return inference(model, *inputs)

    def loss(p, *a):
        return sum((leaf.astype("float32") ** 2).mean() for leaf in jax.tree.leaves(model(p, *a)))

    return training(loss, *inputs, optimizer=dice.pick("sgd", "adam", "adamw"))
