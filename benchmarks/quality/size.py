"""Measures what large programs need: to be captured, bounded, solved and tuned.

    python benchmarks/quality/size.py FOLDER [--seconds 240] [--steps capture,lp,...] [PROGRAM...]

PROGRAM is WORKLOAD.TARGET. Each step is a command of `mallocgame`, and what it took and answered is
kept in FOLDER, so that this can be interrupted and goes on where it stopped. Then prints the tables
of docs/results/size.md. Needs mallocgame[xla,bounds] and no TPU. Exits 1 if a step failed, a solver
took a fifth longer than it may, or memory went over the limit.
"""

import functools
import json
import os
import pathlib
import resource
import subprocess
import sys
import threading
import time
import typing
from typing import Literal

from mallocgame import experiments as ex

DECODE, TRAIN = "llama_8b_decode_32l_b8_kv2048", "gpt2_train_adamw_b8_s1024"
PROGRAMS = (
    f"{DECODE}.tpu_v6e",
    f"{DECODE}_scan.tpu_v6e",
    *(
        f"{workload}.{target}"
        for workload in (
            TRAIN,
            f"{TRAIN}_scan",
            "diffusion_unet_b2_64",
            "moe_transformer_8l_b4_s512",
        )
        for target in ("tpu_v6e", "tpu_v5e")
    ),
)
# Names and seconds; 0: it ends by itself.
SOLVERS = {"greedy": 10, "xla-heuristic": 10, "rent": 10, "anneal": 10, "portfolio": 30}
Step = Literal["capture", "lp", "greedy", "xla-heuristic", "rent", "anneal", "portfolio", "tune"]
STEPS: tuple[Step, ...] = typing.get_args(Step)
MOST_MIB, MOST_LATE = 8 << 10, 1.2
_PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / 2**20


def resident_mib(process: int) -> float:
    """Returns the memory of a process and all that it started."""
    total = 0.0
    for number in (process, *descendants(process)):
        try:
            pages = pathlib.Path(f"/proc/{number}/statm").read_text().split()[1]
        except (FileNotFoundError, ProcessLookupError):  # It has just ended.
            continue
        total += int(pages) * _PAGE_MIB
    return total


