"""What is left of `solve` and `compare` that are interrupted."""

import csv
import json
import signal
import subprocess
import sys

import pytest
from conftest import HEEDING

import mallocgame as mg

PROGRAM = "mlp_train_adam_b512.tpu_v4i"
# The command line, with signals sent to itself once the solvers have begun.
INTERRUPTED = """
import os, signal, sys, threading
from mallocgame import _solve
from mallocgame._cli.main import main

number, after, times = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
solve_game, calls = _solve.solve_game, 0

def counted(*args, **kwargs):
    global calls
    calls += 1
    if calls == after:
        for one in range(times):
            threading.Timer(0.3 * (one + 1), os.kill, (os.getpid(), number)).start()
    return solve_game(*args, **kwargs)

_solve.solve_game = counted
sys.exit(main(sys.argv[4:]))
"""


def run(number, after, times, *arguments):
    command = [sys.executable, "-c", INTERRUPTED, number, after, times, *arguments]
    return subprocess.run(
        [str(one) for one in command], capture_output=True, text=True, timeout=600, check=False
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_solve_keeps_the_best_plan(tmp_path, number):
    plan = tmp_path / "plan.json"
    command = ["solve", PROGRAM, "--solver", "portfolio", "--seconds", 0, "-o", plan]
    done = run(number.value, 1, 1, *command)
    assert done.returncode == 130, done.stderr
    assert "Interrupted: this is the best so far." in done.stdout
    program = mg.load_program(PROGRAM)
    kept = mg.load_plan(plan, program)
    assert mg.validate(program, kept).ok
    greedy = mg.solve(program, "greedy").report
    assert mg.simulate(program, kept).latency_ps < greedy.latency_ps


def test_compare_keeps_what_it_has(tmp_path):
    table = tmp_path / "table.csv"
    command = ["compare", PROGRAM, "--solvers", "greedy,rent,anneal", "--seconds", 0, "--json"]
    done = run(signal.SIGINT.value, 3, 1, *command, "--csv", table)
    assert done.returncode == 130, done.stderr
    rows = json.loads(done.stdout)["results"]
    assert [row["solver"] for row in rows] == ["greedy", "rent"]
    assert [row["solver"] for row in csv.DictReader(table.read_text().splitlines())] == [
        "greedy",
        "rent",
    ]


def test_a_comparison_of_nothing_is_only_ended():
    done = run(signal.SIGINT.value, 1, 1, "compare", PROGRAM, "--solvers", "anneal")
    assert (done.returncode, done.stdout) == (130, "")


def test_a_killed_comparison_goes_on(tmp_path):
    table = tmp_path / "table.csv"
    solvers = ["--solvers", "greedy,rent,anneal", "--evaluations", 50, "--seconds", 0]
    command = ["compare", PROGRAM, *solvers, "--csv", table]
    # Without a limit the third solver would go on for ever.
    done = run(signal.SIGKILL.value, 3, 1, *command[:-3], 0, "--evaluations", 0, "--csv", table)
    assert done.returncode == -signal.SIGKILL
    part = tmp_path / "table.csv.part"
    assert not table.exists() and part.exists()
    refused = run(signal.SIGKILL.value, 9, 1, *command)
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1
    assert "found a result with evaluations 0, allowed: 50" in refused.stderr
    kept = {path: json.loads(path.read_text()) for path in sorted(part.glob("*/*.json"))}
    assert [row["solver"] for row in kept.values()] == ["greedy", "rent"]
    for path, row in kept.items():
        row["settings"]["evaluations"] = 50
        path.write_text(json.dumps(row))
    assert run(signal.SIGKILL.value, 9, 1, *command).returncode == 0
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert [row["solver"] for row in rows] == ["greedy", "rent", "anneal"]
    assert [row["seconds"] for row in rows[:2]] == [str(row["seconds"]) for row in kept.values()]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table.csv"]


def test_rows_that_can_not_be_read_are_told(tmp_path):
    path = tmp_path / "table.csv.part" / PROGRAM / "greedy.json"
    path.parent.mkdir(parents=True)
    path.write_text("no JSON")
    done = run(9, 9, 1, "compare", PROGRAM, "--csv", tmp_path / "table.csv")
    assert done.returncode == 2 and "no result of an experiment" in done.stderr


ENDING = """
import sys
from mallocgame._cli import benchmark, main

def fail():
    {}

benchmark.load_rliable = fail
sys.exit(main.main(["benchmark", "--split", "validation", "--players", "greedy"]))
"""


@pytest.mark.parametrize(
    ("code", "status", "line"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", 130, ""),
        ("import os, signal; os.kill(os.getpid(), signal.SIGINT)", 130, ""),
        ("raise MemoryError", 2, "mallocgame benchmark: out of memory\n"),
        ("raise ImportError('lib.so: no\\nroom')", 2, "mallocgame benchmark: lib.so: no room\n"),
        ("raise OSError(5, 'no', 'a file')", 2, "mallocgame benchmark: [Errno 5] no: 'a file'\n"),
    ],
)
def test_every_end_is_told_in_one_line(code, status, line):
    done = subprocess.run(
        [*HEEDING, sys.executable, "-c", ENDING.format(code)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode, done.stderr) == (status, line)


def test_output_on_a_full_disk_is_told_in_one_line():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "mallocgame", "solve", PROGRAM, "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=600,
            check=False,
        )
    line = "mallocgame solve: [Errno 28] No space left on device\n"
    assert (done.returncode, done.stderr) == (2, line)
