"""Measures what `mallocgame xla tune` reaches, by the compiler's own output.

The programs are those of a suite, or the contended ones and programs with loops.

    python benchmarks/quality/tune_table.py FOLDER [--seconds 600] [--suite NAME]
        [--jobs 1 | --ray ADDRESS] [PROGRAM...]

Tunes program by program and keeps each answer in FOLDER, so that it can be interrupted and goes on
where it stopped; a program in FOLDER is not tuned again. Bundled ones are solved by `portfolio`
then, by the prices they come with: once with all plans, once with those that XLA could be asked
for.
Then prints the Markdown of docs/results/tpu.md, that of docs/results/suites.md, and the checks.
PROGRAM is WORKLOAD.HARDWARE, as the bundled ones are called.
Needs mallocgame[xla] and no TPU. Exits 1 if a check fails or a program couldn't be tuned.
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

import mallocgame as mg
from mallocgame._cli.parser import add_workers, workers
from mallocgame._jobs import run_jobs
from mallocgame.programs import SUITES, suite
from mallocgame.xla.sources import workloads
from mallocgame.xla.targets import bundled_target

LOOPED = ("lstm_lm_train_b32_t16", "wavernn_64steps_b8")  # the workloads with a scan
MORE_LOOPED = (
    "lstm_lm_train_b32_t16.tpu_v4i",
    "lstm_lm_train_b32_t16.tpu_v5e",
    "wavernn_64steps_b8.tpu_v6e",
)
LEAST = {"llama_1b_decode_8l_b4_kv1024.tpu_v4i": 2.0, "wavernn_64steps_b8.tpu_v4i": 1.9}
LEAST_MEAN, LEAST_LOOPED_MEAN, LEAST_HONOURED, MOST_ERROR = 1.19, 1.3, 0.95, 0.02
LEAST_CARRIED_OUT = 0.7  # of what the plans of `portfolio` gain in the model
MODELS = {"model": (), "askable": ("--askable",)}  # plans of portfolio, and options for them
BOUNDS = pathlib.Path(mg.__file__).parent / "programs/suites.json"


def answer_of(*arguments: str) -> dict | None:
    """Returns what a command of mallocgame prints with --json; None if it fails."""
    command = [sys.executable, "-m", "mallocgame", *arguments, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def write(row: dict, path: pathlib.Path) -> None:
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(row))
    partial.rename(path)


def tune(seconds: float, program: str) -> dict | None:
    """Returns the row of one program; None if there is none."""
    workload, hardware = program.split(".")
    if workload not in workloads():
        print(f"{program}: left out, it is no workload of examples/workloads", file=sys.stderr)
        return None
    target = bundled_target(hardware)
    limit = [] if target.fast_mib is None else ["--fast-mib", str(target.fast_mib)]
    arguments = [workload, "--target", target.title, "--seconds", str(seconds), *limit]
    return answer_of("xla", "tune", *arguments)


def solve(seconds: float, task: tuple[str, str]) -> dict | None:
    """Returns what `portfolio` finds for a bundled program with one of MODELS."""
    program, key = task
    arguments = ["solve", program, "--solver", "portfolio", "--seconds", str(seconds)]
    return answer_of(*arguments, *MODELS[key])


def carried_out(row: dict) -> dict | None:
    """Returns the answer that the plan's figures are of.

    It is the best, or the last one if none was better than XLA's; None if there is none.
    """
    if row["honoured"] is not None:
        return row
    return row["rounds"][-1] if row["rounds"] else None


def error(answer: dict) -> float:
    """Of the prediction, as a share."""
    return answer["predicted_ps"] / answer["verified_ps"] - 1


def model_speedup(name: str, row: dict, key: str = "model") -> float | None:
    """Returns what a plan of `portfolio` gains over XLA's by the program's own prices."""
    if row.get(key) is None:
        return None
    program = mg.load_program(name)
    assert program.xla_plan is not None, "every bundled program has XLA's own plan"
    return mg.simulate(program, program.xla_plan).latency_ps / row[key]["latency_ps"]


def carried_out_share(name: str, row: dict) -> float | None:
    """Returns the part of that gain that is left in the compiler's own output."""
    model = model_speedup(name, row)
    return (row["verified_speedup"] - 1) / (model - 1) if model and model > 1 else None


def print_suite(rows: dict[str, dict]) -> None:
    """Prints what a plan gains by the model, by the bound at most, and as carried out."""
    bounds = json.loads(BOUNDS.read_text())["programs"]
    heads = ("XLA, µs", "lp, µs", "left", "portfolio", "askable", "tuned", "cold", "left then")
    print(f"| program | {' | '.join(heads)} |\n| --- |{' --: |' * len(heads)}")
    for name, row in rows.items():
        model = model_speedup(name, row)
        if model is None:
            continue
        entry = bounds[name]
        left = entry["xla_ps"] / entry["lp_ps"]
        cells = [
            f"`{name}`",
            f"{entry['xla_ps'] / 1e6:,.1f}",
            f"{entry['lp_ps'] / 1e6:,.1f}",
            f"{left - 1:.1%}",
            f"{model:.3f}",
            f"{model_speedup(name, row, 'askable') or math.nan:.3f}",
            f"{row['verified_speedup']:.3f}",
            f"{row['verified_speedup_cold']:.3f}",
            f"{left / row['verified_speedup'] - 1:.1%}",
        ]
        print(f"| {' | '.join(cells)} |")


