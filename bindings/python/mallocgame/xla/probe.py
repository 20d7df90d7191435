"""What the compiler would do with a request, without the wait for its code generation.

A climb by such probes finds better plans that the compiler carries out.
"""

import dataclasses
import functools
import itertools
import math
import random
import re
import time
from collections.abc import Iterable, Sequence

from mallocgame._core import READ, Plan, Program, Report, find_uses, simulate, validate
from mallocgame.programs import import_hlo
from mallocgame.xla.captures import Capture
from mallocgame.xla.compiler import Compiler, CompilerError, CompilerRefusedError, ending_early
from mallocgame.xla.imitation import Directives
from mallocgame.xla.modules import Assigned
from mallocgame.xla.negotiate import PATIENCE, CarriedOut, Refusal, Tell, negotiate, quiet
from mallocgame.xla.overrides import SMALL_BYTES, Request, changed, differing_buffers, ways_to_ask
from mallocgame.xla.settings import DEGREES, PRELOADS, SETTINGS, Use

_NEEDS = re.compile(r"total memory required[^(]*\(([\d.]+)([KMG])\)")
_MIB = {"K": 2.0**-10, "M": 1.0, "G": 2.0**10}
_PATIENCE = 200  # draws of settings without a better plan, until no more are drawn
_SINGLE_SHARE = 2 / 3  # of the draws that are about a single use, where uses are given
_AT_ONCE = (1, 1, 2, 3)  # how many settings are drawn at once
_REFUSALS_SHARE = 1 / 8  # of the probes for which there is time, for single copies of one request
_DOUBT = 0.02  # share of a predicted price that is added to it
_HOPE = 0.5  # share of a predicted price that it may be too high
# The shares of main memory that the compiler is told there is: too little, but not so little that
# it picks another schedule to save some.
_OF_ARGUMENTS, _OF_NEEDS = 0.9, (0.7, 0.95)


@dataclasses.dataclass(frozen=True)
class Probe:
    """What the compiler would do with a request."""

    program: Program
    plan: Plan  # of `program`
    request: Request = dataclasses.field(repr=False)  # what was granted
    refusals: tuple[Refusal, ...] = ()

    @functools.cached_property
    def report(self) -> Report:
        """What the plan costs by the prices of `program`.

        Prices of placements that no compile has seen are predicted.
        """
        return simulate(self.program, self.plan)

    @property
    def cost(self) -> tuple[float, float]:
        """What searches compare: the latencies, and something more for what is predicted.

        A search picks predictions where they err.
        """
        doubt = _DOUBT * self.report.predicted_ps
        return self.report.latency_ps + doubt, self.report.latency_cold_ps + doubt

    @property
    def hoped_ps(self) -> float:
        """What the latency may be in truth, if what is predicted is far too high."""
        return self.report.latency_ps - _HOPE * self.report.predicted_ps

    def exceeds(self, most: tuple[int, int]) -> bool:
        """Returns whether either latency is above its limit."""
        return self.report.latency_ps > most[0] or self.report.latency_cold_ps > most[1]

    def priced_by(self, capture: Capture) -> "Probe":
        """Returns the same with the prices that a capture knows by now."""
        plan = capture.as_plan_of(capture.program, self.plan, self.program)
        return dataclasses.replace(self, program=capture.program, plan=plan)


class Prober:
    """Probes the compiler with requests for one captured program.

    Where the compiler can't be stopped early a probe is a whole compile.
    """

    def __init__(self, capture: Capture, compiler: Compiler, tell: Tell = quiet) -> None:
        self.target = compiler.target
        self.until = math.inf  # time.monotonic() after which no probe begins
        self._compiler = compiler
        self._tell = tell
        self._main_memory = find_main_memory(capture, compiler)
        self._asked, self._seconds = 0, 0.0  # all probes so far
        if isinstance(self._main_memory, str):
            tell(f"every look is a whole compile: {self._main_memory}")

    def compile(self, module: str, options: dict[str, str]) -> Assigned:
        """As Compiler.compile(), but without prices."""
        begin = time.monotonic()
        try:
            if isinstance(self._main_memory, str):
                return self._compiler.compile(module, options)
            return self._compiler.look(module, options, self._main_memory)
        finally:
            self._asked += 1
            self._seconds += time.monotonic() - begin

    @property
    def patience(self) -> int:
        """How many refusals of single copies there is time for; of a large program, few or none."""
        left = self.until - time.monotonic()
        if self._seconds <= 0 or left == math.inf:
            return PATIENCE
        probes = max(0.0, left) * self._asked / self._seconds
        return int(min(float(PATIENCE), _REFUSALS_SHARE * probes))

    def ask(self, capture: Capture, wanted: Request) -> Probe:
        """Probes with as much of a request as the compiler grants.

        CompilerError: it grants nothing.
        """
        granted, answer, refusals = negotiate(
            capture, capture.program, wanted, self, self._tell, self.until, self.patience
        )
        return Probe(capture.program, capture.plan_of(answer), granted, refusals)

    def verify(self, capture: Capture, probe: Probe) -> CarriedOut:
        """Compiles what was probed. CompilerError."""
        options = probe.request.options()
        answer = self._compiler.compile(capture.check_can_compile(), options)
        granted = self.target.options | options
        predicted_ps = probe.report.latency_ps
        return CarriedOut(
            granted,
            capture.read(answer),
            answer,
            probe.request,
            probe.plan,
            predicted_ps,
            probe.refusals,
        )


