"""XLA:TPU in a child process, with limits and a cache of its answers."""

import collections
import contextlib
import dataclasses
import json
import math
import os
import pathlib
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

from mallocgame.errors import InvalidInputError, MissingExtraError, MissingFileError
from mallocgame.xla.answers import INHERITED, Answers
from mallocgame.xla.compiler_errors import (
    CompilerDeadlineError,
    CompilerEndedError,
    CompilerError,
    CompilerLimitError,
    CompilerRefusedError,
)
from mallocgame.xla.compiler_messages import read_refusal
from mallocgame.xla.compiler_process import CompilerProcess
from mallocgame.xla.modules import Compiled, name_of_proto, read_dump
from mallocgame.xla.stablehlo import device_count, portable_artifact
from mallocgame.xla.targets import Target

# Flags that change no placement: JAX itself adds the second where there is a TPU.
_IDLE_FLAGS = re.compile(
    "--(xla_dump_|xla_tpu_use_enhanced_launch_barrier|xla_force_host_platform_device_count)"
)
_DUMP = "dump"
_MODULE_NAME = re.compile(r"^module @(\w+)[ \n]", re.MULTILINE)

DEFAULT_CACHE = pathlib.Path("~/.cache/mallocgame/xla")


class Compiler:
    """Compiles StableHLO for one target. Close it, or use it as a context manager.

    It is not for several threads at once; another() is.

    seconds: that a compile may take; 0 is no limit.
    memory_bytes: that the process may allocate; 0 is no limit.
    cache: folder of answers, keyed by module, options, chip and versions; None keeps none.
    """

    def __init__(
        self,
        target: Target,
        seconds: float = 600.0,
        memory_bytes: int = 16 << 30,
        cache: str | os.PathLike[str] | None = DEFAULT_CACHE,
    ) -> None:
        self.target = target
        self.seconds = seconds
        self.memory_bytes = memory_bytes
        self._own = _Done()
        self._others: list[Compiler] = []
        self._idle: list[Compiler] = []  # of those, what was given back
        self._keepers = 0  # blocks of keeping_others()
        self._given_cache = cache  # ~ may be another folder on another machine
        self._child: CompilerProcess | None = None
        self._deadline = _Deadline()
        self._versions = installed_versions()
        self._answers = Answers(cache, target, self._versions)

    def another(self, target: Target | None = None) -> "Compiler":
        """Returns one with the same limits and cache, for another thread or another target.

        What it does counts as done by this one, and closing this one closes it.
        """
        other = Compiler(target or self.target, self.seconds, self.memory_bytes, self._given_cache)
        other._deadline = self._deadline
        self._others.append(other)
        return other

    def borrow(self) -> "Compiler":
        """Returns another(), or one that was given back and has started already."""
        return self._idle.pop() if self._idle else self.another()

    def give_back(self, other: "Compiler") -> None:
        """Closes what borrow() returned, or in keeping_others() keeps it for the next."""
        if self._keepers:
            self._idle.append(other)
        else:
            other.close()

    @contextlib.contextmanager
    def keeping_others(self) -> Iterator[None]:
        """Keeps what is given back in a block, since a compiler takes seconds to start."""
        self._keepers += 1
        try:
            yield
        finally:
            self._keepers -= 1
            while self._idle and not self._keepers:
                self._idle.pop().close()

    @contextlib.contextmanager
    def until(self, deadline: float) -> Iterator[None]:
        """Ends whatever is asked in a block, also of another(), at that time.monotonic().

        Then it is a CompilerDeadlineError.
        """
        before = self._deadline.at
        self._deadline.at = min(before, deadline)
        try:
            yield
        finally:
            self._deadline.at = before

    @property
    def compiles(self) -> int:
        """The number of whole compiles that the cache did not answer."""
        return sum(done.compiles for done in self._done)

    @property
    def phases(self) -> collections.Counter[str]:
        """How many times each phase ran, by its name, for want of an answer in the cache."""
        return sum((done.phases for done in self._done), collections.Counter())

    @property
    def killed(self) -> int:
        """How many times another process ended the compiler's."""
        return sum(done.killed for done in self._done)

    @property
    def most_bytes(self) -> int:
        """The most memory that its process has had; 0: there is none, or nobody knows."""
        return 0 if self._child is None else self._child.most_bytes

    @property
    def _done(self) -> "list[_Done]":
        return [self._own, *(done for other in self._others for done in other._done)]

    def __reduce__(self) -> tuple[type["Compiler"], tuple[Any, ...]]:
        """In another process it is one with the same limits and cache, and a child of its own."""
        return Compiler, (self.target, self.seconds, self.memory_bytes, self._given_cache)

    @property
    def versions(self) -> dict[str, str]:
        """The versions of jax, jaxlib and libtpu."""
        return dict(self._versions)

    def compile(self, module: str, options: dict[str, str] | None = None) -> Compiled:
        """Compiles a StableHLO module with `options` added to those of the target.

        CompilerRefusedError, CompilerEndedError, CompilerLimitError.
        """
        options = self.target.options | (options or {})
        answer = self._answers.compiled(module, options)
        if answer is None:
            self._own.compiles += 1
            answer = self._ask(module, options)
            self._answers.keep_compiled(module, options, answer)
        if isinstance(answer, str):
            raise CompilerRefusedError.saying(read_refusal(answer))
        return answer

    def run_phase(
        self,
        phase: str,
        programs: Sequence[bytes],
        options: dict[str, str] | None = None,
        kept: bool = False,
    ) -> list[bytes]:
        """Runs one phase of a compile, with `options` added to those of the target.

        phase: "phase1_hlo_opts", "phase2a_tlp_lowering", "phase2b_deduped_lowering" or
        "phase3_linking".
        programs: partial programs (mallocgame.xla.partial_programs), as what is returned.

        kept: whether its answer is kept in the cache; refusals aren't.

        The errors are those of compile().
        """
        outputs = self.kept_phase(phase, programs, options) if kept else None
        if outputs is None:
            outputs = self._run_phase(phase, programs, self.target.options | (options or {}))
            self._own.phases[phase] += 1
            if kept:
                self.keep_phase(phase, programs, outputs, options)
        return outputs

    def kept_phase(
        self, phase: str, programs: Sequence[bytes], options: dict[str, str] | None = None
    ) -> list[bytes] | None:
        """Returns the answer that the cache has for run_phase(); None: it has none."""
        return self._answers.programs(phase, programs, self.target.options | (options or {}))

    def keep_phase(
        self,
        phase: str,
        programs: Sequence[bytes],
        outputs: Sequence[bytes],
        options: dict[str, str] | None = None,
    ) -> None:
        """Keeps what kept_phase() returns: of a phase, or of another question by its name."""
        options = self.target.options | (options or {})
        self._answers.keep_programs(phase, programs, options, outputs)

    def _run_phase(
        self, phase: str, programs: Sequence[bytes], options: dict[str, str]
    ) -> list[bytes]:
        with tempfile.TemporaryDirectory(prefix="mallocgame-xla-") as folder:
            inputs = [os.path.join(folder, f"{number}.in") for number in range(len(programs))]
            for path, program in zip(inputs, programs, strict=True):
                pathlib.Path(path).write_bytes(program)
            outputs = os.path.join(folder, "outputs")
            answer = self._do(
                {
                    "kind": "phase",
                    "folder": folder,
                    "phase": phase,
                    "programs": inputs,
                    "partitions": self.target.devices,
                    "options": options,
                    "outputs": outputs,
                }
            )
            if not answer["ok"]:
                raise CompilerRefusedError.saying(read_refusal(str(answer["error"])))
            try:
                return [pathlib.Path(outputs, name).read_bytes() for name in answer["programs"]]
            except (OSError, KeyError, TypeError) as unreadable:
                raise CompilerError(
                    f"XLA:TPU for {self.target.title}: its answer can't be read: {unreadable!r}"
                ) from None

    def close(self) -> None:
        """Ends the child process. A later compile starts another."""
        for other in self._others:
            other.close()
        self._end_child()

    def __enter__(self) -> "Compiler":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _end_child(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None

    def _ask(self, module: str, options: dict[str, str]) -> Compiled | str:
        """Returns what was compiled, or why it was refused."""
        with tempfile.TemporaryDirectory(prefix="mallocgame-xla-") as folder:
            error = self._run(module, options, folder)
            if error is not None:
                return error
            try:
                answer = read_dump(os.path.join(folder, _DUMP))
            except (InvalidInputError, MissingFileError) as unreadable:
                raise CompilerError(
                    f"XLA:TPU for {self.target.title}: its answer can't be read: {unreadable}"
                ) from None
            self._check_is_of(module, answer)
            return answer

    def _check_is_of(self, module: str, answer: Compiled) -> None:
        """CompilerError: the answer is a module of another name, so of another program."""
        asked, found = _MODULE_NAME.search(module), name_of_proto(answer.before)
        if asked is not None and found and asked[1] != found:
            raise CompilerError(
                f"XLA:TPU for {self.target.title}: asked for module {asked[1]}, "
                f"it answered with {found}"
            )

    def _run(self, module: str, options: dict[str, str], folder: str) -> str | None:
        """Has the child compile. Returns why it refused, with its dumps in `folder`."""
        source, dump = os.path.join(folder, "module.mlir"), os.path.join(folder, _DUMP)
        try:
            pathlib.Path(source).write_bytes(portable_artifact(module))
        except ValueError as error:
            raise CompilerError(f"XLA:TPU for {self.target.title}: {error}") from None
        answer = self._do(
            {
                "kind": "compile",
                "folder": folder,
                "module": source,
                "partitions": device_count(module),
                "options": options,
                "dump": dump,
            }
        )
        return None if answer["ok"] else str(answer["error"])

    def _do(self, job: dict[str, object]) -> dict[str, Any]:
        """Has the child do a job. Returns its answer, which has "ok", or else "error"."""
        self._deadline.check(self.target)
        try:
            if self._child is None:
                self._child = CompilerProcess(self.target, self.memory_bytes)
            try:
                line = self._child.ask(
                    json.dumps(job).encode() + b"\n", self._deadline.within(self.seconds)
                )
            except CompilerLimitError:
                self._deadline.check(self.target)
                raise
            try:
                answer: dict[str, Any] = json.loads(line)
                if "failed" in answer:
                    raise CompilerError(f"XLA:TPU for {self.target.title}: {answer['failed']}")
                _ = answer["ok"] or answer["error"]
            except (ValueError, TypeError, KeyError):
                raise CompilerError(
                    f"XLA:TPU for {self.target.title}: it answered with {line[:60]!r}"
                ) from None
            return answer
        except BaseException as error:  # After an interrupt too the child's work is of no use.
            self._end_child()
            ended = isinstance(error, CompilerEndedError) and error.killed
            self._own.killed += ended
            raise


@dataclasses.dataclass
class _Deadline:
    """When the work is over, whatever the compiler is at."""

    at: float = math.inf  # time.monotonic()

    def check(self, target: Target) -> None:
        """CompilerDeadlineError: it is over."""
        if time.monotonic() >= self.at:
            raise CompilerDeadlineError(f"XLA:TPU for {target.title}: the time is over")

    def within(self, seconds: float) -> float:
        """Returns how long a job may take that may take `seconds`; 0: no limit."""
        left = max(self.at - time.monotonic(), 1e-3)
        return min(seconds or math.inf, left) if left < math.inf else seconds


@dataclasses.dataclass
class _Done:
    """What a compiler has done so far."""

    compiles: int = 0
    killed: int = 0
    phases: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)


def inherited_flags() -> dict[str, str]:
    """Returns the environment's settings of the compiler that may change a placement."""
    flags = {
        name: [flag for flag in os.environ.get(name, "").split() if not _IDLE_FLAGS.match(flag)]
        for name in INHERITED
    }
    return {name: " ".join(found) for name, found in flags.items() if found}


def installed_versions() -> dict[str, str]:
    """Returns the versions without loading the packages: libtpu is half a gigabyte.

    MissingExtraError: JAX or libtpu isn't installed.
    """
    import importlib.metadata

    try:
        return {name: importlib.metadata.version(name) for name in ("jax", "jaxlib", "libtpu")}
    except importlib.metadata.PackageNotFoundError as error:
        raise missing_extra(error.name or str(error)) from None


def missing_extra(package: str) -> MissingExtraError:
    """Returns the error that says that a package is not installed."""
    return MissingExtraError(f"mallocgame.xla needs {package}", "xla")
