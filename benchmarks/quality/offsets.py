"""Compares offset allocation with MiniMalloc itself and CP-SAT, in one run.

The instances are MiniMalloc's challenging ones.

    python benchmarks/quality/offsets.py MINIMALLOC FOLDER [--seconds S]

MINIMALLOC is its binary, FOLDER its benchmarks/challenging (files NAME.CAPACITY.csv), both from
github.com/google/minimalloc; neither is part of this repository. CP-SAT needs `pip install
ortools`; without it its column stays empty. One after the other on each instance, one thread each;
times are wall times of the solver alone, without reading the file. Every answer is checked here.
`first` is the time of our first heuristic answer, whatever its height, the best of 20. Exits 1 if
one of ours is missing, wrong, or slower than the better of the others, or a first answer takes more
than 1 ms.
"""

import csv
import functools
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy as np

from mallocgame import experiments as ex
from mallocgame import offsets as library

Row = tuple[int, int, int]  # begin, end, size


def read(path: pathlib.Path, column: str | None = None) -> tuple[list[Row], list[int]]:
    with path.open() as file:
        rows = list(csv.DictReader(file))
    intervals = [(int(row["lower"]), int(row["upper"]), int(row["size"])) for row in rows]
    return intervals, [int(row[column]) for row in rows] if column else []


def fits(intervals: list[Row], offsets: list[int], capacity: int) -> bool:
    """Pair by pair, and nothing else."""
    if len(offsets) != len(intervals) or min(offsets) < 0:
        return False
    placed = [(*interval, offset) for interval, offset in zip(intervals, offsets, strict=True)]
    if any(offset + size > capacity for _, _, size, offset in placed):
        return False
    return not any(
        a[0] < b[1] and b[0] < a[1] and a[3] < b[3] + b[2] and b[3] < a[3] + a[2]
        for i, a in enumerate(placed)
        for b in placed[:i]
    )


def first_answer(intervals: list[Row]) -> float:
    """Seconds to any offsets without conflicts: with so much room no search is needed."""
    room = sum(size for _, _, size in intervals)
    results = [library.solve(np.array(intervals), room) for _ in range(20)]
    if not fits(intervals, results[0].offsets.tolist(), room):
        raise SystemExit("a first answer has conflicts")
    return min(result.seconds for result in results)


def ours(path: pathlib.Path, capacity: int, seconds: float, out: pathlib.Path) -> float | None:
    limits = ["--capacity", capacity, "--seconds", seconds]
    command = [sys.executable, "-m", "mallocgame", "offsets", path, *limits, "-o", out, "--json"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    return json.loads(done.stdout)["seconds"] if done.returncode == 0 else None


def minimalloc(
    binary: str, path: pathlib.Path, capacity: int, seconds: float, out: pathlib.Path
) -> float | None:
    limits = [f"--capacity={capacity}", f"--timeout={seconds}s"]
    command = [binary, *limits, f"--input={path}", f"--output={out}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    elapsed = re.search(r"Elapsed time ([\d.]+)s", done.stdout + done.stderr)
    return float(elapsed[1]) if elapsed and out.exists() and done.returncode == 0 else None


def cp_sat(intervals: list[Row], capacity: int, seconds: float) -> tuple[float | None, list[int]]:
    try:
        from ortools.sat.python import cp_model
    except ModuleNotFoundError:
        return None, []
    unit = math.gcd(*(size for _, _, size in intervals))
    top = capacity // unit
    if any(size // unit > top for _, _, size in intervals):
        return None, []
    start = time.perf_counter()
    model = cp_model.CpModel()
    offsets = [model.new_int_var(0, top - size // unit, "") for _, _, size in intervals]
    model.add_no_overlap_2d(
        [model.new_fixed_size_interval_var(begin, end - begin, "") for begin, end, _ in intervals],
        [
            model.new_fixed_size_interval_var(o, size // unit, "")
            for o, (_, _, size) in zip(offsets, intervals, strict=True)
        ],
    )
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = seconds
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None, []
    return time.perf_counter() - start, [unit * solver.value(offset) for offset in offsets]


def measure(path: pathlib.Path, binary: str, seconds: float) -> dict:
    """Returns how many intervals there are, and the seconds of each, None without an answer."""
    intervals, _ = read(path)
    capacity = int(path.name.split(".")[1])
    times: list[float | None] = []
    with tempfile.TemporaryDirectory() as folder:
        for run in (ours, functools.partial(minimalloc, binary)):
            out = pathlib.Path(folder) / f"{len(times)}.csv"
            taken = run(path, capacity, seconds, out)
            right = taken is not None and fits(intervals, read(out, "offset")[1], capacity)
            times.append(taken if right else None)
    taken, offsets = cp_sat(intervals, capacity, seconds)
    times.append(taken if taken is not None and fits(intervals, offsets, capacity) else None)
    return {"intervals": len(intervals), "first": first_answer(intervals), "times": times}


def main(minimalloc: str, folder: pathlib.Path, *, seconds: float = 60) -> int:
    paths = sorted(folder.glob("*.*.csv"))
    if not paths:
        raise SystemExit(f"no NAME.CAPACITY.csv in {folder}")
    heads = ("instance", "intervals", "first ms", "mallocgame s", "MiniMalloc s", "CP-SAT s")
    table, failed = ex.Table(heads), False
    settings = {"binary": minimalloc, "seconds": seconds}
    for row in ex.run(measure, ex.Grid(path=paths), None, settings=settings, done=ex.tell):
        first, times = row["first"], row["times"]
        own, others = times[0], [t for t in times[1:] if t is not None]
        failed |= own is None or (bool(others) and own > min(others)) or first > 1e-3
        cells = ("–" if t is None else f"{t:.3f}" for t in times)
        name = row["path"].name.split(".")[0]
        table.add(name, row["intervals"], f"{1e3 * first:.2f}", *cells)
    print(table)
    print(f"–: no answer within {seconds:g} s.")
    return int(failed)


if __name__ == "__main__":
    ex.main(main)
