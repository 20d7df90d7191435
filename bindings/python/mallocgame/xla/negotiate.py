"""A plan carried out by the compiler: asked for, negotiated, read back and priced."""

import dataclasses
import functools
import math
import re
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np

from mallocgame._core import Plan, Program, Report, simulate
from mallocgame.xla.captures import Capture
from mallocgame.xla.claims import cost_ps
from mallocgame.xla.compiler import (
    Compiler,
    CompilerEndedError,
    CompilerError,
    CompilerRefusedError,
)
from mallocgame.xla.modules import Assigned, Compiled
from mallocgame.xla.overrides import KEEP, PIN, PREFETCH, SMALL_BYTES, Override, Request, request

NOTE = "static estimates of the compiler with simulated copies, not a measurement on a chip"

# The words of the compiler where it can't do what an override says.
_REFUSAL = re.compile(
    r"MSA strict (?:timing )?override \w+ for instruction '(?P<instruction>[^']+)' operand "
    r"(?P<operand>\d+), shape "
    r"[^']*?(?:, defining instruction '(?P<definition>[^']+)')?: (?P<reason>.*)"
)
# The same for a pinned buffer, once the rest has its place.
_NO_PLACE = re.compile(
    r"The value defined at (?P<definition>\S+) requires allocation in the alternate memory"
)
# The check at which the compiler ends if a request keeps in main memory what a kernel or another
# custom call requires in fast memory.
_REQUIRED = re.compile(
    r"Conflicting required assignment for : (?P<definition>\S+) required assignment: "
    r"\w+\(memory_space=def"
)
_OTHER_TIME = re.compile(r"scheduled prefetch time \((\d+)\)")
_MOST_REFUSALS = 200
_HAS_TO_BE_FAST = "Required in alternate memory"
_TOO_SHORT, _NO_SPACE = "Live range too short", "Out of alternate memory"
_EARLIER = (1, 2, 4, 8)  # ticks by which a copy begins earlier, where the time was too short
PATIENCE = 8  # copies that are asked for at other times one by one; then none has a strict time
_ENOUGH = 0.99  # of the accesses as asked; with fewer, a plan is asked for in another way too
# Refusals for lack of space, of all patience, until the groups taken back become twice as large.
_SHARE_OF_A_SIZE = 1 / 2


Answer = TypeVar("Answer", bound=Assigned, covariant=True)
Tell = Callable[[str], object]  # a function that is told what goes on


def quiet(_: str) -> None:
    """Says nothing: a Tell for nobody."""


