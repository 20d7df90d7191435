"""Captures and tunes programs for several chips, or with kernels.

    python benchmarks/quality/several_chips.py [--target NAME]... [--seconds 60] [WORKLOAD...]

For each target and workload it prints a row, which docs/results/chips.md sums up: whether XLA's own
plan is valid, what of its latency is modelled (waits for links, kernels), what comes of
writing it anew, what `tune` reaches, and what is left by the bound. With --portfolio SECONDS
comes the latency of its plan, which no compiler has carried out, before that of `tune`. Needs
mallocgame[xla,bounds] and no TPU. Exits 1 if a program can't be captured, or a plan is not valid or
can't be carried out.
"""

import argparse
import sys
import time

import numpy as np

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame.xla.sources import find_source, workloads

TARGETS = ("tpu_v5e:2x2", "tpu_v6e:2x2")
WORKLOADS = (
    "llama_1b_decode_8l_b8_kv1024_tp4",
    "mlp_train_adam_b2048_dp4",
    "mlp_train_adam_b2048_fsdp4",
    "moe_transformer_2l_b16_s128_ep4",
)


def microseconds(ps: int) -> str:
    """Returns picoseconds in microseconds."""
    return f"{ps / 1e6:,.2f}"


def cells(
    workload: str, compiler: mgx.Compiler, options: argparse.Namespace
) -> tuple[bool, list[str]]:
    """Returns whether all is as it should be, and the cells of the row."""
    name, function, arguments = find_source(workload)
    target = compiler.target.title
    captured = mgx.capture(function, *arguments, target=target, name=name, compiler=compiler)
    program, plan = captured.program, captured.xla_plan
    verdict = mg.validate(program, plan)
    sizes = program.buffers["size_bytes"][plan.residences["buffer"]]
    most = int(np.max(plan.residences["offset"] + sizes, initial=0))
    own = mg.simulate(program, plan)
    done = mgx.apply(captured, plan, compiler).report
    planned = []
    if options.portfolio:
        result = mg.solve(program, "portfolio", seconds=options.portfolio)
        planned = [microseconds(result.report.latency_ps)]
    tuned = mgx.tune_capture(captured, seconds=options.seconds, compiler=compiler)
    now, known = tuned.report, tuned.capture.program
    least = mg.bounds.bound(known, "lp", seconds=options.bound_seconds)
    return verdict.ok, [
        f"{program.counts['accesses']:,}",
        f"{most:,}",
        "yes" if verdict.ok else f"no: {verdict.message}",
        microseconds(own.latency_ps),
        microseconds(own.modelled_ps + own.kernel_ps),
        f"{done.latency_ps / own.latency_ps - 1.0:+.2%}",
        *planned,
        microseconds(now.latency_ps),
        f"{tuned.speedup:.3f}" + ("" if tuned.speedup_of == mgx.WHOLE else " of the rest"),
        f"{tuned.xla.latency_ps / least.bound_ps - 1.0:.1%}",
        f"{now.latency_ps / least.bound_ps - 1.0:.1%}",
    ]


def main() -> int:
    """Prints a row for each target and workload."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workloads", nargs="*", default=WORKLOADS, metavar="WORKLOAD")
    parser.add_argument("--target", action="append", help=f"{' and '.join(TARGETS)}, if none is")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each to be tuned (60)")
    parser.add_argument("--bound-seconds", type=float, default=20.0, help="for each bound (20)")
    parser.add_argument("--portfolio", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--no-cache", action="store_true", help="compile everything anew")
    options = parser.parse_args()
    unknown = set(options.workloads) - set(workloads())
    if unknown:
        parser.error(f"workloads: found {', '.join(sorted(unknown))}")
    all_good = True
    for target in options.target or TARGETS:
        cache = None if options.no_cache else mgx.DEFAULT_CACHE
        with mgx.Compiler(mgx.find_target(target), cache=cache) as compiler:
            for workload in options.workloads:
                begin = time.monotonic()
                try:
                    good, row = cells(workload, compiler, options)
                except mg.MallocGameError as error:
                    good, row = False, [f"{type(error).__name__}: {error}"]
                all_good = all_good and good
                print("|", " | ".join([f"`{workload}`", target, *row]), "|", flush=True)
                print(f"{time.monotonic() - begin:.1f} s", file=sys.stderr, flush=True)
    return 0 if all_good else 1


if __name__ == "__main__":
    sys.exit(main())
