"""XLA:TPU in a child process, with limits and a cache of its answers."""

import collections
import contextlib
import dataclasses
import hashlib
import io
import json
import math
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mallocgame._core import write_file
from mallocgame.errors import (
    InvalidInputError,
    MallocGameError,
    MissingExtraError,
    MissingFileError,
)
from mallocgame.xla.compiler_messages import Said, read_last_words, read_refusal
from mallocgame.xla.modules import Compiled, name_of_proto, read_dump
from mallocgame.xla.stablehlo import device_count, portable_artifact
from mallocgame.xla.targets import Target

# The environment of the process in which the compiler runs. It needs no chip, asks no metadata
# server, and may be one of several.
NO_CHIP = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_ACCELERATOR_TYPE": "v4-8",
    "TPU_WORKER_HOSTNAMES": "localhost",
}
# These change what the compiler does, so they are part of a cached answer's key.
_INHERITED = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")
# Flags that change no placement: JAX itself adds the second where there is a TPU.
_IDLE_FLAGS = re.compile(
    "--(xla_dump_|xla_tpu_use_enhanced_launch_barrier|xla_force_host_platform_device_count)"
)
_WORKER = os.path.join(os.path.dirname(__file__), "worker.py")
_SENT_BY_OTHERS = (signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGHUP)
_START_SECONDS = 120.0  # for loading libtpu on a busy machine
_FIELDS = ("before", "assigned", "priced")
_REFUSED = "refused"
_KEY = "key"
_DUMP = "dump"
_MODULE_NAME = re.compile(r"^module @(\w+)[ \n]", re.MULTILINE)
_MOST_MEMORY = re.compile(r"^VmHWM:\s*(\d+) kB$", re.MULTILINE)
_LONGEST_LINE = 16 << 20  # bytes of an answer: a refusal names as much as it likes
_MOST_WORDS = 1 << 20  # bytes that are read of what the process wrote last
_LARGEST_ENTRY = 1 << 30  # bytes

DEFAULT_CACHE = pathlib.Path("~/.cache/mallocgame/xla")


class CompilerError(MallocGameError):
    """The compiler gave no module: it refused, ended, or went over a limit."""


class CompilerRefusedError(CompilerError):
    """The compiler says why it won't compile the module with these options.

    The rules are those of mallocgame.xla.compiler_messages, which reads what the compiler says.
    """

    used_bytes: int = 0  # of the memory that is too small; 0: none is
    limit_bytes: int = 0  # that there are of it

    @classmethod
    def saying(cls, said: Said) -> "CompilerRefusedError":
        """Returns the error with all that the compiler has said."""
        error = cls(said.line)
        error.about(said.rule, said.instructions, exceeded_bytes=said.exceeded_bytes)
        error.used_bytes, error.limit_bytes = said.used_bytes, said.limit_bytes
        return error


class CompilerEndedError(CompilerError):
    """The compiler's process ended, as XLA does where a check of its own fails."""

    killed = False  # whether another process ended it, so that the same compile may succeed


class CompilerLimitError(CompilerError):
    """The compiler took longer than it may."""


