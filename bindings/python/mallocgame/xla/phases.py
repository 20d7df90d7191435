"""The phases of XLA:TPU, which hand out what lies between them and take it back altered.

Phase 1 schedules a program: its module, its buffer assignment, and one isolated module for each
distinct instruction that is lowered by itself. Phase 2a lowers the module, phase 2b an isolated
one, and phase 3 links all of it. libtpu has them since 0.0.23 (docs/tpu-method.md).
"""

import concurrent.futures
import dataclasses
import functools
import math
import queue
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from mallocgame._core import read_estimated_cycles, read_lowered_program
from mallocgame._jobs.processes import cores
from mallocgame.xla.compiler import Compiler
from mallocgame.xla.compiler_errors import (
    CompilerDeadlineError,
    CompilerEndedError,
    CompilerError,
    CompilerRefusedError,
)
from mallocgame.xla.partial_programs import PartialProgram, of_stablehlo

_SCHEDULE, _LOWER, _LOWER_ISOLATED, _LINK = (
    "phase1_hlo_opts",
    "phase2a_tlp_lowering",
    "phase2b_deduped_lowering",
    "phase3_linking",
)
_MODULE, _ASSIGNMENT, _ENVIRONMENT, _ORIGINAL, _EXECUTABLE = (
    "opt_hlo",
    "buffer_assignment",
    "modified_comp_envs",
    "original_hlo_module",
    "pjrt_executable",
)
_ISOLATED = "isolated_hlo."
_SECONDS_BETWEEN_WORDS = 2.0  # about what the compilers are at
_STAGE = re.compile(r"(stage \d+ of \d+, [^;:]*)")
# In the backend configs of the metadata.
_SCOPED = re.compile(
    rb'"used_scoped_memory_configs":\[{"memory_space":"1","offset":"\d+","size":"(\d+)"'
)
_CODE, _METADATA = "isa_program_proto", "compiler_metadata"

Key = TypeVar("Key")
Tell = Callable[[str], object]  # a function that is told of the work


def quiet(_: str) -> None:
    """Says nothing: a Tell for nobody."""


class Stages:
    """A Tell that says before each word which of so many stages the work is at."""

    def __init__(self, tell: Tell, count: int) -> None:
        self._tell = tell
        self._count = count
        self._number = 0
        self.name = ""

    def begin(self, name: str, expected: str = "") -> None:
        """Begins the next stage. expected: what is known before of its length."""
        self._number += 1
        self.name = f"stage {self._number} of {self._count}, {name}"
        self._tell(f"{self.name}; {expected}" if expected else self.name)

    def __call__(self, text: str) -> None:
        self._tell(f"{self.name}: {text}")


class StageClock:
    """A Tell that passes on what Stages say, and knows how long each stage took."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._begun: list[tuple[str, float]] = []

    def __call__(self, text: str) -> None:
        name = _STAGE.match(text)
        if name and (not self._begun or self._begun[-1][0] != name[1]):
            self._begun.append((name[1], time.monotonic()))
        self._tell(text)

    def seconds(self) -> dict[str, float]:
        """Returns the seconds of each stage so far, by its name."""
        ends = [*(begin for _, begin in self._begun[1:]), time.monotonic()]
        return {
            name: round(end - begin, 3)
            for (name, begin), end in zip(self._begun, ends, strict=True)
        }


@dataclasses.dataclass(frozen=True)
class Scheduled:
    """A program as phase 1 hands it out, or altered: its partial programs by name."""

    parts: Mapping[str, PartialProgram]

    @property
    def module(self) -> bytes:
        """The scheduled module (HloModuleProtoWithConfig)."""
        return self.parts[_MODULE].program

    @property
    def assignment(self) -> bytes:
        """Where everything lies (BufferAssignmentProto)."""
        return self.parts[_ASSIGNMENT].program

    @functools.cached_property
    def isolated(self) -> Mapping[str, PartialProgram]:
        """The isolated modules (HloModuleProtoWithConfig), by the hash in their names."""
        return {
            name.rpartition(".")[2]: part
            for name, part in self.parts.items()
            if name.startswith(_ISOLATED)
        }

    def having(self, module: bytes, assignment: bytes) -> "Scheduled":
        """Returns the same program with everything elsewhere."""
        changed = {
            _MODULE: dataclasses.replace(self.parts[_MODULE], program=module),
            _ASSIGNMENT: dataclasses.replace(self.parts[_ASSIGNMENT], program=assignment),
        }
        return Scheduled({**self.parts, **changed})

    def given(self, *names: str) -> list[bytes]:
        """Returns parts as a phase takes them; those that this libtpu doesn't make are left out."""
        return [self.parts[name].to_bytes() for name in names if name in self.parts]


