"""Plans solved, carried out, and solved again with what the compiler taught: the loop of `apply` and `tune`."""

import collections
import dataclasses
import time
from collections.abc import Callable

from mallocgame._core import Game, Plan, Report, simulate
from mallocgame.errors import InvalidInputError
from mallocgame.solving import solve
from mallocgame.xla.captures import Capture, capture, shared
from mallocgame.xla.carrying_out import CarriedOut, Outcome, Tell, carry_out, quiet
from mallocgame.xla.compiler import Compiler, CompilerError, CompilerLimitError
from mallocgame.xla.overrides import Request
from mallocgame.xla.profiling import profile

_SOLVER = "portfolio"
_ROUNDS_WITHOUT_GAIN = 2  # after which what was refused may be asked again
_MOST_FAILURES = 3  # in a row, to carry anything out
_MARGINS = (0.0, 0.02, 0.05)  # shares of fast memory kept free, in turn: the compiler picks its own offsets
_LEAST_SOLVER_SECONDS, _MOST_SOLVER_SECONDS = 2.0, 30.0


@dataclasses.dataclass(frozen=True)
class Tuned:
    """The best options found. Static estimates with simulated copies, not measurements on a chip."""

    capture: Capture  # with the prices of all that was compiled
    xla: Report  # of XLA's default
    best: Outcome  # XLA's default itself if nothing better was found; its options are empty then
    rounds: tuple[CarriedOut, ...]
    compiles: int
    seconds: float

    @property
    def options(self) -> dict[str, str]:
        """For jax.jit(f, compiler_options=...) or lowered.compile(compiler_options=...); empty is XLA's default."""
        return self.best.options

    @property
    def speedup(self) -> float:
        """Over XLA's default, preloads being free."""
        return self.xla.latency_ps / self.best.verified_ps

    @property
    def speedup_cold(self) -> float:
        """The same with preloads as copies that wait."""
        return self.xla.latency_cold_ps / self.best.verified_cold_ps

    @property
    def carried_out(self) -> CarriedOut | None:
        """`best` as what became of a plan; None if no plan was asked for it."""
        return self.best if isinstance(self.best, CarriedOut) else None


def apply(
    capture: Capture,
    plan: Plan,
    rounds: int = 4,
    seconds: float = 10.0,
    seed: int = 0,
    compiler: Compiler | None = None,
    tell: Tell = quiet,
) -> CarriedOut:
    """Have the compiler carry out a plan of `capture.program`.

    What it refuses becomes a constraint of the game, which is solved again, until what is asked is what is done or
    `rounds` are over. rounds=1 asks for this very plan only. seconds: for a solver, each round.
    The fastest of the rounds is returned, by what the compiler then emits.

    InvalidInputError: a plan of another program. CompilerError: the compiler carried out none.
    """
    program = capture.program
    if plan.program_fingerprint != program.fingerprint:
        raise InvalidInputError(
            f"plan of program {plan.program_fingerprint}, but the capture is of {program.name} ({program.fingerprint})"
        )
    if rounds < 1:
        raise InvalidInputError(f"rounds: found {rounds}, allowed: 1 and above")
    with shared(compiler, capture.target) as ask:
        search = _Search(capture, ask, seed, tell)
        done = [carry_out(capture, program, plan, ask, tell)]
        search.learn(done[0])
        while len(done) < rounds and len(done[-1].not_granted):
            tell(f"round {len(done) + 1}: {done[-1].honoured:.1%} as asked")
            try:
                done.append(search.round(seconds))
            except CompilerLimitError:
                raise
            except CompilerError as error:
                tell(str(error))
                break
        return min(done, key=lambda one: one.verified_ps)


def tune(
    function: Callable,
    *args,
    target: str = "tpu_v4i",
    fast_mib: int | None = None,
    name: str | None = None,
    seconds: float = 600.0,
    compiles: int = 2,
    seed: int = 0,
    compiler: Compiler | None = None,
    tell: Tell = quiet,
) -> Tuned:
    """Compiler options with which XLA:TPU makes a JAX function faster, by its own estimates; never slower.

    Captures, profiles (`compiles` placements), then solves, applies and verifies until the time is over.
    function, args, target, fast_mib, name: as for capture(). seconds: of wall time; a compile that has begun is awaited.
    """
    begin = time.monotonic()
    tell("compiling as XLA does")
    return tune_capture(
        capture(function, *args, target=target, fast_mib=fast_mib, name=name, compiler=compiler),
        max(0.0, seconds - (time.monotonic() - begin)),
        compiles,
        seed,
        compiler,
        tell,
    )


