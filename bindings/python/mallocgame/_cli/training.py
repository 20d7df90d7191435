"""What `mallocgame train` does for every kind of agent: steps, checkpoints and a curve.

The folder holds the checkpoints, curve.csv (one line or more for each step), tensorboard/, and at
the end what the agent has found.
"""

import abc
import contextlib
import csv
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from mallocgame import plots
from mallocgame._cli.console import Work
from mallocgame._cli.rows import csv_text
from mallocgame._core import write_file
from mallocgame.agents.trainer import TorchTrainer
from mallocgame.errors import FileAccessError, InvalidInputError
from mallocgame.experiments.plan_rows import Row

CURVE = "curve.csv"

Progress = dict[str, Any]  # what a step says of itself, by name


def settings(texts: Sequence[str]) -> dict[str, str]:
    """Settings from `key=value` texts."""
    pairs = [text.partition("=") for text in texts]
    for text, (name, equals, value) in zip(texts, pairs, strict=True):
        if not (name and equals and value):
            raise InvalidInputError(f"--config: found '{text}', allowed: key=value")
    return {name: value for name, _, value in pairs}


class Training(abc.ABC):
    """One run of the command in one folder.

    A subclass says what a step is. It begins or resumes its agents before it calls __init__.
    """

    agent: ClassVar[str]
    # Columns of the curve; the first three are the seconds, the number of a step and the program.
    columns: ClassVar[tuple[str, ...]]
    # What --plot draws: over which column, and what its numbers are.
    across: ClassVar[str]
    drawn: ClassVar[str]

    def __init__(self, folder: str, steps: Mapping[str, int], limit_seconds: float) -> None:
        """`steps` counts those done before, by program. `limit_seconds` is for run; 0: no limit."""
        self.folder = folder
        self._limit_seconds = limit_seconds
        self.seconds = self._cut_curve(steps)  # trained so far, in all runs
        self._board = _board(os.path.join(folder, "tensorboard"), min(steps.values()))

    @abc.abstractmethod
    def step(self) -> Progress:
        """Does a step. Its progress has the columns of the curve, but seconds and program."""

    @abc.abstractmethod
    def save(self) -> None:
        """Writes what a resumed run begins with."""

    @abc.abstractmethod
    def rows(self, progress: Progress) -> list[Row]:
        """The lines of the curve for a step, without seconds."""

    @abc.abstractmethod
    def scalars(self, progress: Progress, seconds: float) -> dict[str, float]:
        """What TensorBoard shows of a step that took `seconds`."""

    @abc.abstractmethod
    def line(self, progress: Progress, seconds: float) -> str:
        """What people read of a step that took `seconds`."""

    @abc.abstractmethod
    def finish(self, finished: bool, work: Work) -> list[Row]:
        """Writes what was found, and returns a row of JSON for each program.

        `finished` is False if Ctrl-C ended the training.
        """

    @abc.abstractmethod
    def show(self, rows: Sequence[Row]) -> None:
        """Prints the rows of `finish` for people."""

    @abc.abstractmethod
    def points(self, row: Mapping[str, str]) -> dict[str, float]:
        """What --plot draws of a line of the curve, by the name of a curve."""

    @property
    @abc.abstractmethod
    def steps(self) -> int:
        """Steps done so far, in all runs."""

    def enough(self) -> bool:
        """Whether everything has been trained that was asked for, however long it took."""
        return False

    def run(self, work: Work) -> bool:
        """Trains until there is enough or the time is over. Returns False if Ctrl-C ended it."""
        begin = time.monotonic()
        try:
            while not self.enough():
                step_begin = time.monotonic()
                progress = self.step()
                now = time.monotonic()
                self.seconds += now - step_begin
                # A run that goes on drops lines that no checkpoint has seen. Were the checkpoint
                # first, a kill between the two would leave a step without its line.
                self._tell(progress, now - step_begin, work)
                self.save()
                if 0 < self._limit_seconds <= now - begin:
                    break
            return True
        except KeyboardInterrupt:
            return False
        finally:
            if self._board is not None:
                self._board.close()

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draws how the agent has learned, from curve.csv."""
        panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
        with open(os.path.join(self.folder, CURVE), newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                curves = panels.setdefault(row["program"], {})
                for name, value in self.points(row).items():
                    if value == value:
                        curves.setdefault(name, []).append((float(row[self.across]), value))
        plots.save_learning(path, panels, self.across, self.drawn)

    def _tell(self, progress: Progress, seconds: float, work: Work) -> None:
        work.tell(self.line(progress, seconds))
        rows = [
            {**progress, **row, "seconds": f"{self.seconds:.3f}"} for row in self.rows(progress)
        ]
        path = os.path.join(self.folder, CURVE)
        try:
            with open(path, "ab") as file:
                file.write(csv_text(self.columns, rows, header=False))
        except OSError as error:
            raise FileAccessError(f"cannot write {path}: {error.strerror}") from None
        if self._board is not None:
            for name, value in self.scalars(progress, seconds).items():
                if value == value:  # A NaN stands for a number that this step doesn't have.
                    self._board.add(name, value, progress[self.columns[1]])

    def _cut_curve(self, steps: Mapping[str, int]) -> float:
        """Drops the lines of steps that no checkpoint has seen.

        Returns the seconds trained before.
        """
        path = os.path.join(self.folder, CURVE)
        rows = []
        if os.path.exists(path):
            with open(path, newline="", encoding="utf-8", errors="replace") as file:
                reader = csv.DictReader(file)
                if tuple(reader.fieldnames or ()) != self.columns:
                    raise InvalidInputError(
                        f"{path}: not the curve of an agent of the kind {self.agent}; "
                        "choose another folder"
                    )
                rows = [row for row in reader if self._seen(row, steps)]
        write_file(path, csv_text(self.columns, rows))
        return float(rows[-1]["seconds"]) if rows else 0.0

    def _seen(self, row: Mapping[str, str | None], steps: Mapping[str, int]) -> bool:
        """Whether a checkpoint has seen the step of a line. A full disk cuts the last line."""
        if None in row or None in row.values():
            return False
        number, program = str(row[self.columns[1]]), str(row["program"])
        return number.isdecimal() and int(number) < steps.get(program, 0)


def check_fresh(path: str, resume: bool) -> bool:
    """Returns whether there is a checkpoint to go on with.

    InvalidInputError: there is one, and --resume was not given.
    """
    found = os.path.exists(path)
    if found and not resume:
        raise InvalidInputError(f"{path}: is there already; --resume goes on with it")
    return found


def check_same(
    path: str,
    trainer: TorchTrainer,
    seed: int | None,
    config: Mapping[str, str],
    again: Callable[[dict[str, str]], TorchTrainer],
) -> None:
    """Checks that the trainer of a checkpoint was begun with this seed and these settings.

    `again` makes a trainer of settings, which writes them in one form: 1e-3 and 0.001 are the same.
    It gets the checkpoint's others, because not each one goes together with the defaults.
    """
    if seed is not None and seed != trainer.seed:
        raise InvalidInputError(f"--seed: found {seed}, but {path} was begun with {trainer.seed}")
    begun = trainer.settings
    asked = again({**begun, **config}).settings if config else begun
    for name in config:
        if asked[name] != begun[name]:
            raise InvalidInputError(
                f"--config: found {name}={asked[name]}, but {path} was begun with {begun[name]}"
            )


def file_names(programs: Sequence[str]) -> list[str]:
    """The names of the programs' files, no two of which are alike."""
    names: list[str] = []
    for program in programs:
        base = os.path.basename(program).removesuffix(".mgp") or "program"
        same = sum(name == base or name.startswith(f"{base}-") for name in names)
        names.append(f"{base}-{same + 1}" if base in names else base)
    return names


