"""The loop of `tune`: a plan is solved, written and priced, and solved again with what was learnt.

The compiler's own prices decide. A plan that prediction called fast, and that its prices don't, is
one more lesson, and the next plan knows it.
"""

import dataclasses
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mallocgame import _arguments
from mallocgame._core import Game, Plan, Program, Report, simulate
from mallocgame._solve import solve
from mallocgame.bounds.bound import bound
from mallocgame.calibration import at_both_prices, calibrated_if_possible, priced
from mallocgame.errors import InvalidInputError
from mallocgame.xla.captures import LEAST_PRICING, Capture, capture, shared
from mallocgame.xla.claims import (
    Calibrated,
    calibrated_numbers,
    calibrated_of,
    claimed_part,
    cost_ps,
    is_faster,
    speedup,
)
from mallocgame.xla.compiler import Compiler
from mallocgame.xla.compiler_errors import (
    CompilerDeadlineError,
    CompilerEndedError,
    CompilerError,
    CompilerRefusedError,
)
from mallocgame.xla.compiler_messages import CAPACITY, MAIN_MEMORY
from mallocgame.xla.emitting import Emitter, Order, PlanRefusedError, Tell, Written, quiet
from mallocgame.xla.phases import Stages
from mallocgame.xla.tuned_folders import Key, TunedFolder

NOTE = "static estimates of the compiler with simulated copies, not a measurement on a chip"
# Of the programs in benchmarks/quality/tables/tune_table_{cloud,sharded}.csv, on so many and of so
# many, `tune` gained more than the bound at fewer prices had left. A test counts them.
EXCEEDED = (33, 47)
HEADROOM_NOTE = (
    "an estimate and no limit: placements that nobody priced are predicted. "
    f"On {EXCEEDED[0]} of {EXCEEDED[1]} programs `tune` gained more than their first prices left"
)

BOTH, COMPILER = PRICES = ("both", "compiler")  # by which a plan has to be faster

_SOLVER = "portfolio"
_FIRST_SECONDS, _MOST_SECONDS = 1.0, 20.0  # for one plan
_EXPLORING = 0.3  # of the time, for prices of single instructions, at most
_SHARE = 0.25  # of the time that is left, for one plan
_LEAST_LEFT = 0.02  # With less there is probably nothing to win.
_LEAST_SECONDS = 0.2  # A solver that has less finds nothing.
_CLOSE = 1e-3  # A prediction that is off by less needs no other plan of the same length.
_LEAST_GRACE, _GRACE = 10.0, 0.25  # for what is begun as the time ends: seconds, a share of it
_PATIENCE = 3  # rounds of the longest plans without a better one, until a search ends


@dataclasses.dataclass(frozen=True)
class Tuned:
    """The best program found.

    All latencies are static estimates with simulated copies, not measurements on a chip.
    """

    capture: Capture  # with the prices of all that was tried, at which all figures are
    xla: Report  # what XLA's default costs
    best: Written | None  # linked; None: nothing is faster than XLA's default
    plans: int  # that were written and priced
    refused: tuple[str, ...]  # why plans were refused
    seconds: float
    interrupted: bool = False  # whether Ctrl-C ended it before its time was over
    calibrated: Calibrated | None = None  # None: the program can't have calibrated prices
    # Bytes of main memory (Emitter.main_bytes): XLA's order with nothing in fast memory, and best.
    xla_main_bytes: int = 0
    main_bytes: int = 0
    waited_for: str = ""  # what the compiler was at, if the time was over before it was done

    @property
    def report(self) -> Report:
        """What the best program costs."""
        return self.xla if self.best is None else self.best.report

    @property
    def speedup(self) -> float:
        """How many times as fast as XLA's default it is, with preloads done before the start.

        It is of `speedup_of`.
        """
        return speedup(self.xla, self.report)

    @property
    def speedup_cold(self) -> float:
        """The same speed-up with preloads as copies that wait."""
        return speedup(self.xla, self.report, cold=True)

    @property
    def speedup_calibrated(self) -> float | None:
        """`speedup` at calibrated prices; None: there are none."""
        return None if self.calibrated is None else self.calibrated.speedup

    @property
    def speedup_calibrated_cold(self) -> float | None:
        """`speedup_cold` at calibrated prices; None: there are none."""
        return None if self.calibrated is None else self.calibrated.speedup_cold

    @property
    def speedup_of(self) -> str:
        """What the speed-up is of: where waits for links are the larger part, all but those."""
        return claimed_part(self.xla)


