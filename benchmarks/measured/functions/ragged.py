"""Products of the groups of rows of one matrix with a matrix each."""

from typing import Any

import jax
import jax.numpy as jnp

from .shapes import array, dims


def dot(lhs: str, rhs: str, transposed: bool = False) -> Any:
    """Tokamax's reference. rhs: [groups, in, out], or where it is transposed [groups, out, in]."""
    numbers = jax.lax.RaggedDotDimensionNumbers(
        dot_dimension_numbers=(((1,), (2 if transposed else 1,)), ((), ())),
        lhs_ragged_dimensions=(0,),
        rhs_group_dimensions=(0,),
    )

    def product(lhs: Any, rhs: Any, sizes: Any) -> Any:
        wide = jax.lax.ragged_dot_general(
            lhs, rhs, sizes, numbers, preferred_element_type=jnp.float32
        )
        return wide.astype(lhs.dtype)

    return product, [array(lhs), array(rhs), array(f"i32[{dims(rhs)[0]}]")]
