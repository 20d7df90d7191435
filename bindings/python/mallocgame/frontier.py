"""Plans by both sets of prices, and what a user gives up of one for the other.

A plan that is good by the compiler's prices may be bad by calibrated ones. A search by both makes
one number small (docs/both-prices.md); with a lean to either side it finds other plans, which
together are the frontier.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from mallocgame._core import Hardware, Program, Report, SolveResult, at_both_prices, simulate
from mallocgame._solve import solve
from mallocgame.calibration import calibrated_if_possible
from mallocgame.errors import InvalidInputError

# From the compiler's prices alone to calibrated ones alone.
LEANS = (1.0, 0.02, 0.0, -0.02, -1.0)


@dataclasses.dataclass(frozen=True)
class FrontierPoint:
    """A plan found at one lean, by both sets of prices."""

    lean: float
    result: SolveResult
    report: Report
    calibrated: Report
    xla: Report
    xla_calibrated: Report

    @property
    def speedup(self) -> float:
        """How many times as fast as XLA's plan it is by the compiler's prices."""
        return self.xla.latency_ps / max(1, self.report.latency_ps)

    @property
    def speedup_calibrated(self) -> float:
        """The same by calibrated prices."""
        return self.xla_calibrated.latency_ps / max(1, self.calibrated.latency_ps)


def frontier(
    program: Program,
    solver: str = "portfolio",
    seconds: float = 10.0,
    seed: int = 0,
    hardware: Hardware | None = None,
    leans: Sequence[float] = LEANS,
    tell: Callable[[str], object] | None = None,
    **limits: Any,
) -> list[FrontierPoint]:
    """Searches once at each lean, `seconds` for each, and returns what was found.

    program, solver, seed, hardware, limits: as for solve(). leans: as for at_both_prices().

    InvalidInputError: the program can't have calibrated prices, or has no plan of XLA's to compare
    with on this hardware.
    """
    on = program.hardware if hardware is None else hardware
    xla = program.xla_plan_for(on)
    made = calibrated_if_possible(program, on)
    if xla is None or made is None:
        raise InvalidInputError(
            f"frontier: program '{program.name}' needs XLA's plan for its hardware and prices of "
            "the compiler"
        )
    own, its = simulate(program, xla, on), simulate(made, xla.rebased_on(made))
    points = []
    for lean in leans:
        if tell is not None:
            tell(f"lean {lean:g}")
        result = solve(
            at_both_prices(program, lean), solver, seconds, seed, hardware=hardware, **limits
        )
        plan = result.plan
        points.append(
            FrontierPoint(
                lean,
                result,
                simulate(program, plan, on),
                simulate(made, plan.rebased_on(made)),
                own,
                its,
            )
        )
    return points