def apply(
    capture: Capture,
    plan: Plan,
    compiler: Compiler | None = None,
    tell: Tell = quiet,
    options: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    order: Order | None = None,
) -> Written:
    """Has the compiler carry out a plan of `capture.program`, as it is.

    order: the plan is of `capture.program.reordered(order)`, and the compiler gets that order too.

    options: a folder in which jit() finds the program. jobs: as for tune().

    InvalidInputError: the plan is of another program. PlanRefusedError: it can't be carried out.
    CompilerError: the compiler ended or took too long.
    """
    program = capture.program if order is None else capture.program.reordered(order)
    if plan.program_fingerprint != program.fingerprint:
        raise InvalidInputError(
            f"plan of program {plan.program_fingerprint}, "
            f"but the capture is of {program.name} ({program.fingerprint})"
        )
    with shared(compiler, capture.target) as ask, Emitter(capture, ask, jobs, tell) as emitter:
        linked = emitter.link(emitter.write(plan, order=order))
    if options is not None:
        keep(options, capture, linked)
    return linked


def tune(
    function: Callable[..., Any],
    *args: Any,
    target: str = "tpu_v4i",
    fast_mib: int | None = None,
    name: str | None = None,
    seconds: float = 60.0,
    seed: int = 0,
    compiler: Compiler | None = None,
    tell: Tell = quiet,
    preloads: int | None = None,
    options: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    prices: str = BOTH,
    order: bool = False,
) -> Tuned:
    """Finds where the arrays of a JAX function lie best, and has XLA:TPU make the program of it.

    It is never slower than XLA's default, neither by the compiler's own estimates nor, unless that
    is said otherwise, by calibrated prices (docs/results/measured.md).

    function, args, target, fast_mib, name, preloads: as for capture().
    seconds: of wall time. What the compiler is at by then has a quarter of it more, at least 10 s.
    A capture takes its two schedules and a minute for prices, even if that is more.
    options: a folder in which jit() finds the program.
    jobs: how many compilers price instructions side by side; None is one for each processor.
    prices: "both", or "compiler": calibrated ones don't matter.
    order: whether the order of instructions is decided too (docs/schedule.md); else it is XLA's.
    It takes no more main memory than XLA's order does with nothing in fast memory.

    Ctrl-C ends it too, once the program is captured. Then the best so far comes back.
    """
    begin = time.monotonic()
    captured = capture(
        function,
        *args,
        target=target,
        fast_mib=fast_mib,
        name=name,
        compiler=compiler,
        preloads=preloads,
        seconds=max(LEAST_PRICING, seconds),
        tell=tell,
    )
    left = max(0.0, seconds - (time.monotonic() - begin))
    return tune_capture(captured, left, seed, compiler, tell, options, jobs, prices, order)


def tune_capture(
    capture: Capture,
    seconds: float = 60.0,
    seed: int = 0,
    compiler: Compiler | None = None,
    tell: Tell = quiet,
    options: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    prices: str = BOTH,
    order: bool = False,
) -> Tuned:
    """Tunes a program that is captured already, as tune() does."""
    begin = time.monotonic()
    by_both = _arguments.one_of("prices", prices, PRICES) == BOTH
    stages = Stages(tell, 3)
    with shared(compiler, capture.target) as ask, Emitter(capture, ask, jobs, stages) as emitter:
        search = _Search(emitter, seed, tell, stages, by_both, order)
        interrupted, waited_for = False, ""
        try:
            with ask.until(begin + seconds + max(_LEAST_GRACE, _GRACE * seconds)):
                search.run(begin + seconds)
        except KeyboardInterrupt:
            interrupted = True
        except CompilerDeadlineError as error:
            waited_for = str(error)
        best = search.best_at_known_prices()
        xla_main_bytes = emitter.main_bytes()
        main_bytes = xla_main_bytes if best is None else emitter.main_bytes(best)
    if best is not None and options is not None:
        keep(options, capture, best)
    return Tuned(
        emitter.capture,
        emitter.xla,
        best,
        search.plans,
        tuple(search.refused),
        time.monotonic() - begin,
        interrupted,
        _calibrated(emitter.capture, best),
        xla_main_bytes,
        main_bytes,
        waited_for,
    )


