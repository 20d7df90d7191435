"""Says what of a speed-up by the compiler's prices is left at calibrated ones.

    python benchmarks/measured/survives.py FOLDER [--suite contended|cloud|sharded] [--seconds 3]

Each bundled program of the suite is solved by `portfolio` at the compiler's prices. That plan and
XLA's own are then simulated at calibrated prices (docs/numbers.md). What is solved is kept in
FOLDER, so that it can be interrupted and goes on where it stopped. Prints the Markdown of
docs/results/measured.md. Needs no chip and no compiler.
"""

import argparse
import json
import pathlib
import statistics
import sys

import mallocgame as mg
from mallocgame.programs import SUITES, suite

PRICES = ("compiler", "calibrated")


def row_of(name: str, seconds: float) -> dict[str, float]:
    """Returns the speed-ups of a plan over XLA's own, by prices, cold and warm."""
    program = mg.load_program(name)
    plan, own = mg.solve(program, "portfolio", seconds=seconds).plan, program.xla_plan
    assert own is not None, "bundled programs have a plan of XLA's"
    row = {}
    for prices in PRICES:
        xla, now = (mg.simulate(program, one, prices=prices) for one in (own, plan))
        row[f"{prices}, cold"] = xla.latency_cold_ps / now.latency_cold_ps
        row[f"{prices}, warm"] = xla.latency_ps / now.latency_ps
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--suite", choices=SUITES, default="contended", help="(contended)")
    parser.add_argument("--seconds", type=float, default=3, help="of portfolio for each (3)")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    rows = {}
    for name in suite(options.suite):
        path = options.folder / f"{name}.json"
        if not path.exists():
            path.write_text(json.dumps(row_of(name, options.seconds)))
            print(name, file=sys.stderr, flush=True)
        rows[name] = json.loads(path.read_text())
    heads = list(next(iter(rows.values())))
    print(f"| program | {' | '.join(heads)} |\n| --- |{' --: |' * len(heads)}")
    for name, row in rows.items():
        print(f"| `{name}` | {' | '.join(f'{row[head]:.3f}' for head in heads)} |")
    columns = {head: [row[head] for row in rows.values()] for head in heads}
    for kind, mean in (("mean", statistics.geometric_mean), ("median", statistics.median)):
        print(f"| {kind} | {' | '.join(f'{mean(columns[head]):.3f}' for head in heads)} |")
    slower = [
        name
        for name, row in rows.items()
        if min(row["calibrated, cold"], row["calibrated, warm"]) < 1
    ]
    print(f"\n{len(slower)} of {len(rows)} are slower at calibrated prices, cold or warm.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
