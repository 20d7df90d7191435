"""Measures what `mallocgame xla tune` reaches, at the prices of the compiler's own phases.

The programs are those of a suite; the contended ones if nothing is given.

    python benchmarks/quality/tune_table.py FOLDER [--suite contended|cloud|sharded|large|unseen]
        [--seconds 60] [--accept both|compiler] [--order] [--jobs 1 | --ray ADDRESS] [--no-cache]
        [PROGRAM...]

Tunes program by program and keeps each answer in FOLDER, so that it can be interrupted and goes on
where it stopped. Bundled ones are solved by `portfolio`
too, by the prices they come with. Then prints a Markdown table, whose rows are kept as
tables/tune_table_SUITE.csv and summed up by chip in docs/results/tpu.md and docs/results/suites.md,
and the means. *Carried out* is the log of the speed-up as a
share of the log of portfolio's: 1 is all of what the model gains, and more is possible, because
bundled prices are fewer. PROGRAM is WORKLOAD.HARDWARE, as the bundled ones are called; the suite
`unseen` has the programs of unseen_programs.py instead.
Needs mallocgame[xla] and no TPU. Exits 1 if a program is slower than XLA's or couldn't be tuned.
"""

import dataclasses
import functools
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Literal

import unseen_programs  # type: ignore[import-not-found]

import mallocgame as mg
from mallocgame import experiments as ex
from mallocgame import programs as bundled
from mallocgame.xla.sources import workloads
from mallocgame.xla.targets import bundled_target

UNSEEN = "unseen"
BOUNDS = pathlib.Path(mg.__file__).parent / "programs/suites.json"
# The speed-ups of a row, cold first: the heading and the words for each. Programs that can't have
# calibrated prices have none of those.
SPEEDUPS = {
    "speedup_cold": ("speed-up cold", "cold"),
    "speedup": ("warm", "warm"),
    "speedup_calibrated_cold": ("calibrated cold", "calibrated cold"),
    "speedup_calibrated": ("warm", "calibrated warm"),
}
LEAST_GAIN = 1.002  # Of less in the model there is no share.


def answer_of(*arguments: str) -> dict:
    """Returns what a command of mallocgame prints with --json."""
    command = [sys.executable, "-m", "mallocgame", *arguments, "--json"]
    # There a module is found that a program is named from.
    folder = pathlib.Path(__file__).parent
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    if done.returncode:
        raise mg.MallocGameError(done.stderr.strip().rpartition("\n")[2])
    answer: dict = json.loads(done.stdout)
    return answer


Suite = Literal["contended", "core", "cloud", "sharded", "large", "all", "unseen"]


def names_of(chosen: str) -> list[str]:
    """Returns the programs of a suite."""
    if chosen != UNSEEN:
        return bundled.suite(chosen)
    return [f"{n}.{chip}" for n in unseen_programs.PROGRAMS for chip in unseen_programs.HARDWARE]


def tune(program: str, seconds: float, accept: str, order: bool, more: tuple[str, ...]) -> dict:
    """Returns the row of one program."""
    workload, hardware = program.split(".")
    if workload in unseen_programs.PROGRAMS:
        workload = f"{unseen_programs.__name__}:{workload}"
    elif workload not in workloads():
        raise mg.MallocGameError("it is no workload of examples/workloads")
    target = bundled_target(hardware)
    limit = [] if target.fast_mib is None else ["--fast-mib", str(target.fast_mib)]
    arguments = [workload, "--target", target.title, "--seconds", str(seconds), *limit, *more]
    flags = ["--order"] if order else []
    return answer_of("xla", "tune", *arguments, "--accept", accept, *flags)


def solve(program: str, seconds: float) -> dict:
    """Returns what `portfolio` finds for a bundled program."""
    return answer_of("solve", program, "--solver", "portfolio", "--seconds", str(seconds))


def model_speedup(row: dict) -> float | None:
    """Returns what the plan of `portfolio` gains over XLA's by the program's own prices."""
    model = row.get("model")
    return None if model is None else model["speedup_vs_xla"]


def carried_out(row: dict) -> float | None:
    """Returns the part of that gain that is in the compiler's own program."""
    model = model_speedup(row)
    if model is None or model < LEAST_GAIN:
        return None
    return math.log(row["speedup"]) / math.log(model)


def times(speedup: float | None) -> str:
    return "–" if speedup is None else f"{speedup:.3f}"


def reached(rows: dict[str, dict]) -> ex.Table:
    """What was reached."""
    heads = (
        *("XLA cold, µs", "warm", "emitted cold, µs", "warm"),
        *(heading for heading, _ in SPEEDUPS.values()),
        *("main memory", "portfolio", "carried out", "plans", "refused", "s"),
    )
    table = ex.Table(["program", *heads])
    for name, row in rows.items():
        model, share = model_speedup(row), carried_out(row)
        keys = ("default_cold_ps", "default_ps", "latency_cold_ps", "latency_ps")
        table.add(
            f"`{name}`",
            *(f"{row[key] / 1e6:,.1f}" for key in keys),
            *(times(row.get(key)) for key in SPEEDUPS),
            f"{row['main_bytes'] / row['xla_main_bytes']:.3f}" if "main_bytes" in row else "–",
            "–" if model is None else f"{model:.3f}",
            "–" if share is None else f"{share:.0%}",
            row["plans"],
            len(row["refused"]),
            f"{row['seconds']:.0f}",
        )
    return table


