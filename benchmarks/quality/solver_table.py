"""Makes the table of solvers: every bundled program under one time limit.

It also checks that the portfolio does what it must.

    python benchmarks/quality/solver_table.py FOLDER [--seconds 60] [--xla-seconds 10] [PROGRAM...]

Runs `mallocgame compare` program by program and keeps each answer in FOLDER, so that it can be
interrupted and goes on where it stopped; a program in FOLDER is not measured again. Then prints the
Markdown of docs/results/solvers.md and the checks, and writes all.json and all.csv. Needs
mallocgame[bounds]; nothing else should run beside it. Exits 1 if a check fails.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys

import mallocgame as mg
from mallocgame._cli.compare import write_csv
from mallocgame.programs import suite

SOLVERS = "portfolio,xla-heuristic,greedy,xla-assigned"
LEAST = {  # speed-ups over XLA's own plan, warm and cold
    "llama_1b_decode_8l_b4_kv1024.tpu_v4i": 2.05,
    "wavernn_64steps_b8.tpu_v4i": 1.95,
    "mlp_train_adam_b512.tpu_v4i": 1.08,
    "lstm_lm_train_b32_t16.tpu_v4i_16mib": 1.09,
    "llama_1b_decode_8l_b4_kv1024.tpu_v4i_16mib": 1.00,
}
LEAST_OF_ALL, LEAST_MEAN, MOST_GAP = 0.995, 1.17, 0.05


def measure(program: str, path: pathlib.Path, options) -> None:
    """Writes the rows of one program."""
    rows = []
    for solvers, seconds in ((SOLVERS, options.seconds), ("portfolio-xla", options.xla_seconds)):
        command = [
            sys.executable,
            "-m",
            "mallocgame",
            "compare",
            program,
            "--solvers",
            solvers,
            "--seconds",
            str(seconds),
            "--bound",
            "lp",
            "--json",
        ]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        rows += json.loads(done.stdout)["results"]
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(rows, indent=1) + "\n")
    partial.rename(path)


def speedup(row: dict, cold: bool = False) -> float:
    return (
        row["xla_cold_ps"] / row["latency_cold_ps"] if cold else row["xla_ps"] / row["latency_ps"]
    )


def gap(row: dict) -> float:
    return row["latency_ps"] / row["bound_ps"] - 1


def geometric_mean(values) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))


def print_table(by_solver: dict[str, dict[str, dict]], contended: list[str]) -> None:
    print(
        "| program | | XLA, µs | greedy | portfolio | cold | gap |\n"
        "| --- | --- | --: | --: | --: | --: | --: |"
    )
    for name, row in by_solver["portfolio"].items():
        cells = [
            f"`{name}`",
            "×" if name in contended else "",
            f"{row['xla_ps'] / 1e6:,.1f}",
            f"{speedup(by_solver['greedy'][name]):.3f}",
            f"{speedup(row):.3f}",
            f"{speedup(row, True):.3f}",
            f"{100 * gap(row):.1f} %",
        ]
        print(f"| {' | '.join(cells)} |")


def checks(by_solver: dict[str, dict[str, dict]], contended: list[str]):
    """What must hold, as (text, number, does it hold)."""
    rows, safe = by_solver["portfolio"], by_solver["portfolio-xla"]
    crowded = [rows[name] for name in rows if name in contended]
    for cold in (False, True):
        how = "cold" if cold else "warm"
        all_speedups = [speedup(row, cold) for row in rows.values()]
        yield f"geometric mean of all, {how}", geometric_mean(all_speedups), True
        if crowded:
            mean = geometric_mean(speedup(row, cold) for row in crowded)
            yield f"geometric mean of contended >= {LEAST_MEAN}, {how}", mean, mean >= LEAST_MEAN
        yield (
            f"least of all >= {LEAST_OF_ALL}, {how}",
            min(all_speedups),
            min(all_speedups) >= LEAST_OF_ALL,
        )
        least_safe = min(speedup(row, cold) for row in safe.values())
        yield f"least of portfolio-xla >= 1, {how}", least_safe, least_safe >= 1
        for name, least in LEAST.items():
            if name in rows:
                yield (
                    f"{name} >= {least}, {how}",
                    speedup(rows[name], cold),
                    speedup(rows[name], cold) >= least,
                )
    if crowded:
        median = statistics.median(map(gap, crowded))
        yield f"median gap of contended <= {MOST_GAP}", median, median <= MOST_GAP
    heuristic = statistics.median(
        abs(1 / speedup(row) - 1) for row in by_solver["xla-heuristic"].values()
    )
    yield "median deviation of xla-heuristic <= 0.05", heuristic, heuristic <= 0.05
    for name, row in rows.items():
        if gap(row) > MOST_GAP:
            yield f"{name}: gap over {MOST_GAP}", gap(row), True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument(
        "programs", nargs="*", metavar="PROGRAM", help="all bundled ones, if none is given"
    )
    parser.add_argument(
        "--seconds", type=float, default=60, help="for each solver and program (60)"
    )
    parser.add_argument(
        "--xla-seconds", type=float, default=10, help="the same for portfolio-xla (10)"
    )
    options = parser.parse_intermixed_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    names = options.programs or mg.program_names()
    for index, name in enumerate(names):
        path = options.folder / f"{name}.json"
        print(f"{index + 1} of {len(names)}: {name}", file=sys.stderr, flush=True)
        if not path.exists():
            measure(name, path, options)
        rows += json.loads(path.read_text())
    (options.folder / "all.json").write_text(json.dumps(rows, indent=1) + "\n")
    write_csv(str(options.folder / "all.csv"), rows)
    by_solver: dict[str, dict[str, dict]] = {}
    for row in rows:
        by_solver.setdefault(row["solver"], {})[row["program"]] = row
    contended = suite("contended")
    print_table(by_solver, contended)
    failed = not all(row["valid"] for row in rows)
    print(f"\nall plans valid: {'no' if failed else 'yes'}")
    for text, number, holds in checks(by_solver, contended):
        failed |= not holds
        print(f"{'    ' if holds else 'NOT '}{text}: {number:.4f}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
