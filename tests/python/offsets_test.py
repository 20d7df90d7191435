"""Offset allocation from Python and from the command line."""

import json

import numpy as np
import pytest

import mallocgame as mg
from mallocgame import _core

TABLE = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n"
KEYS = ["table", "intervals", "capacity", "alignment", "status", "height", "nodes", "seconds"]


def test_command(run, run_json, tmp_path):
    (tmp_path / "in.csv").write_text(TABLE)
    row = run_json("offsets", "in.csv", "--capacity", 12, "-o", "out.csv")
    assert list(row) == KEYS
    assert (row["status"], row["height"], row["intervals"]) == ("feasible", 12, 5)
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0] == "id,lower,upper,size,offset"
    rows = [list(map(int, line.split(",")[1:])) for line in lines[1:]]
    for i, (begin, end, size, offset) in enumerate(rows):
        assert 0 <= offset <= 12 - size
        assert not any(
            begin < b[1] and b[0] < end and offset < b[3] + b[2] and b[3] < offset + size
            for b in rows[:i]
        )


def test_too_little_room(run, tmp_path):
    (tmp_path / "in.csv").write_text(TABLE)
    done = run("offsets", "in.csv", "--capacity", 11, "-o", "out.csv", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["status"] == "infeasible"
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("text", "arguments", "says"),
    [
        ("id,lower\n", ("--capacity", 1), "in.csv: line 1"),
        (TABLE + "b6,4,4,1\n", ("--capacity", 1), "line 7"),
        (TABLE, ("--capacity", -1), "--capacity"),
        (TABLE, ("--capacity", 1, "--alignment", 0), "--alignment"),
        (TABLE, ("--capacity", 1 << 60), "capacity"),
        (TABLE, (), "--capacity"),
    ],
)
def test_refused(run, tmp_path, text, arguments, says):
    (tmp_path / "in.csv").write_text(text)
    done = run("offsets", "in.csv", *arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and says in done.stderr


def test_from_python():
    intervals = np.array([[0, 2, 3], [1, 3, 3]])
    result = _core.solve_offsets(intervals, 8, alignment=4)
    assert (result.status, sorted(result.offsets), result.height) == ("feasible", [0, 4], 7)
    assert _core.solve_offsets(intervals, 6, alignment=4).status == "infeasible"
    with pytest.raises(mg.InvalidInputError, match="shape"):
        _core.solve_offsets(np.zeros((2, 2), np.int64), 1)
    with pytest.raises(mg.InvalidInputError, match="size"):
        _core.solve_offsets(np.zeros((1, 3), np.int64), 1)
    with pytest.raises(mg.InvalidInputError, match="seconds"):
        _core.solve_offsets(intervals, 1, seconds=float("nan"))