class CompilerDeadlineError(CompilerLimitError):
    """The time of the whole work was over (Compiler.until)."""


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
        self._given_cache = cache  # ~ may be another folder on another machine
        self._cache = None if cache is None else pathlib.Path(cache).expanduser()
        self._child: _Child | None = None
        self._deadline = _Deadline()
        self._versions = installed_versions()

    def another(self, target: Target | None = None) -> "Compiler":
        """Returns one with the same limits and cache, for another thread or another target.

        What it does counts as done by this one, and closing this one closes it.
        """
        other = Compiler(target or self.target, self.seconds, self.memory_bytes, self._given_cache)
        other._deadline = self._deadline
        self._others.append(other)
        return other

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
        """Compiles a StableHLO module with `options` beside those of the target.

        CompilerRefusedError, CompilerEndedError, CompilerLimitError.
        """
        options = self.target.options | (options or {})
        entry = self._entry(module, options)
        answer = None if entry is None else _read_entry(entry)
        if answer is None:
            self._own.compiles += 1
            answer = self._ask(module, options)
            if entry is not None:
                _write_entry(entry, answer)
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
        """Runs one phase of a compile, with `options` beside those of the target.

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
            entry = self._phase_entry(phase, programs, options) if kept else None
            if entry is not None:
                _write_parts(entry, outputs)
        return outputs

    def kept_phase(
        self, phase: str, programs: Sequence[bytes], options: dict[str, str] | None = None
    ) -> list[bytes] | None:
        """Returns the answer that the cache has for run_phase(); None: it has none."""
        entry = self._phase_entry(phase, programs, options)
        return None if entry is None else _read_parts(entry)

    def _phase_entry(
        self, phase: str, programs: Sequence[bytes], options: dict[str, str] | None
    ) -> pathlib.Path | None:
        digest = _digest([phase.encode(), *programs])
        return self._entry(digest, self.target.options | (options or {}))

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

    def _entry(self, module: str, options: dict[str, str]) -> pathlib.Path | None:
        if self._cache is None:
            return None
        inherited = {name: os.environ.get(name, "") for name in _INHERITED}
        chip = [self.target.topology, self.target.config]
        key = json.dumps([self._versions, chip, sorted(options.items()), inherited, module])
        return self._cache / (hashlib.sha256(key.encode()).hexdigest()[:40] + ".zip")

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
                self._child = _Child(self.target, self.memory_bytes)
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


class _Child:
    """The process in which the compiler runs."""

    def __init__(self, target: Target, memory_bytes: int) -> None:
        self._chip = target.title
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (close() closes it)
        self._process = subprocess.Popen(
            [sys.executable, _WORKER, target.topology, target.config or "", str(memory_bytes)],
            env=os.environ | NO_CHIP,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        try:
            self._line(_START_SECONDS)
        except BaseException:
            self.close()
            raise

    def ask(self, job: bytes, seconds: float) -> bytes:
        """Sends a line and returns the line that comes back within `seconds`; 0: no limit.

        CompilerLimitError, CompilerEndedError.
        """
        try:
            self._stdin.write(job)
            self._stdin.flush()
            return self._line(seconds)
        except BrokenPipeError:
            raise self._ended() from None

    @property
    def most_bytes(self) -> int:
        """The most memory that the process has had; 0 where the system doesn't say."""
        try:
            status = pathlib.Path(f"/proc/{self._process.pid}/status").read_text()
        except OSError:
            return 0
        found = _MOST_MEMORY.search(status)
        return 0 if found is None else int(found[1]) << 10

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(BrokenPipeError):  # A job may still be in the buffer.
            self._stdin.close()
        self._stdout.close()
        self._stderr.close()

    def _line(self, seconds: float) -> bytes:
        deadline = time.monotonic() + seconds if seconds > 0 else math.inf
        descriptor = self._stdout.fileno()
        line = b""
        while not line.endswith(b"\n"):
            left = None if deadline == math.inf else max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select([descriptor], [], [], left)
            if not ready:
                raise CompilerLimitError(
                    f"XLA:TPU for {self._chip}: no answer within {seconds:g} s, its limit"
                )
            part = os.read(descriptor, 1 << 16)
            if not part:
                raise self._ended()
            line += part
            if len(line) > _LONGEST_LINE:
                raise CompilerError(
                    f"XLA:TPU for {self._chip}: it answered with a line of more than "
                    f"{_LONGEST_LINE} bytes"
                )
        return line

    def _ended(self) -> CompilerEndedError:
        """Says how the process ended by itself."""
        code = self._process.wait()
        self._stderr.seek(max(0, self._stderr.seek(0, os.SEEK_END) - _MOST_WORDS))
        said = read_last_words(self._stderr.read().decode(errors="replace"))
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with status {code}"
        error = CompilerEndedError(
            f"XLA:TPU for {self._chip} ended {how}: {said.line or 'it said nothing'}"
        )
        error.about(said.rule, said.instructions)
        error.killed = -code in _SENT_BY_OTHERS
        return error


def inherited_flags() -> dict[str, str]:
    """Returns the environment's settings of the compiler that may change a placement."""
    flags = {
        name: [flag for flag in os.environ.get(name, "").split() if not _IDLE_FLAGS.match(flag)]
        for name in _INHERITED
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


def _read_entry(path: pathlib.Path) -> Compiled | str | None:
    """Returns what _write_entry() has written; None: nothing, or it is damaged."""
    contents = _unpacked(path)
    try:
        if _REFUSED in contents:
            return contents[_REFUSED].decode()
        return Compiled(**{field: contents[field] for field in _FIELDS})
    except (KeyError, UnicodeDecodeError):
        return None


def _write_entry(path: pathlib.Path, answer: Compiled | str) -> None:
    if isinstance(answer, str):
        _keep(path, {_REFUSED: answer.encode()}, zipfile.ZIP_DEFLATED)
    else:
        contents = {field: getattr(answer, field) for field in _FIELDS}
        _keep(path, contents, zipfile.ZIP_DEFLATED)


def _digest(parts: Sequence[bytes]) -> str:
    """Returns a text that hardly any other parts have."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


def _read_parts(path: pathlib.Path) -> list[bytes] | None:
    """Returns what _write_parts() has written; None: nothing, or it is damaged."""
    contents = _unpacked(path)
    try:
        return [contents[str(number)] for number in range(len(contents))] or None
    except KeyError:
        return None


def _write_parts(path: pathlib.Path, parts: Sequence[bytes]) -> None:
    # Most of them are compressed already.
    contents = {str(number): part for number, part in enumerate(parts)}
    _keep(path, contents, zipfile.ZIP_STORED)


def _unpacked(path: pathlib.Path) -> dict[str, bytes]:
    """Returns what _keep() has written; empty: nothing, or it is damaged."""
    try:
        with zipfile.ZipFile(path) as entry:
            if sum(one.file_size for one in entry.infolist()) > _LARGEST_ENTRY:
                raise ValueError("too large")
            if entry.read(_KEY) != path.stem.encode():
                raise ValueError("put there under another's name")
            return {name: entry.read(name) for name in entry.namelist() if name != _KEY}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except Exception:  # Of what zipfile raises there is no list.
        _tell(f"{path}: the entry is damaged, so the compiler is asked again")
        return {}


def _keep(path: pathlib.Path, contents: Mapping[str, bytes], compression: int) -> None:
    """Writes an entry whole or not at all, whoever else writes it at the same time.

    What can't be kept is an answer all the same. Who asks for it again has to wait again, which a
    warning says.
    """
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compression) as entry:
        for name, content in {_KEY: path.stem.encode(), **contents}.items():
            entry.writestr(name, content)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, packed.getvalue())
    except (OSError, InvalidInputError) as error:
        _tell(f"{path.parent}: the compiler's answers can't be kept there ({error})")


def _tell(sentence: str) -> None:
    warnings.warn(sentence, RuntimeWarning, stacklevel=4)
