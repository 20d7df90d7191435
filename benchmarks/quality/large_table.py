"""Makes the table of whole models: which share of XLA's gap to the bound a solver closes, by time.

    python benchmarks/quality/large_table.py FOLDER [PROGRAM ...] [--seconds 1,10,60]
    [--solver portfolio] [--bound lagrangian]

Without names the programs are those of the suite `large` that are here (`mallocgame xla large`
makes the others). Each is solved on one core, once for each time, and greedy plays one game with
exact stalls. The gap is XLA's latency less the bound. FOLDER keeps each answer, so that this can be
interrupted and goes on where it stopped. Exits 1 if a plan is invalid or slower than XLA's own, or
a solver takes 5 % longer than it may. Nothing else should run on its core: `busy` is the share of
the wall time in which it computed.
"""

import functools
import os
import sys
import time

import mallocgame as mg
from mallocgame import experiments as ex
from mallocgame.programs import large_file, suite

GREEDY = 0.0  # in place of seconds: one game of greedy with exact stalls
MOST_OVER = 1.05  # wall time over what was asked
_LEAST_GAP = 0.001  # a smaller gap, as a share of the bound, is not worth sharing out


def solve(program: mg.Program, solver: str, seconds: float) -> mg.SolveResult:
    if seconds == GREEDY:
        return mg.solve(program, "greedy", seconds=0, game=mg.PriorityGame(exact_stalls=True))
    return mg.solve(program, solver, seconds=seconds)


@functools.cache
def bound_ps(program: str, bound: str) -> int:
    return mg.bounds.bound(mg.load_program(program), bound).bound_ps


def measure(program: str, seconds: float, solver: str, bound: str) -> dict:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    loaded = mg.load_program(program)
    assert loaded.xla_plan is not None, "every program of the suite has XLA's own plan"
    start, cpu = time.monotonic(), time.process_time()
    result = solve(loaded, solver, seconds)
    wall, cpu = time.monotonic() - start, time.process_time() - cpu
    return {
        "accesses": loaded.counts["accesses"],
        "latency_ps": result.report.latency_ps,
        "xla_ps": mg.simulate(loaded, loaded.xla_plan).latency_ps,
        "bound_ps": bound_ps(program, bound),
        "valid": bool(mg.validate(result.program, result.plan)),
        "wall_s": wall,
        "busy": cpu / wall,
    }


def closed(row: ex.Row) -> str:
    """The share of the gap that is closed."""
    gap = row["xla_ps"] - row["bound_ps"]
    if gap < _LEAST_GAP * row["bound_ps"]:
        return "-"
    return f"{100 * (row['xla_ps'] - row['latency_ps']) / gap:.0f} %"


def table(rows: list[ex.Row], seconds: tuple[float, ...]) -> ex.Table:
    heads = ("program", "accesses", "XLA, µs", "gap", "greedy, exact, over XLA")
    made = ex.Table((*heads, *(f"{one:g} s" for one in seconds), "busy"))
    for name, of in ex.grouped(rows, "program").items():
        by_time = {row["seconds"]: row for row in of}
        one = of[0]
        greedy = by_time.get(GREEDY)
        made.add(
            f"`{name}`",
            f"{one['accesses']:,}",
            f"{one['xla_ps'] / 1e6:,.1f}",
            f"{100 * (one['xla_ps'] / one['bound_ps'] - 1):.1f} %",
            "" if greedy is None else f"{greedy['xla_ps'] / greedy['latency_ps']:.3f}",
            *(closed(by_time[one]) if one in by_time else "" for one in seconds),
            f"{min(row['busy'] for row in of):.2f}",
        )
    return made


def wrong(row: ex.Row) -> str | None:
    """What must not be of a solver."""
    if not row["valid"]:
        return "an invalid plan"
    if row["seconds"] == GREEDY:
        return None
    if row["latency_ps"] > row["xla_ps"]:
        return "slower than XLA's own plan"
    over = row["wall_s"] > MOST_OVER * row["seconds"]
    return f"took {row['wall_s']:.1f} s" if over else None


def main(
    bench: ex.Bench,
    *programs: str,
    seconds: tuple[float, ...] = (1, 10, 60),
    solver: str = "portfolio",
    bound: str = "lagrangian",
) -> None:
    names = programs or [name for name in suite("large") if large_file(name) is not None]
    grid = ex.Grid(program=names, seconds=[GREEDY, *seconds])
    rows = bench.run(measure, grid, settings={"solver": solver, "bound": bound})
    print(table(rows, seconds))
    failed = [
        f"{row['program']}, {row['seconds']:g} s: {what}" for row in rows if (what := wrong(row))
    ]
    if failed:
        sys.exit("\n".join(failed))


if __name__ == "__main__":
    ex.main(main)
