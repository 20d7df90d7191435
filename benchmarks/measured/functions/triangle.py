"""The triangle multiplications of AlphaFold."""

from typing import Any

import jax
import jax.numpy as jnp

from .norms import standardize
from .shapes import array, dims

_EQUATIONS = {"outgoing": "cik,cjk->ijc", "incoming": "ckj,cki->ijc"}


def normalized(x: str, direction: str) -> Any:
    """Tokamax's reference: layer norm, a gated unit, the product, layer norm, and a gate."""
    n, _, c = dims(x)
    equation = _EQUATIONS[direction]

    def multiply(x: Any, mask: Any, into: Any, gates: Any, out: Any, gate: Any, *norms: Any) -> Any:
        act, *_ = standardize(x, *norms[:2])
        projection = jnp.matmul(act, into.reshape(c, -1)).astype(jnp.float32)
        opened = jax.nn.sigmoid(jnp.matmul(act, gates.reshape(c, -1)).astype(jnp.float32))
        both = (opened * projection).astype(x.dtype).reshape(n, n, 2, c)
        both = mask * jnp.transpose(both, (2, 3, 0, 1))
        product, *_ = standardize(jnp.einsum(equation, both[0], both[1]), *norms[2:])
        return jnp.dot(product, out) * jax.nn.sigmoid(jnp.dot(act, gate))

    pair, square, vector = f"bf16[{c},2,{c}]", f"bf16[{c},{c}]", f"bf16[{c}]"
    given = [x, f"bool[{n},{n}]", pair, pair, square, square, *[vector] * 4]
    return multiply, [array(text) for text in given]


def gated(n: int, c: int) -> Any:
    """JAXBench's 17p: no norm before, a root mean square behind, a matrix for each gate."""

    def multiply(pair: Any, mask: Any, *rest: Any) -> Any:
        left, right, left_gate, right_gate, scale, out, gate = rest
        act = pair * mask
        lefts = jnp.dot(act, left) * jax.nn.sigmoid(jnp.dot(act, left_gate))
        rights = jnp.dot(act, right) * jax.nn.sigmoid(jnp.dot(act, right_gate))
        result = jnp.einsum("ikc,jkc->ijc", lefts, rights)
        root = jnp.sqrt(jnp.mean(result * result, axis=-1, keepdims=True) + 1e-6)
        return jnp.dot(result / root * scale, out) * jax.nn.sigmoid(jnp.dot(pair, gate))

    square = f"bf16[{c},{c}]"
    given = [f"bf16[{n},{n},{c}]", f"bf16[{n},{n},1]", *[square] * 4, f"bf16[{c}]", square, square]
    return multiply, [array(text) for text in given]