def _calibrated(capture: Capture, best: Written | None) -> Calibrated | None:
    """Returns what the best program, or XLA's default, costs at calibrated prices."""
    if best is not None:
        return best.calibrated
    xla = capture.xla_plan
    return calibrated_of(capture.program, xla, xla, claimed_part(simulate(capture.program, xla)))


@dataclasses.dataclass(frozen=True)
class Left:
    """An estimate of what XLA leaves to be won by other places and copies, at its own schedule.

    At the prices in `capture` no plan has a lower latency than `bound_ps`. Most placements have no
    price there but a prediction, and `tune`, which prices more of them, may find a faster plan.
    """

    capture: Capture  # with the prices of all that was tried
    xla: Report  # what XLA's default costs
    bound_ps: int  # proven for the prices in `capture` only
    priced: int  # placements of single instructions that were priced for it
    calibrated_xla: Report | None = None  # `xla` at calibrated prices; None: there are none
    calibrated_bound_ps: int | None = None  # `bound_ps` at calibrated prices

    @property
    def share(self) -> float:
        """What a plan may gain, as a part of its latency: an estimate, which may be exceeded."""
        return self.xla.latency_ps / self.bound_ps - 1.0 if self.bound_ps else 0.0

    @property
    def share_calibrated(self) -> float | None:
        """The same at calibrated prices; None: there are none."""
        if self.calibrated_xla is None:
            return None
        least = self.calibrated_bound_ps
        return self.calibrated_xla.latency_ps / least - 1.0 if least else 0.0

    @property
    def is_worth_tuning(self) -> bool:
        """Whether it is 2 % or more, at both sets of prices."""
        calibrated = self.share_calibrated
        return min(self.share, self.share if calibrated is None else calibrated) >= _LEAST_LEFT


def what_is_left(
    capture: Capture,
    seconds: float = 10.0,
    compiler: Compiler | None = None,
    tell: Tell = quiet,
    jobs: int | None = None,
) -> Left:
    """Estimates what XLA leaves, by a bound that is proven for the prices known, and only for them.

    Placements that nobody priced are predicted, so with more prices the bound moves either way, and
    a plan of tune() may gain more than it left (HEADROOM_NOTE says how often).

    seconds: of wall time, half of it for prices. CompilerError. MissingExtraError: highspy isn't
    installed.
    """
    begin = time.monotonic()
    with shared(compiler, capture.target) as ask, Emitter(capture, ask, jobs, tell) as emitter:
        priced = emitter.explore(begin + seconds / 2)
    program = emitter.capture.program
    assert program.xla_plan is not None, "the module after assignment has a plan"
    spent = time.monotonic() - begin
    xla, made = program.xla_plan, calibrated_if_possible(program)
    each = max(1.0, (seconds - spent) / (1 if made is None else 2))
    least = bound(program, "lp", seconds=each)
    left = Left(emitter.capture, simulate(program, xla), least.bound_ps, priced)
    if made is None:
        return left
    return dataclasses.replace(
        left,
        calibrated_xla=simulate(made, xla.rebased_on(made)),
        calibrated_bound_ps=bound(made, "lp", seconds=each).bound_ps,
    )


