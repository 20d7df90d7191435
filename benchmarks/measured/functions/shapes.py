"""Shapes of arrays in HLO's words, as the points write them."""

import re
from typing import Any

_DTYPES = {"bf16": "bfloat16", "f16": "float16", "f32": "float32", "i32": "int32", "bool": "bool"}
_SHAPE = re.compile(r"(\w+)\[([\d,]*)\]")


def dims(text: str) -> tuple[int, ...]:
    """Returns the sides of `bf16[8,128]`. ValueError: it is no shape."""
    return _parsed(text)[1]


def array(text: str) -> Any:
    """Returns the jax.ShapeDtypeStruct of `bf16[8,128]`. ValueError: it is no shape."""
    import jax

    dtype, sides = _parsed(text)
    return jax.ShapeDtypeStruct(sides, dtype)


def _parsed(text: str) -> tuple[str, tuple[int, ...]]:
    found = _SHAPE.fullmatch(text)
    if found is None or found[1] not in _DTYPES:
        raise ValueError(f"shape: found '{text}', allowed: one like bf16[8,128]")
    return _DTYPES[found[1]], tuple(int(side) for side in found[2].split(",") if side)
