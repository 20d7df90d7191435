"""A plan carried out by the compiler: asked for, negotiated where it refuses, read back and
priced.
"""

import dataclasses
import functools
import math
import re
import time
from collections.abc import Callable

import numpy as np

from mallocgame._core import Plan, Program, Report, simulate
from mallocgame.xla.captures import Capture
from mallocgame.xla.compiler import (
    Compiler,
    CompilerEndedError,
    CompilerError,
    CompilerRefusedError,
)
from mallocgame.xla.modules import Compiled
from mallocgame.xla.overrides import KEEP, PREFETCH, SMALL_BYTES, Override, Request, request

NOTE = "static estimates of the compiler with simulated copies, not a measurement on a chip"

# The compiler's words where it can't do what an override says.
_REFUSAL = re.compile(
    r"MSA strict (?:timing )?override \w+ for instruction '(?P<instruction>[^']+)' operand "
    r"(?P<operand>\d+), shape "
    r"[^']*?(?:, defining instruction '(?P<definition>[^']+)')?: (?P<reason>.*)"
)
_OTHER_TIME = re.compile(r"scheduled prefetch time \((\d+)\)")
_MOST_REFUSALS = 200
_TOO_SHORT, _NO_SPACE = "Live range too short", "Out of alternate memory"
_EARLIER = (1, 2, 4, 8)  # ticks to begin a copy earlier by, where the time was too short
_PATIENCE = 40  # refusals, after which nothing is asked otherwise any more


Tell = Callable[[str], object]  # is told what goes on


def quiet(_: str) -> None:
    """A Tell that keeps it to itself."""