@dataclasses.dataclass(frozen=True)
class Lowered:
    """What phase 2a or 2b makes.

    outputs: what phase 3 takes. hashes: of the instructions whose code it holds. calls: of those
    instructions whose code it calls, by their names. cycles: what it estimates, by instruction.
    scoped_bytes: of fast memory that an instruction takes for itself, at most.
    """

    outputs: tuple[bytes, ...]
    hashes: frozenset[str]
    calls: Mapping[str, str]
    cycles: Mapping[str, int]
    scoped_bytes: int = 0

    @classmethod
    def of(cls, outputs: Sequence[bytes]) -> "Lowered":
        """Reads the outputs of a phase. InvalidInputError."""
        hashes: set[str] = set()
        calls: dict[str, str] = {}
        cycles: dict[str, int] = {}
        scoped = 0
        for part in map(PartialProgram.from_bytes, outputs):
            if part.format == _CODE:
                own, called = read_lowered_program(part.program)
                hashes |= {own} - {""}
                calls |= called
            elif part.format == _METADATA:
                cycles |= read_estimated_cycles(part.program)
                sizes = map(int, _SCOPED.findall(part.program))
                scoped = max(scoped, max(sizes, default=0))
        return cls(tuple(outputs), frozenset(hashes), calls, cycles, scoped)


class Phases:
    """The phases of one compiler with one set of options.

    What phases 1 and 2b make is kept in the compiler's cache, for all programs and processes, and
    what 2a makes of a program as phase 1 gave it.
    """

    def __init__(self, compiler: Compiler, options: Mapping[str, str] | None = None) -> None:
        self.compiler = compiler
        self._options = dict(options or {})

    def schedule(self, module: str) -> Scheduled:
        """Runs phase 1 on StableHLO text. CompilerError, InvalidInputError."""
        return self._scheduled(self._run(_SCHEDULE, [of_stablehlo(module).to_bytes()], kept=True))

    def _scheduled(self, outputs: Sequence[bytes]) -> Scheduled:
        parts = {part.name: part for part in map(PartialProgram.from_bytes, outputs)}
        missing = [name for name in (_MODULE, _ASSIGNMENT, _ENVIRONMENT) if name not in parts]
        if missing:
            raise CompilerError(f"{_SCHEDULE}: gave no {', '.join(missing)}")
        return Scheduled(parts)

    def lower(self, scheduled: Scheduled, kept: bool = False) -> Lowered:
        """Runs phase 2a. kept: as for Compiler.run_phase(). CompilerError."""
        given = scheduled.given(_MODULE, _ENVIRONMENT, _ASSIGNMENT)
        return Lowered.of(self._run(_LOWER, given, kept))

    def lower_isolated(
        self, scheduled: Scheduled, isolated: PartialProgram, until: float = math.inf
    ) -> Lowered:
        """Runs phase 2b on an isolated module of the program.

        until: time.monotonic() from which on only kept answers are given; of what the cache doesn't
        have it is a CompilerDeadlineError. CompilerError.
        """
        given = [isolated.to_bytes(), *scheduled.given(_ENVIRONMENT)]
        if time.monotonic() < until:
            return Lowered.of(self._run(_LOWER_ISOLATED, given, kept=True))
        kept = self.compiler.kept_phase(_LOWER_ISOLATED, given, self._options)
        if kept is None:
            raise CompilerDeadlineError("the time for the code of this plan is over")
        return Lowered.of(kept)

    def kept(self, module: str) -> tuple[Scheduled, dict[str, Lowered]] | None:
        """Returns what schedule() gave before, and the code that the cache has of it, by hash.

        None: the cache has nothing of the module.
        """
        given = [of_stablehlo(module).to_bytes()]
        outputs = self.compiler.kept_phase(_SCHEDULE, given, self._options)
        if outputs is None:
            return None
        scheduled = self._scheduled(outputs)
        code = {}
        for called, isolated in scheduled.isolated.items():
            given = [isolated.to_bytes(), *scheduled.given(_ENVIRONMENT)]
            outputs = self.compiler.kept_phase(_LOWER_ISOLATED, given, self._options)
            if outputs is not None:
                code[called] = Lowered.of(outputs)
        return scheduled, code

    def link(self, scheduled: Scheduled, lowered: Lowered, isolated: Iterable[Lowered]) -> bytes:
        """Runs phase 3. Returns the executable, as PJRT serializes one. CompilerError."""
        given = scheduled.given(_MODULE, _ENVIRONMENT, _ASSIGNMENT, _ORIGINAL)
        given += [*lowered.outputs, *(one for each in isolated for one in each.outputs)]
        for part in map(PartialProgram.from_bytes, self._run(_LINK, given)):
            if part.name == _EXECUTABLE:
                return part.program
        raise CompilerError(f"{_LINK}: gave no {_EXECUTABLE}")

    def _run(self, phase: str, programs: Sequence[bytes], kept: bool = False) -> list[bytes]:
        return self.compiler.run_phase(phase, programs, self._options, kept)