def tune_capture(
    capture: Capture,
    seconds: float = 600.0,
    compiles: int = 2,
    seed: int = 0,
    compiler: Compiler | None = None,
    tell: Tell = quiet,
) -> Tuned:
    """The same of a capture."""
    begin = time.monotonic()
    xla = simulate(capture.program, capture.xla_plan)
    best = Outcome({}, capture.program, capture.default, _as_xla_does(capture))
    rounds = []
    with shared(compiler, capture.target) as ask:
        compiled_before = ask.compiles
        capture, lessons = profile(capture, compiles, seed, ask, tell, until=begin + seconds)
        for lesson in lessons:
            best = _better(best, lesson.outcome, xla)
        search = _Search(capture, ask, seed, tell)
        fruitless = failures = 0
        while failures < _MOST_FAILURES:
            left = begin + seconds - time.monotonic()
            if left < _LEAST_SOLVER_SECONDS:
                break
            tell(f"{xla.latency_ps / best.verified_ps:.3f}x so far, round {len(rounds) + 1}")
            like = best if len(rounds) % 2 else None  # in turn: everything, or what differs from the best so far
            try:
                done = search.round(min(_MOST_SOLVER_SECONDS, max(_LEAST_SOLVER_SECONDS, left / 10)), like)
            except CompilerError as error:
                tell(str(error))
                failures += 1
                search.widen()
                continue
            failures = 0
            rounds.append(done)
            before, best = best, _better(best, done, xla)
            fruitless = 0 if best is not before else fruitless + 1
            if fruitless == _ROUNDS_WITHOUT_GAIN:
                fruitless = 0
                search.widen()
        compiled = ask.compiles - compiled_before
    return Tuned(search.capture, xla, best, tuple(rounds), compiled, time.monotonic() - begin)


def _as_xla_does(capture: Capture) -> Request:
    """What asks for XLA's own plan by saying nothing but which parameters it preloads."""
    plan, names = capture.xla_plan, capture.program.buffer_names
    preloaded = plan.residences["buffer"][plan.copies["residence"][plan.copies["preload"]]]
    return Request((), tuple(dict.fromkeys(names[buffer] for buffer in preloaded)), sliced=True)


def _better(best: Outcome, other: Outcome, xla: Report) -> Outcome:
    """`other` if it is faster, and not slower than XLA's default with preloads counted as free or as cold."""
    if other.verified_ps > xla.latency_ps or other.verified_cold_ps > xla.latency_cold_ps:
        return best
    return min(best, other, key=lambda one: (one.verified_ps, one.verified_cold_ps))


class _Search:
    """One plan after another, each with what the compiler said of those before."""

    def __init__(self, capture: Capture, compiler: Compiler, seed: int, tell: Tell) -> None:
        self.capture = capture
        self._compiler = compiler
        self._seed = seed
        self._tell = tell
        self._not_granted: collections.Counter[int] = collections.Counter()
        self._margin = 0

    def round(self, seconds: float, like: Outcome | None = None) -> CarriedOut:
        """Solve, carry out, learn. like: as for carry_out. CompilerError: nothing was carried out."""
        program = self.capture.program
        game = Game(program, forbidden=sorted(self._not_granted), keep_free=_MARGINS[self._margin])
        plan = solve(game, _SOLVER, seconds=seconds, seed=self._seed).plan
        self._seed += 1
        done = carry_out(self.capture, program, plan, self._compiler, self._tell, like)
        self.learn(done)
        return done

    def learn(self, done: CarriedOut) -> None:
        self.capture = self.capture.with_prices([done.compiled])
        self._not_granted.update(int(access) for access in done.not_granted)

    def widen(self) -> None:
        """Ask again for what was refused but once, and leave another margin."""
        self._not_granted = collections.Counter({a: count - 1 for a, count in self._not_granted.items() if count > 1})
        self._margin = (self._margin + 1) % len(_MARGINS)

