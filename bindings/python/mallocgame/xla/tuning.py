"""The loop of `apply` and `tune`: a plan is solved, carried out, and solved again.

Each round knows what the compiler taught before.
"""

import collections
import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from mallocgame._core import Game, Plan, Report, simulate
from mallocgame._solve import solve
from mallocgame.errors import InvalidInputError
from mallocgame.xla.captures import Capture, capture, shared
from mallocgame.xla.claims import claimed_part, cost_ps, speedup
from mallocgame.xla.climb import Climb
from mallocgame.xla.compiler import Compiler, CompilerError, CompilerLimitError
from mallocgame.xla.imitation import CLOSE, Directives, Imitation
from mallocgame.xla.negotiate import CarriedOut, Outcome, Tell, carry_out, quiet
from mallocgame.xla.option_files import read_request
from mallocgame.xla.option_folders import OptionFolder, Shelf
from mallocgame.xla.overrides import Request, as_xla_does, loops_resident
from mallocgame.xla.probe import Probe, Prober, most_doubtful, uses_of_large_buffers
from mallocgame.xla.profiling import lessons
from mallocgame.xla.settings import IMITATED, SETTINGS, SHORT_WINDOWS

_SOLVER = "portfolio"
# The shares of fast memory kept free, in turn, because the compiler picks its own offsets.
_MARGINS = (0.0, 0.02, 0.05)
_LEAST_CLIMB_SECONDS = 10.0
_MOST_PRICED = 6  # the most placements that are priced for what they teach
_PRICING_SHARE = 1 / 6  # of the time, for those
_MOST_SEEN = 50  # the number of probes that are kept
_LEAST_SOLVER_SECONDS, _MOST_SOLVER_SECONDS = 2.0, 30.0
_SOLVER_SHARE, _MOST_SOLVER_SHARE = 0.05, 0.25  # of the time that is left, for one plan
_REQUEST_SHARE = 0.15  # of the time that is left, for one request
_TRUSTING_SHARE = 1 / 10  # of the time, for settings one by one, to know what the twin knows
_SETTLING_SHARE = 1 / 4  # of the time that is left, for settings of XLA's own method, at first
_FIRST_SHARE = 0.45  # of all time, for the first round, whose prices are the poorest
_FOR_LAST_COMPILE = 0.25  # the most of all time that is kept for the last compile


Found = Callable[[Outcome], object]  # a function that is told of each better outcome


def forget(_: Outcome) -> None:
    """Does nothing: a Found for nobody."""


@dataclasses.dataclass(frozen=True)
class Tuned:
    """The best options found.

    All latencies are static estimates with simulated copies, not measurements on a chip.
    """

    capture: Capture  # with the prices of all that was compiled
    xla: Report  # what XLA's default costs
    best: Outcome  # XLA's default, with empty options, if nothing better was found
    rounds: tuple[CarriedOut, ...]
    compiles: int
    looks: int  # compiles that ended after memory space assignment
    seconds: float
    interrupted: bool = False  # whether Ctrl-C ended it before its time was over

    @property
    def options(self) -> dict[str, str]:
        """The options for jax.jit() or lowered.compile(); empty is XLA's default."""
        return self.best.options

    @property
    def speedup(self) -> float:
        """How many times as fast as XLA's default it is, if preloads are free.

        It is of `speedup_of`.
        """
        return speedup(self.xla, self.best.report)

    @property
    def speedup_cold(self) -> float:
        """The same speed-up with preloads as copies that wait."""
        return speedup(self.xla, self.best.report, cold=True)

    @property
    def speedup_of(self) -> str:
        """What the speed-up is of: where waits for links are the larger part, all but those."""
        return claimed_part(self.xla)

    @property
    def carried_out(self) -> CarriedOut | None:
        """What became of the plan behind `best`; None if no plan was asked for."""
        return self.best if isinstance(self.best, CarriedOut) else None


