"""Measures what `mallocgame xla tune` reaches, at the prices of the compiler's own phases.

The programs are those of a suite; the contended ones if nothing is given.

    python benchmarks/quality/tune_table.py FOLDER [--suite contended|cloud|sharded|unseen]
        [--seconds 60] [--prices both|compiler] [--order] [--jobs 1 | --ray ADDRESS] [--no-cache]
        [PROGRAM...]

Tunes program by program and keeps each answer in FOLDER, so that it can be interrupted and goes on
where it stopped; a program in FOLDER is not tuned again. Bundled ones are solved by `portfolio`
too, by the prices they come with. Then prints a Markdown table, whose rows are kept as
tables/tune_table_SUITE.csv and summed up by chip in docs/results/tpu.md and docs/results/suites.md,
and the means. *Carried out* is the log of the speed-up as a
share of the log of portfolio's: 1 is all of what the model gains, and more is possible, because
bundled prices are fewer. PROGRAM is WORKLOAD.HARDWARE, as the bundled ones are called; the suite
`unseen` has the programs of unseen_programs.py instead.
Needs mallocgame[xla] and no TPU. Exits 1 if a program is slower than XLA's or couldn't be tuned.
"""

import argparse
import contextlib
import functools
import json
import math
import pathlib
import statistics
import subprocess
import sys
from collections.abc import Iterator

import unseen_programs  # type: ignore[import-not-found]

import mallocgame as mg
from mallocgame._cli.parser import add_workers, workers
from mallocgame._jobs import run_jobs
from mallocgame.programs import SUITES, suite
from mallocgame.xla.sources import workloads
from mallocgame.xla.targets import bundled_target
from mallocgame.xla.tuning import BOTH, PRICES

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


def answer_of(*arguments: str) -> dict | None:
    """Returns what a command of mallocgame prints with --json; None if it fails."""
    command = [sys.executable, "-m", "mallocgame", *arguments, "--json"]
    # There a module is found that a program is named from.
    folder = pathlib.Path(__file__).parent
    done = subprocess.run(command, stdout=subprocess.PIPE, cwd=folder, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def write(row: dict, path: pathlib.Path) -> None:
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(row))
    partial.rename(path)


def names_of(chosen: str) -> list[str]:
    """Returns the programs of a suite."""
    if chosen != UNSEEN:
        return suite(chosen)
    return [f"{n}.{chip}" for n in unseen_programs.PROGRAMS for chip in unseen_programs.HARDWARE]


def tune(seconds: float, more: tuple[str, ...], program: str) -> dict | None:
    """Returns the row of one program; None if there is none."""
    workload, hardware = program.split(".")
    if workload in unseen_programs.PROGRAMS:
        workload = f"{unseen_programs.__name__}:{workload}"
    elif workload not in workloads():
        print(f"{program}: left out, it is no workload of examples/workloads", file=sys.stderr)
        return None
    target = bundled_target(hardware)
    limit = [] if target.fast_mib is None else ["--fast-mib", str(target.fast_mib)]
    arguments = [workload, "--target", target.title, "--seconds", str(seconds), *limit]
    return answer_of("xla", "tune", *arguments, *more)


def solve(seconds: float, program: str) -> dict | None:
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


def print_markdown(heads: tuple[str, ...], rows: dict[str, list[str]]) -> None:
    if not rows:
        return
    print(f"| program | {' | '.join(heads)} |\n| --- |{' --: |' * len(heads)}")
    for name, cells in rows.items():
        print(f"| `{name}` | {' | '.join(cells)} |")
    print()


def print_table(rows: dict[str, dict]) -> None:
    """Prints what was reached."""
    heads = (
        *("XLA cold, µs", "warm", "emitted cold, µs", "warm"),
        *(heading for heading, _ in SPEEDUPS.values()),
        *("main memory", "portfolio", "carried out", "plans", "refused", "s"),
    )
    cells = {}
    for name, row in rows.items():
        model, share = model_speedup(row), carried_out(row)
        keys = ("default_cold_ps", "default_ps", "latency_cold_ps", "latency_ps")
        cells[name] = [
            *(f"{row[key] / 1e6:,.1f}" for key in keys),
            *(times(row.get(key)) for key in SPEEDUPS),
            f"{row['main_bytes'] / row['xla_main_bytes']:.3f}" if "main_bytes" in row else "–",
            "–" if model is None else f"{model:.3f}",
            "–" if share is None else f"{share:.0%}",
            str(row["plans"]),
            str(len(row["refused"])),
            f"{row['seconds']:.0f}",
        ]
    print_markdown(heads, cells)


def print_suite(rows: dict[str, dict]) -> None:
    """Prints what a plan gains by the model, by the bound at most, and as carried out."""
    bounds = json.loads(BOUNDS.read_text())["programs"]
    heads = (
        *("XLA, µs", "lp, µs", "left", "portfolio"),
        *("tuned cold", "warm", "calibrated cold", "warm", "left then"),
    )
    cells = {}
    for name, row in rows.items():
        model = model_speedup(row)
        if model is None or name not in bounds:
            continue
        entry = bounds[name]
        left = entry["xla_ps"] / entry["lp_ps"]
        cells[name] = [
            f"{entry['xla_ps'] / 1e6:,.1f}",
            f"{entry['lp_ps'] / 1e6:,.1f}",
            f"{left - 1:.1%}",
            f"{model:.3f}",
            *(times(row.get(key)) for key in SPEEDUPS),
            f"{left / row['speedup'] - 1:.1%}",
        ]
    print_markdown(heads, cells)


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="those of the suite")
    chosen = (*SUITES, UNSEEN)
    parser.add_argument("--suite", choices=chosen, default="contended", help="(contended)")
    parser.add_argument("--seconds", type=float, default=60, help="for each program (60)")
    parser.add_argument(
        "--model-seconds", type=float, default=8, help="of portfolio for each bundled one (8)"
    )
    parser.add_argument("--prices", choices=PRICES, default=BOTH, help="as of `xla tune` (both)")
    parser.add_argument("--order", action="store_true", help="the order is decided too")
    parser.add_argument("--no-cache", action="store_true", help="have everything priced anew")
    add_workers(parser, 1, "programs side by side (1)")
    options = parser.parse_intermixed_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    names = options.programs or names_of(options.suite)
    paths = {name: options.folder / f"{name}.json" for name in names}
    with workers(options, here=True) as several:
        flags = {"--no-cache": options.no_cache, "--order": options.order}
        more = ("--prices", options.prices, *(flag for flag, on in flags.items() if on))
        tuned = functools.partial(tune, options.seconds, more)
        missing = [name for name in names if not paths[name].exists()]
        with contextlib.closing(run_jobs(tuned, missing, several)) as finished:
            for name, answer in finished:
                print(f"tuned {name}", file=sys.stderr, flush=True)
                if answer is not None:
                    write(answer, paths[name])
        rows = {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}
        solved = functools.partial(solve, options.model_seconds)
        bundled = set(mg.program_names())
        tasks = [name for name, row in rows.items() if "model" not in row and name in bundled]
        with contextlib.closing(run_jobs(solved, tasks, several)) as plans:
            for name, plan in plans:
                print(f"solved {name}", file=sys.stderr, flush=True)
                rows[name]["model"] = plan
                write(rows[name], paths[name])
    compared = {name: row for name, row in rows.items() if row["speedup"] is not None}
    print_table(compared)
    print_suite(compared)
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
    sys.exit(main())
