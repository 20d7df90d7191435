"""The JAX programs that tests of the bridge compile.

Whoever imports it is skipped, with the reason, where JAX or libtpu is missing.
"""

import os

import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax = pytest.importorskip("jax", reason="needs JAX: pip install 'mallocgame[xla]'")
pytest.importorskip("libtpu", reason="needs libtpu: pip install 'mallocgame[xla]'")

SHAPE = jax.ShapeDtypeStruct


def layers(weights, x):
    """Six dense layers whose weights fit into fast memory."""
    for weight in weights:
        x = jax.nn.relu(x @ weight)
    return x


LAYERS = ([SHAPE((1024, 1024), "bfloat16")] * 6, SHAPE((256, 1024), "bfloat16"))


def loop(weight, x):
    """The same weights in every iteration."""
    return jax.lax.fori_loop(0, 50, lambda _, state: jax.numpy.tanh(state @ weight), x)


LOOP = (SHAPE((1024, 1024), "bfloat16"), SHAPE((8, 1024), "bfloat16"))
