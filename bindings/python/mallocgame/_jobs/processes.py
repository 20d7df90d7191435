"""Processes of this machine that do jobs side by side."""

import collections
import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any

from mallocgame._jobs.crew import Outcome, outcome_of


def cores() -> list[int]:
    """Returns the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


class Processes:
    """A Crew of processes, each with one job at a time, so that it is known whose end ended what.

    pinned: whether each has a core of its own; then there are at most as many as cores().
    """

    def __init__(self, work: Callable[[Any], Any], count: int, pinned: bool) -> None:
        self._work = work
        self._context = multiprocessing.get_context("spawn")  # the caller may have threads
        # Where there is room for a process, and on which core.
        self._room: list[int | None] = [*(cores()[:count] if pinned else [None] * count)]
        # Nobody writes to it. Its end tells the processes that this one has ended or wants no more.
        self._watched, self._lifeline = self._context.Pipe(duplex=False)
        self._waiting: collections.deque[tuple[int, Any]] = collections.deque()
        self._idle: list[_Process] = []
        self._busy: dict[Connection, tuple[_Process, int]] = {}

    def add(self, number: int, job: Any) -> None:
        self._waiting.append((number, job))
        self._begin()

    def _begin(self) -> None:
        """Begins jobs as long as there is a process for one."""
        while self._waiting and (self._idle or self._room):
            process = self._idle.pop() if self._idle else self._start()
            number, job = self._waiting.popleft()
            process.begin(job)
            self._busy[process.pipe] = process, number

    def wait(self, seconds: float) -> tuple[int, Outcome] | None:
        self._begin()
        for ready in wait(list(self._busy), seconds):
            assert isinstance(ready, Connection), "of those that are busy"
            process, number = self._busy.pop(ready)
            outcome = process.ended()
            if outcome is None:
                outcome = Outcome(reason=f"its process ended with status {process.status()}")
                self._room.append(process.core)
            else:
                self._idle.append(process)
            return number, outcome
        return None

    def close(self) -> None:
        self._lifeline.close()
        for process in [*self._idle, *(process for process, _ in self._busy.values())]:
            process.status()
        self._watched.close()

    def _start(self) -> "_Process":
        return _Process(self._context, self._work, self._room.pop(0), self._watched)


class _Process:
    """One of them."""

    def __init__(
        self, context: Any, work: Callable[[Any], Any], core: int | None, watched: Connection
    ) -> None:
        self.core = core
        self.pipe, theirs = context.Pipe()
        with theirs:
            self._process = context.Process(
                target=_serve, args=(theirs, work, core, watched), daemon=True
            )
            self._process.start()

    def begin(self, job: Any) -> None:
        with contextlib.suppress(BrokenPipeError):  # It has ended, which ended() tells.
            self.pipe.send(job)

    def ended(self) -> Outcome | None:
        """Returns what became of the job; None: the process has ended."""
        try:
            outcome: Outcome = pickle.loads(self.pipe.recv_bytes())
        except (EOFError, ConnectionResetError):
            return None
        return outcome

    def status(self) -> int | None:
        """Waits for the end of the process, and returns how it ended; below 0 is a signal."""
        self.pipe.close()
        self._process.join()
        status: int | None = self._process.exitcode
        return status


def _serve(
    pipe: Connection, work: Callable[[Any], Any], core: int | None, watched: Connection
) -> None:
    """Does jobs, in a process of its own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which ends it.
    threading.Thread(target=_end_with, args=(watched,), daemon=True).start()
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    with contextlib.suppress(EOFError):  # The parent wants no more.
        while True:
            pipe.send_bytes(outcome_of(work, pipe.recv()))


def _end_with(watched: Connection) -> None:
    """Ends this process as soon as its parent has ended or closes the lifeline.

    Without it a killed parent would leave processes that wait for jobs for ever.
    """
    watched.poll(None)
    os._exit(1)
