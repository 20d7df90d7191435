"""Says what of a speed-up by the compiler's prices is left at calibrated ones.

    python benchmarks/measured/survives.py FOLDER [--suite contended|cloud|sharded] [--seconds 3]

Each bundled program of the suite is solved by `portfolio` at the compiler's prices. That plan and
XLA's own are then simulated at calibrated prices (docs/numbers.md). What is solved is kept in
FOLDER, so that it can be interrupted and goes on where it stopped. Prints the Markdown of
docs/results/measured.md. Needs no chip and no compiler.
"""

import statistics
from typing import Literal

import mallocgame as mg
from mallocgame import experiments as ex
from mallocgame import programs as bundled

PRICES = ("compiler", "calibrated")


def measure(program: str, seconds: float) -> dict[str, float]:
    """Returns the speed-ups of a plan over XLA's own, by prices, cold and warm."""
    loaded = mg.load_program(program)
    plan, own = mg.solve(loaded, "portfolio", seconds=seconds).plan, loaded.xla_plan
    assert own is not None, "bundled programs have a plan of XLA's"
    row = {}
    for prices in PRICES:
        xla, now = (mg.simulate(loaded, one, prices=prices) for one in (own, plan))
        row[f"{prices}, cold"] = xla.latency_cold_ps / now.latency_cold_ps
        row[f"{prices}, warm"] = xla.latency_ps / now.latency_ps
    return row


def main(
    bench: ex.Bench,
    *,
    suite: Literal["all", "core", "contended", "cloud", "sharded"] = "contended",
    seconds: float = 3,
) -> None:
    grid = ex.Grid(program=bundled.suite(suite))
    rows = bench.run(measure, grid, settings={"seconds": seconds})
    heads = [f"{prices}, {state}" for prices in PRICES for state in ("cold", "warm")]
    table = ex.Table(["program", *heads])
    for row in rows:
        table.add(f"`{row['program']}`", *(f"{row[head]:.3f}" for head in heads))
    columns = [[row[head] for row in rows] for head in heads]
    for kind, mean in (("mean", statistics.geometric_mean), ("median", statistics.median)):
        table.add(kind, *(f"{mean(column):.3f}" for column in columns))
    print(table)
    slower = sum(min(row["calibrated, cold"], row["calibrated, warm"]) < 1 for row in rows)
    print(f"\n{slower} of {len(rows)} are slower at calibrated prices, cold or warm.")


if __name__ == "__main__":
    ex.main(main)
