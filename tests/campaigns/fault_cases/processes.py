"""Runs a command as people do, and sees how it ends and what it leaves running."""

import contextlib
import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence

LIMIT = 300.0  # seconds after which a command counts as hanging
_PROGRESS = re.compile(r".* \(\d+ s\)$")
_SECONDS_TO_FOLLOW = 15.0  # for the processes of a killed command to notice


@dataclasses.dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int | None  # None: it hung, and was killed
    stdout: str
    stderr: str
    seconds: float
    since_begun: float  # seconds
    left: int  # processes that outlived it

    @property
    def lines(self) -> list[str]:
        """What stands on standard error beside the progress."""
        return [line for line in self.stderr.splitlines() if line and not _PROGRESS.match(line)]


class Running:
    """A command that runs, in a session of its own."""

    def __init__(
        self,
        arguments: Sequence[object],
        folder: pathlib.Path,
        environment: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
        program: Sequence[str] = ("-m", "mallocgame"),
    ) -> None:
        # They are not in the folder that faults happen to. end() closes them.
        self._output = [tempfile.TemporaryFile(), tempfile.TemporaryFile()]  # noqa: SIM115
        command = [*prefix, sys.executable, *program, *map(str, arguments)]
        # A shell that runs the campaign in the background has its children ignore Ctrl-C.
        self.process = subprocess.Popen(
            ["env", "--default-signal=INT", *command],
            cwd=folder,
            env=os.environ | dict(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=self._output[0],
            stderr=self._output[1],
            start_new_session=True,
        )
        self._begin = self._begun = time.monotonic()

    def wait_until_begun(self) -> bool:
        """Waits until the command line has set its handler of SIGTERM. False: it has ended."""
        while self.process.poll() is None:
            with contextlib.suppress(OSError):
                text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
                caught = re.search(r"SigCgt:\s*([0-9a-f]+)", text)
                if caught and int(caught[1], 16) >> (signal.SIGTERM - 1) & 1:
                    self._begun = time.monotonic()
                    return True
            time.sleep(0.005)
        return False

    def send_after(self, seconds: float, number: int) -> bool:
        """Sends a signal, unless the process ends within the seconds. Returns whether it did."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
            return False
        self.process.send_signal(number)
        return True

    def end(self, limit: float = LIMIT) -> Ended:
        """Waits for the end, and ends whatever is left."""
        status: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = self.process.wait(limit)
        now = time.monotonic()
        deadline = time.monotonic() + (_SECONDS_TO_FOLLOW if status is not None else 0.0)
        while (left := _in_session(self.process.pid)) and time.monotonic() < deadline:
            time.sleep(0.05)
        for one in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        self.process.wait()
        texts = []
        for file in self._output:
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
            file.close()
        outlived = len(left) if status is not None else 0
        return Ended(status, texts[0], texts[1], now - self._begin, now - self._begun, outlived)


def _in_session(session: int) -> list[int]:
    """The living processes of a session."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] not in "ZX":
                found.append(int(stat.parent.name))
    return found
