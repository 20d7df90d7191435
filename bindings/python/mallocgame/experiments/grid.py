"""Grids: named axes, and a cell for each combination of their values."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from mallocgame.errors import InvalidInputError

Value = TypeVar("Value")
Cell = dict[str, Any]  # a value for each axis


class Grid:
    """The cells of an experiment, in an order: the last axis changes fastest.

        Grid(program=["a", "b"], solver=["greedy", "anneal"], seed=range(3))

    InvalidInputError: two values of an axis have one name (name_of).
    """

    def __init__(self, **axes: Iterable[Any]) -> None:
        values = {axis: list(several) for axis, several in axes.items()}
        for axis, several in values.items():
            names = [name_of(value) for value in several]
            for name in names:
                if names.count(name) > 1:
                    raise InvalidInputError(f"grid: found {axis} '{name}' twice, allowed: once")
        self.axes = tuple(values)
        self._cells = [
            dict(zip(values, cell, strict=True)) for cell in itertools.product(*values.values())
        ]

    def where(self, keep: Callable[..., bool]) -> "Grid":
        """Returns the cells of which keep(**cell) is true."""
        return self._of([cell for cell in self._cells if keep(**cell)])

    def only(self, wanted: Mapping[str, Iterable[str]]) -> "Grid":
        """Returns the cells whose values have these names; axes that it lacks are left alone."""
        chosen = {axis: set(names) for axis, names in wanted.items() if axis in self.axes}
        return self.where(
            lambda **cell: all(name_of(cell[axis]) in names for axis, names in chosen.items())
        )

    def __add__(self, other: "Grid") -> "Grid":
        """The cells of both, each once. InvalidInputError: they have other axes."""
        if set(other.axes) != set(self.axes):
            raise InvalidInputError(
                f"grid: found the axes {', '.join(other.axes)}, allowed: {', '.join(self.axes)}"
            )
        return self._of(list({cell_name(cell): cell for cell in [*self, *other]}.values()))

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._cells)

    def __len__(self) -> int:
        return len(self._cells)

    def _of(self, cells: list[Cell]) -> "Grid":
        grid = Grid(**dict.fromkeys(self.axes, ()))
        grid._cells = cells
        return grid


def name_of(value: Any) -> str:
    """The name of a value in messages and files: its `name` if it has one, else its text."""
    return str(getattr(value, "name", value)).replace("/", "+")


def cell_name(cell: Cell) -> str:
    """A cell in messages, such as `resnet50_b1.tpu_v4i anneal 0`."""
    return " ".join(name_of(cell[axis]) for axis in cell)


def evenly(several: Sequence[Value], count: int) -> list[Value]:
    """Returns that number of them, as far apart as they can be; all, if there are fewer."""
    last, count = len(several) - 1, min(count, len(several))
    return [several[place * last // max(1, count - 1)] for place in range(count)]