@dataclasses.dataclass(frozen=True)
class Refusal:
    """Something that the compiler would not do."""

    buffer: str  # name
    instruction: str  # at which it was refused
    reason: str  # in the compiler's words
    accesses: tuple[int, ...]  # of the program


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What the compiler does with some options."""

    options: dict[str, str]  # for compile(compiler_options=...); empty: XLA's default
    # priced by this very compile as well, with what the compiler did as its xla_plan
    program: Program
    compiled: Compiled = dataclasses.field(repr=False)
    request: Request = dataclasses.field(repr=False)  # what the options ask for

    @property
    def plan(self) -> Plan:
        """What the compiler did, as a plan of `program`."""
        return self.program.xla_plan

    @functools.cached_property
    def report(self) -> Report:
        """Of what the compiler did, with the cycles of this compile."""
        return simulate(self.program, self.plan)

    @property
    def verified_ps(self) -> int:
        return self.report.latency_ps

    @property
    def verified_cold_ps(self) -> int:
        return self.report.latency_cold_ps


@dataclasses.dataclass(frozen=True)
class CarriedOut(Outcome):
    """What the compiler made of a plan."""

    asked: Plan  # of the program it was made for
    predicted_ps: int  # what the plan was to cost, by the prices known before
    refusals: tuple[Refusal, ...]

    @property
    def differs(self) -> np.ndarray:
        """bool, one an access: served from another memory than asked."""
        return (self.asked.served_by >= 0) != (self.plan.served_by >= 0)

    @property
    def honoured(self) -> float:
        """Share of the accesses served from where the plan says, of buffers that a game asks
        about (16 KiB or more).
        """
        sizes = self.program.buffers["size_bytes"][self.program.accesses["buffer"]]
        return _share_of_false(self.differs[sizes >= SMALL_BYTES])

    @property
    def honoured_of_all(self) -> float:
        """The same of all accesses. Small buffers are fetched, or kept out, as the compiler
        likes.
        """
        return _share_of_false(self.differs)

    @property
    def not_granted(self) -> np.ndarray:
        """Accesses that were to be served from fast memory and are not."""
        return np.flatnonzero(self.differs & (self.asked.served_by >= 0))


def _share_of_false(flags: np.ndarray) -> float:
    return 1.0 - float(np.mean(flags)) if len(flags) else 1.0


def carry_out(
    capture: Capture, program: Program, plan: Plan, compiler: Compiler, tell: Tell = quiet
) -> CarriedOut:
    """Ask for a plan of `program`; what the compiler refuses is asked otherwise, then not at all,
    until it compiles.

    InvalidInputError: the plan isn't one of this program. CompilerError: it ends, takes too long,
    or refuses for reasons of its own.
    """
    predicted = simulate(program, plan)
    wanted = request(program, plan, capture.default.before)
    predicted_ps = predicted.latency_cold_ps if wanted.fetched_preloads else predicted.latency_ps
    granted, answer, refusals = negotiate(capture, program, wanted, compiler, tell)
    options = compiler.target.options | granted.options()
    return CarriedOut(options, capture.read(answer), answer, granted, plan, predicted_ps, refusals)


def negotiate(
    capture: Capture,
    program: Program,
    wanted: Request,
    compiler: Compiler,
    tell: Tell = quiet,
    until: float = math.inf,
) -> tuple[Request, Compiled, tuple[Refusal, ...]]:
    """Compile with as much of a request as the compiler grants: (what was granted, answer,
    refusals).

    until: time.monotonic() after which it isn't asked any more. CompilerError: it granted nothing
    until then.
    """
    module = capture.check_can_compile()
    talks = _Negotiation(wanted, program)
    for attempt in range(_MOST_REFUSALS):
        if time.monotonic() >= until:
            raise CompilerError(
                f"{program.name}: no time is left to ask the compiler; it refused {attempt} times"
            )
        try:
            answer = compiler.compile(module, talks.request.options())
        except CompilerRefusedError as error:
            talks.refused(str(error))
            tell(f"{len(talks.refusals)} placements refused, asked {attempt + 1} times")
            continue
        except CompilerEndedError:
            if not talks.request.preloads:
                raise
            tell("the compiler ended; once more without preloads")
            talks.request = dataclasses.replace(talks.request, preloads=())
            continue
        return talks.request, answer, tuple(talks.refusals)
    raise CompilerError(
        f"{program.name}: the compiler refused {_MOST_REFUSALS} times; the last: {talks.last}"
    )


class _Negotiation:
    """What is still asked, after each refusal."""

    def __init__(self, wanted: Request, program: Program) -> None:
        self.request = wanted
        self.refusals: list[Refusal] = []
        self.last = ""
        self._program = program
        self._tries: dict[tuple, int] = {}
        self._asked_otherwise = 0

    def refused(self, message: str) -> None:
        self.last = message
        match = _REFUSAL.search(message)
        if match is None:
            raise CompilerRefusedError(message)
        named = self._named(match["instruction"], int(match["operand"]), match["definition"])
        if not named:
            raise CompilerRefusedError(message)
        if (
            len(named) == 1
            and named[0].action == PREFETCH
            and self._ask_otherwise(named[0], match["reason"])
        ):
            return
        for override in named:
            if override.action != KEEP:
                self.refusals.append(
                    Refusal(
                        self._program.buffer_names[override.buffer],
                        match["instruction"],
                        match["reason"].partition(" (requested")[0].strip(),
                        override.accesses,
                    )
                )
        self.request = self.request.without(named)

    def _named(self, instruction: str, operand: int, definition: str | None) -> list[Override]:
        """The overrides that a refusal is about: of this use, else of the buffer defined there,
        else of its other uses.
        """
        asked = self.request.overrides
        uses = [o for o in asked if o.instruction == instruction and o.operand == operand]
        if definition is None:  # then it doesn't say which element of a tuple
            return uses[-1:]
        of_buffer = [o for o in asked if self._is_called(o.buffer, definition)]
        return (
            [o for o in uses if o in of_buffer]
            or [o for o in of_buffer if o.operand is None]
            or [o for o in of_buffer if o.action != KEEP]
            or uses[-1:]  # of a buffer that has another name there
            or of_buffer
        )

    def _is_called(self, buffer: int, instruction: str) -> bool:
        return self._program.buffer_names[buffer].partition("{")[0] == instruction

    def _ask_otherwise(self, old: Override, reason: str) -> bool:
        """Ask for a copy at another time; False: tried often enough."""
        self._asked_otherwise += 1
        if self._asked_otherwise > _PATIENCE:
            return False
        key = (old.instruction, old.operand, old.index)
        tried = self._tries.get(key, 0)
        self._tries[key] = tried + 1
        other_time = _OTHER_TIME.search(reason)
        if other_time and old.strict and tried == 0:  # the compiler says when it would
            new = dataclasses.replace(old, time=int(other_time[1]))
        elif (
            reason.startswith(_TOO_SHORT) and old.strict and tried < len(_EARLIER) and old.time > 0
        ):
            new = dataclasses.replace(old, time=max(0, old.time - _EARLIER[tried]))
        elif old.strict and not reason.startswith(_NO_SPACE):
            new = dataclasses.replace(old, strict=False)
        else:
            return False
        changed = tuple(new if o is old else o for o in self.request.overrides)
        self.request = dataclasses.replace(self.request, overrides=changed)
        return True