def keep(folder: str | os.PathLike[str], capture: Capture, linked: Written) -> None:
    """Writes a program into a folder, in which jit() finds it."""
    xla = linked.xla
    about = {
        "program": capture.name,
        "cost_ps": linked.cost_ps,
        "latency_ps": linked.report.latency_ps,
        "cold_ps": linked.report.latency_cold_ps,
        "xla_latency_ps": xla.latency_ps,
        "xla_cold_ps": xla.latency_cold_ps,
        "speedup": speedup(xla, linked.report),
        "speedup_cold": speedup(xla, linked.report, cold=True),
        "speedup_of": claimed_part(xla),
        **calibrated_numbers(linked.calibrated),
        "estimate": NOTE,
    }
    TunedFolder(folder).keep(Key.of(capture), linked.executable, about)


def at_fault(error: CompilerError, program: Program, plan: Plan) -> NDArray[np.intp]:
    """Returns the accesses that a refused plan of `program` serves from fast memory, at fault.

    They are those that the refusal names, and all of the instructions that it names.
    """
    named = set(error.instructions)
    of_named = np.array([name in named for name in program.instruction_names], dtype=bool)
    found = of_named[program.accesses["tick"]]
    found[list(error.accesses)] = True
    return np.flatnonzero(found & (plan.served_by >= 0))


class _Search:
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
        self._by_both = by_both and calibrated_if_possible(captured.program) is not None
        # A search for an order goes by one set of prices: both have their turn.
        by_turns = ("compiler", "calibrated") if self._order else (BOTH,)
        self._turns = by_turns if self._by_both else ("compiler",)

    def run(self, until: float) -> None:
        """Searches. until: time.monotonic() after which no plan is begun."""
        begin = time.monotonic()
        self._stages.begin("how much fast memory plans may take")
        self._fast_bytes = self._emitter.fast_bytes()
        left = max(0.0, begin + _EXPLORING * (until - begin) - time.monotonic())
        self._stages.begin("prices of other placements", f"at most {left:.0f} s")
        priced = self._emitter.explore(begin + _EXPLORING * (until - begin))
        self._tell(f"{priced} placements of single instructions priced")
        left = max(0.0, until - time.monotonic())
        self._stages.begin("plans", f"at most {left:.0f} s")
        seconds, fruitless = _FIRST_SECONDS, 0
        while fruitless < _PATIENCE:
            before, was_right = self._best, True
            for prices in self._turns:
                left = until - time.monotonic()
                if left < _LEAST_SECONDS:
                    return
                given = min(seconds, max(_LEAST_SECONDS, _SHARE * left))
                was_right = self._round(given, prices) and was_right
            if was_right and self._best is before:
                fruitless += seconds == _MOST_SECONDS
                seconds = min(2 * seconds, _MOST_SECONDS)

    def _round(self, seconds: float, prices: str) -> bool:
        """Solves, writes and prices. Returns whether the plan is worth what was predicted."""
        program = self._emitter.capture.program
        hardware = program.hardware.replace(fast_bytes=self._fast_bytes)
        at_prices = at_both_prices(program) if prices == BOTH else priced(program, prices)
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
        try:
            written = self._emitter.write(plan, hardware, order)
            if ordered.fingerprint != program.fingerprint:
                self._check_main_memory(written)
            self._take(written)
        except (PlanRefusedError, CompilerRefusedError, CompilerEndedError) as error:
            self._learn(error, ordered, plan, order)
            return False
        self._tell(
            f"plan {self.plans}: {written.report.latency_ps / 1e6:,.1f} µs, "
            f"{speedup(written.xla, written.report):.3f}x"
        )
        came_out = self._costs(written.program, written.plan)
        return all(
            now <= before * (1 + _CLOSE) for now, before in zip(came_out, predicted, strict=True)
        )

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
        self.refused.append(str(error))
        if error.rule == CAPACITY:
            self._fast_bytes -= error.exceeded_bytes
            return
        accesses = at_fault(error, program, plan)
        if order is not None:  # The same slot of the instruction at XLA's order.
            own = self._emitter.capture.program.instructions["first_access"]
            at = program.accesses["tick"][accesses]
            accesses = own[order[at]] + accesses - program.instructions["first_access"][at]
        self._forbidden.update(accesses.tolist())