def print_table(rows: dict[str, dict]) -> None:
    heads = (
        "XLA, µs",
        "cold",
        "tuned, µs",
        "cold",
        "speed-up",
        "cold",
        "as asked",
        "error",
        "compiles",
        "looks",
        "s",
    )
    print(f"| program | {' | '.join(heads)} |\n| --- |{' --: |' * len(heads)}")
    for name, row in rows.items():
        answer = carried_out(row)
        latencies = [
            row[key] / 1e6 for key in ("xla_ps", "xla_cold_ps", "verified_ps", "verified_cold_ps")
        ]
        cells = [
            f"`{name}`",
            *(f"{latency:,.1f}" for latency in latencies),
            f"{row['verified_speedup']:.3f}",
            f"{row['verified_speedup_cold']:.3f}",
            f"{100 * answer['honoured']:.1f} %" if answer else "–",
            f"{100 * error(answer):+.2f} %" if answer else "–",
            row["compiles"],
            row["looks"],
            f"{row['seconds']:.0f}",
        ]
        print(f"| {' | '.join(map(str, cells))} |")


def checks(rows: dict[str, dict]):
    """What must hold, as (text, number, does it hold)."""
    contended = [row for name, row in rows.items() if name in suite("contended")]
    known = {*suite("contended"), *MORE_LOOPED}
    looped = [row for name, row in rows.items() if name in known and name.startswith(LOOPED)]
    for key in ("verified_speedup", "verified_speedup_cold"):
        how = "cold" if key.endswith("cold") else "warm"
        for text, some, least in (
            ("contended", contended, LEAST_MEAN),
            ("looped", looped, LEAST_LOOPED_MEAN),
        ):
            if some:
                mean = math.exp(statistics.fmean(math.log(row[key]) for row in some))
                yield f"geometric mean of {text} >= {least}, {how}", mean, mean >= least
        lowest = min(row[key] for row in rows.values())
        yield f"least of all >= 1, {how}", lowest, lowest >= 1
        for name, least in LEAST.items():
            if name in rows:
                yield f"{name} >= {least}, {how}", rows[name][key], rows[name][key] >= least
    shares = [
        share
        for name, row in rows.items()
        if name in suite("contended") and (share := carried_out_share(name, row)) is not None
    ]
    if shares:
        middle = statistics.median(shares)
        yield (
            f"median share of the model's gain carried out >= {LEAST_CARRIED_OUT}, "
            f"{len(shares)} contended",
            middle,
            middle >= LEAST_CARRIED_OUT,
        )
    answers = [answer for row in contended if (answer := carried_out(row)) is not None]
    if answers:
        honoured = statistics.median(answer["honoured"] for answer in answers)
        yield (
            f"median share as asked >= {LEAST_HONOURED}, {len(answers)} contended",
            honoured,
            honoured >= LEAST_HONOURED,
        )
        middle = statistics.median(abs(error(answer)) for answer in answers)
        yield (
            f"median error <= {MOST_ERROR}, {len(answers)} contended",
            middle,
            middle <= MOST_ERROR,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument(
        "programs", nargs="*", metavar="PROGRAM", help="contended and looped ones, if none is given"
    )
    parser.add_argument("--suite", choices=SUITES, help="its programs")
    parser.add_argument("--seconds", type=float, default=600, help="for each program (600)")
    parser.add_argument(
        "--model-seconds", type=float, default=30, help="of portfolio for each bundled one (30)"
    )
    add_workers(parser, 1, "programs side by side (1)")
    options = parser.parse_intermixed_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    names = options.programs or (
        suite(options.suite) if options.suite else [*suite("contended"), *MORE_LOOPED]
    )
    paths = {name: options.folder / f"{name}.json" for name in names}
    with workers(options, here=True) as several:
        tuned = functools.partial(tune, options.seconds)
        missing = [name for name in names if not paths[name].exists()]
        with contextlib.closing(run_jobs(tuned, missing, several)) as finished:
            for name, answer in finished:
                print(f"tuned {name}", file=sys.stderr, flush=True)
                if answer is not None:
                    write(answer, paths[name])
        rows = {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}
        solved = functools.partial(solve, options.model_seconds)
        tasks = [
            (name, key)
            for name, row in rows.items()
            for key in MODELS
            if key not in row and name in mg.program_names()
        ]
        with contextlib.closing(run_jobs(solved, tasks, several)) as plans:
            for (name, key), plan in plans:
                print(f"solved {name}, {key}", file=sys.stderr, flush=True)
                rows[name][key] = plan
                write(rows[name], paths[name])
    print_table(rows)
    print()
    print_suite(rows)
    failed = len(rows) < len(names)
    print()
    for text, number, holds in checks(rows) if rows else ():
        failed |= not holds
        print(f"{'    ' if holds else 'NOT '}{text}: {number:.4f}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
