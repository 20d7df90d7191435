"""A linear programme under construction, and a proven lower bound on its optimum.

It is: minimise cost * x subject to low <= A x <= high and 0 <= x <= top. Solving it needs highspy
(the extra `bounds`). The bound of `solve` holds whatever the solver did; columns may also be
integers, and then the bound is the solver's.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Terms = list[tuple[int, float]]  # a linear expression: columns and their coefficients
_GAP = 1e-5  # share of the optimum; many times what the tolerances of integer search amount to


@dataclass(frozen=True)
class Solution:
    """What a solver found, and what it proves."""

    bound: float  # proven: no point of the programme costs less
    optimal: bool  # whether the optimum was reached within the time
    duals: np.ndarray  # for each row, the dual value that proves the bound; <= 0 where `high` binds
    values: np.ndarray  # for each column, its value within the solver's tolerance, if optimal


@dataclass(frozen=True)
class IntegerSolution:
    """What the integer search found, and what it proves."""

    # No point costs less. The solver proves it in floating point, so a hundred-thousandth is off;
    # -inf if it proved nothing, as when the time was not enough.
    bound: float
    optimal: bool  # whether the bound is that of the optimum


class Linear:
    """A linear programme whose columns and rows are numbered as they come."""

    def __init__(self) -> None:
        self.cost: list[float] = []
        self.top: list[float] = []
        self.constant = 0.0
        self._low: list[float] = []
        self._high: list[float] = []
        self._starts: list[int] = [0]
        self._columns: list[int] = []
        self._values: list[float] = []

    def column(self, top: float = 1.0, cost: float = 0.0) -> int:
        """Adds a column and returns its number."""
        self.cost.append(cost)
        self.top.append(top)
        return len(self.cost) - 1

    def row(self, terms: Terms, low: float = -math.inf, high: float = math.inf) -> int:
        """Adds a row and returns its number. A column may be named more than once."""
        sums: dict[int, float] = {}
        for column, value in terms:
            sums[column] = sums.get(column, 0.0) + value
        self._columns += sums
        self._values += sums.values()
        self._starts.append(len(self._columns))
        self._low.append(low)
        self._high.append(high)
        return len(self._low) - 1

    @property
    def size(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return len(self._low), len(self.cost)

    def solve(self, seconds: float) -> Solution:
        """Solves it, if the time is enough, and proves a lower bound in any case.

        The bound is worked out anew from the solver's dual values, so neither its tolerances nor an
        early end can make it wrong: for any y, min cost x >= y (A x) + min over the box of (cost -
        A'y) x.
        """
        import highspy

        best, optimal = -math.inf, False
        duals = np.zeros(len(self._low))
        values = np.zeros(len(self.cost))
        end = time.monotonic() + seconds
        # The first is far faster on large programmes; now and then it gives up.
        for solver in ("ipm", "simplex"):
            highs = highspy.Highs()
            highs.setOptionValue("output_flag", False)
            highs.setOptionValue("time_limit", max(0.0, end - time.monotonic()))
            highs.setOptionValue("threads", 1)
            highs.setOptionValue("solver", solver)
            highs.setOptionValue("run_crossover", "off")
            highs.passModel(self._highs_model(highspy))
            highs.run()
            optimal = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
            solution = highs.getSolution()
            found = np.array(solution.row_dual) if solution.dual_valid else np.zeros_like(duals)
            # Columns with a large top turn the solver's tolerance into a large loss. A little less
            # of the duals avoids that.
            for less in (0.0, 1e-7, 1e-6, 1e-5, 1e-4, 1.0):
                proven = self.certified((1 - less) * found)
                if proven > best:
                    best, duals = proven, (1 - less) * found
            if solution.value_valid:
                values = np.array(solution.col_value)
            if optimal or time.monotonic() >= end:
                break
        return Solution(best, optimal, duals, values)

    def solve_integer(self, whole: Sequence[int], seconds: float) -> IntegerSolution:
        """Proves a bound on points at which the columns `whole` are integers.

        The search ends at a point that is proven to be worse than the best by no more than _GAP.
        """
        import highspy

        highs = highspy.Highs()
        for option, value in {
            "output_flag": False,
            "threads": 1,
            "time_limit": seconds,
            "mip_rel_gap": _GAP,
        }.items():
            highs.setOptionValue(option, value)
        model = self._highs_model(highspy)
        kinds = [highspy.HighsVarType.kContinuous] * len(self.cost)
        for column in whole:
            kinds[column] = highspy.HighsVarType.kInteger
        model.integrality_ = kinds
        model.offset_ = self.constant
        highs.passModel(model)
        highs.run()
        proven = highs.getInfo().mip_dual_bound
        optimal = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
        bound = proven * (1 - _GAP) if math.isfinite(proven) else -math.inf
        return IntegerSolution(bound, optimal)

    def certified(self, duals: np.ndarray) -> float:
        """Returns the lower bound that dual values, one for each row, prove."""
        low, high, cost, top = map(np.array, (self._low, self._high, self.cost, self.top))
        duals = np.nan_to_num(duals)
        sides = np.where(duals > 0, low, high)
        duals = np.where(np.isfinite(sides), duals, 0.0)
        sides = np.where(duals == 0, 0.0, sides)
        rows = np.repeat(np.arange(len(low)), np.diff(self._starts))
        weighed = np.array(self._values) * duals[rows]
        reduced = cost - np.bincount(self._columns, weights=weighed, minlength=len(cost))
        terms = np.concatenate([duals * sides, np.minimum(reduced, 0) * top])
        # Sums and products are off by less than this share of what went into them.
        rounding = np.abs(cost) + np.bincount(
            self._columns, weights=np.abs(weighed), minlength=len(cost)
        )
        return (
            self.constant
            + math.fsum(terms)
            - 1e-13 * (math.fsum(rounding * top) + math.fsum(np.abs(terms)) + 1)
        )

    def _highs_model(self, highspy: Any) -> Any:
        model = highspy.HighsLp()
        model.num_row_, model.num_col_ = self.size
        model.col_cost_ = np.array(self.cost)
        model.col_lower_ = np.zeros(len(self.cost))
        model.col_upper_ = np.array(self.top)
        model.row_lower_ = np.array(self._low)
        model.row_upper_ = np.array(self._high)
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.array(self._starts)
        model.a_matrix_.index_ = np.array(self._columns)
        model.a_matrix_.value_ = np.array(self._values)
        return model
