"""XLA:TPU in a child process, with limits and a cache of its answers."""

import hashlib
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
import zipfile

from mallocgame.errors import MallocGameError
from mallocgame.xla.modules import Assigned, Compiled, read_dump
from mallocgame.xla.targets import Target

# Of the process in which the compiler runs. It needs no chip, asks no metadata server, and may be
# one of several.
_ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_ACCELERATOR_TYPE": "v4-8",
    "TPU_WORKER_HOSTNAMES": "localhost",
}
# They change what the compiler does, so they are part of a cached answer's key.
_INHERITED = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")
_WORKER = os.path.join(os.path.dirname(__file__), "worker.py")
_START_SECONDS = 120.0  # for importing JAX and loading libtpu on a busy machine
_FIELDS = ("before", "assigned", "priced")
_REFUSED = "refused"
MAIN_MEMORY = "xla_tpu_max_hbm_size_mib"
_TOO_LITTLE_MEMORY = "CompileTimeHbmOom"

DEFAULT_CACHE = pathlib.Path("~/.cache/mallocgame/xla")


class CompilerError(MallocGameError):
    """The compiler gave no module: it refused, ended, or went over a limit."""


class CompilerRefusedError(CompilerError):
    """The compiler says why it won't compile the module with these options."""


class CompilerEndedError(CompilerError):
    """The compiler's process ended by itself, as XLA does where a check of its own fails."""


class CompilerLimitError(CompilerError):
    """The compiler took longer than it may."""


class Compiler:
    """Compiles StableHLO for one chip. Close it, or use it as a context manager.

    It is not for several threads at once.

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
        self.compiles = 0  # not answered by the cache
        self.looks = 0
        self._cache = None if cache is None else pathlib.Path(cache).expanduser()
        self._child: subprocess.Popen | None = None
        self._stderr = None
        self._versions = _installed_versions()

    @property
    def versions(self) -> dict[str, str]:
        """Of jax, jaxlib and libtpu."""
        return dict(self._versions)

    def compile(self, module: str, options: dict[str, str] | None = None) -> Compiled:
        """The compiler's answer for a StableHLO module; `options` beside those of the target.

        CompilerRefusedError, CompilerEndedError, CompilerLimitError.
        """
        options = self.target.options | (options or {})
        entry = self._entry(module, options)
        answer = None if entry is None else _read_entry(entry)
        if answer is None:
            self.compiles += 1
            answer = self._ask(module, options, Compiled)
            if entry is not None:
                _write_entry(entry, answer)
        if isinstance(answer, str):
            raise CompilerRefusedError(answer)
        return answer

    def look(self, module: str, options: dict[str, str], main_mib: int) -> Assigned:
        """What `compile` would assign, in a small part of its time: code generation is left out.

        main_mib: of main memory that the compiler is told there is. It must be less than the
        program needs: then the compiler ends with that error right after the assignment. Much less
        makes it look for a program that needs less. Errors as compile(). Answers aren't kept.
        """
        self.looks += 1
        answer = self._ask(
            module, self.target.options | options | {MAIN_MEMORY: str(main_mib)}, Assigned
        )
        if isinstance(answer, str):
            raise CompilerRefusedError(answer)
        return answer

    def close(self) -> None:
        """End the child process. A later compile starts another."""
        if self._child is None:
            return
        self._child.kill()
        self._child.wait()
        self._child.stdin.close()
        self._child.stdout.close()
        self._stderr.close()
        self._child = None

    def __enter__(self) -> "Compiler":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _entry(self, module: str, options: dict[str, str]) -> pathlib.Path | None:
        if self._cache is None:
            return None
        inherited = {name: os.environ.get(name, "") for name in _INHERITED}
        key = json.dumps(
            [self._versions, self.target.topology, sorted(options.items()), inherited, module]
        )
        return self._cache / (hashlib.sha256(key.encode()).hexdigest()[:40] + ".zip")

    def _ask(self, module: str, options: dict[str, str], kind: type[Assigned]) -> Assigned | str:
        """What was compiled, or why it was refused."""
        with tempfile.TemporaryDirectory(prefix="mallocgame-xla-") as folder:
            source, dump = os.path.join(folder, "module.mlir"), os.path.join(folder, "dump")
            pathlib.Path(source).write_text(module, encoding="utf-8")
            if self._child is None:
                self._start()
            job = json.dumps({"module": source, "options": options, "dump": dump}) + "\n"
            try:
                self._child.stdin.write(job.encode())
                self._child.stdin.flush()
                answer = json.loads(self._line(self.seconds))
            except BrokenPipeError:
                raise self._ended() from None
            except BaseException:  # an interrupt too: what the child is at is of no use any more
                self.close()
                raise
            ended_early = kind is Assigned and _TOO_LITTLE_MEMORY in answer.get("error", "")
            return read_dump(dump, kind) if answer["ok"] or ended_early else _plain(answer["error"])

    def _start(self) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (close() closes it)
        self._child = subprocess.Popen(
            [sys.executable, _WORKER, self.target.topology, str(self.memory_bytes)],
            env=os.environ | _ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
        )
        try:
            self._line(_START_SECONDS)
        except BaseException:
            self.close()
            raise

    def _line(self, seconds: float) -> bytes:
        """The child's next line, within `seconds`; 0: no limit."""
        deadline = time.monotonic() + seconds if seconds > 0 else math.inf
        descriptor = self._child.stdout.fileno()
        line = b""
        while not line.endswith(b"\n"):
            left = None if deadline == math.inf else max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select([descriptor], [], [], left)
            if not ready:
                raise CompilerLimitError(
                    f"XLA:TPU for {self.target.topology}: no answer within {seconds:g} s, its limit"
                )
            part = os.read(descriptor, 1 << 16)
            if not part:
                raise self._ended()
            line += part
        return line

    def _ended(self) -> CompilerEndedError:
        code = self._child.wait()
        self._stderr.seek(0)
        said = _last_words(self._stderr.read().decode(errors="replace"))
        self.close()
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with status {code}"
        return CompilerEndedError(
            f"XLA:TPU for {self.target.topology} ended {how}: {said or 'it said nothing'}"
        )


