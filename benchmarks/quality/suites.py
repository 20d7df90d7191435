"""Finds the bounds of each bundled program.

    python benchmarks/quality/suites.py [-o bindings/python/mallocgame/programs/suites.json]
    [--table] [--jobs 1 | --ray ADDRESS]

Needs mallocgame[bounds]. Takes some minutes. Programs measured before are not measured again unless
they changed, or --fresh is given (for changes of the cost model or of the bounds). --table prints
the file tables/suites.csv beside this one, which docs/results/bounds.md sums up. Which programs are
in the contended suite stands in the same file as the bounds, and stays as it is, so that tables of
any date are of the same programs.
"""

import argparse
import contextlib
import csv
import functools
import json
import pathlib
import sys

import mallocgame as mg
from mallocgame._cli.parser import add_workers, workers
from mallocgame._jobs import run_jobs

BUNDLED = (
    pathlib.Path(__file__).resolve().parents[2] / "bindings/python/mallocgame/programs/suites.json"
)


def measure(seconds: float, name: str) -> dict:
    program = mg.load_program(name)
    assert program.xla_plan is not None, "every bundled program has XLA's own plan"
    lp, milp = (mg.bounds.bound(program, name, seconds=seconds) for name in ("lp", "milp"))
    return {
        "fingerprint": program.fingerprint,
        "no_contention_ps": mg.bounds.bound(program).bound_ps,
        "lp_ps": lp.bound_ps,
        "lp_status": lp.status,
        # Stopped early it may be the weaker one.
        "milp_ps": max(milp.bound_ps, lp.bound_ps if milp.status == "stopped" else 0),
        "milp_status": milp.status,
        "xla_ps": mg.simulate(program, program.xla_plan).latency_ps,
    }


_COLUMNS = ("program", "no-contention us", "lp us", "milp us", "XLA us", "XLA over milp")


def row(name: str, entry: dict) -> list[str]:
    times = (entry[f"{key}_ps"] / 1e6 for key in ("no_contention", "lp", "milp", "xla"))
    above = 100 * (entry["xla_ps"] / entry["milp_ps"] - 1)
    return [name, *(f"{time:.1f}" for time in times), f"{above:.1f} %"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=pathlib.Path, default=BUNDLED)
    parser.add_argument("--seconds", type=float, default=300, help="for the solver, a program")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--fresh", action="store_true")
    add_workers(parser, 1, "programs side by side (1)")
    options = parser.parse_args()
    known = (
        {}
        if options.fresh or not options.output.exists()
        else json.loads(options.output.read_text())["programs"]
    )
    names = mg.program_names()
    entries = {
        name: known[name]
        for name in names
        if known.get(name, {}).get("fingerprint") == mg.load_program(name).fingerprint
    }
    missing = [name for name in names if name not in entries]
    measured = functools.partial(measure, options.seconds)
    with (
        workers(options, here=True) as several,
        contextlib.closing(run_jobs(measured, missing, several)) as finished,
    ):
        for name, entry in finished:
            entries[name] = entry
            write(options.output, known | entries)
    table = csv.writer(sys.stdout, lineterminator="\n")
    if options.table:
        table.writerow(_COLUMNS)
    for name in names:
        table.writerow(row(name, entries[name]) if options.table else [name])
    write(options.output, {name: entries[name] for name in names})


def write(path: pathlib.Path, entries: dict) -> None:
    suites = json.loads(BUNDLED.read_text())["suites"]
    document = {"suites": suites, "programs": entries}
    path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
