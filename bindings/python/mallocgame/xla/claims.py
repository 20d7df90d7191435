"""What is made small, how many times as fast a program became, and what of it may be claimed.

The time of transfers between chips (docs/several-chips.md), of transfers from and to the host
(docs/numbers.md) and of kernels (docs/kernels.md) is modelled. Where it is the larger part of a
program, a speed-up of the whole would say more about the models than about the compiler.

Each plan has two costs, at the compiler's prices and at calibrated ones (docs/results/measured.md).
What is slower by either is no faster program.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mallocgame._core import Plan, Program, Report, simulate
from mallocgame.calibration import calibrated_if_possible

WHOLE = "the whole program"
Order = Sequence[int] | NDArray[np.integer[Any]]  # of instructions, as Program.reordered takes it
PRICED = "all but the waits for links and the host, and the kernels, which are modelled"


def cost_ps(report: Report) -> float:
    """Returns what searches make small: the mean of the latencies with preloads free and cold.

    A program runs behind itself as well as behind others. By the first latency alone a search pays
    for a gain of nearly nothing with preloads that the second waits for.
    """
    return (report.latency_ps + report.latency_cold_ps) / 2


def unpriced_ps(report: Report) -> int:
    """Returns the part of a latency that a model gave for want of a price."""
    return report.modelled_ps + report.kernel_ps


def claimed_part(xla: Report) -> str:
    """Returns what a speed-up over XLA's default is of: WHOLE, or PRICED."""
    return PRICED if 2 * unpriced_ps(xla) > xla.latency_ps else WHOLE


def speedup(xla: Report, now: Report, cold: bool = False, part: str | None = None) -> float:
    """Returns how many times as fast a part of the program is; None: what may be claimed.

    Of the modelled part nothing that is won counts, but what is lost does.

    cold: with preloads as copies that wait.
    """
    before_ps = xla.latency_cold_ps if cold else xla.latency_ps
    after_ps = now.latency_cold_ps if cold else now.latency_ps
    if (part or claimed_part(xla)) == PRICED:
        before_ps -= unpriced_ps(xla)
        after_ps -= min(unpriced_ps(xla), unpriced_ps(now))
    return before_ps / after_ps if after_ps else 1.0


@dataclasses.dataclass(frozen=True)
class Calibrated:
    """A plan and XLA's own, simulated at calibrated prices."""

    report: Report
    xla: Report
    part: str  # what a speed-up is of; it is that at the compiler's prices, too

    @property
    def speedup(self) -> float:
        """How many times as fast as XLA's default it is, with preloads done before the start."""
        return speedup(self.xla, self.report, part=self.part)

    @property
    def speedup_cold(self) -> float:
        """The same with preloads as copies that wait."""
        return speedup(self.xla, self.report, cold=True, part=self.part)


def calibrated_of(
    program: Program, plan: Plan, xla: Plan, part: str, order: Order | None = None
) -> Calibrated | None:
    """Returns what a plan of a program and XLA's own cost at calibrated prices.

    order: the plan, but not XLA's, is of the program with its instructions in this order.

    None: the program can't have them. Both have the same prices, so that none of the two profits
    from what more is known of the other.
    """
    made = calibrated_if_possible(program)
    if made is None:
        return None
    ordered = made if order is None else made.reordered(order)
    report = simulate(ordered, plan.rebased_on(ordered))
    return Calibrated(report, simulate(made, xla.rebased_on(made)), part)


def is_faster(xla: Report, now: Report) -> bool:
    """Returns whether something is gained, and nothing lost warm or cold."""
    return (
        now.latency_ps <= xla.latency_ps
        and now.latency_cold_ps <= xla.latency_cold_ps
        and cost_ps(now) < cost_ps(xla)
    )


def calibrated_numbers(known: Calibrated | None) -> dict[str, float | None]:
    """Returns latencies and speed-ups at calibrated prices, as JSON has them; cold comes first."""
    names = (
        "calibrated_cold_ps",
        "calibrated_ps",
        "xla_calibrated_cold_ps",
        "xla_calibrated_ps",
        "speedup_calibrated_cold",
        "speedup_calibrated",
    )
    if known is None:
        return dict.fromkeys(names)
    values = (
        known.report.latency_cold_ps,
        known.report.latency_ps,
        known.xla.latency_cold_ps,
        known.xla.latency_ps,
        known.speedup_cold,
        known.speedup,
    )
    return dict(zip(names, values, strict=True))