def uses_of_large_buffers(program: Program, before: bytes) -> list[Use]:
    """Returns the uses that copies may serve. before: the HloProto that `program` was made of."""
    rows = program.accesses
    sizes = program.buffers["size_bytes"][rows["buffer"]]
    return [
        (program.instruction_names[rows["tick"][access]], operand)
        for access, operand, index in find_uses(program, before)
        if operand >= 0
        and not index
        and rows["kind"][access] == READ
        and sizes[access] >= SMALL_BYTES
    ]


def most_doubtful(probes: Iterable[Probe], than_ps: int) -> Probe | None:
    """Returns the probe whose prices are most worth a compile; None: none can be faster.

    than_ps: the latency that it should go below.
    """
    doubtful = [
        probe for probe in probes if probe.report.predicted_ps > 0 and probe.hoped_ps < than_ps
    ]
    return min(doubtful, key=lambda probe: probe.hoped_ps, default=None)


def find_main_memory(capture: Capture, compiler: Compiler) -> int | str:
    """Finds so little main memory that the compiler ends after assigning this very schedule.

    Returns the MiB of it for Compiler.look(), or why there is no such size.
    """
    module = capture.check_can_compile()
    try:
        of_arguments = max(1, int(_OF_ARGUMENTS * capture.program.argument_bytes / 2**20))
        why = _other_schedule(capture, compiler, of_arguments)
        if why is None:
            return of_arguments
        for guess in _shares_of_needs(module, compiler, of_arguments):
            why = _other_schedule(capture, compiler, guess)
            if why is None:
                return guess
    except CompilerError as error:
        why = str(error)
    return why


def _shares_of_needs(module: str, compiler: Compiler, mib: int) -> list[int]:
    """Returns some MiB below those that the program needs, none if `mib` are enough for it."""
    try:
        compiler.compile(module, ending_early(mib))
    except CompilerRefusedError as error:
        needs = _NEEDS.search(str(error))
        if needs is not None:
            return [max(1, int(share * float(needs[1]) * _MIB[needs[2]])) for share in _OF_NEEDS]
    return []


def _other_schedule(capture: Capture, compiler: Compiler, main_mib: int) -> str | None:
    """Returns where the schedule of a look differs from that of the capture; None: nowhere."""
    answer = compiler.look(capture.check_can_compile(), {}, main_mib)
    there = import_hlo(answer.before, hardware=capture.target.hardware).instruction_names
    here = capture.program.instruction_names
    if there == here:
        return None
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(here, there, strict=False))
    tick = sum(1 for _ in same)
    return (
        f"with {main_mib} MiB of main memory the schedule has {len(there)} instructions, not "
        f"{len(here)}, and is another from number {tick} on"
    )