class _Board:
    """TensorBoard's writer. What its thread fails at is told by the call that comes next.

    It is TensorBoard's own, and not that of Torch, which would have to be imported for seconds.
    """

    def __init__(self, folder: str, step: int) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._event, self._summary = Event, Summary
        self._folder = folder
        self._before = threading.excepthook
        threading.excepthook = self._hear
        with self._named():
            self._writer = EventFileWriter(folder)
            # Of a run that is resumed TensorBoard forgets what comes behind this step.
            self._writer.add_event(
                Event(step=step, session_log=SessionLog(status=SessionLog.START))
            )

    def add(self, name: str, value: float, step: int) -> None:
        """Adds a point to a curve. FileAccessError."""
        point = self._summary(value=[self._summary.Value(tag=name, simple_value=value)])
        with self._named():
            self._writer.add_event(self._event(wall_time=time.time(), step=step, summary=point))

    def close(self) -> None:
        """Writes what is left. FileAccessError."""
        try:
            with self._named():
                self._writer.close()
        finally:
            threading.excepthook = self._before

    def _hear(self, failure: threading.ExceptHookArgs) -> None:
        """Keeps the thread from printing a traceback of what is told in one line."""
        if not issubclass(failure.exc_type, OSError):
            self._before(failure)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or error
            raise FileAccessError(f"cannot write {self._folder}: {reason}") from None


def _board(folder: str, step: int) -> _Board | None:
    """TensorBoard's writer; None where TensorBoard isn't installed."""
    try:
        return _Board(folder, step)
    except ModuleNotFoundError:
        print(
            "mallocgame train: no TensorBoard (pip install tensorboard); curve.csv has the numbers",
            file=sys.stderr,
        )
        return None