def apply(
    capture: Capture,
    plan: Plan,
    rounds: int = 4,
    seconds: float = 10.0,
    seed: int = 0,
    compiler: Compiler | None = None,
    tell: Tell = quiet,
    options: str | os.PathLike[str] | None = None,
) -> CarriedOut:
    """Has the compiler carry out a plan of `capture.program`.

    What it refuses becomes a constraint of the game, which is solved again, until the compiler does
    what is asked or `rounds` are over. rounds=1 asks for this very plan only.
    seconds: for the solver, each further round; more than 0.
    options: a folder in which jit() finds what is faster than XLA's default.

    Returns the fastest of the rounds, by what the compiler then emits, also where Ctrl-C ends a
    further round. InvalidInputError: the plan is of another program. CompilerError: the compiler
    carried out none.
    """
    program = capture.program
    if plan.program_fingerprint != program.fingerprint:
        raise InvalidInputError(
            f"plan of program {plan.program_fingerprint}, "
            f"but the capture is of {program.name} ({program.fingerprint})"
        )
    if rounds < 1:
        raise InvalidInputError(f"rounds: found {rounds}, allowed: 1 and above")
    if rounds > 1 and not seconds > 0:
        raise InvalidInputError(
            f"seconds: found {seconds}, allowed: more than 0, because the solver of a further "
            "round ends only when its time is over"
        )
    with shared(compiler, capture.target) as ask:
        search = _Search(capture, ask, seed, tell)
        done = [carry_out(capture, program, plan, ask, tell)]
        search.learn(done[0])
        interrupted = False
        while len(done) < rounds and len(done[-1].not_granted):
            tell(f"round {len(done) + 1}: {done[-1].honoured:.1%} as asked")
            try:
                done.append(search.round(seconds))
            except CompilerError as error:
                tell(str(error))
                break
            except KeyboardInterrupt:
                interrupted = True
                break
    best = min(done, key=lambda one: one.verified_ps)
    best = dataclasses.replace(best, interrupted=interrupted)
    xla_ps = simulate(program, capture.xla_plan).latency_ps
    if options is not None and best.verified_ps < xla_ps:
        OptionFolder(options).keep(capture, best)
    return best


def tune(
    function: Callable[..., Any],
    *args: Any,
    target: str = "tpu_v4i",
    fast_mib: int | None = None,
    name: str | None = None,
    seconds: float = 600.0,
    compiles: int | None = None,
    seed: int = 0,
    compiler: Compiler | None = None,
    tell: Tell = quiet,
    preloads: int | None = None,
    found: Found = forget,
    start: Mapping[str, str] | None = None,
    options: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
) -> Tuned:
    """Finds options with which XLA:TPU makes a JAX function faster by its own estimates.

    They never make it slower. The function is captured. Then plans are solved, what the compiler
    would do with them is probed, and what is better is compiled, until the time is over.

    function, args, target, fast_mib, name, preloads: as for capture().
    seconds: of wall time; a compile that has begun is awaited.
    compiles: placements to price after the first round; None is what fits into a sixth of the time,
    six at most.
    found: is told each time that the compiler has carried out something better.
    start: options that an earlier call has found for the same program, to go on from.
    options: a folder in which jit() finds them. If it has some for the same program, chip and
    versions, the search goes on from those.
    jobs: how many compilers look at requests at the same time; None is one for each processor, as
    far as there is memory for them.

    Ctrl-C ends it too, once the program is captured. Then the best so far comes back.
    """
    begin = time.monotonic()
    tell("compiling as XLA does")
    return tune_capture(
        capture(
            function,
            *args,
            target=target,
            fast_mib=fast_mib,
            name=name,
            compiler=compiler,
            preloads=preloads,
        ),
        max(0.0, seconds - (time.monotonic() - begin)),
        compiles,
        seed,
        compiler,
        tell,
        found,
        start,
        options,
        jobs,
    )


def tune_capture(
    capture: Capture,
    seconds: float = 600.0,
    compiles: int | None = None,
    seed: int = 0,
    compiler: Compiler | None = None,
    tell: Tell = quiet,
    found: Found = forget,
    start: Mapping[str, str] | None = None,
    options: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
) -> Tuned:
    """Tunes a program that is captured already, as tune() does.

    InvalidInputError: `start` holds other options than tune() gives, or is for another program.
    """
    begin = time.monotonic()
    interrupted = False
    shelf = Shelf(capture, options)
    with shared(compiler, capture.target, for_plans=False) as ask:
        if not ask.abilities.takes_plans:
            tell(ask.abilities.sentence(ask.versions) or "")
        compiles_before, looks_before = ask.compiles, ask.looks

        def keep(outcome: Outcome) -> None:
            shelf.keep(outcome)
            found(outcome)

        tuning = _Tuning(capture, ask, seed, tell, keep)
        try:
            start = start or found_before(capture, shelf.start, tell)
            if start:
                tuning.go_on_from(start)
            tuning.run(begin, begin + seconds, compiles, jobs)
        except KeyboardInterrupt:
            interrupted = True
        shelf.keep(tuning.best)
        return Tuned(
            tuning.search.capture,
            tuning.xla,
            tuning.best,
            tuple(tuning.rounds),
            ask.compiles - compiles_before,
            ask.looks - looks_before,
            time.monotonic() - begin,
            interrupted,
        )


