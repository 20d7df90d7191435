"""Running a grid: each cell is measured once, and its answer is kept as soon as it is there."""

import contextlib
import dataclasses
import functools
import json
import os
import pathlib
import string
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from mallocgame._core import read_file, write_file
from mallocgame._jobs import HERE, FailedJobsError, Workers, run_jobs
from mallocgame.errors import InvalidInputError, MallocGameError, MissingFileError
from mallocgame.experiments.grid import Cell, Grid, cell_name, name_of

Row = dict[str, Any]  # a cell, and what its measure answered

_SETTINGS = "settings"


class FailedCellsError(FailedJobsError):
    """Cells that could not be measured. All others are kept, and are in `rows`."""

    def __init__(self, message: str, rows: list[Row]) -> None:
        super().__init__(message)
        self.rows = rows


def run(
    measure: Callable[..., Any],
    grid: Grid,
    folder: str | os.PathLike[str] | None,
    *,
    settings: Mapping[str, Any] | None = None,
    inputs: Callable[..., Mapping[str, Any]] | None = None,
    workers: Workers = HERE,
    pinned: bool = False,
    layout: str | None = None,
    keep: Callable[[Cell, Any], Mapping[str, Any]] | None = None,
    done: Callable[[Cell], object] = lambda cell: None,
    fail: Callable[[str], object] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> list[Row]:
    """Measures the cells of a grid that the folder lacks, and returns the rows of all, in order.

    measure: a function of a module, called as measure(**cell, **settings). It returns a dictionary
    that JSON can hold, or what `keep` makes one of. A row is that dictionary, the cell over it.
    settings: what all cells have in common. inputs: called as inputs(**cell) for what else an
    answer depends on, such as the fingerprint of a program. Both are kept with each answer, and one
    of other settings or inputs is refused.
    folder: has the file AXIS/AXIS/... .json of each cell, by the names of its values (name_of).
    None keeps nothing. layout: another path, such as "{player}/runs/{level}".
    workers, pinned: as run_jobs takes them; HERE is this process, a number so many others.
    keep: called as keep(cell, answer) in this process before an answer is kept.
    done: called with each cell. fail: called with each cell that fails, and why; None is tell().
    stop: once it returns True, nothing more is measured, and the rows are those that there are.

    Whenever it is interrupted, by Ctrl-C too, the answers so far are kept, and the same call goes
    on from there. A cell fails if measure raises: MallocGameError at once, anything else in another
    process after three times. FailedCellsError tells which, once all others are measured.
    InvalidInputError: an answer in the folder has other settings or is damaged, or measure raised
    it. FileAccessError.
    """
    kept = Kept(folder, grid, settings, inputs, layout)
    rows = {}
    for cell in grid:
        if (answer := kept.find(cell)) is not None:
            rows[cell_name(cell)] = answer | cell
            done(cell)
    missing = [cell for cell in grid if cell_name(cell) not in rows]
    work = functools.partial(_measured, measure, dict(settings or {}), workers == HERE)
    failed: dict[str, str] = {}
    broken = None  # what failed in other processes
    try:
        with contextlib.closing(
            run_jobs(work, missing, workers, pinned=pinned, name=cell_name, stop=stop)
        ) as finished:
            for cell, answer in finished:
                if stop():  # It may have had less time than the others.
                    break
                if isinstance(answer, _Failed):
                    failed[cell_name(cell)] = answer.reason
                    (fail or tell)(f"{cell_name(cell)}: {answer.reason}")
                    continue
                own = dict(answer if keep is None else keep(cell, answer))
                rows[cell_name(cell)] = kept.add(cell, own) | cell
                done(cell)
    except FailedJobsError as error:
        broken = error
    found = [row for cell in grid if (row := rows.get(cell_name(cell))) is not None]
    if failed or broken:
        reasons = [f"{name}: {reason}" for name, reason in failed.items()]
        told = f"{len(failed)} of {len(missing)} cells failed: {'; '.join(reasons)}"
        texts = [told] * bool(failed) + ([] if broken is None else [str(broken)])
        raise FailedCellsError("; ".join(texts), found) from broken
    return found


def tell(cell: Cell | str) -> None:
    """Prints a cell, or a text, on standard error: a `done` for people."""
    print(cell if isinstance(cell, str) else cell_name(cell), file=sys.stderr, flush=True)


@dataclasses.dataclass(frozen=True)
class _Failed:
    """The answer of a cell that can't be measured."""

    reason: str


def _measured(measure: Callable[..., Any], settings: Row, here: bool, cell: Cell) -> Any:
    try:
        return measure(**cell, **settings)
    except InvalidInputError:
        raise
    except MallocGameError as error:  # On purpose, so that it would fail again.
        return _Failed(" ".join(str(error).split()))
    except Exception as error:  # Whatever it is, the others go on.
        if not here:  # It may be the machine's fault, so run_jobs tries again.
            raise
        traceback.print_exc()
        return _Failed(f"{type(error).__name__}: {' '.join(str(error).split())}")


class Kept:
    """The answers in a folder, as run() has them; None keeps nothing."""

    def __init__(
        self,
        folder: str | os.PathLike[str] | None,
        grid: Grid,
        settings: Mapping[str, Any] | None = None,
        inputs: Callable[..., Mapping[str, Any]] | None = None,
        layout: str | None = None,
    ) -> None:
        self._grid = grid
        self._folder = None if folder is None else pathlib.Path(folder)
        self._settings, self._inputs = dict(settings or {}), inputs
        self._layout = layout or "/".join(f"{{{axis}}}" for axis in grid.axes)
        fields = {field for _, field, _, _ in string.Formatter().parse(self._layout) if field}
        if fields != set(grid.axes):
            raise InvalidInputError(
                f"layout: found '{self._layout}', allowed: {', '.join(grid.axes)}, each of them"
            )

    def find(self, cell: Cell) -> Row | None:
        """Returns the answer of a cell; None: there is none yet."""
        if self._folder is None:
            return None
        path = self._folder / self._path(cell)
        try:
            text = read_file(path)
        except MissingFileError:
            return None
        try:
            answer = dict(json.loads(text))
            found = dict(answer.pop(_SETTINGS))
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInputError(
                f"{path}: no result of an experiment ({error!r}); delete it"
            ) from None
        for name, value in self._asked(cell).items():
            if found.get(name) != value:
                raise InvalidInputError(
                    f"{path}: found a result with {name} {found.get(name)}, allowed: {value}; "
                    "give another folder, or delete this one"
                )
        return answer

    def missing(self) -> list[Cell]:
        """Returns the cells that have no answer yet."""
        return [cell for cell in self._grid if self.find(cell) is None]

    def add(self, cell: Cell, answer: Row) -> Row:
        """Keeps an answer, and returns it as it is read from its file."""
        text = json.dumps({_SETTINGS: self._asked(cell)} | answer)
        if self._folder is not None:
            path = self._folder / self._path(cell)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, (text + "\n").encode())
        read: Row = json.loads(text)
        del read[_SETTINGS]
        return read

    def _asked(self, cell: Cell) -> dict[str, Any]:
        """What must be the same for an answer that is kept, as JSON has it."""
        own = {} if self._inputs is None else self._inputs(**cell)
        asked: dict[str, Any] = json.loads(json.dumps(self._settings | dict(own), default=name_of))
        return asked

    def _path(self, cell: Cell) -> str:
        names = {axis: name_of(value) for axis, value in cell.items()}
        return f"{self._layout.format(**names)}.json"
