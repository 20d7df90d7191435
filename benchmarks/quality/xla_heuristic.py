"""Measures how close `xla-heuristic` comes to the plans that XLA:TPU itself made.

docs/xla-heuristic.md sums its tables up, and tables/xla_heuristic.csv beside this file has
the rows of every bundled program.

    python benchmarks/quality/xla_heuristic.py [--suite core] [PROGRAM...]

Prints Markdown. `same` is the share of accesses served from the memory that XLA serves them from,
`same bytes` the share of their buffers' bytes; entering a loop is no access here. `fast` is the
share of bytes served from fast memory. `ratio` is the heuristic's latency over XLA's, preloads done
before the start.
"""

import statistics
from typing import Literal

import numpy as np

import mallocgame as mg
from mallocgame import experiments as ex
from mallocgame import programs as bundled
from mallocgame.records import LOOP_ENTRY

_COLUMNS = ("program", "same", "same bytes", "fast", "XLA fast", "all-main / XLA", "ratio")


def compare(program: mg.Program) -> dict[str, float]:
    result = mg.solve(program, solver="xla-heuristic", seconds=0)
    verdict = mg.validate(program, result.plan)
    if not verdict:
        raise SystemExit(f"{program.name}: {verdict.rule}: {verdict.message}")
    xla_plan = program.xla_plan
    assert xla_plan is not None, "every bundled program has XLA's own plan"
    xla = mg.simulate(program, xla_plan)
    accesses = program.accesses
    bytes_ = program.buffers["size_bytes"][accesses["buffer"]] * (accesses["kind"] != LOOP_ENTRY)
    own_fast, xla_fast = (plan.served_by >= 0 for plan in (result.plan, xla_plan))
    same = own_fast == xla_fast
    return {
        "same": same[bytes_ > 0].mean(),
        "same bytes": np.dot(same, bytes_) / bytes_.sum(),
        "fast": np.dot(own_fast, bytes_) / bytes_.sum(),
        "XLA fast": np.dot(xla_fast, bytes_) / bytes_.sum(),
        "all-main / XLA": xla.all_main_ps / xla.latency_ps,
        "ratio": result.report.latency_ps / xla.latency_ps,
    }


def main(
    *programs: str, suite: Literal["all", "core", "contended", "cloud", "sharded"] = "core"
) -> None:
    table = ex.Table(_COLUMNS)
    ratios = []
    for name in programs or bundled.suite(suite):
        row = compare(mg.load_program(name))
        ratios.append(row["ratio"])
        shares = (f"{100 * row[column]:.1f} %" for column in _COLUMNS[1:5])
        table.add(f"`{name}`", *shares, *(f"{row[column]:.3f}" for column in _COLUMNS[5:]))
    print(table)
    deviations = [abs(ratio - 1) for ratio in ratios]
    print(
        f"\n{len(ratios)} programs: "
        f"median |ratio - 1| {100 * statistics.median(deviations):.2f} %, "
        f"{sum(d <= 0.05 for d in deviations)} within 5 %, largest {100 * max(deviations):.1f} %, "
        f"geometric mean of the ratios {statistics.geometric_mean(ratios):.4f}"
    )


if __name__ == "__main__":
    ex.main(main)
