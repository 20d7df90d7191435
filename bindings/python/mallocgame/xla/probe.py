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

from mallocgame._core import Plan, Program, Report, simulate, validate
from mallocgame.programs import import_hlo
from mallocgame.xla.captures import Capture
from mallocgame.xla.compiler import Compiler, CompilerError, CompilerRefusedError, ending_early
from mallocgame.xla.modules import Assigned
from mallocgame.xla.negotiate import CarriedOut, Refusal, Tell, negotiate, quiet
from mallocgame.xla.overrides import Request, changed, differing_buffers, ways_to_ask

_NEEDS = re.compile(r"total memory required[^(]*\(([\d.]+)([KMG])\)")
_MIB = {"K": 2.0**-10, "M": 1.0, "G": 2.0**10}
_DOUBT = 0.02  # share of a predicted price that is added to it
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
        if isinstance(self._main_memory, str):
            tell(f"every look is a whole compile: {self._main_memory}")

    def compile(self, module: str, options: dict[str, str]) -> Assigned:
        """As Compiler.compile(), but without prices."""
        if isinstance(self._main_memory, str):
            return self._compiler.compile(module, options)
        return self._compiler.look(module, options, self._main_memory)

    def ask(self, capture: Capture, wanted: Request) -> Probe:
        """Probes with as much of a request as the compiler grants.

        CompilerError: it grants nothing.
        """
        granted, answer, refusals = negotiate(
            capture, capture.program, wanted, self, self._tell, self.until
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
        self._capture = capture
        self._before = capture.default.before
        self._prober = prober
        self._most = most
        self._chance = random.Random(seed)
        self._tell = tell

    def to(self, plan: Plan, until: float = math.inf) -> Probe | None:
        """Climbs towards a plan, and leaves the best on the way in `best`.

        until: time.monotonic() after which no probe begins. Returns the best of what the compiler
        makes of the plan as it is, None if it is nothing.
        """
        self._prober.until = until
        start = self.best
        asked = [self.ask(way) for way in ways_to_ask(self._capture.program, plan, self._before)]
        answers = [probe for probe in asked if probe is not None]
        nearest = min(answers, key=lambda probe: probe.cost, default=None)
        self._walk(self.best, plan)
        if nearest is not None:
            other = start if self.best is nearest else nearest
            self._walk(other, self.best.plan)
        self.ask(dataclasses.replace(self.best.request, sliced=not self.best.request.sliced))
        return nearest

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
        if probe.exceeds(self._most) or not validate(probe.program, probe.plan).ok:
            return probe
        self.seen.append(probe)
        if probe.cost < self.best.cost:
            self.best = probe
            self._tell(f"{self._most[0] / probe.report.latency_ps:.3f}x looked at")
        return probe