@dataclasses.dataclass(frozen=True)
class Refusal:
    """Something that the compiler would not do."""

    buffer: str  # its name
    instruction: str  # the one at which it was refused
    reason: str  # in the compiler's words
    accesses: tuple[int, ...]  # of the program


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What the compiler does with some options."""

    options: dict[str, str]  # for compile(compiler_options=...); empty is XLA's default
    # Priced by this very compile as well; its xla_plan is what the compiler did.
    program: Program
    compiled: Compiled = dataclasses.field(repr=False)
    request: Request = dataclasses.field(repr=False)  # what the options ask for

    @property
    def plan(self) -> Plan:
        """What the compiler did, as a plan of `program`."""
        plan = self.program.xla_plan
        assert plan is not None, "the module after assignment has a plan"
        return plan

    @functools.cached_property
    def report(self) -> Report:
        """What that costs, with the cycles of this compile."""
        return simulate(self.program, self.plan)

    @property
    def verified_ps(self) -> int:
        """The latency, with preloads done before the start."""
        return self.report.latency_ps

    @property
    def verified_cold_ps(self) -> int:
        """The latency with preloads as copies that wait."""
        return self.report.latency_cold_ps

    @property
    def cost_ps(self) -> float:
        """What searches make small."""
        return cost_ps(self.report)


@dataclasses.dataclass(frozen=True)
class CarriedOut(Outcome):
    """What the compiler made of a plan."""

    asked: Plan  # the plan, of the program that it was made for
    predicted_ps: int  # what the plan was to cost, by the prices known before
    refusals: tuple[Refusal, ...]
    interrupted: bool = False  # whether Ctrl-C ended apply() before its rounds were over

    @property
    def differs(self) -> np.ndarray:
        """bool [accesses]: served from another memory than asked."""
        return (self.asked.served_by >= 0) != (self.plan.served_by >= 0)

    @property
    def honoured(self) -> float:
        """The share of the accesses that are served from where the plan says.

        Only buffers count that a game asks about (16 KiB or more).
        """
        sizes = self.program.buffers["size_bytes"][self.program.accesses["buffer"]]
        return _share_of_false(self.differs[sizes >= SMALL_BYTES])

    @property
    def honoured_of_all(self) -> float:
        """The same share of all accesses.

        The compiler fetches small buffers, or keeps them out, as it likes.
        """
        return _share_of_false(self.differs)

    @property
    def not_granted(self) -> np.ndarray:
        """The accesses that were to be served from fast memory and are not."""
        return np.flatnonzero(self.differs & (self.asked.served_by >= 0))


def _share_of_false(flags: np.ndarray) -> float:
    return 1.0 - float(np.mean(flags)) if len(flags) else 1.0


def carry_out(
    capture: Capture, program: Program, plan: Plan, compiler: Compiler, tell: Tell = quiet
) -> CarriedOut:
    """Asks for a plan of `program` until the compiler compiles it.

    What the compiler refuses is asked for otherwise, then not at all. Where that is much, the plan
    is asked for once more, with the compiler's own order. InvalidInputError: the plan
    is not one of this program. CompilerError: the compiler ends, takes too long, or refuses for
    reasons of its own.
    """
    predicted = simulate(program, plan)
    wanted = request(program, plan, capture.default.before)
    predicted_ps = predicted.latency_cold_ps if wanted.fetched_preloads else predicted.latency_ps

    def carried_out(asked: Request) -> CarriedOut:
        granted, answer, refusals = negotiate(capture, program, asked, compiler, tell)
        options = compiler.target.options | granted.options()
        there = capture.program_of(answer)
        return CarriedOut(options, there, answer, granted, plan, predicted_ps, refusals)

    done = carried_out(wanted)
    if done.honoured >= _ENOUGH or not wanted.order:
        return done
    # The compiler picks its own offsets, and at times the plan's order doesn't lead to the plan's.
    tell(f"{done.honoured:.1%} as asked; once more without an order")
    try:
        other = carried_out(dataclasses.replace(wanted, order=()))
    except CompilerError as error:
        tell(str(error))
        return done
    return other if other.honoured > done.honoured else done


class Compiles(Protocol[Answer]):
    """Whatever compiles a module with options: a Compiler, or a Prober."""

    def compile(self, module: str, options: dict[str, str]) -> Answer:
        """Returns the compiler's answer. CompilerError."""


def negotiate(
    capture: Capture,
    program: Program,
    wanted: Request,
    compiler: Compiles[Answer],
    tell: Tell = quiet,
    until: float = math.inf,
    patience: int = PATIENCE,
) -> tuple[Request, Answer, tuple[Refusal, ...]]:
    """Compiles with as much of a request as the compiler grants.

    until: time.monotonic() after which it is not asked any more. patience: how many copies that it
    refuses are asked for at other times one by one, PATIENCE at most; with less, more is taken back
    at once. Returns what was granted, the answer and the refusals. CompilerError: the compiler
    granted nothing until then.
    """
    module = capture.check_can_compile()
    negotiation = _Negotiation(wanted, program, patience)
    for attempt in range(_MOST_REFUSALS):
        if time.monotonic() >= until:
            raise CompilerError(
                f"{program.name}: no time is left to ask the compiler; it refused {attempt} times"
            )
        try:
            answer = compiler.compile(module, negotiation.request.options())
        except CompilerRefusedError as error:
            negotiation.refused(str(error))
            tell(f"{len(negotiation.refusals)} placements refused, asked {attempt + 1} times")
            continue
        except CompilerEndedError as error:
            if negotiation.required_in_fast(str(error)):
                tell("the compiler ended; once more without what has to be in fast memory")
                continue
            if not negotiation.request.preloads:
                raise
            tell("the compiler ended; once more without preloads")
            negotiation.request = dataclasses.replace(negotiation.request, preloads=())
            continue
        return negotiation.request, answer, tuple(negotiation.refusals)
    raise CompilerError(
        f"{program.name}: the compiler refused {_MOST_REFUSALS} times; the last: {negotiation.last}"
    )


