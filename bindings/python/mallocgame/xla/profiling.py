"""More prices: placements that are compiled because they teach something.

It also says how far off the predictions were before.
"""

import dataclasses
import itertools
import math
import random
import time
from collections.abc import Callable, Iterator

from mallocgame._core import Game, Plan, Program, simulate
from mallocgame._solve import solve
from mallocgame.xla.captures import Capture, shared
from mallocgame.xla.compiler import Compiler, CompilerError, CompilerLimitError
from mallocgame.xla.negotiate import Outcome, Tell, negotiate, quiet
from mallocgame.xla.overrides import Request, loops_resident, mostly_in_main, request

_SHARES_IN_MAIN = (0.5, 0.2, 0.8, 0.35, 0.65, 0.1, 0.9)
_SOLVER_SECONDS, _LEAST_SOLVER_SECONDS = 5.0, 0.1

Planner = Callable[[Program, int], Plan]  # makes a plan of a program, from a seed


@dataclasses.dataclass(frozen=True)
class Lesson:
    """One placement that the compiler priced, and what was predicted for it before."""

    kind: str  # "loops", "solver", "random" or "no preload"
    predicted_ps: int
    priced_ps: int
    outcome: Outcome = dataclasses.field(repr=False)

    @property
    def error(self) -> float:
        """The error of the prediction, as a share of the price."""
        return self.predicted_ps / self.priced_ps - 1.0


def profile(
    capture: Capture,
    compiles: int = 6,
    seed: int = 0,
    compiler: Compiler | None = None,
    tell: Tell = quiet,
    until: float = math.inf,
    planner: Planner | None = None,
) -> tuple[Capture, list[Lesson]]:
    """Prices more placements: what loops carry in fast memory, a solver's best plans, random ones.

    compiles: the number of placements; one that the compiler can't do is left out.
    until: time.monotonic() after which the compiler is not asked any more.
    planner: makes the solver's plans; None is the portfolio, which has some seconds for each.

    The capture that comes back has the prices in its program's cost table. CompilerLimitError: a
    compile took too long.
    """
    learnt = []
    for after, lesson in lessons(capture, compiles, seed, compiler, tell, until, planner):
        capture = after
        learnt.append(lesson)
    return capture, learnt


def lessons(
    capture: Capture,
    compiles: int,
    seed: int,
    compiler: Compiler | None,
    tell: Tell,
    until: float,
    planner: Planner | None = None,
) -> Iterator[tuple[Capture, Lesson]]:
    """Yields what profile() learns as it is learnt, each with the capture that knows it."""

    def latest() -> Capture:
        return capture

    with shared(compiler, capture.target) as ask:
        placements = _placements(latest, seed, planner or _portfolio(until))
        for kind, wanted in itertools.islice(placements, compiles):
            tell(f"pricing a placement: {kind}")
            lesson = _learn(capture, kind, wanted, ask, tell, until)
            if lesson is not None:
                capture = capture.with_prices([lesson.outcome.compiled])
                yield capture, lesson
            if time.monotonic() >= until:
                break


def _portfolio(until: float) -> Planner:
    """Plans of the portfolio. until: time.monotonic() after which it doesn't work."""

    def plan(program: Program, seed: int) -> Plan:
        seconds = min(_SOLVER_SECONDS, max(_LEAST_SOLVER_SECONDS, until - time.monotonic()))
        return solve(Game(program), "portfolio", seconds=seconds, seed=seed).plan

    return plan


def _placements(
    current: Callable[[], Capture], seed: int, planner: Planner
) -> Iterator[tuple[str, Request]]:
    """Yields placements to price, those that teach most first.

    Each is made when it is asked for, with the prices known then.
    """
    program = current().program
    before = current().default.before
    resident = loops_resident(program, before)
    if resident.overrides:
        yield "loops", resident
    if _preloads(program):
        yield "no preload", Request((), ())
    chance = random.Random(seed)
    number = 0
    while True:
        program = current().program
        yield "solver", request(program, planner(program, seed + number), before)
        share = _SHARES_IN_MAIN[number % len(_SHARES_IN_MAIN)]
        yield "random", mostly_in_main(program, before, share, chance.random)
        number += 1


def _preloads(program: Program) -> bool:
    plan = program.xla_plan
    return plan is not None and bool(plan.copies["preload"].any())


def _learn(
    capture: Capture, kind: str, wanted: Request, compiler: Compiler, tell: Tell, until: float
) -> Lesson | None:
    known = capture.program
    try:
        granted, answer, _ = negotiate(capture, known, wanted, compiler, tell, until)
        there = capture.program_of(answer)
    except CompilerLimitError:
        raise
    except CompilerError as error:
        tell(f"{kind}: left out: {error}")
        return None
    options = compiler.target.options | granted.options()
    outcome = Outcome(options, there, answer, granted)
    predicted = simulate(known, capture.as_plan_of(known, outcome.plan, outcome.program))
    return Lesson(kind, predicted.latency_ps, outcome.verified_ps, outcome)
