"""`tune`: a JAX function becomes a program that is faster than XLA's default, and never slower."""

import dataclasses
import os
import time
from collections.abc import Callable
from typing import Any

from mallocgame import _arguments
from mallocgame._core import Plan, Report, simulate
from mallocgame._moved import renamed
from mallocgame.bounds.bound import bound
from mallocgame.calibration import calibrated_if_possible
from mallocgame.errors import InvalidInputError
from mallocgame.xla.captures import Capture, capture, shared
from mallocgame.xla.claims import (
    Calibrated,
    calibrated_numbers,
    calibrated_of,
    claimed_part,
    speedup,
)
from mallocgame.xla.compiler import Compiler
from mallocgame.xla.compiler_errors import CompilerDeadlineError
from mallocgame.xla.emitting import Emitter, Order, Tell, Written, quiet
from mallocgame.xla.lowering import compiler_options
from mallocgame.xla.phases import Stages
from mallocgame.xla.plan_search import ACCEPT, BOTH, PlanSearch
from mallocgame.xla.targets import find_target
from mallocgame.xla.tuned_folders import Key, TunedFolder

NOTE = "static estimates of the compiler with simulated copies, not a measurement on a chip"
# Of the programs in benchmarks/quality/tables/tune_table_{cloud,sharded}.csv, on so many and of so
# many, `tune` gained more than the bound at fewer prices had left. A test counts them.
EXCEEDED = (33, 47)
HEADROOM_NOTE = (
    "an estimate and no limit: placements that nobody priced are predicted. "
    f"On {EXCEEDED[0]} of {EXCEEDED[1]} programs `tune` gained more than their first prices left"
)

_LEAST_LEFT = 0.02  # With less there is probably nothing to win.
_LEAST_GRACE, _GRACE = 10.0, 0.25  # for what is begun as the time ends: seconds, a share of it
CAPTURING = 0.6  # of the time at most goes to the prices of a capture


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


@renamed(options="executables")
def apply(
    capture: Capture,
    plan: Plan,
    compiler: Compiler | None = None,
    tell: Tell = quiet,
    executables: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    order: Order | None = None,
) -> Written:
    """Has the compiler carry out a plan of `capture.program`, as it is.

    order: the plan is of `capture.program.reordered(order)`, and the compiler gets that order too.

    executables: a folder in which jit() finds the program. jobs: as for tune().

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
    if executables is not None:
        keep(executables, capture, linked)
    return linked


@renamed(options="executables", prices="accept")
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
    executables: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    accept: str = BOTH,
    order: bool = False,
) -> Tuned:
    """Finds where the arrays of a JAX function lie best, and has XLA:TPU make the program of it.

    It is never slower than XLA's default, neither by the compiler's own estimates nor, unless that
    is said otherwise, by calibrated prices (docs/results/measured.md).

    function, args, target, fast_mib, name, preloads: as for capture().
    seconds: of wall time, the capture included. What the compiler is at by then has a quarter of it
    more, at least 10 s. If that isn't enough for the two schedules of the capture, it is a
    CompilerDeadlineError, and what the compiler has answered is kept.
    executables: a folder in which jit() finds the program.
    jobs: how many compilers price instructions side by side; None is one for each processor.
    accept: the prices at which a plan may not be slower than XLA's: "both", or "compiler".
    order: whether the order of instructions is decided too (docs/schedule.md); else it is XLA's.
    It takes no more main memory than XLA's order does with nothing in fast memory.

    Ctrl-C ends it too, once the program is captured. Then the best so far comes back.
    """
    begin = time.monotonic()
    chip = find_target(target, fast_mib, preloads, compiler_options(function))
    last = last_moment(begin, seconds)
    with shared(compiler, chip) as ask, ask.keeping_others(), ask.until(last):
        captured = capture(
            function,
            *args,
            target=target,
            fast_mib=fast_mib,
            name=name,
            compiler=ask,
            preloads=preloads,
            seconds=CAPTURING * seconds,
            tell=tell,
        )
        left = max(0.0, seconds - (time.monotonic() - begin))
        return tune_capture(captured, left, seed, ask, tell, executables, jobs, accept, order)


def last_moment(begin: float, seconds: float) -> float:
    """Returns the time.monotonic() at which all ends, whatever the compiler is at."""
    return begin + seconds + max(_LEAST_GRACE, _GRACE * seconds)


@renamed(options="executables", prices="accept")
def tune_capture(
    capture: Capture,
    seconds: float = 60.0,
    seed: int = 0,
    compiler: Compiler | None = None,
    tell: Tell = quiet,
    executables: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    accept: str = BOTH,
    order: bool = False,
) -> Tuned:
    """Tunes a program that is captured already, as tune() does."""
    begin = time.monotonic()
    by_both = _arguments.one_of("accept", accept, ACCEPT) == BOTH
    stages = Stages(tell, 3)
    with shared(compiler, capture.target) as ask, Emitter(capture, ask, jobs, stages) as emitter:
        search = PlanSearch(emitter, seed, tell, stages, by_both, order)
        interrupted, waited_for = False, ""
        try:
            with ask.until(last_moment(begin, seconds)):
                search.run(begin + seconds)
        except KeyboardInterrupt:
            interrupted = True
        except CompilerDeadlineError as error:
            waited_for = str(error)
        best = search.best_at_known_prices()
        xla_main_bytes = emitter.main_bytes()
        main_bytes = xla_main_bytes if best is None else emitter.main_bytes(best)
    if best is not None and executables is not None:
        keep(executables, capture, best)
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
    waiting: tuple[str, ...] = ()  # instructions with a placement whose price didn't come in time

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
    a plan of tune() may gain more than it left (HEADROOM_NOTE says how often). Prices that came are
    kept, so the next call prices more (Left.waiting).

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
    waiting = tuple(dict.fromkeys((*capture.late, *emitter.waiting)))
    left = Left(emitter.capture, simulate(program, xla), least.bound_ps, priced, waiting=waiting)
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
