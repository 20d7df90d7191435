"""Branch and bound over the linear programme: cases that no plan is between.

In a plan each access is served from fast memory or it is not, and a preloaded residence is still
there at an access or it is not. So the least bound of both cases is a bound. The programme is
solved for each case, and the case with the least bound is split again, until the time is over.
"""

import heapq
import time
from dataclasses import dataclass, field

from mallocgame._bounds.linear import Solution
from mallocgame._bounds.relaxation import Relaxation

_WHOLE = 0.01  # a value this near to 0 or 1 isn't split
_LEAST_SHARE = 1 / 512  # of fast memory: choices about fewer bytes are not split


@dataclass(order=True)
class _Case:
    """Choices that are made: pairs of an index into Relaxation.choices and 0 or 1."""

    bound: float
    number: int
    made: tuple[tuple[int, int], ...] = field(compare=False)
    split: int | None = field(compare=False)  # the choice to split it by; None: there is none
    solved: bool = field(compare=False)


def branch(relaxation: Relaxation, seconds: float) -> tuple[float, bool]:
    """Returns a proven bound, and whether nothing was left to split within the time."""
    end = time.monotonic() + seconds
    root = _solve(relaxation, (), -float("inf"), 0, end)
    cases = [root]
    number = 0
    while (split := cases[0].split) is not None and time.monotonic() < end:
        case = heapq.heappop(cases)
        for value in (0, 1):
            number += 1
            made = (*case.made, (split, value))
            heapq.heappush(cases, _solve(relaxation, made, case.bound, number, end))
    return cases[0].bound, cases[0].solved and cases[0].split is None


def _solve(
    relaxation: Relaxation, made: tuple[tuple[int, int], ...], least: float, number: int, end: float
) -> _Case:
    """Solves a case, of which the bound `least` is known."""
    left = end - time.monotonic()
    if left <= 0:
        return _Case(least, number, made, None, False)
    lp = relaxation.lp.copy()
    # A case may hold no plan. Then this column, which costs as much as all in main memory, makes up
    # for it. A plan has 0 there.
    for choice, value in made:
        terms = relaxation.choices[choice][1]
        broken = lp.column(cost=relaxation.all_main_ps / relaxation.unit_ps)
        if value:
            lp.row([*terms, (broken, 1.0)], low=1.0)
        else:
            lp.row([*terms, (broken, -1.0)], high=0.0)
    found = lp.solve(left)
    split = _most_divided(relaxation, found) if found.optimal else None
    return _Case(max(least, found.bound), number, made, split, found.optimal)


def _most_divided(relaxation: Relaxation, found: Solution) -> int | None:
    """Returns the choice that divides the most bytes; None if all are whole."""
    best, most = None, 0.0
    for choice, (size, terms, access) in enumerate(relaxation.choices):
        if size < _LEAST_SHARE * relaxation.hardware.fast_bytes:
            continue
        value = found.value(terms)
        divided = min(value, 1 - value)
        if divided > _WHOLE and size * divided > most and found.value(access) > _WHOLE:
            best, most = choice, size * divided
    return best
