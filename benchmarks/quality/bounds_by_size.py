"""Measures the Lagrangian bound beside the linear programme's, by the size of programs.

    python benchmarks/quality/bounds_by_size.py FOLDER PROGRAM... [--seconds 60] [--lp-seconds 60]
    [--plan-seconds 30] [--jobs 1 | --ray ADDRESS]

PROGRAM is a name or a path. Prints the table of docs/bounds.md: times are of one core's
processor, and the best plan is that of `portfolio`, or XLA's own if that is better. Needs
mallocgame[bounds]; with --lp-seconds 0 nothing. Results are kept in FOLDER.
"""

import os
import pathlib
import time

import mallocgame as mg
from mallocgame import experiments as ex


def measure(program: str, seconds: float, lp_seconds: float, plan_seconds: float) -> dict:
    loaded = mg.load_program(program)
    begin = time.process_time()
    risen = mg.bounds.bound(loaded, "lagrangian", seconds=seconds)
    took = time.process_time() - begin
    mg.bounds.verify(loaded, risen)
    best = mg.solve(loaded, "portfolio", seconds=plan_seconds).report.latency_ps
    if loaded.xla_plan is not None:
        best = min(best, mg.simulate(loaded, loaded.xla_plan).latency_ps)
    row = {
        "accesses": len(loaded.accesses),
        "no_contention_ps": mg.bounds.bound(loaded).bound_ps,
        "lagrangian_ps": risen.bound_ps,
        "status": risen.status,
        "seconds": took,
        "plan_ps": best,
    }
    if lp_seconds:
        begin = time.process_time()
        relaxation = mg.bounds.bound(loaded, "lp", seconds=lp_seconds)
        row |= {"lp_seconds": time.process_time() - begin, "lp_status": relaxation.status}
        row["lp_ps"] = relaxation.bound_ps
    return row


def shown(name: str, row: ex.Row) -> list[str]:
    path = pathlib.Path(name)
    label = path.parent.name if path.name == "program.mgp" else path.name
    bound, took = row["lagrangian_ps"], f"{row['seconds']:.1f}"
    lp = ["–", "–"]
    if row.get("lp_status") == "optimal":
        lp = [f"{row['lp_seconds']:.1f}", f"{100 * (bound / row['lp_ps'] - 1):+.3f} %"]
    return [
        f"`{label}`",
        f"{row['accesses']:,}",
        f"{row['no_contention_ps'] / 1e6:,.1f}",
        f"{bound / 1e6:,.1f}",
        took if row["status"] == "converged" else f"{took}, {row['status']}",
        *lp,
        f"{row['plan_ps'] / 1e6:,.1f}",
        f"{100 * (row['plan_ps'] / bound - 1):.2f} %",
    ]


_COLUMNS = (
    "program",
    "accesses",
    "no-contention µs",
    "lagrangian µs",
    "s",
    "lp, s",
    "from lp",
    "best plan µs",
    "above lagrangian",
)


def main(
    bench: ex.Bench,
    *programs: str,
    seconds: float = 60,
    lp_seconds: float = 60,
    plan_seconds: float = 30,
) -> None:
    named = [os.path.abspath(one) if os.path.exists(one) else one for one in programs]
    settings = {"seconds": seconds, "lp_seconds": lp_seconds, "plan_seconds": plan_seconds}
    rows = bench.run(measure, ex.Grid(program=named), settings=settings)
    rows.sort(key=lambda row: row["accesses"])
    print(ex.Table(_COLUMNS, [shown(row["program"], row) for row in rows]))


if __name__ == "__main__":
    ex.main(main)
