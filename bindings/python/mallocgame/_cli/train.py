"""What `mallocgame train` does, whatever learns: steps until the time is up, checkpoints, how it
goes, what was found.

In the folder: checkpoints, curve.csv (a line or more a step) and tensorboard/; at the end what the
agent has found.
"""

import abc
import csv
import os
import sys
import time

import mallocgame as mg
from mallocgame.errors import InvalidInputError

CURVE = "curve.csv"


def settings(texts: list[str]) -> dict[str, str]:
    """Settings from `key=value` texts."""
    pairs = [text.partition("=") for text in texts]
    for text, (name, equals, value) in zip(texts, pairs, strict=True):
        if not (name and equals and value):
            raise InvalidInputError(f"--config: found '{text}', allowed: key=value")
    return {name: value for name, _, value in pairs}


class Training(abc.ABC):
    """One run of the command in one folder. Subclasses say what a step is, and begin or resume
    it before they call __init__.
    """

    agent: str
    columns: tuple[str, ...]  # of the curve; the first three are seconds, a step's number, program

    def __init__(self, folder: str, steps: dict[str, int], limit_seconds: float) -> None:
        """steps: done before, by program. limit_seconds: of run; 0: none."""
        self.folder = folder
        self._limit_seconds = limit_seconds
        self.seconds = self._cut_curve(steps)  # trained so far, in all runs
        self._board = _board(os.path.join(folder, "tensorboard"), min(steps.values()))

    @abc.abstractmethod
    def step(self) -> dict:
        """Its progress, with at least the columns of the curve but seconds and program."""

    @abc.abstractmethod
    def save(self) -> None:
        """What a resumed run begins with."""

    @abc.abstractmethod
    def rows(self, progress: dict) -> list[dict]:
        """The lines of the curve, without seconds."""

    @abc.abstractmethod
    def scalars(self, progress: dict, seconds: float) -> dict[str, float]:
        """For TensorBoard, of a step that took so long."""

    @abc.abstractmethod
    def line(self, progress: dict, seconds: float) -> str:
        """For people."""

    @abc.abstractmethod
    def finish(self, finished: bool, work) -> list[dict]:
        """Writes what was found, and returns a row of JSON a program; finished False: Ctrl-C
        ended it.
        """

    @abc.abstractmethod
    def show(self, rows: list[dict]) -> None:
        """The same for people."""

    @property
    @abc.abstractmethod
    def steps(self) -> int:
        """Done so far, in all runs."""

    def enough(self) -> bool:
        """Has everything been trained that was asked for? Time is another matter."""
        return False

    def run(self, work) -> bool:
        """Trains until there is enough or the time is up. False: Ctrl-C ended it."""
        begin = time.monotonic()
        try:
            while not self.enough():
                step_begin = time.monotonic()
                progress = self.step()
                now = time.monotonic()
                self.seconds += now - step_begin
                self.save()
                self._tell(progress, now - step_begin, work)
                if 0 < self._limit_seconds <= now - begin:
                    break
            return True
        except KeyboardInterrupt:
            return False
        finally:
            if self._board is not None:
                self._board.close()

    def _tell(self, progress: dict, seconds: float, work) -> None:
        work.tell(self.line(progress, seconds))
        with open(os.path.join(self.folder, CURVE), "a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self.columns, extrasaction="ignore", lineterminator="\n")
            writer.writerows(
                {**progress, **row, "seconds": f"{self.seconds:.3f}"} for row in self.rows(progress)
            )
        if self._board is not None:
            for name, value in self.scalars(progress, seconds).items():
                if value == value:  # NaN: nothing to tell
                    self._board.add_scalar(name, value, progress[self.columns[1]])

    def _cut_curve(self, steps: dict[str, int]) -> float:
        """The curve without the lines of steps that no checkpoint has seen; returns the seconds
        trained before.
        """
        path = os.path.join(self.folder, CURVE)
        rows = []
        if os.path.exists(path):
            with open(path, newline="", encoding="utf-8") as file:
                reader = csv.DictReader(file)
                if tuple(reader.fieldnames or ()) != self.columns:
                    raise InvalidInputError(
                        f"{path}: not the curve of an agent of the kind {self.agent}; choose another folder"
                    )
                rows = [
                    row
                    for row in reader
                    if int(row[self.columns[1]]) < steps.get(row["program"], 0)
                ]
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self.columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        return float(rows[-1]["seconds"]) if rows else 0.0


def check_fresh(path: str, resume: bool) -> bool:
    """Is there a checkpoint to go on with? InvalidInputError: there is, and nobody said
    --resume.
    """
    found = os.path.exists(path)
    if found and not resume:
        raise InvalidInputError(f"{path}: is there already; --resume goes on with it")
    return found


def check_same(
    path: str, begun: tuple[int, dict[str, str]], seed: int | None, config: dict[str, str]
) -> None:
    """Was the checkpoint begun with this seed and these settings? config: as the agent writes
    them, those to be compared.
    """
    if seed is not None and seed != begun[0]:
        raise InvalidInputError(f"--seed: found {seed}, but {path} was begun with {begun[0]}")
    for name, value in config.items():
        if value != begun[1][name]:
            raise InvalidInputError(
                f"--config: found {name}={value}, but {path} was begun with {begun[1][name]}"
            )


def xla_ps(program: mg.Program, hardware: mg.Hardware | None) -> int | None:
    """The latency of XLA's own plan, where it is known."""
    if program.xla_plan is None or hardware not in (None, program.hardware):
        return None
    return mg.simulate(program, program.xla_plan).latency_ps


def file_names(programs: list[str]) -> list[str]:
    """What the programs' files are called, no two alike."""
    names: list[str] = []
    for program in programs:
        base = os.path.basename(program).removesuffix(".mgp") or "program"
        same = sum(name == base or name.startswith(f"{base}-") for name in names)
        names.append(f"{base}-{same + 1}" if base in names else base)
    return names


def _board(folder: str, step: int):
    """TensorBoard's writer; None where TensorBoard isn't installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        print(
            "mallocgame train: no TensorBoard (pip install tensorboard); curve.csv has the numbers",
            file=sys.stderr,
        )
        return None
    return SummaryWriter(folder, purge_step=step)