class Climb:
    """A climb from what the compiler does towards plans, by asking for parts of their difference.

    most: the latencies, with preloads free and cold, that must not be exceeded.
    """

    def __init__(
        self,
        capture: Capture,
        prober: Prober,
        best: Probe,
        most: tuple[int, int],
        seed: int,
        tell: Tell = quiet,
    ) -> None:
        self.best = best
        self.seen: list[Probe] = []  # the probes that exceed nothing
        self.doubtful: list[Probe] = []  # those that may be faster than the best, by better prices
        self._capture = capture
        self._before = capture.default.before
        self._prober = prober
        self._most = most
        self._chance = random.Random(seed)
        self._tell = tell
        self._settled: set[frozenset[tuple[str, str]]] = set()  # options that settle() tried

    def to(self, plan: Plan, until: float = math.inf) -> Probe | None:
        """Climbs towards a plan, and leaves the best on the way in `best`.

        until: time.monotonic() after which no probe begins. Returns the best of what the compiler
        makes of the plan as it is, None if it is nothing.
        """
        self._prober.until = until
        start = self.best
        program = self._capture.program
        ways = [*ways_to_ask(program, plan, self._before)]
        if start.request.settings:
            unlike = differing_buffers(program, start.plan, plan)
            ways.append(changed(start.request, program, plan, self._before, unlike))
        asked = [self.ask(way) for way in ways]
        answers = [probe for probe in asked if probe is not None]
        nearest = min(answers, key=lambda probe: probe.cost, default=None)
        self._walk(self.best, plan)
        if nearest is not None:
            other = start if self.best is nearest else nearest
            self._walk(other, self.best.plan)
        return nearest

    def follow(self, start: Directives, target: Directives, until: float = math.inf) -> Directives:
        """Climbs from one request towards another, and leaves the best on the way in `best`.

        start: was looked at before. until: time.monotonic() after which no probe begins. Returns
        the fastest request on the way, as the compiler answers; `start` if it is that.
        """
        self._prober.until = until
        at, cost = start, self._cost_of(start)
        if self._cost_of(target) < cost:
            return target
        size = len(start.differing(target))
        while size > 1:
            size = (size + 1) // 2
            buffers = at.differing(target)
            self._chance.shuffle(buffers)
            for first in range(0, len(buffers), size):
                if time.monotonic() >= until:
                    return at
                other = at.with_those_of(target, buffers[first : first + size])
                other_cost = self._cost_of(other)
                if other_cost < cost:
                    at, cost = other, other_cost
        return at

    def _cost_of(self, directives: Directives) -> tuple[float, float]:
        """Probes with a request. Infinity: it is refused, or the answer exceeds a limit."""
        probe = self.ask(directives.request(self._capture.program, self._before))
        if probe is None or probe.exceeds(self._most):
            return math.inf, math.inf
        return probe.cost

    def settle(self, until: float = math.inf, uses: Sequence[Use] = ()) -> None:
        """Tries settings of XLA's own method, from the best request so far.

        First it is one at a time, then some at once, by chance, until that is of no use for long.
        What makes the program faster is kept.

        uses: those for which copies are also asked for at other times, one by one, by chance.
        until: time.monotonic() after which no probe begins.
        """
        self._prober.until = until
        most = self._capture.program.hardware.max_preloads
        tries: list[tuple[str, str | None]] = [
            (name, value)
            for name, values in SETTINGS.items()
            for value in values
            if name != PRELOADS or int(value) <= most
        ]
        for one in tries:
            self._change([one])
        tries += [(name, None) for name in SETTINGS]
        useless = 0
        while useless < _PATIENCE and time.monotonic() < until:
            best = self.best
            if uses and self._chance.random() < _SINGLE_SHARE:
                self._hurry(self._chance.choice(uses))
            else:
                self._change(self._chance.sample(tries, self._chance.choice(_AT_ONCE)))
            useless = useless + 1 if self.best is best else 0

    def _change(self, settings: Iterable[tuple[str, str | None]]) -> None:
        """Probes with other settings, unless that was done before."""
        wanted = self.best.request
        for name, value in settings:
            wanted = wanted.having(name, value)
        self._try(wanted)

    def _hurry(self, use: Use) -> None:
        """Probes with another time for the copies that serve a use."""
        degree = self._chance.choice([None, *DEGREES])
        self._try(self.best.request.hurrying(use, degree))

    def _try(self, wanted: Request) -> None:
        """Probes with a request of settings, unless that was done before."""
        options = frozenset(wanted.options().items())
        if options not in self._settled and time.monotonic() < self._prober.until:
            self._settled.add(options)
            self.ask(wanted)

    def _walk(self, at: Probe, plan: Plan) -> None:
        """Asks for halves of the difference, quarters, down to single buffers.

        What makes the program faster is kept.
        """
        size = len(differing_buffers(self._capture.program, at.plan, plan))
        while size > 1:
            size = (size + 1) // 2
            buffers = differing_buffers(self._capture.program, at.plan, plan)
            self._chance.shuffle(buffers)
            for first in range(0, len(buffers), size):
                if time.monotonic() >= self._prober.until:
                    return
                part = set(buffers[first : first + size])
                probe = self.ask(
                    changed(at.request, self._capture.program, plan, self._before, part)
                )
                if probe is not None and probe.cost < at.cost:
                    at = probe

    def ask(self, wanted: Request) -> Probe | None:
        """Probes with a request, and keeps the answer if it is the best.

        None: the compiler grants nothing, or the time is over.
        """
        try:
            probe = self._prober.ask(self._capture, wanted)
        except CompilerError:
            return None
        if not validate(probe.program, probe.plan).ok:
            return probe
        if probe.report.predicted_ps > 0 and probe.hoped_ps < self.best.report.latency_ps:
            self.doubtful.append(probe)
        if probe.exceeds(self._most):
            return probe
        self.seen.append(probe)
        if probe.cost < self.best.cost:
            self.best = probe
            self._tell(f"{self._most[0] / probe.report.latency_ps:.3f}x looked at")
        return probe
