"""Makes the table of growth: what a decision, a look and a trial cost as programs grow.

    python benchmarks/speed/growth.py FOLDER [PROGRAM ...] [--binary PATH]

Each PROGRAM, a name of a suite or a .mgp file, is measured by mallocgame_growth: CPU time in
microseconds, so that it may be run on a busy machine. Without names they are some from 50 accesses
on, and those of the suite `large` that are here. FOLDER keeps each answer, so that this can be
interrupted and goes on where it stopped. The last column is the cost at the largest program over
that at the first one of 800 accesses or more.
"""

import json
import pathlib
import subprocess
import tempfile

import mallocgame as mg
from mallocgame import experiments as ex
from mallocgame.programs import large_file, suite

BINARY = pathlib.Path("build/cpp/benchmarks/speed/mallocgame_growth")
SMALLER = (
    "wavernn_64steps_b8.tpu_v5e",
    "bert_base_b1_s128.tpu_v4i_16mib",
    "alphatensor_b4.tpu_v4i_16mib",
)
_SHOWN = 6  # of the suite `large`, evenly by size
_FROM = 800  # accesses of the first program that growth is measured from


def default_programs() -> list[str]:
    here = [name for name in suite("large") if large_file(name) is not None]
    return [*SMALLER, *ex.evenly(here, _SHOWN)]


def measure(program: str, binary: pathlib.Path) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "program.mgp"
        mg.save_program(mg.load_program(program), path)
        done = subprocess.run([binary, path], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def table(rows: list[ex.Row]) -> ex.Table:
    """What is measured by program, from the smallest on."""
    rows = sorted(rows, key=lambda row: row["accesses"])
    made = ex.Table(("µs", *(f"{row['accesses']:,}" for row in rows), "growth"))
    first = next((row for row in rows if row["accesses"] >= _FROM), rows[0])
    what = dict.fromkeys(key for row in rows for key in row if ", " in key)
    for key in what:
        cells = (f"{row[key]:.3g}" if key in row else "" for row in rows)
        grown = rows[-1][key] / first[key] if key in first and key in rows[-1] else None
        made.add(key, *cells, "" if grown is None else f"{grown:.1f}")
    return made


def main(bench: ex.Bench, *programs: str, binary: pathlib.Path = BINARY) -> None:
    grid = ex.Grid(program=programs or default_programs())
    print(table(bench.run(measure, grid, settings={"binary": binary.resolve()})))


if __name__ == "__main__":
    ex.main(main)
