"""The curve of a training, with an agent that only counts: whatever ends it, no step is lost."""

import os
import subprocess
import sys

import pytest

import mallocgame as mg
from mallocgame._cli.console import Work
from mallocgame._cli.training import Training, _board

HEADER = "seconds,step,program\n"


class Counting(Training):
    agent = "counting"
    columns = ("seconds", "step", "program")

    def __init__(self, folder, goal, fails_at=None):
        self.checkpoint = folder / "checkpoint"
        self.count = int(self.checkpoint.read_text()) if self.checkpoint.exists() else 0
        self.goal, self.fails_at = goal, fails_at
        super().__init__(str(folder), {"p": self.count}, 0.0)

    @property
    def steps(self):
        return self.count

    def enough(self):
        return self.count == self.goal

    def step(self):
        self.count += 1
        return {"step": self.count - 1}

    def save(self):
        if self.count == self.fails_at:
            raise OSError(28, "No space left on device")
        self.checkpoint.write_text(str(self.count))

    def rows(self, progress):
        return [{"program": "p"}]

    def line(self, progress, seconds):
        return ""

    def scalars(self, progress, seconds):
        return {}

    def points(self, row):
        return {}

    def finish(self, finished, work):
        return []

    def show(self, rows):
        pass


def steps_in(folder):
    lines = (folder / "curve.csv").read_text().splitlines()
    assert lines[0] + "\n" == HEADER
    return [int(line.split(",")[1]) for line in lines[1:]]


def test_a_step_without_a_checkpoint_is_done_again(tmp_path):
    with pytest.raises(OSError, match="No space"):
        Counting(tmp_path, goal=5, fails_at=3).run(Work("training", None))
    # The line comes first: were the checkpoint first, a kill between the two would lose the line.
    assert steps_in(tmp_path) == [0, 1, 2]
    Counting(tmp_path, goal=5).run(Work("training", None))
    assert steps_in(tmp_path) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("torn", ["2.5", "2.5,", "2.5,2", "2.5,2,", "2.5,2,p,4", "2.5,x,p", "\xff"])
def test_a_line_that_a_full_disk_cut_is_dropped(tmp_path, torn):
    (tmp_path / "checkpoint").write_text("2")
    (tmp_path / "curve.csv").write_bytes(f"{HEADER}1.0,0,p\n2.0,1,p\n{torn}".encode("latin-1"))
    training = Counting(tmp_path, goal=3)
    assert steps_in(tmp_path) == [0, 1] and training.seconds == 2.0
    training.run(Work("training", None))
    assert steps_in(tmp_path) == [0, 1, 2]


def test_a_curve_that_can_not_be_written_again_stays(tmp_path, monkeypatch):
    (tmp_path / "checkpoint").write_text("2")
    whole = f"{HEADER}1.0,0,p\n2.0,1,p\n"
    (tmp_path / "curve.csv").write_text(whole)

    def full(path, data):
        raise mg.errors.FileAccessError("cannot write")

    monkeypatch.setattr("mallocgame._cli.training.write_file", full)
    with pytest.raises(mg.errors.FileAccessError):
        Counting(tmp_path, goal=3)
    assert (tmp_path / "curve.csv").read_text() == whole


def test_a_curve_that_can_not_be_appended_to_is_named(tmp_path):
    training = Counting(tmp_path, goal=1)
    os.unlink(tmp_path / "curve.csv")
    (tmp_path / "curve.csv").mkdir()
    with pytest.raises(mg.errors.FileAccessError, match=r"cannot write .*curve.csv: "):
        training.run(Work("training", None))


BOARD = """
import sys
from mallocgame._cli.training import _board
from mallocgame.errors import FileAccessError

board = _board(sys.argv[1], 0)
try:
    for step in range(2000):
        board.add("name", 1.0, step)
    board.close()
except FileAccessError as error:
    sys.exit(str(error))
"""


@pytest.mark.full
def test_a_board_on_a_full_disk_is_told_in_one_line(tmp_path):
    """A limit of file sizes stands for the disk."""
    pytest.importorskip("tensorboard")
    folder = tmp_path / "board"
    done = subprocess.run(
        ["prlimit", "--fsize=4096", sys.executable, "-c", BOARD, folder],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == f"cannot write {folder}: File too large\n"


@pytest.mark.full
def test_a_board_that_goes_on_forgets_what_comes_behind(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    for steps in (range(5), range(3, 7)):
        board = _board(os.fspath(tmp_path), steps[0])
        assert board is not None
        for step in steps:
            board.add("loss", steps[0] + step, step)
        board.close()
    events = accumulator.EventAccumulator(os.fspath(tmp_path)).Reload()
    assert [(one.step, one.value) for one in events.Scalars("loss")] == [
        (0, 0), (1, 1), (2, 2), (3, 6), (4, 7), (5, 8), (6, 9),
    ]  # fmt: skip
