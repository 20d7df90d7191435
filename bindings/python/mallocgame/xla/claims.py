"""What is made small, how many times as fast a program became, and what of it may be claimed.

The time of transfers between chips (docs/several-chips.md), of transfers from and to the host
(docs/numbers.md) and of kernels (docs/kernels.md) is modelled. Where it is the larger part of a
program, a speed-up of the whole would say more about the models than about the compiler.
"""

from mallocgame._core import Report

WHOLE = "the whole program"
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