def gains(rows: dict[str, dict]) -> ex.Table:
    """What a plan gains by the model, by the bound at most, and as carried out."""
    bounds = json.loads(BOUNDS.read_text())["programs"]
    heads = (
        *("XLA, µs", "lp, µs", "left", "portfolio"),
        *("tuned cold", "warm", "calibrated cold", "warm", "left then"),
    )
    table = ex.Table(["program", *heads])
    for name, row in rows.items():
        model = model_speedup(row)
        if model is None or name not in bounds:
            continue
        entry = bounds[name]
        left = entry["xla_ps"] / entry["lp_ps"]
        table.add(
            f"`{name}`",
            f"{entry['xla_ps'] / 1e6:,.1f}",
            f"{entry['lp_ps'] / 1e6:,.1f}",
            f"{left - 1:.1%}",
            f"{model:.3f}",
            *(times(row.get(key)) for key in SPEEDUPS),
            f"{left / row['speedup'] - 1:.1%}",
        )
    return table


def stages(rows: dict[str, dict]) -> ex.Table:
    """How many seconds each stage took, of the capture and of the search."""
    names = list(dict.fromkeys(stage for row in rows.values() for stage in _stages_of(row)))
    table = ex.Table(["program", *names])
    for name, row in rows.items():
        spent = _stages_of(row)
        table.add(f"`{name}`", *(f"{spent[n]:.0f}" if n in spent else "–" for n in names))
    return table


def _stages_of(row: dict) -> dict[str, float]:
    # The names of stages have numbers of instructions in them.
    return {
        re.sub(r"\d+ instructions", "instructions", name.removeprefix("stage ")): seconds
        for name, seconds in row.get("stage_seconds", {}).items()
    }


def summary(rows: dict[str, dict]) -> Iterator[tuple[str, float]]:
    """Yields means of all rows, as (text, number)."""
    for key, (_, how) in SPEEDUPS.items():
        speedups = [row[key] for row in rows.values() if row.get(key) is not None]
        if not speedups:
            continue
        yield (
            f"geometric mean, {how}, {len(speedups)} programs",
            statistics.geometric_mean(speedups),
        )
        yield f"median, {how}", statistics.median(speedups)
        yield f"least, {how}", min(speedups)
    models = [model for row in rows.values() if (model := model_speedup(row)) is not None]
    if models:
        yield "geometric mean of portfolio, by bundled prices", statistics.geometric_mean(models)
    shares = [share for row in rows.values() if (share := carried_out(row)) is not None]
    if shares:
        yield f"median share carried out, {len(shares)} programs", statistics.median(shares)


def rows_of(run: Callable[[], list[ex.Row]]) -> dict[str, ex.Row]:
    """Returns the row of each program; of one that failed there is none."""
    try:
        rows = run()
    except ex.FailedCellsError as error:
        print(error, file=sys.stderr)
        rows = error.rows
    return {row["program"]: row for row in rows}


def main(
    bench: ex.Bench,
    *programs: str,
    suite: Suite = "contended",
    seconds: float = 60,
    model_seconds: float = 8,
    accept: Literal["both", "compiler"] = "both",
    order: bool = False,
    no_cache: bool = False,
) -> int:
    names = programs or names_of(suite)
    tuned = functools.partial(tune, more=("--no-cache",) if no_cache else ())
    how = {"seconds": seconds, "accept": accept, "order": order}
    rows = rows_of(lambda: bench.run(tuned, ex.Grid(program=names), settings=how))
    known = ex.Grid(program=[name for name in rows if name in mg.program_names()])
    model = dataclasses.replace(bench, folder=bench.folder / "model")
    how = {"seconds": model_seconds}
    for name, plan in rows_of(lambda: model.run(solve, known, settings=how)).items():
        rows[name]["model"] = plan
    compared = {name: row for name, row in rows.items() if row["speedup"] is not None}
    for table in (reached(compared), gains(compared), stages(compared)):
        if table.rows:
            print(table, end="\n\n")
    for text, number in summary(compared) if compared else ():
        print(f"{text}: {number:.4f}")
    slower = [
        name
        for name, row in compared.items()
        if any(row.get(key) is not None and row[key] < 1 for key in SPEEDUPS)
    ]
    for name in slower:
        print(f"NOT as fast as XLA's: {name}")
    return 1 if slower or len(rows) < len(names) else 0


if __name__ == "__main__":
    ex.main(main)
