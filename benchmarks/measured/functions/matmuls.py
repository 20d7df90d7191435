"""Products of two matrices, alone and with what follows them."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .shapes import array


def product(lhs: str, rhs: str, result: str | None = None) -> Any:
    """lhs @ rhs. result: the dtype of the result, if it isn't that of the operands."""
    return (
        lambda lhs, rhs: jnp.dot(lhs, rhs, preferred_element_type=result),
        [array(lhs), array(rhs)],
    )


def swiglu(rows: int, width: int, hidden: int) -> Any:
    """JAXBench's 9p: three products around a gate."""

    def layer(x: Any, gate: Any, up: Any, down: Any) -> Any:
        return jnp.dot(jax.nn.silu(jnp.dot(x, gate)) * jnp.dot(x, up), down)

    into, out = f"bf16[{width},{hidden}]", f"bf16[{hidden},{width}]"
    given = [f"bf16[2,{rows},{width}]", into, into, out]
    return layer, [array(text) for text in given]


def followed(m: int, k: int, n: int, then: str) -> Any:
    """A product with a bias, of bf16. then: what follows, a name of JAXBench's without its number.

    The weights are [n, k] where the original transposes them.
    """
    follow, transposed, vectors = _FOLLOWING[then]

    def network(x: Any, weight: Any, bias: Any, *rest: Any) -> Any:
        return follow(jnp.matmul(x, weight.T if transposed else weight) + bias, *rest)

    weight = f"bf16[{n},{k}]" if transposed else f"bf16[{k},{n}]"
    sides = [n if side == 0 else side for side in vectors]
    given = [f"bf16[{m},{k}]", weight, *(f"bf16[{side}]" for side in [n, *sides])]
    return network, [array(text) for text in given]


def divided_sum(m: int, k: int, n: int) -> Any:
    """JAXBench's 21k: in the highest precision, halved, summed over rows and scaled."""

    def network(x: Any, weight: Any) -> Any:
        x = lax.dot(x, weight.T, precision=lax.Precision.HIGHEST)
        return jnp.sum(x / 2.0, axis=1, keepdims=True) * 1.5

    return network, [array(f"bf16[{m},{k}]"), array(f"bf16[{n},{k}]")]