def found_before(
    capture: Capture, options: Mapping[str, str] | None, tell: Tell
) -> Mapping[str, str] | None:
    """Returns options that were kept, to go on from.

    None: there are none, or they can't be read, because another version gave them.
    """
    if not options:
        return None
    try:
        _request_of(capture, options)
    except InvalidInputError as error:
        tell(f"what was found before is left out: {error}")
        return None
    return options


def _request_of(capture: Capture, options: Mapping[str, str]) -> Request:
    """Returns what tune() gave the options for. InvalidInputError: it gives no such options."""
    wanted = read_request(options, capture.program, capture.default.before)
    if capture.target.options | wanted.options() != options:
        raise InvalidInputError(f"options: found others than tune() gives for {capture.target}")
    return wanted


def _better(best: Outcome, other: Outcome, xla: Report) -> Outcome:
    """Returns `other` if it costs less than `best`, else `best`.

    It must not be slower than XLA's default, whether preloads count as free or as cold.
    """
    if other.verified_ps > xla.latency_ps or other.verified_cold_ps > xla.latency_cold_ps:
        return best
    return min(best, other, key=lambda one: one.cost_ps)


class _Search:
    """Solves for one plan after another, each with what the compiler said of those before."""

    def __init__(self, capture: Capture, compiler: Compiler, seed: int, tell: Tell) -> None:
        self.capture = capture
        self._compiler = compiler
        self._seed = seed
        self._tell = tell
        self._not_granted: collections.Counter[int] = collections.Counter()
        self._margin = 0

    def round(self, seconds: float) -> CarriedOut:
        """Solves, has it carried out, and learns. CompilerError: nothing was carried out."""
        program = self.capture.program
        done = carry_out(self.capture, program, self.plan(seconds), self._compiler, self._tell)
        self.learn(done)
        return done

    def plan(self, seconds: float) -> Plan:
        """Returns a solver's plan, without what was refused."""
        game = Game(
            self.capture.program,
            hardware=self.capture.program.hardware.replace(askable=True),
            forbidden=sorted(self._not_granted),
            keep_free=_MARGINS[self._margin],
        )
        self._seed += 1
        return solve(game, _SOLVER, seconds=seconds, seed=self._seed).plan

    def learn(self, done: CarriedOut) -> None:
        """Takes the prices and the refusals of a compile."""
        self.capture = self.capture.with_prices([done.compiled])
        self.refused(done.not_granted)

    def refused(self, accesses: Iterable[int]) -> None:
        """Keeps accesses out of fast memory from now on."""
        self._not_granted.update(int(access) for access in accesses)

    def widen(self) -> None:
        """Asks again for what was refused only once, and leaves another margin."""
        self._not_granted = collections.Counter(
            {a: count - 1 for a, count in self._not_granted.items() if count > 1}
        )
        self._margin = (self._margin + 1) % len(_MARGINS)


