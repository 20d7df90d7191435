"""Offset allocation, the problem of MiniMalloc: bytes for intervals that overlap in time.

from mallocgame import offsets
table = offsets.load("input.csv")
offsets.check(table, offsets.solve(table).offsets)
"""

import os

import numpy as np
from numpy.typing import NDArray

from mallocgame._core import OffsetResult, OffsetTable, OffsetVerdict, read_file, write_file
from mallocgame._core import check_offsets as check
from mallocgame._core import solve_offsets as solve
from mallocgame.programs import named

__all__ = ["OffsetResult", "OffsetTable", "OffsetVerdict", "check", "load", "save", "solve"]


def load(path: str | os.PathLike[str]) -> OffsetTable:
    """Reads intervals, and offsets if it has them, from MiniMalloc's CSV, which may be gzipped.

    InvalidInputError names the line. MissingFileError.
    """
    text = os.fspath(path)
    return named(text, lambda: OffsetTable.from_csv(read_file(text)))


def save(
    table: OffsetTable, path: str | os.PathLike[str], offsets: NDArray[np.int64] | None = None
) -> None:
    """Writes a table as MiniMalloc's CSV, with these offsets."""
    write_file(path, table.to_csv(offsets))
