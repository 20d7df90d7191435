"""Parameters without values.

A model asks for shapes in the order in which it uses them, and tracing writes them down.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

BF16, F32, I32 = jnp.bfloat16, jnp.float32, jnp.int32
Shape = jax.ShapeDtypeStruct
Program = tuple[Callable, tuple]  # a function, and the shapes of its arguments


class Parameters:
    """Hands out parameters in the order of the calls.

    They are zeros while shapes are recorded, then the values given.
    """

    def __init__(self, values: list | None = None) -> None:
        self.shapes: list[Shape] = []
        self._values = None if values is None else iter(values)

    def __call__(self, *shape: int, dtype=BF16, sharding: NamedSharding | None = None):
        if self._values is not None:
            return next(self._values)
        self.shapes.append(Shape(shape, dtype, sharding=sharding))
        return jnp.zeros(shape, dtype)


def inference(model: Callable, *inputs: Any) -> Program:
    """model(p, *inputs) as a function of (parameters, *inputs)."""
    recorded = Parameters()
    jax.eval_shape(lambda *args: model(recorded, *args), *inputs)
    return (lambda params, *a: model(Parameters(params), *a)), (recorded.shapes, *inputs)


def _decayed(value: Any, share: float) -> Any:
    """Returns the value less a share of it. Nothing is added to the program for a share of 0."""
    return value - share * value if share else value


def _stacked(sharding: NamedSharding | None) -> NamedSharding | None:
    """Returns the sharding of several such arrays in one, whose first axis is the layers."""
    return sharding and NamedSharding(sharding.mesh, PartitionSpec(None, *sharding.spec))


def repeated(
    p: Parameters, layer: Callable, layers: int, x: Any, each: Any = None, remat: bool = False
) -> tuple[Any, Any]:
    """Passes x through layers of the same shape in one loop, each with parameters of its own.

    layer: layer(p, x, one) gives x and what is kept of the layer; one is its row of `each`.
    remat: whether the way back works out again what is inside a layer.
    """
    recorded = Parameters()
    row = jax.tree.map(lambda rows: Shape(rows.shape[1:], rows.dtype), each)
    jax.eval_shape(lambda x, one: layer(recorded, x, one), x, row)
    stacked = [
        p(layers, *shape.shape, dtype=shape.dtype, sharding=_stacked(shape.sharding))
        for shape in recorded.shapes
    ]

    def body(x, of_layer):
        values, one = of_layer
        return layer(Parameters(values), x, one)

    return jax.lax.scan(jax.checkpoint(body) if remat else body, x, (stacked, each), length=layers)


def training(loss_model: Callable, *inputs: Any, optimizer: str = "sgd") -> Program:
    """One training step on loss_model(p, *inputs).

    Gradients are in bf16, parameters and optimizer state in f32.

    optimizer: "sgd" (momentum 0.9), "adam", or "adamw" (Adam with weight decay 0.1).
    """
    decay = {"sgd": 0.0, "adam": 0.0, "adamw": 0.1}[optimizer]
    function, args = inference(loss_model, *inputs)
    state = [Shape(shape.shape, F32, sharding=shape.sharding) for shape in args[0]]

    def loss_of(params, *a):
        return function([value.astype(BF16) for value in params], *a).astype(F32)

    def sgd(params, mom, *a):
        loss, gradients = jax.value_and_grad(loss_of)(params, *a)
        mom = [0.9 * m + g for m, g in zip(mom, gradients, strict=True)]
        return [value - 0.1 * m for value, m in zip(params, mom, strict=True)], mom, loss

    def adam(params, m, v, t, *a):
        loss, gradients = jax.value_and_grad(loss_of)(params, *a)
        t = t + 1
        m = [0.9 * mean + 0.1 * g for mean, g in zip(m, gradients, strict=True)]
        v = [0.999 * square + 0.001 * g * g for square, g in zip(v, gradients, strict=True)]
        rate = 1e-3 * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        params = [
            _decayed(value, 1e-3 * decay) - rate * mean / (jnp.sqrt(square) + 1e-8)
            for value, mean, square in zip(params, m, v, strict=True)
        ]
        return params, m, v, t, loss

    if optimizer == "sgd":
        return sgd, (state, state, *inputs)
    return adam, (state, state, state, Shape((), F32), *inputs)