def two_layers(m: int, k: int, hidden: int, n: int) -> Any:
    """JAXBench's 32k: two products with a sigmoid between, and a logsumexp."""

    def network(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
        x = jax.nn.sigmoid(jnp.matmul(x, w1.T) + b1)
        return jax.nn.logsumexp(jnp.matmul(x, w2.T) + b2, axis=1)

    sides = [f"{m},{k}", f"{hidden},{k}", f"{hidden}", f"{n},{hidden}", f"{n}"]
    return network, [array(f"bf16[{one}]") for one in sides]


def _sum_and_more(x: Any) -> Any:
    x = jnp.sum(x, axis=1, keepdims=True)
    x = jnp.mean(jnp.max(x, axis=1, keepdims=True), axis=1, keepdims=True)
    for _ in range(2):
        x = jax.scipy.special.logsumexp(x, axis=1, keepdims=True)
    return x


def _clamp_logsumexp_mish(x: Any) -> Any:
    x = x * 2.0
    x = jax.scipy.special.logsumexp(jnp.clip(x + x, -10.0, 10.0), axis=1, keepdims=True)
    return x * (x * jnp.tanh(jnp.logaddexp(x, 0.0)))


def _batch_norm_gelu(x: Any, weight: Any, bias: Any) -> Any:
    mean = jnp.mean(x, axis=0, keepdims=True)
    variance = jnp.mean((x - mean) ** 2, axis=0, keepdims=True)
    x = (x - mean) / jnp.sqrt(variance + 1e-5) * weight + bias
    return jax.nn.relu(jax.nn.gelu(x))


def _known_norm(x: Any, scale: Any, bias: Any, mean: Any, variance: Any) -> Any:
    return scale * ((x - mean) / jnp.sqrt(variance + 1e-5)) + bias


def _known_norm_softmax(x: Any, *rest: Any) -> Any:
    return jax.nn.softmax(rest[4] * _known_norm(x, *rest[:4]), axis=1)


def _known_norm_swish(x: Any, *rest: Any) -> Any:
    return _swish(_known_norm(x, *rest[:4]) + rest[4])


def _swish(x: Any) -> Any:
    return x * jax.nn.sigmoid(x)


def _mish(x: Any) -> Any:
    return x * jnp.tanh(jax.nn.softplus(x))


def _group_norm(x: Any, groups: int) -> Any:
    grouped = x.reshape(x.shape[0], groups, -1)
    mean = jnp.mean(grouped, axis=-1, keepdims=True)
    variance = jnp.var(grouped, axis=-1, keepdims=True)
    return ((grouped - mean) / jnp.sqrt(variance + 1e-5)).reshape(x.shape)


def _group_norm_swish(x: Any, weight: Any, bias: Any, multiplier: Any) -> Any:
    return _swish(_swish(_group_norm(x, 256) * weight + bias) * multiplier)


def _group_norm_min(x: Any, weight: Any, bias: Any, added: Any) -> Any:
    least = jnp.min(_group_norm(x, 512) * weight + bias, axis=1, keepdims=True)
    return least.reshape(1, 1, -1, 1) + added.reshape(1, -1, 1, 1)


def _swish_group_norm(x: Any, weight: Any, bias: Any) -> Any:
    return _group_norm(_swish(x), 64) * weight + bias


def _max_subtract_gelu(x: Any) -> Any:
    x = jnp.max(x, axis=1, keepdims=True)
    return jax.nn.gelu(x - jnp.mean(x, axis=1, keepdims=True))


def _many_activations(x: Any, added: Any) -> Any:
    return jnp.clip(jax.nn.gelu(jnp.tanh(jax.nn.swish(x + added))), -1.0, 1.0)


def _pool_gelu_max(x: Any) -> Any:
    window = (1, 16)
    pooled = lax.reduce_window(x, jnp.bfloat16(0), lax.add, window, window, "VALID") / 16
    return jnp.max(jax.nn.gelu(pooled) * 2.0, axis=1)


def _scaling_hardtanh_gelu(x: Any) -> Any:
    x = jnp.clip(x * 0.5, -2, 2)
    return x * 0.5 * (1.0 + jnp.tanh(jnp.sqrt(2.0 / jnp.pi) * (x + 0.044715 * x**3)))


def _leaky_relu(x: Any) -> Any:
    x = x * 2.0
    return jnp.where(x >= 0, x, x * 0.1)


# What follows; whether the original transposes the weights; the lengths of further vectors, with 0
# for one of the result's width.
_FOLLOWING: dict[str, tuple[Callable[..., Any], bool, tuple[int, ...]]] = {
    "Subtract_Multiply_ReLU": (lambda x: jax.nn.relu((x - 2.0) * 1.5), False, ()),
    "Multiply_LeakyReLU": (_leaky_relu, False, ()),
    "Sum_Max_AvgPool_LogSumExp_LogSumExp": (_sum_and_more, True, ()),
    "Scale_ResidualAdd_Clamp_LogSumExp_Mish": (_clamp_logsumexp_mish, True, ()),
    "Mish_Mish": (lambda x: _mish(_mish(x)), False, ()),
    "Swish_Sum_GroupNorm": (_swish_group_norm, False, (0, 0)),
    "Scaling_ResidualAdd": (lambda x: x * 0.5 + x, False, ()),
    "BatchNorm_GELU_ReLU": (_batch_norm_gelu, True, (0, 0)),
    "Scaling_Hardtanh_GELU": (_scaling_hardtanh_gelu, False, ()),
    "Sigmoid_Sum": (lambda x: jnp.sum(jax.nn.sigmoid(x), axis=1, keepdims=True), False, ()),
    "Swish_Scaling": (lambda x: _swish(x) * 2.0, False, ()),
    "Dropout_Softmax": (lambda x: jax.nn.softmax(x, axis=1), True, ()),
    "GroupNorm_Min_BiasAdd": (_group_norm_min, True, (0, 0, 0)),
    "Add_ReLU": (jax.nn.relu, False, ()),
    "Max_Subtract_GELU": (_max_subtract_gelu, False, ()),
    "BatchNorm_Scaling_Softmax": (_known_norm_softmax, False, (0, 0, 0, 0, 1)),
    "Divide_GELU": (lambda x: jax.nn.gelu(x / 10.0), False, ()),
    "GroupNorm_Swish_Multiply_Swish": (_group_norm_swish, True, (0, 0, 0)),
    "Add_Swish_Tanh_GELU_Hardtanh": (_many_activations, False, (0,)),
    "BatchNorm_BiasAdd_Divide_Swish": (_known_norm_swish, False, (0, 0, 0, 0, 1)),
    "AvgPool_GELU_Scale_Max": (_pool_gelu_max, False, ()),
    "GELU_Softmax": (lambda x: jax.nn.softmax(jax.nn.gelu(x), axis=1), False, ()),
}
