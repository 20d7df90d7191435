"""The loop of `tune`: a plan is solved, written and priced, and solved again with what was learnt.

The compiler's own prices decide. A plan that prediction called fast, and that its prices don't, is
one more lesson, and the next plan knows it.
"""

import math
import time

import numpy as np
from numpy.typing import NDArray

from mallocgame._core import Game, Hardware, Plan, Program, simulate
from mallocgame._solve import solve
from mallocgame.calibration import at_both_prices, calibrated_if_possible, cautious, priced
from mallocgame.xla.claims import cost_ps, is_faster, speedup
from mallocgame.xla.compiler_errors import CompilerEndedError, CompilerError, CompilerRefusedError
from mallocgame.xla.compiler_messages import CAPACITY, MAIN_MEMORY
from mallocgame.xla.emitting import LATE, Emitter, PlanRefusedError, Tell, Written
from mallocgame.xla.mending import at_fault, mended
from mallocgame.xla.phases import Stages

BOTH, COMPILER = ACCEPT = ("both", "compiler")  # prices at which a plan has to be faster

_SOLVER = "portfolio"
# For one plan. A search of a whole model has only begun after a second, and its look takes longer.
_FIRST_SECONDS, _FIRST_ACCESSES, _MOST_SECONDS = 1.0, 4000, 20.0
_EXPLORING = 0.3  # of the time, for prices of single instructions, at most
_SHARE = 0.25  # of the time that is left, for one plan
_LEAST_SECONDS = 0.2  # A solver that has less finds nothing.
_LOOK = 0.5  # of the time that is left, for the code of one plan's instructions
# A placement that has no price yet costs so much more while there is time for few looks that take
# as long as the last one.
_CAUTION, _FEW_LOOKS = 0.3, 5
_ONLY_KNOWN = 100.0  # the caution of a plan among placements whose code is there
_CLOSE = 1e-3  # A prediction that is off by less needs no other plan of the same length.
_FEW = 8  # Instructions around which plans are mended; with more of them plans have less memory.
_MOST_MENDS = 3  # of one plan that is refused again
_PATIENCE = 3  # rounds of the longest plans without a better one, until a search ends


