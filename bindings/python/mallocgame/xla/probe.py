"""What the compiler would do with a request, without the wait for its code generation: looks,
and a climb by them.
"""

import dataclasses
import functools
import math
import random
import re

import numpy as np

from mallocgame._core import Plan, Program, Report, simulate, validate
from mallocgame.programs import import_hlo
from mallocgame.xla.captures import Capture
from mallocgame.xla.compiler import MAIN_MEMORY, Compiler, CompilerError, CompilerRefusedError
from mallocgame.xla.modules import Assigned
from mallocgame.xla.negotiate import CarriedOut, Refusal, Tell, negotiate, quiet
from mallocgame.xla.overrides import SMALL_BYTES, Request, changed, request

_NEEDS = re.compile(r"total memory required[^(]*\(([\d.]+)([KMG])\)")
_MIB = {"K": 2.0**-10, "M": 1.0, "G": 2.0**10}
_DOUBT = 0.02  # of a predicted price
# Of main memory the compiler is told that there is: too little, but not so little that it changes
# the program to save some.
_OF_ARGUMENTS, _OF_NEEDS = 0.9, (0.7, 0.95)


@dataclasses.dataclass(frozen=True)
class Look:
    """What the compiler would do with a request."""

    program: Program
    plan: Plan  # of `program`
    request: Request = dataclasses.field(repr=False)  # what was granted
    refusals: tuple[Refusal, ...] = ()

    @functools.cached_property
    def report(self) -> Report:
        """By the prices of `program`; those of placements that no compile has seen are
        predicted.
        """
        return simulate(self.program, self.plan)

    @property
    def cost(self) -> tuple[float, float]:
        """What searches compare: the latencies, and something for what is predicted, which a
        search picks where it errs.
        """
        doubt = _DOUBT * self.report.predicted_ps
        return self.report.latency_ps + doubt, self.report.latency_cold_ps + doubt

    def exceeds(self, most: tuple[int, int]) -> bool:
        """Either latency."""
        return self.report.latency_ps > most[0] or self.report.latency_cold_ps > most[1]

    def priced_by(self, capture: Capture) -> "Look":
        """The same with the prices that a capture knows by now."""
        plan = capture.as_plan_of(capture.program, self.plan, self.program)
        return dataclasses.replace(self, program=capture.program, plan=plan)


class Looks:
    """At one captured program. Where the compiler can't be stopped early they are whole
    compiles.
    """

    def __init__(self, capture: Capture, compiler: Compiler, tell: Tell = quiet) -> None:
        self.target = compiler.target
        self.until = math.inf  # time.monotonic() after which no look begins
        self._compiler = compiler
        self._tell = tell
        self._main_mib = _too_little_memory(capture, compiler)

    def compile(self, module: str, options: dict[str, str]) -> Assigned:
        """As Compiler.compile, without prices."""
        if self._main_mib is None:
            return self._compiler.compile(module, options)
        return self._compiler.look(module, options, self._main_mib)

    def ask(self, capture: Capture, wanted: Request) -> Look:
        """CompilerError: the compiler does nothing of the kind."""
        granted, answer, refusals = negotiate(
            capture, capture.program, wanted, self, self._tell, self.until
        )
        return Look(capture.program, capture.plan_of(answer), granted, refusals)

    def verify(self, capture: Capture, look: Look) -> CarriedOut:
        """Compile what was looked at. CompilerError."""
        options = look.request.options()
        answer = self._compiler.compile(capture.check_can_compile(), options)
        granted = self.target.options | options
        predicted_ps = look.report.latency_ps
        return CarriedOut(
            granted,
            capture.read(answer),
            answer,
            look.request,
            look.plan,
            predicted_ps,
            look.refusals,
        )


def _too_little_memory(capture: Capture, compiler: Compiler) -> int | None:
    """MiB of main memory with which the compiler ends after the assignment of this very
    schedule; None: not known.
    """
    module = capture.check_can_compile()
    mib = int(_OF_ARGUMENTS * capture.program.argument_bytes / 2**20)
    try:
        compiler.compile(module, {MAIN_MEMORY: str(max(mib, 1))})
    except CompilerRefusedError as error:
        needs = _NEEDS.search(str(error))
        if needs is None:
            return None
        for guess in (mib, *(int(share * float(needs[1]) * _MIB[needs[2]]) for share in _OF_NEEDS)):
            if guess >= 1 and _is_same_schedule(capture, compiler.look(module, {}, guess)):
                return guess
    except CompilerError:
        pass
    return None


def _is_same_schedule(capture: Capture, answer: Assigned) -> bool:
    program = import_hlo(answer.before, hardware=capture.target.hardware)
    return program.instruction_names == capture.program.instruction_names


class Climb:
    """From what the compiler does towards plans, by asking for parts of what they have other than
    it.

    most: latencies, preloads free and cold, that must not be exceeded.
    """

    def __init__(
        self,
        capture: Capture,
        looks: Looks,
        best: Look,
        most: tuple[int, int],
        seed: int,
        tell: Tell = quiet,
    ) -> None:
        self.best = best
        self.seen: list[Look] = []  # those that exceed nothing
        self._capture = capture
        self._before = capture.default.before
        self._looks = looks
        self._most = most
        self._chance = random.Random(seed)
        self._tell = tell

    def to(self, plan: Plan, until: float = math.inf) -> Look | None:
        """Leaves the best on the way in `best`; what the compiler makes of the whole plan, None if
        nothing.

        until: time.monotonic() after which no look begins.
        """
        self._looks.until = until
        program = self._capture.program
        whole = self.ask(request(program, plan, self._before))
        self._walk(self.best, plan)
        if whole is not None:
            self._walk(whole, self.best.plan)
        self.ask(dataclasses.replace(self.best.request, sliced=not self.best.request.sliced))
        return whole

    def _walk(self, at: Look, plan: Plan) -> None:
        """Halves of the difference, quarters, down to single buffers; what makes it faster is
        kept.
        """
        size = len(self._different(at, plan))
        while size > 1:
            size = (size + 1) // 2
            buffers = self._different(at, plan)
            self._chance.shuffle(buffers)
            for first in range(0, len(buffers), size):
                part = set(buffers[first : first + size])
                look = self.ask(
                    changed(at.request, self._capture.program, plan, self._before, part)
                )
                if look is not None and look.cost < at.cost:
                    at = look

    def ask(self, wanted: Request) -> Look | None:
        """Look at it, and keep it if it is the best; None: nothing of the kind, or the time is
        over.
        """
        try:
            look = self._looks.ask(self._capture, wanted)
        except CompilerError:
            return None
        if look.exceeds(self._most) or not validate(look.program, look.plan).ok:
            return look
        self.seen.append(look)
        if look.cost < self.best.cost:
            self.best = look
            self._tell(f"{self._most[0] / look.report.latency_ps:.3f}x looked at")
        return look

    def _different(self, look: Look, plan: Plan) -> list[int]:
        """Buffers that a plan serves otherwise, small ones left out."""
        program = self._capture.program
        accesses = (look.plan.served_by >= 0) != (plan.served_by >= 0)
        buffers = np.unique(program.accesses["buffer"][accesses])
        return [
            int(buffer)
            for buffer in buffers
            if program.buffers["size_bytes"][buffer] >= SMALL_BYTES
        ]