class Crew:
    """Compilers that lower isolated modules side by side. Close it, or use it in a `with`.

    first: the compiler given, for what one does alone.
    jobs: how many compilers; None is one for each processor.
    tell: called with the compilers' work, while it takes long.
    """

    def __init__(
        self,
        compiler: Compiler,
        options: Mapping[str, str] | None = None,
        jobs: int | None = None,
        tell: Tell = quiet,
    ) -> None:
        self.first = Phases(compiler, options)
        self._options = options
        self._tell = tell
        self._at: list[str] = []  # the modules that are being lowered
        self.jobs = jobs or len(cores())
        self._others: list[Phases] = []
        self._idle: queue.SimpleQueue[Phases] = queue.SimpleQueue()
        self._idle.put(self.first)

    def __reduce__(self) -> tuple[type["Crew"], tuple[Any, ...]]:
        """In another process it starts compilers of its own."""
        return Crew, (self.first.compiler, self._options, self.jobs)

    def close(self) -> None:
        """Gives the compilers that it has borrowed back."""
        for other in self._others:
            self.first.compiler.give_back(other.compiler)
        self._others.clear()

    def __enter__(self) -> "Crew":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def lower_isolated(
        self,
        scheduled: Scheduled,
        modules: Mapping[Key, PartialProgram],
        leave_out_refused: bool = False,
        called: Callable[[Key], str] = str,
        late: list[Key] | None = None,
        until: float = math.inf,
    ) -> dict[Key, Lowered]:
        """Runs phase 2b on isolated modules of a program, in the order given.

        leave_out_refused: whether those are left out that the compiler refuses, or ends at. called:
        what people call a module. late: where it adds those that aren't done as the time is over
        (Compiler.until), or neither kept nor begun before `until`, and leaves them out.

        CompilerError: the compiler took too long, or it refused one that isn't left out.
        """
        while len(self._others) < min(self.jobs, len(modules)) - 1:
            self._others.append(Phases(self.first.compiler.borrow(), self._options))
            self._idle.put(self._others[-1])
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as threads:
            futures = {
                key: threads.submit(
                    self._lower, scheduled, module, leave_out_refused, called(key), key, late, until
                )
                for key, module in modules.items()
            }
            try:
                self._wait(list(futures.values()))
                results = {key: future.result() for key, future in futures.items() if future.done()}
                return {key: made for key, made in results.items() if made is not None}
            finally:
                threads.shutdown(cancel_futures=True)

    def _wait(self, futures: Sequence[concurrent.futures.Future[Lowered | None]]) -> None:
        """Waits until all are done or one has failed, and tells of what takes long."""
        pending = set(futures)
        while pending:
            done, pending = concurrent.futures.wait(
                pending, _SECONDS_BETWEEN_WORDS, concurrent.futures.FIRST_EXCEPTION
            )
            if any(future.exception() for future in done):
                return
            if pending:
                names = ", ".join(f"'{name}'" for name in list(self._at))
                ready = len(futures) - len(pending)
                self._tell(f"{ready} of {len(futures)} instructions compiled, the next: {names}")

    def _lower(
        self,
        scheduled: Scheduled,
        module: PartialProgram,
        leave_out_refused: bool,
        name: str,
        key: Key,
        late: list[Key] | None,
        until: float,
    ) -> Lowered | None:
        phases = self._idle.get()
        self._at.append(name)
        try:
            return phases.lower_isolated(scheduled, module, until)
        except CompilerDeadlineError:
            if late is None:
                raise CompilerDeadlineError(
                    f"the time was over before the compiler had compiled '{name}'"
                ) from None
            late.append(key)
            return None
        except (CompilerRefusedError, CompilerEndedError):
            if leave_out_refused:
                return None
            raise
        finally:
            self._at.remove(name)
            self._idle.put(phases)
