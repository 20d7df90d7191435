"""How many times as fast a program became, and what of it may be claimed.

The time of transfers between chips is modelled (docs/several-chips.md), and no plan changes it.
Where it is the larger part of a program, a speed-up of the whole would say more about the model
than about the compiler.
"""

from mallocgame._core import Report

WHOLE, PRICED = "the whole program", "all but the waits for links between chips"


def claimed_part(xla: Report) -> str:
    """Returns what a speed-up over XLA's default is of: WHOLE, or PRICED."""
    return PRICED if 2 * xla.modelled_ps > xla.latency_ps else WHOLE


def speedup(xla: Report, now: Report, cold: bool = False, part: str | None = None) -> float:
    """Returns how many times as fast a part of the program is; None: what may be claimed.

    cold: with preloads as copies that wait.
    """
    before_ps = xla.latency_cold_ps if cold else xla.latency_ps
    after_ps = now.latency_cold_ps if cold else now.latency_ps
    if (part or claimed_part(xla)) == PRICED:
        before_ps, after_ps = before_ps - xla.modelled_ps, after_ps - now.modelled_ps
    return before_ps / after_ps if after_ps else 1.0