class _Negotiation:
    """A request that becomes less with each refusal."""

    def __init__(self, wanted: Request, program: Program, patience: int = PATIENCE) -> None:
        self.request = wanted
        self._patience = patience
        self.refusals: list[Refusal] = []
        self.last = ""
        self._program = program
        self._tries: dict[tuple[object, ...], int] = {}
        self._asked_otherwise = 0
        self._without_space = 0  # refusals for lack of space

    def refused(self, message: str) -> None:
        """Takes back, or asks otherwise for, what a message of the compiler is about.

        CompilerRefusedError: it is about nothing that was asked.
        """
        self.last = message
        named, instruction, reason = self._about(message)
        if not named:
            raise CompilerRefusedError(message)
        if (
            len(named) == 1
            and named[0].action == PREFETCH
            and self._ask_otherwise(named[0], reason)
        ):
            return
        if reason.startswith(_NO_SPACE) and any(one.accesses for one in named):
            named = self._overstaying(named) or named + self._rivals(named)
        for override in named:
            if override.action != KEEP:
                self.refusals.append(
                    Refusal(
                        self._program.buffer_names[override.buffer],
                        instruction,
                        reason.partition(" (requested")[0].strip(),
                        override.accesses,
                    )
                )
        self.request = self.request.without(named)

    def required_in_fast(self, message: str) -> bool:
        """Takes back that a buffer is kept in main memory, if the compiler ended because of that.

        Returns False where `message`, with which it ended, is about something else.
        """
        found = _REQUIRED.search(message)
        if found is None:
            return False
        definition = found["definition"].partition("{")[0]
        kept = [
            one
            for one in self.request.overrides
            if one.action == KEEP and self._is_called(one.buffer, definition)
        ]
        self.refusals.extend(
            Refusal(
                self._program.buffer_names[buffer],
                definition,
                _HAS_TO_BE_FAST,
                tuple(access for one in kept if one.buffer == buffer for access in one.accesses),
            )
            for buffer in dict.fromkeys(one.buffer for one in kept)
        )
        self.request = self.request.without(kept)
        return bool(kept)

    def _about(self, message: str) -> tuple[list[Override], str, str]:
        """Returns the overrides that a refusal is about, at which instruction, and the reason."""
        refused = _REFUSAL.search(message)
        if refused is not None:
            instruction, operand = refused["instruction"], int(refused["operand"])
            named = self._named(instruction, operand, refused["definition"])
            return named, instruction, refused["reason"]
        pinned = _NO_PLACE.search(message)
        if pinned is None:
            return [], "", message
        definition = pinned["definition"].partition("{")[0]
        named = [
            one
            for one in self.request.overrides
            if one.action == PIN and self._is_called(one.buffer, definition)
        ]
        return named, definition, _NO_SPACE

    def _overstaying(self, named: list[Override]) -> list[Override]:
        """Returns the pinned buffers that are in the way of `named` against the plan.

        A pinned buffer stays until its last use, even if the plan has it leave before.
        """
        first, last = self._ticks(named)
        buffers = self._program.accesses["buffer"]
        found = []
        for one in self.request.overrides:
            if one.action == PIN and one not in named:
                _, leaves = self._ticks([one])
                until = int(self._program.accesses["tick"][buffers == one.buffer].max())
                if leaves < first <= until or leaves < last <= until:
                    found.append(one)
        return found

    def _rivals(self, named: list[Override]) -> list[Override]:
        """Returns what else to take back where there is no space for `named`.

        At first it is nothing. After some such refusals one buffer at a time takes too long, so it
        is a group that becomes ever larger: of what is asked to be in fast memory at the same time,
        that which serves fewest accesses for the time that it takes up.
        """
        self._without_space += 1
        of_a_size = max(1, int(_SHARE_OF_A_SIZE * self._patience))
        count = 2 ** ((self._without_space - 1) // of_a_size) - 1
        if count == 0:
            return []
        first, last = self._ticks(named)
        worth = {}
        for rank, one in enumerate(self.request.overrides):
            if one.action != KEEP and one not in named:
                begin, end = self._ticks([one])
                if begin <= last and first <= end:
                    worth[rank] = len(one.accesses) / (end - begin + 1)
        return [
            self.request.overrides[rank] for rank in sorted(worth, key=worth.__getitem__)[:count]
        ]

    def _ticks(self, overrides: list[Override]) -> tuple[int, int]:
        """Returns the first and the last tick of the accesses that overrides are about."""
        accesses = [access for one in overrides for access in one.accesses]
        ticks = self._program.accesses["tick"][accesses]
        return int(ticks.min()), int(ticks.max())

    def _named(self, instruction: str, operand: int, definition: str | None) -> list[Override]:
        """Returns the overrides that a refusal is about.

        They are those of this use, else of the buffer defined there, else of its other uses.
        """
        asked = self.request.overrides
        uses = [o for o in asked if o.instruction == instruction and o.operand == operand]
        if definition is None:  # Then it doesn't say which element of a tuple.
            return uses[-1:]
        of_buffer = [o for o in asked if self._is_called(o.buffer, definition)]
        return (
            [o for o in uses if o in of_buffer]
            or [o for o in of_buffer if o.operand is None]
            or [o for o in of_buffer if o.action != KEEP]
            or uses[-1:]  # The buffer has another name there.
            or of_buffer
        )

    def _is_called(self, buffer: int, instruction: str) -> bool:
        return self._program.buffer_names[buffer].partition("{")[0] == instruction

    def _ask_otherwise(self, old: Override, reason: str) -> bool:
        """Asks for a copy at another time. Returns False if that was tried often enough."""
        self._asked_otherwise += 1
        if self._asked_otherwise > self._patience:
            return self._ask_without_strict_times()
        key = (old.instruction, old.operand, old.index)
        tried = self._tries.get(key, 0)
        self._tries[key] = tried + 1
        other_time = _OTHER_TIME.search(reason)
        if other_time and old.strict and tried == 0:  # The compiler says when it would.
            new = dataclasses.replace(old, time=int(other_time[1]))
        elif reason.startswith(_TOO_SHORT) and old.strict and tried < len(_EARLIER) and old.time:
            new = dataclasses.replace(old, time=max(0, old.time - _EARLIER[tried]))
        elif old.strict and not reason.startswith(_NO_SPACE):
            new = dataclasses.replace(old, strict=False)
        else:
            return False
        changed = tuple(new if o is old else o for o in self.request.overrides)
        self.request = dataclasses.replace(self.request, overrides=changed)
        return True

    def _ask_without_strict_times(self) -> bool:
        """Leaves it to the compiler when all copies begin. Returns False if it was left before."""
        asked = self.request.overrides
        new = tuple(
            dataclasses.replace(one, strict=False) if one.action == PREFETCH else one
            for one in asked
        )
        self.request = dataclasses.replace(self.request, overrides=new)
        return new != asked
