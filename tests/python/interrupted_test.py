"""What is left of `solve` and `compare` that are interrupted."""

import csv
import json
import signal
import subprocess
import sys

import pytest

import mallocgame as mg

PROGRAM = "mlp_train_adam_b512.tpu_v4i"
# The command line, with signals sent to itself once the solvers have begun.
INTERRUPTED = """
import os, signal, sys, threading
from mallocgame import _solve
from mallocgame._cli.main import main

number, after, times = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
solve_game, calls = _solve.solve_game, 0

def counted(*args):
    global calls
    calls += 1
    if calls == after:
        for one in range(times):
            threading.Timer(0.3 * (one + 1), os.kill, (os.getpid(), number)).start()
    return solve_game(*args)

_solve.solve_game = counted
sys.exit(main(sys.argv[4:]))
"""


def run(number, after, times, *arguments):
    command = [sys.executable, "-c", INTERRUPTED, number, after, times, *arguments]
    return subprocess.run(
        [str(one) for one in command], capture_output=True, text=True, timeout=60, check=False
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