class PlanSearch:
    """Solves for one plan after another, each with the prices of those before."""

    def __init__(
        self, emitter: Emitter, seed: int, tell: Tell, stages: Stages, by_both: bool, order: bool
    ) -> None:
        captured = emitter.capture
        self.plans = 0
        self.refused: list[str] = []
        self._emitter = emitter
        self._seed = seed
        self._tell = tell
        self._stages = stages
        self._order = order and captured.program.free_pairs > 0
        # Orders count as if everything lay in main memory. What a plan has in fast memory needs
        # none there, so an order that needs more by that may fit: the written plan tells.
        self._own_main_bytes = captured.program.main_memory["total_bytes"]
        self._main_bytes = self._own_main_bytes + captured.program.hardware.fast_bytes
        self._forbidden: set[int] = set()
        self._fast_bytes = captured.program.hardware.fast_bytes
        self._best: Written | None = None  # faster than XLA's default
        # Code for new placements takes most of the time of a look. Plans are to need little until
        # one is carried out, and while there is time for few.
        self._is_cautious = True
        self._was_late = False  # the code of a plan, while there is no plan yet
        self._by_both = by_both and calibrated_if_possible(captured.program) is not None
        # A search for an order goes by one set of prices: both have their turn.
        by_turns = ("compiler", "calibrated") if self._order else (BOTH,)
        self._turns = by_turns if self._by_both else ("compiler",)

    def run(self, until: float) -> None:
        """Searches. until: time.monotonic() after which no plan is begun."""
        begin = time.monotonic()
        self._stages.begin("how much fast memory plans may take")
        self._fast_bytes = self._emitter.fast_bytes()
        explored = begin + _EXPLORING * (until - begin)
        left = max(0.0, explored - time.monotonic())
        self._stages.begin("a first plan, then prices of other placements", f"about {left:.0f} s")
        # What it needs tells more than any other price, and it may be better already.
        accesses = len(self._emitter.capture.program.accesses)
        seconds = min(_MOST_SECONDS, max(_FIRST_SECONDS, accesses / _FIRST_ACCESSES))
        self._rounds(seconds, until)
        priced = self._emitter.explore(explored)
        self._tell(f"{priced} placements of single instructions priced")
        left = max(0.0, until - time.monotonic())
        self._stages.begin("plans", f"at most {left:.0f} s")
        fruitless = 0
        while fruitless < _PATIENCE:
            before = self._best
            was_right = self._rounds(seconds, until)
            if was_right is None:
                return
            if was_right and self._best is before:
                fruitless += seconds == _MOST_SECONDS
                seconds = min(2 * seconds, _MOST_SECONDS)

    def _rounds(self, seconds: float, until: float) -> bool | None:
        """Has a plan by each of the turns. Returns whether all are worth what was predicted.

        None: there is no time for one.
        """
        was_right = True
        for prices in self._turns:
            if self._is_over(until):
                return None
            left = until - time.monotonic()
            given = min(seconds, max(_LEAST_SECONDS, _SHARE * left))
            was_right = self._round(given, prices, until) and was_right
        return was_right

    def _is_over(self, until: float) -> bool:
        """Returns whether there is no time for a plan; the first is begun as long as any is left.

        A plan's module and its link can't be divided, and take up to a minute on whole models.
        """
        least = 0.0 if self._best is None else self._emitter.look_seconds
        return time.monotonic() + _LEAST_SECONDS + least > until

    def _caution(self, until: float) -> float:
        """Returns the share that a placement without a price costs more in the next search.

        A plan of a whole model may need the code of a thousand instructions. While there is no plan
        yet, it is one among placements whose code is there if there was no time for other code, or
        is only for few plans without.
        """
        if not self._order and self._best is None:
            few = _FEW_LOOKS * self._emitter.look_seconds
            if self._was_late or time.monotonic() + few > until:
                return _ONLY_KNOWN
        return _CAUTION if self._is_cautious else 0.0

    def _round(self, seconds: float, prices: str, until: float) -> bool:
        """Solves, writes and prices. Returns whether the plan is worth what was predicted."""
        program = self._emitter.capture.program
        hardware = program.hardware.replace(fast_bytes=self._fast_bytes)
        caution = self._caution(until)
        seen = cautious(program, caution)
        at_prices = at_both_prices(seen) if prices == BOTH else priced(seen, prices)
        own = at_prices.hardware.replace(fast_bytes=self._fast_bytes)
        game = Game(at_prices, hardware=own, forbidden=sorted(self._forbidden))
        most = self._main_bytes if self._order else None
        solved = solve(
            game, _SOLVER, seconds=seconds, seed=self._seed, order=self._order, main_bytes=most
        )
        order = solved.order
        ordered = program if order is None else program.reordered(order)
        plan = solved.plan.rebased_on(ordered)
        predicted = self._costs(ordered, plan)
        self._seed += 1
        self.plans += 1
        reorders = ordered.fingerprint != program.fingerprint
        begin = time.monotonic()
        last = math.inf if caution == _ONLY_KNOWN else until
        found = self._carried_out(plan, hardware, order, reorders, last)
        now = time.monotonic()
        self._is_cautious = found is None or _FEW_LOOKS * (now - begin) > until - now
        if found is None:
            return False
        written, is_mended = found
        self._tell(
            f"plan {self.plans}: {written.report.latency_ps / 1e6:,.1f} µs, "
            f"{speedup(written.xla, written.report):.3f}x"
        )
        came_out = self._costs(written.program, written.plan)
        return not is_mended and all(
            now <= before * (1 + _CLOSE) for now, before in zip(came_out, predicted, strict=True)
        )

    def _carried_out(
        self,
        plan: Plan,
        hardware: Hardware,
        order: NDArray[np.int32] | None,
        reorders: bool,
        until: float,
    ) -> tuple[Written, bool] | None:
        """Has a plan written, priced and, if it is the best, linked.

        Half of the time until `until` is for the code of its instructions, and all of it until
        there is a plan. What is late then stays in main memory, but where there is no plan yet:
        then the next one is searched among placements whose code is there.

        Returns it, and whether it was refused first and has been mended; None: it can't be.
        """
        for mends in range(_MOST_MENDS + 1):
            own = self._emitter.capture.program
            program = own if order is None else own.reordered(order)
            plan = plan.rebased_on(program)
            if mends and self._best is not None and self._is_over(until):
                break
            now = time.monotonic()
            share = 1.0 if self._best is None and mends == 0 else _LOOK
            try:
                written = self._emitter.write(plan, hardware, order, now + share * (until - now))
                if reorders:
                    self._check_main_memory(written)
                self._take(written)
                return written, mends > 0
            except (PlanRefusedError, CompilerRefusedError, CompilerEndedError) as error:
                self._learn(error, program, plan, order)
                if error.rule == LATE and self._best is None and order is None:
                    self._was_late = True
                    break
                # With little at fault the rest is worth a look; else a search with less memory is.
                few = error.rule != CAPACITY or len(error.instructions) <= _FEW
                repaired = mended(error, program, plan, hardware) if few else None
                if repaired is None:
                    break
                plan = repaired
        return None

    def _costs(self, program: Program, plan: Plan) -> list[float]:
        """Returns what a plan of `program` costs by each set of prices that counts."""
        made = calibrated_if_possible(program) if self._by_both else None
        own = [cost_ps(simulate(program, plan))]
        return own if made is None else [*own, cost_ps(simulate(made, plan.rebased_on(made)))]

    def _check_main_memory(self, written: Written) -> None:
        """PlanRefusedError: the order needs more main memory than XLA's. The next has less."""
        needed, limit = self._emitter.main_bytes(written), self._emitter.main_bytes()
        if needed > limit:
            counted = written.program.main_memory["total_bytes"]
            self._main_bytes = max(self._own_main_bytes, counted - (needed - limit))
            raise PlanRefusedError(
                f"{written.program.name}: the order of instructions needs {needed} bytes of main "
                f"memory, allowed are the {limit} of XLA's order"
            ).about(MAIN_MEMORY, exceeded_bytes=needed - limit)

    def _take(self, written: Written) -> None:
        """Links a plan that is better than the best. CompilerRefusedError."""
        best = self.best_at_known_prices()
        if self._gain(written) > (1.0 if best is None else self._gain(best)):
            self._best = self._emitter.link(written)

    def best_at_known_prices(self) -> Written | None:
        """Returns the best plan; None: by all that is known now there is none.

        XLA's default, too, gets prices while the search learns, where the capture had no time.
        """
        best = None if self._best is None else self._emitter.priced(self._best)
        return best if best is not None and self._gain(best) > 1.0 else None

    def _gain(self, written: Written) -> float:
        """Returns the gain by the prices by which it is the least; 1: by some it is no faster."""
        pairs = [(written.xla, written.report)]
        if self._by_both and written.calibrated is not None:
            pairs.append((written.calibrated.xla, written.calibrated.report))
        if not all(is_faster(*pair) for pair in pairs):
            return 1.0
        return min(cost_ps(xla) / max(1, cost_ps(now)) for xla, now in pairs)

    def _learn(
        self, error: CompilerError, program: Program, plan: Plan, order: NDArray[np.int32] | None
    ) -> None:
        """Keeps what was refused of a plan of `program` out of the next plans."""
        self._tell(str(error))
        if error.rule == LATE:
            return
        self.refused.append(str(error))
        accesses = at_fault(error, program, plan)
        if error.rule == CAPACITY and (len(error.instructions) > _FEW or not len(accesses)):
            self._fast_bytes -= error.exceeded_bytes
            return
        if order is not None:  # The same slot of the instruction at XLA's order.
            own = self._emitter.capture.program.instructions["first_access"]
            at = program.accesses["tick"][accesses]
            accesses = own[order[at]] + accesses - program.instructions["first_access"][at]
        self._forbidden.update(accesses.tolist())
