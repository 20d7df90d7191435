"""Plans as XLA's own method makes them, so that the compiler can carry them out.

Some accesses are kept out of fast memory, and some come first.
"""

import math
import random
import time

from mallocgame._core import Game, Plan, Program
from mallocgame._solve import solve
from mallocgame.errors import MallocGameError
from mallocgame.xla.overrides import SMALL_BYTES

_SOLVER = "xla-heuristic"
_FIRST_TEMPERATURE, _LAST_TEMPERATURE = 3e-3, 3e-8  # shares of the latency
_COLD_WEIGHT = 10  # the weight of latency above what is allowed with cold preloads
_MARGINS = (0.0, 0.01, 0.02, 0.04)  # shares of fast memory kept free

# The accesses kept out, the accesses that come first, and the share of fast memory kept free.
_Orders = tuple[frozenset[int], frozenset[int], float]


class Imitation:
    """Annealing over what XLA's method is told.

    When it is asked again it goes on where it stopped.
    """

    def __init__(self, program: Program, most_cold_ps: int, seed: int) -> None:
        self._most_cold_ps = most_cold_ps
        self._chance = random.Random(seed)
        self._accesses: dict[int, list[int]] = {}
        for access, buffer in enumerate(program.accesses["buffer"]):
            row = program.buffers[buffer]
            if row["eligible"] and row["size_bytes"] >= SMALL_BYTES:
                self._accesses.setdefault(int(buffer), []).append(access)
        self._buffers = list(self._accesses)
        self._weights = [
            math.sqrt(program.buffers["size_bytes"][buffer]) for buffer in self._buffers
        ]
        self._best: _Orders = (frozenset(), frozenset(), 0.0)

    def plan(self, program: Program, seconds: float) -> Plan | None:
        """Returns the best plan found within that time, by the prices of `program`.

        None: there is nothing to decide.
        """
        if not self._buffers:
            return None
        at = self._best
        plan, cost = self._made(program, at)
        best_plan, best_cost = plan, cost
        begin = time.monotonic()
        while (used := (time.monotonic() - begin) / seconds) < 1:
            other = self._neighbour(at)
            plan, other_cost = self._made(program, other)
            if plan is None:
                continue
            temperature = (
                best_cost * _FIRST_TEMPERATURE * (_LAST_TEMPERATURE / _FIRST_TEMPERATURE) ** used
            )
            if other_cost <= cost or self._chance.random() < math.exp(
                (cost - other_cost) / temperature
            ):
                at, cost = other, other_cost
                if cost < best_cost:
                    self._best, best_plan, best_cost = at, plan, cost
        return best_plan

    def _made(self, program: Program, orders: _Orders) -> tuple[Plan | None, float]:
        out, first, margin = orders
        try:
            game = Game(program, forbidden=sorted(out), required=sorted(first), keep_free=margin)
            result = solve(game, _SOLVER, seconds=0)
        except MallocGameError:  # What is required can't be had.
            return None, math.inf
        report = result.report
        return result.plan, report.latency_ps + _COLD_WEIGHT * max(
            0, report.latency_cold_ps - self._most_cold_ps
        )

    def _neighbour(self, orders: _Orders) -> _Orders:
        """Changes one buffer, or one access of it: kept out or let in, put first or back.

        At times it draws another margin instead.
        """
        out, first, margin = orders
        if self._chance.random() < 0.05:
            return out, first, self._chance.choice(_MARGINS)
        accesses = frozenset(self._accesses[self._chance.choices(self._buffers, self._weights)[0]])
        if self._chance.random() < 0.4:
            accesses = frozenset([self._chance.choice(sorted(accesses))])
        if self._chance.random() < 0.5:
            return (
                (out - accesses, first, margin)
                if out >= accesses
                else (out | accesses, first - accesses, margin)
            )
        return (
            (out, first - accesses, margin)
            if first >= accesses
            else (out - accesses, first | accesses, margin)
        )
