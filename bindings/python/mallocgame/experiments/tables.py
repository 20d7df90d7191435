"""Tables of rows: grouped, as arrays, as Markdown and as CSV."""

import csv
import dataclasses
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mallocgame.errors import InvalidInputError
from mallocgame.experiments.grid import name_of
from mallocgame.experiments.intervals import Interval, interquartile_mean
from mallocgame.experiments.running import Row

Value = str | Callable[[Row], float]  # a key of rows, or what is computed of one


@dataclasses.dataclass
class Table:
    """A heading, and rows of as many cells; str() is Markdown."""

    heads: Sequence[str]
    rows: list[Any] = dataclasses.field(default_factory=list)
    left: int = 1  # so many columns are aligned to the left

    def add(self, *cells: object) -> None:
        """Adds a row. Cells that are left out stay empty."""
        self.rows.append([*cells, *[""] * (len(self.heads) - len(cells))])

    def __str__(self) -> str:
        sides = ["---" if place < self.left else "--:" for place in range(len(self.heads))]
        lines = (map(str, row) for row in (self.heads, sides, *self.rows))
        return "\n".join(
            f"|{'|'.join(f' {one} ' if one else ' ' for one in line)}|" for line in lines
        )

    def csv(self) -> str:
        """The same as CSV."""
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows([self.heads, *self.rows])
        return text.getvalue()


def grouped(rows: Iterable[Row], *axes: str) -> dict[Any, list[Row]]:
    """Returns the rows with each value of an axis, or each tuple of values of several."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        key = row[axes[0]] if len(axes) == 1 else tuple(row[axis] for axis in axes)
        groups.setdefault(key, []).append(row)
    return groups


def array(rows: Sequence[Row], value: Value, seed: str, level: str) -> NDArray[np.float64]:
    """Returns the values of rows, [seeds, levels], both in the order in which they come.

    seed, level: two axes. InvalidInputError: a seed lacks a level.
    """
    levels = list(dict.fromkeys(row[level] for row in rows))
    values = []
    for number, several in grouped(rows, seed).items():
        found = {row[level]: row for row in several}
        for one in levels:
            if one not in found:
                raise InvalidInputError(
                    f"{seed} {name_of(number)}: found no row of {level} {name_of(one)}"
                )
        values.append(
            [found[one][value] if isinstance(value, str) else value(found[one]) for one in levels]
        )
    return np.array(values, np.float64)


def table(
    rows: Sequence[Row],
    by: str,
    value: Value,
    interval: Callable[[NDArray[np.float64]], Interval] = interquartile_mean,
    *,
    seed: str = "seed",
    level: str = "level",
) -> Table:
    """Returns a table with the interval of a value for each value of the axis `by`.

    interval: interquartile_mean, mean, mean_of_levels, or another of an array [seeds, levels].
    """
    made = Table([by, "seeds", f"{level}s", value if isinstance(value, str) else "value"])
    for key, several in grouped(rows, by).items():
        values = array(several, value, seed, level)
        made.add(name_of(key), *values.shape, interval(values))
    return made