def _installed_versions() -> dict[str, str]:
    """Without loading them: libtpu is half a gigabyte."""
    import importlib.metadata

    try:
        return {name: importlib.metadata.version(name) for name in ("jax", "jaxlib", "libtpu")}
    except importlib.metadata.PackageNotFoundError as error:
        raise MissingExtraError(error.name or str(error)) from None


class MissingExtraError(MallocGameError, ImportError):
    """JAX or libtpu isn't installed."""

    def __init__(self, package: str) -> None:
        super().__init__(f"mallocgame.xla needs {package}: pip install 'mallocgame[xla]'")


def _plain(error: str) -> str:
    """A status message in one line, without the trace of the compiler's own sources."""
    return " ".join(error.split("=== Source Location Trace")[0].split())


def _last_words(text: str) -> str:
    """Of what the process wrote: the failed check if there is one, else its last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in lines:
        if re.search(r"Check failed|^F\d{4} ", line):
            return line[:500]
    errors = [
        line
        for line in lines
        if not line.startswith(("WARNING", "I0000", "W0000", "***", "@", "#", "PC:", "["))
    ]
    return errors[-1][:500] if errors else ""


def _read_entry(path: pathlib.Path) -> Compiled | str | None:
    try:
        with zipfile.ZipFile(path) as entry:
            if entry.namelist() == [_REFUSED]:
                return entry.read(_REFUSED).decode()
            return Compiled(**{field: entry.read(field) for field in _FIELDS})
    except FileNotFoundError:
        return None
    except (OSError, zipfile.BadZipFile, KeyError, ValueError):  # damaged: as if it weren't there
        return None


def _write_entry(path: pathlib.Path, answer: Compiled | str) -> None:
    """Whole or not at all, whoever else writes it at the same time."""
    contents = (
        {_REFUSED: answer}
        if isinstance(answer, str)
        else {field: getattr(answer, field) for field in _FIELDS}
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as entry,
    ):
        for name, content in contents.items():
            entry.writestr(name, content)
    os.replace(file.name, path)
