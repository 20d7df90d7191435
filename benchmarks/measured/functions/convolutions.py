"""Convolutions of images with what follows them, of JAXBench."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def conv2d(batch: int, channels: int, features: int, size: int, then: str) -> Any:
    """A convolution of 3 x 3 over [batch, channels, size, size]. then: what follows it."""
    follow, with_vectors = _FOLLOWING[then]

    def network(x: Any, weight: Any, bias: Any, *vectors: Any) -> Any:
        x = jax.lax.conv_general_dilated(
            jnp.transpose(x, (0, 2, 3, 1)),
            jnp.transpose(weight, (2, 3, 1, 0)),
            window_strides=(1, 1),
            padding="VALID",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )
        return follow(x + bias.reshape(1, 1, 1, -1), *vectors)

    image, kernel = (batch, channels, size, size), (features, channels, 3, 3)
    shapes = [image, kernel, *[(features,)] * (1 + with_vectors)]
    return network, [jax.ShapeDtypeStruct(shape, jnp.bfloat16) for shape in shapes]


def _instance_norm(x: Any, weight: Any, bias: Any) -> Any:
    x = jnp.transpose(x, (0, 3, 1, 2))
    mean = jnp.mean(x, axis=(2, 3), keepdims=True)
    x = (x - mean) / jnp.sqrt(jnp.var(x, axis=(2, 3), keepdims=True) + 1e-5)
    return (x * weight.reshape(1, -1, 1, 1) + bias.reshape(1, -1, 1, 1)) / 2.0


def _mish_batch_norm(x: Any, weight: Any, bias: Any) -> Any:
    x = jnp.transpose(x, (0, 3, 1, 2))
    x = jnp.multiply(jnp.tanh(jax.nn.softplus(x)), x)
    mean = jnp.mean(x, axis=(0, 2, 3), keepdims=True)
    variance = jnp.mean((x - mean) ** 2, axis=(0, 2, 3), keepdims=True)
    x = (x - mean) / jnp.sqrt(variance + 1e-5)
    return x * weight.reshape(1, -1, 1, 1) + bias.reshape(1, -1, 1, 1)


def _gelu_mean(x: Any) -> Any:
    return jnp.mean(jax.nn.gelu(x), axis=(1, 2))


def _relu_bias(x: Any, bias: Any) -> Any:
    return jnp.transpose(jax.nn.relu(x), (0, 3, 1, 2)) + bias.reshape(-1, 1, 1)


_FOLLOWING: dict[str, tuple[Callable[..., Any], int]] = {
    "instance norm": (_instance_norm, 2),
    "mish, batch norm": (_mish_batch_norm, 2),
    "gelu, mean": (_gelu_mean, 0),
    "relu, bias": (_relu_bias, 1),
}