def descendants(process: int) -> list[int]:
    """Returns the numbers of all that a process started, directly or not."""
    found = []
    for task in pathlib.Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = [int(number) for number in task.read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
        for child in children:
            found += [child, *descendants(child)]
    return found


def measured(arguments: list[str]) -> dict:
    """Runs a command of mallocgame: wall and processor seconds, peak MiB, and its answer."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    peak = 0.0
    done = threading.Event()
    with subprocess.Popen(
        [sys.executable, "-m", "mallocgame", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:

        def watch() -> None:
            nonlocal peak
            while not done.wait(0.1):
                peak = max(peak, resident_mib(process.pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        out, said = process.communicate()
        done.set()
        watcher.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    row = {
        "wall_s": time.monotonic() - begin,
        "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "peak_mib": peak,
    }
    if process.returncode:
        return row | {"error": said.decode().strip().splitlines()[-1]}
    return row | {"answer": json.loads(out)}


def command(step: str, program: str, folder: pathlib.Path, seconds: float) -> list[str]:
    """Returns the arguments of mallocgame for a step."""
    workload, target = program.split(".")
    captured = str(folder / "capture" / "program.mgp")
    compiling = ("--no-cache", "--compile-seconds", "1800", "--json")
    if step == "capture":
        capture = str(folder / "capture")
        return [*("xla", "capture", workload, "--target", target), *("-o", capture, *compiling)]
    if step == "lp":
        return ["solve", captured, "--solver", "all-main", "--bound", "lp", "--json"]
    if step == "tune":
        return [
            *("xla", "tune", workload, "--target", target),
            *("--seconds", f"{seconds:g}", *compiling),
        ]
    return ["solve", captured, "--solver", step, "--seconds", str(SOLVERS[step]), "--json"]


def measure(program: str, step: str, folder: pathlib.Path, seconds: float) -> dict:
    return measured(command(step, program, folder / program, seconds))


def took(row: dict) -> str:
    """Returns wall and processor seconds, and the peak."""
    return f"{row['wall_s']:.1f} / {row['cpu_s']:.1f} / {row['peak_mib']:,.0f}"


def size_cells(rows: dict[str, dict]) -> list[str]:
    """Returns what capturing and bounding took, and what is left."""
    row = rows["capture"]
    if "error" in row:
        return [f"refused: {row['error']}"]
    answer = row["answer"]
    cells = [f"{answer['accesses']:,}", took(row), f"{answer['xla_ps'] / 1e6:,.1f}"]
    if "lp" not in rows or "error" in rows["lp"]:
        return [*cells, rows.get("lp", {}).get("error", "–")]
    found = rows["lp"]["answer"]
    left = f"{answer['xla_ps'] / found['bound_ps'] - 1.0:.1%}"
    return [*cells, took(rows["lp"]), found["bound_status"], left]


def solver_cells(rows: dict[str, dict]) -> list[str]:
    """Returns each solver's speed-up over XLA, and what it took."""
    cells = []
    for solver in SOLVERS:
        row = rows.get(solver, {"error": "–"})
        cells.append(
            row["error"]
            if "error" in row
            else f"{row['answer']['speedup_vs_xla']:.3f} in {row['wall_s']:.1f} / "
            f"{row['cpu_s']:.1f} / {row['peak_mib']:,.0f}"
        )
    return cells


def tune_cells(rows: dict[str, dict]) -> list[str]:
    """Returns what tune reached."""
    row = rows["tune"]
    if "error" in row:
        return [row["error"]]
    answer = row["answer"]
    return [
        f"{answer['speedup']:.3f}",
        f"{answer['speedup_cold']:.3f}",
        str(answer["plans"]),
        str(len(answer["refused"])),
        took(row),
    ]


def good(rows: dict[str, dict]) -> bool:
    """Returns whether all went well, in time and within memory."""
    return all(
        "error" not in row
        and row["peak_mib"] <= MOST_MIB
        and (step not in SOLVERS or row["answer"]["seconds"] <= MOST_LATE * SOLVERS[step])
        for step, row in rows.items()
    )


def main(
    bench: ex.Bench, *programs: str, seconds: float = 240.0, steps: tuple[Step, ...] = STEPS
) -> int:
    grid = ex.Grid(program=programs or PROGRAMS, step=[step for step in STEPS if step in steps])
    work = functools.partial(measure, folder=bench.folder)
    settings = {"seconds": seconds}
    found = bench.run(work, grid.where(lambda step, **_: step == "capture"), settings=settings)
    refused = {row["program"] for row in found if "error" in row}  # There is no program for more.
    others = grid.where(lambda program, step: step != "capture" and program not in refused)
    found += bench.run(work, others, settings=settings)
    every = {
        name: {row["step"]: row for row in several}
        for name, several in ex.grouped(found, "program").items()
    }
    heads = {
        ("accesses", "capture, s / s / MiB", "XLA, µs", "lp, s / s / MiB", "lp", "left"): (
            size_cells, {"capture"},
        ),
        tuple(f"`{solver}`" for solver in SOLVERS): (solver_cells, {*SOLVERS}),
        ("speed-up", "cold", "plans", "refused", "s / s / MiB"): (tune_cells, {"tune"}),
    }  # fmt: skip
    for columns, (cells, steps_of) in heads.items():
        table = ex.Table(["program", *columns])
        for name, rows in every.items():
            if steps_of & {*rows}:
                table.add(f"`{name}`", *cells(rows))
        print(table, end="\n\n")
    return 0 if all(good(rows) for rows in every.values()) else 1


if __name__ == "__main__":
    ex.main(main)