class _Tuning:
    """Rounds: solve, climb towards the plans by probes, compile what seems better than the best."""

    def __init__(
        self, capture: Capture, compiler: Compiler, seed: int, tell: Tell, found: Found
    ) -> None:
        self.xla = simulate(capture.program, capture.xla_plan)
        self.best = Outcome({}, capture.program, capture.default, as_xla_does(capture.program))
        self.rounds: list[CarriedOut] = []
        self.search = _Search(capture, compiler, seed, tell)
        self._compiler = compiler
        self._takes_plans = compiler.abilities.takes_plans
        # Those for which single copies are asked for, where single buffers can't be.
        self._uses = (
            []
            if self._takes_plans
            else uses_of_large_buffers(capture.program, capture.default.before)
        )
        self._imitation = Imitation(
            capture.program, self.xla.latency_cold_ps, seed, self._takes_plans
        )
        self._directives = self._imitation.start  # the fastest request of the search in requests
        self._most = self.xla.latency_ps, self.xla.latency_cold_ps
        self._seed = seed
        self._tell = tell
        self._found = found
        self._seen: list[Probe] = []  # the best so far, compiled or not
        self._doubtful: list[Probe] = []  # what may be better than the best, by better prices
        self._solve_longer = 1  # how many times as long, after plans that were no better

    def go_on_from(self, options: Mapping[str, str]) -> None:
        """Compiles with options that were found before. InvalidInputError: they can't be read."""
        capture = self.search.capture
        wanted = _request_of(capture, options)
        self._tell("compiling with the options to go on from")
        try:
            answer = self._compiler.compile(capture.check_can_compile(), dict(options))
            outcome = Outcome(dict(options), capture.program_of(answer), answer, wanted)
        except CompilerError as error:
            self._tell(str(error))
            return
        self.search.capture = capture.with_prices([answer])
        self._take(outcome)

    def run(self, begin: float, until: float, compiles: int | None, jobs: int | None) -> None:
        """Tunes. begin, until: time.monotonic() at which it began, and after which nothing begins.

        compiles: placements to price after the first round; None is what fits into a sixth of the
        time. jobs: as for tune().
        """
        with contextlib.closing(
            Prober(self.search.capture, self._compiler, self._tell, jobs)
        ) as prober:
            self._rounds(prober, begin, until, compiles)

    def _rounds(self, prober: Prober, begin: float, until: float, compiles: int | None) -> None:
        """Does rounds until the time is over, and prices placements after the first."""
        self._step(prober, begin, begin + _FIRST_SHARE * (until - begin))
        share = _PRICING_SHARE * (until - begin)
        if not self._takes_plans:  # Only what was looked at can be priced, while a compile fits.
            last = until - self._compiler.longest
            self._price_doubtful(prober, min(last, time.monotonic() + share))
        elif compiles is not None:
            self._price(compiles, until)
        elif self._compiler.longest <= share:
            self._price(_MOST_PRICED, min(until, time.monotonic() + share))
            self._price_doubtful(prober, min(until, time.monotonic() + share))
        while self._step(prober, begin, until):
            pass

    def _step(self, prober: Prober, begin: float, until: float) -> bool:
        """Does a round if there is time for one. Returns whether there was."""
        # The look that is under way when the probes' time is over is awaited, then a compile.
        last = self._compiler.longest_look + self._compiler.longest
        probed_until = until - min(last, _FOR_LAST_COMPILE * (until - begin))
        if probed_until - time.monotonic() < _LEAST_SOLVER_SECONDS:
            return False
        so_far = speedup(self.xla, self.best.report)
        self._tell(f"{so_far:.3f}x so far, round {len(self.rounds) + 1}")
        done = self._round(prober, probed_until)
        if done is not None:
            self.rounds.append(done)
            self._take(done)
        return True

    def _price(self, compiles: int, until: float) -> None:
        """Has some placements compiled because they teach prices, until one takes too long."""
        learnt = lessons(
            self.search.capture, compiles, self._seed, self._compiler, self._tell, until
        )
        try:
            for richer, lesson in learnt:
                self.search.capture = richer
                self._take(lesson.outcome)
        except CompilerLimitError as error:
            self._tell(f"no more placements are priced: {error}")

    def _price_doubtful(self, prober: Prober, until: float) -> None:
        """Has placements compiled that only predictions call slow.

        until: time.monotonic() after which none is compiled.
        """
        for _ in range(_MOST_PRICED):
            capture = self.search.capture
            self._doubtful = [probe.priced_by(capture) for probe in self._doubtful]
            probe = most_doubtful(self._doubtful, self.best.cost_ps)
            if probe is None or time.monotonic() >= until:
                return
            self._tell("pricing a placement: doubtful")
            # What is predicted still after this compile stays so.
            self._doubtful = [other for other in self._doubtful if other is not probe]
            try:
                done = prober.verify(capture, probe)
            except CompilerError as error:
                self._tell(str(error))
                continue
            self.search.learn(done)
            self._take(done)

    def _take(self, outcome: Outcome) -> None:
        """Keeps an outcome if it is better than the best."""
        if _better(self.best, outcome, self.xla) is outcome:
            self.best = outcome
            self._found(outcome)

    def _round(self, prober: Prober, until: float) -> CarriedOut | None:
        """Does a round. None: nothing seems better than the best, or the compiler ended.

        until: time.monotonic() after which no probe begins.
        """
        best, capture = self.best, self.search.capture
        verified = Probe(best.program, best.plan, best.request).priced_by(capture)
        # Prices have become better since.
        seen = [probe.priced_by(capture) for probe in (*self._seen, *self._doubtful)]
        allowed = [probe for probe in seen if not probe.exceeds(self._most)]
        climb = Climb(
            capture,
            prober,
            min([verified, *allowed], key=_cost),
            self._most,
            self._seed,
            self._tell,
        )
        self._seed += 1
        if not seen:
            resident = loops_resident(capture.program, capture.default.before)
            if resident.overrides and self._takes_plans:
                climb.ask(resident)
            self._trust(climb, time.monotonic() + _TRUSTING_SHARE * (until - time.monotonic()))
            climb.settle(
                time.monotonic() + _SETTLING_SHARE * (until - time.monotonic()), self._uses
            )
        longer, self._solve_longer = self._solve_longer, 2 * self._solve_longer
        plan = self._plan(until, longer)
        self._climb_to_a_request(climb, prober, until, longer, plan)
        if plan is not None:
            self._climb_to_a_plan(climb, plan, until)
        climb.settle(min(time.monotonic() + _climbing(until), until), self._uses)
        self._seen = sorted([*seen, *climb.seen], key=_cost)[:_MOST_SEEN]
        self._doubtful = sorted(climb.doubtful, key=lambda probe: probe.hoped_ps)[:_MOST_SEEN]
        if climb.best is verified:
            self.search.widen()
            return None
        try:
            done = prober.verify(capture, climb.best)
        except CompilerError as error:
            self._tell(str(error))
            self._seen = [probe for probe in self._seen if probe is not climb.best]
            return None
        self.search.learn(done)
        return done

    def _trust(self, climb: Climb, until: float) -> None:
        """Asks for settings one by one, to know for which of them the twin is right."""
        program = self.search.capture.program
        game, by_itself = Game(program), as_xla_does(program)
        tries = [(name, one) for name in IMITATED for one in SETTINGS[name]]
        # Those that requests near a plan need come first, if there isn't time for all.
        tries.sort(key=lambda setting: setting not in SHORT_WINDOWS.items())
        wanted = [by_itself.having(*setting) for setting in tries]
        for request, probe in climb.ask_all(wanted, until):
            ((name, value),) = request.settings.items()
            self._imitation.trust(game, name, value, simulate(program, probe.plan).latency_ps)

    def _plan(self, until: float, longer: int) -> Plan | None:
        """Solves for a share of the time that is left. None: no plan can be asked for by then."""
        left = until - time.monotonic()
        seconds = _seconds(longer * _SOLVER_SHARE, left)
        return self.search.plan(seconds) if self._takes_plans and left >= seconds else None

    def _climb_to_a_request(
        self, climb: Climb, prober: Prober, until: float, longer: int, plan: Plan | None
    ) -> None:
        """Searches requests for a share of the time that is left, and climbs to the best.

        After a round without success it begins anew, and goes on from the best no more.
        """
        program, imitation = self.search.capture.program, self._imitation
        settled = imitation.settled(self._directives, climb.best.request.settings)
        game = Game(program)

        def cost(one: Directives) -> float:
            return imitation.cost(game, one)

        def is_right(one: Directives) -> bool:
            """Returns whether the twin may be right; the compiler was asked for _directives."""
            return one != self._directives or cost(one) >= (1 - CLOSE) * climb.best.cost

        # What the compiler makes less of than the twin is no start: the twin would stay with it.
        best = min(filter(is_right, (self._directives, settled)), key=cost, default=imitation.start)
        start = best if longer == 1 else imitation.start
        seconds = _seconds(longer * _REQUEST_SHARE, until - time.monotonic())
        last = min(time.monotonic() + seconds + _climbing(until), until)
        while True:
            found = imitation.search(program, start, seconds, prober.jobs, plan)
            target = min(best, found, key=cost)
            if target == self._directives:
                return
            self._solve_longer = 1
            climbed_until = min(time.monotonic() + _climbing(until), until)
            self._directives = climb.follow(self._directives, target, climbed_until)
            # What the compiler grants at once leaves time to go on from there.
            if self._directives is not target or last - time.monotonic() < seconds:
                return
            start = best = target if is_right(target) else imitation.start

    def _climb_to_a_plan(self, climb: Climb, plan: Plan, until: float) -> None:
        """Climbs for some seconds, but not after `until`, if it is of use."""
        program = self.search.capture.program
        if cost_ps(simulate(program, plan)) >= cost_ps(climb.best.report):
            return  # The solver needs more time, and a climb would spend it.
        self._solve_longer = 1
        nearest = climb.to(plan, min(time.monotonic() + _climbing(until), until))
        if nearest is not None:
            self.search.refused(
                np.flatnonzero((plan.served_by >= 0) & (nearest.plan.served_by < 0))
            )


def _seconds(share: float, left: float) -> float:
    """Returns the seconds that a solver gets of those that are left."""
    wanted = min(share, _MOST_SOLVER_SHARE) * left
    return min(_MOST_SOLVER_SECONDS, max(_LEAST_SOLVER_SECONDS, wanted))


def _climbing(until: float) -> float:
    """Returns the seconds that a climb gets."""
    return max(_LEAST_CLIMB_SECONDS, (until - time.monotonic()) / 6)


def _cost(probe: Probe) -> float:
    return probe.cost
