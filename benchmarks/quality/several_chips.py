"""Captures and tunes programs for several chips, or with kernels.

    python benchmarks/quality/several_chips.py [--targets NAME,...] [--seconds 60] [WORKLOAD...]

For each target and workload it prints a row, which docs/several-chips.md sums up: whether XLA's own
plan is valid, what of its latency is modelled (waits for links, kernels), what comes of
writing it anew, what `tune` reaches, and what is left by the bound. With --portfolio SECONDS
comes the latency of its plan, which no compiler has carried out, before that of `tune`. Needs
mallocgame[xla,bounds] and no TPU. Exits 1 if a program can't be captured, or a plan is not valid or
can't be carried out.
"""

import functools

from chips import Cells, carried_out, print_rows  # type: ignore[import-not-found]

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame import experiments as ex

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
    workload: str, compiler: mgx.Compiler, seconds: float, bound_seconds: float, portfolio: float
) -> Cells:
    captured, own, done, (valid, first) = carried_out(workload, compiler)
    planned = []
    if portfolio:
        result = mg.solve(captured.program, "portfolio", seconds=portfolio)
        planned = [microseconds(result.report.latency_ps)]
    tuned = mgx.tune_capture(captured, seconds=seconds, compiler=compiler)
    now = tuned.report
    least = mg.bounds.bound(tuned.capture.program, "lp", seconds=bound_seconds)
    return valid, [
        *first,
        microseconds(own.latency_ps),
        microseconds(own.modelled_ps + own.kernel_ps),
        f"{done.latency_ps / own.latency_ps - 1.0:+.2%}",
        *planned,
        microseconds(now.latency_ps),
        f"{tuned.speedup:.3f}" + ("" if tuned.speedup_of == mgx.claims.WHOLE else " of the rest"),
        f"{tuned.xla.latency_ps / least.bound_ps - 1.0:.1%}",
        f"{now.latency_ps / least.bound_ps - 1.0:.1%}",
    ]


def main(
    *workloads: str,
    targets: tuple[str, ...] = TARGETS,
    seconds: float = 60.0,
    bound_seconds: float = 20.0,
    portfolio: float = 0.0,
    no_cache: bool = False,
) -> int:
    own = functools.partial(
        cells, seconds=seconds, bound_seconds=bound_seconds, portfolio=portfolio
    )
    heads = ["XLA, µs", "modelled, µs", "written", "tuned, µs", "speed-up", "left", "left then"]
    heads[3:3] = ["portfolio, µs"] if portfolio else []
    grid = ex.Grid(workload=workloads or WORKLOADS, target=targets)
    return print_rows(own, heads, grid, no_cache)


if __name__ == "__main__":
    ex.main(main)
