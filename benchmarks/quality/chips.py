"""Captures workloads for each chip, and has the compiler carry out its own plan again.

    python benchmarks/quality/chips.py [--targets NAME,...] [WORKLOAD...]

For each chip and workload it prints a row, which docs/hardware.md sums up: what XLA's own plan
takes of fast memory, whether it is valid, its latency, and that of the program into which it is
written anew. Needs mallocgame[xla] and no TPU. Exits 1 if a program can't be captured, or a plan is
not valid.
"""

from collections.abc import Callable, Sequence

import numpy as np

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame import experiments as ex
from mallocgame.xla.sources import find_source

WORKLOADS = (
    "gcn_dense_2048",
    "mlp_train_adam_b512",
    "moe_transformer_2l_b4_s128",
    "muzero_unroll_b32",
    "nerf_mlp_64k",
    "resnet50_b1",
    "wavernn_64steps_b8",
)


Cells = tuple[bool, list[str]]  # whether all is as it should be, and those of a row


def carried_out(
    workload: str, compiler: mgx.Compiler
) -> tuple[mgx.Capture, mg.Report, mg.Report, Cells]:
    """Returns a capture, its own plan before and after it is written anew, and first cells."""
    name, function, arguments = find_source(workload)
    target = compiler.target.title
    captured = mgx.capture(function, *arguments, target=target, name=name, compiler=compiler)
    program, plan = captured.program, captured.xla_plan
    verdict = mg.validate(program, plan)
    sizes = program.buffers["size_bytes"][plan.residences["buffer"]]
    most = int(np.max(plan.residences["offset"] + sizes, initial=0))
    valid = "yes" if verdict.ok else f"no: {verdict.message}"
    cells = [f"{program.counts['accesses']:,}", f"{most:,}", valid]
    own, done = mg.simulate(program, plan), mgx.apply(captured, plan, compiler).report
    return captured, own, done, (verdict.ok, cells)


def print_rows(
    cells_of: Callable[[str, mgx.Compiler], Cells],
    heads: Sequence[str],
    grid: ex.Grid,
    no_cache: bool,
) -> int:
    """Prints a row for each workload and target, and returns 1 if one is not as it should be."""

    def measure(workload: str, target: str) -> dict:
        cache = None if no_cache else mgx.compiler.DEFAULT_CACHE
        with mgx.Compiler(mgx.find_target(target), cache=cache) as compiler:
            good, row = cells_of(workload, compiler)
        return {"good": good, "row": row}

    failed = False
    try:
        rows = ex.run(measure, grid, None, done=ex.tell)
    except ex.FailedCellsError as error:
        failed, rows = True, error.rows
    table = ex.Table(("workload", "target", "accesses", "most bytes", "valid", *heads), left=2)
    for row in rows:
        table.add(f"`{row['workload']}`", row["target"], *row["row"])
    print(table)
    return int(failed or not all(row["good"] for row in rows))


def cells(workload: str, compiler: mgx.Compiler) -> Cells:
    _, own, done, (valid, first) = carried_out(workload, compiler)
    same = done.latency_ps == own.latency_ps
    return valid, [
        *first,
        *(f"{one.latency_ps / 1e6:,.6f}" for one in (own, done)),
        "0" if same else f"{done.latency_ps / own.latency_ps - 1:+.4%}",
    ]


def main(
    *workloads: str, targets: tuple[str, ...] = tuple(mgx.TARGETS), no_cache: bool = False
) -> int:
    grid = ex.Grid(workload=workloads or WORKLOADS, target=targets)
    return print_rows(cells, ("XLA, µs", "written, µs", "difference"), grid, no_cache)


if __name__ == "__main__":
    ex.main(main)
