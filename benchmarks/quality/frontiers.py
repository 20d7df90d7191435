"""Measures what plans give up of one set of prices for the other (docs/both-prices.md).

    python benchmarks/quality/frontiers.py FOLDER [--seconds 10] PROGRAM...

Each PROGRAM, a name of a suite or a .mgp file, is searched by `portfolio` at five leans, each for
so many seconds, one after the other. Prints what each plan gains over XLA's by both sets, and draws
FOLDER/frontiers.png. FOLDER keeps the rows, so that this goes on where it stopped.
"""

import mallocgame as mg
from mallocgame import experiments as ex
from mallocgame import plots
from mallocgame.frontier import LEANS, frontier


def measure(program: str, seconds: float) -> dict:
    loaded = mg.load_program(program)
    points = frontier(loaded, seconds=seconds)
    return {
        "name": loaded.name,
        "speedups": [(point.speedup, point.speedup_calibrated) for point in points],
    }


def main(bench: ex.Bench, *programs: str, seconds: float = 10) -> None:
    rows = bench.run(measure, ex.Grid(program=programs), settings={"seconds": seconds})
    table = ex.Table(("program", *(f"lean {lean:g}" for lean in LEANS)))
    for row in rows:
        table.add(row["name"], *(f"{own:.3f}; {other:.3f}" for own, other in row["speedups"]))
    print(table)
    plots.save_frontiers(
        bench.folder / "frontiers.png", {row["name"]: row["speedups"] for row in rows}
    )


if __name__ == "__main__":
    ex.main(main)
