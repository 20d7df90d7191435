"""Captures workloads for each chip, and has the compiler carry out its own plan again.

    python benchmarks/quality/chips.py [--target NAME]... [WORKLOAD...]

For each chip and workload it prints a row, which docs/results/chips.md sums up: what XLA's own plan
takes of fast memory, whether it is valid, its latency, and that of the program into which it is
written anew. Needs mallocgame[xla] and no TPU. Exits 1 if a program can't be captured, or a plan is
not valid.
"""

import argparse
import sys
import time

import numpy as np

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame.xla.sources import find_source, workloads

WORKLOADS = (
    "gcn_dense_2048",
    "mlp_train_adam_b512",
    "moe_transformer_2l_b4_s128",
    "muzero_unroll_b32",
    "nerf_mlp_64k",
    "resnet50_b1",
    "wavernn_64steps_b8",
)


def microseconds(ps: int) -> str:
    """Returns picoseconds in microseconds, all digits."""
    return f"{ps / 1e6:,.6f}"


def cells(workload: str, compiler: mgx.Compiler) -> tuple[bool, list[str]]:
    """Returns whether XLA's own plan is valid, and the cells of the row."""
    name, function, arguments = find_source(workload)
    target = compiler.target.name
    captured = mgx.capture(function, *arguments, target=target, name=name, compiler=compiler)
    program, plan = captured.program, captured.xla_plan
    verdict = mg.validate(program, plan)
    sizes = program.buffers["size_bytes"][plan.residences["buffer"]]
    most = int(np.max(plan.residences["offset"] + sizes, initial=0))
    own = mg.simulate(program, plan)
    done = mgx.apply(captured, plan, compiler).report
    return verdict.ok, [
        f"{program.counts['accesses']:,}",
        f"{most:,}",
        "yes" if verdict.ok else f"no: {verdict.message}",
        microseconds(own.latency_ps),
        microseconds(done.latency_ps),
        "0"
        if done.latency_ps == own.latency_ps
        else f"{done.latency_ps / own.latency_ps - 1:+.4%}",
    ]


def main() -> int:
    """Prints a row for each chip and workload."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workloads", nargs="*", default=WORKLOADS, metavar="WORKLOAD")
    parser.add_argument("--target", action="append", choices=mgx.TARGETS)
    parser.add_argument("--no-cache", action="store_true", help="compile everything anew")
    options = parser.parse_args()
    unknown = set(options.workloads) - set(workloads())
    if unknown:
        parser.error(f"workloads: found {', '.join(sorted(unknown))}")
    good = True
    for target in options.target or mgx.TARGETS:
        cache = None if options.no_cache else mgx.DEFAULT_CACHE
        with mgx.Compiler(mgx.find_target(target), cache=cache) as compiler:
            for workload in options.workloads:
                begin = time.monotonic()
                try:
                    valid, row = cells(workload, compiler)
                except mg.MallocGameError as error:
                    valid, row = False, [f"{type(error).__name__}: {error}"]
                good = good and valid
                print("|", " | ".join([f"`{workload}`", target, *row]), "|", flush=True)
                print(f"{time.monotonic() - begin:.1f} s", file=sys.stderr, flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
