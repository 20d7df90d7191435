"""The process in which XLA:TPU runs."""

import contextlib
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

from mallocgame.xla.compiler_errors import CompilerEndedError, CompilerError, CompilerLimitError
from mallocgame.xla.compiler_messages import read_last_words
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
_WORKER = os.path.join(os.path.dirname(__file__), "worker.py")
_SENT_BY_OTHERS = (signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGHUP)
_START_SECONDS = 120.0  # for loading libtpu on a busy machine
_MOST_MEMORY = re.compile(r"^VmHWM:\s*(\d+) kB$", re.MULTILINE)
_LONGEST_LINE = 16 << 20  # bytes of an answer: a refusal names as much as it likes
_MOST_WORDS = 1 << 20  # bytes that are read of what the process wrote last


class CompilerProcess:
    """Does jobs, each a line of JSON (worker.py), one after the other."""

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
