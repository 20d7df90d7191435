"""Processes of this machine that do jobs side by side."""

import collections
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from mallocgame._jobs.crew import TRIES, Crew, Outcome, carry_out
from mallocgame.errors import InvalidInputError


def cores() -> list[int]:
    """Returns the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


class _Try(NamedTuple):
    number: int
    job: Any
    tries: int  # this one included


class _Process(NamedTuple):
    core: int | None
    pool: ProcessPoolExecutor  # of this one process, so that it is known whose end ended what


class Processes(Crew):
    """A Crew of processes, each with one job at a time.

    pinned: whether each has a core of its own; then there are at most as many as cores().
    """

    def __init__(self, work: Callable[[Any], Any], count: int, pinned: bool) -> None:
        self._work = work
        self._context = multiprocessing.get_context("spawn")  # the caller may have threads
        # Where there is room for a process, and on which core.
        self._room: list[int | None] = [*(cores()[:count] if pinned else [None] * count)]
        # Nobody writes to it. Its end tells the processes that this one has ended or wants no more.
        self._watched, self._lifeline = self._context.Pipe(duplex=False)
        self._waiting: collections.deque[_Try] = collections.deque()
        self._idle: list[_Process] = []
        self._busy: dict[Future[Any], tuple[_Process, _Try]] = {}

    def add(self, number: int, job: Any) -> None:
        self._waiting.append(_Try(number, job, 1))
        self._begin()

    def _begin(self) -> None:
        """Begins jobs as long as there is a process for one."""
        while self._waiting and (self._idle or self._room):
            process = self._idle.pop() if self._idle else self._start(self._room.pop(0))
            try:
                future = process.pool.submit(_do, self._waiting[0].job)
            except BrokenProcessPool:  # It has ended without a job, which is no try of this one.
                process.pool.shutdown()
                self._room.append(process.core)
                continue
            self._busy[future] = process, self._waiting.popleft()

    def _start(self, core: int | None) -> _Process:
        begin = self._work, core, self._watched
        return _Process(core, ProcessPoolExecutor(1, self._context, _serve, begin))

    def wait(self, seconds: float) -> tuple[int, Outcome] | None:
        self._begin()
        for future in wait(self._busy, seconds, FIRST_COMPLETED).done:
            process, one = self._busy.pop(future)
            error = future.exception()
            if isinstance(error, BrokenProcessPool):
                process.pool.shutdown()
                self._room.append(process.core)
            else:
                self._idle.append(process)
            if isinstance(error, InvalidInputError):
                raise error
            if error is None:
                return one.number, Outcome(future.result())
            if one.tries == TRIES:
                return one.number, Outcome(reason=_reason(error))
            self._waiting.append(one._replace(tries=one.tries + 1))
        return None

    def close(self) -> None:
        self._lifeline.close()
        for process in [*self._idle, *(process for process, _ in self._busy.values())]:
            process.pool.shutdown(cancel_futures=True)
        self._watched.close()


def _reason(error: BaseException) -> str:
    return "its process ended" if isinstance(error, BrokenProcessPool) else str(error)


_work: Callable[[Any], Any]  # what this process does jobs with


def _serve(work: Callable[[Any], Any], core: int | None, watched: Connection) -> None:
    """Begins a process that does jobs."""
    global _work
    _work = work
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which ends it.
    threading.Thread(target=_end_with, args=(watched,), daemon=True).start()
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def _do(job: Any) -> Any:
    return carry_out(_work, job)


def _end_with(watched: Connection) -> None:
    """Ends this process as soon as its parent has ended or closes the lifeline.

    Without it a killed parent would leave processes that wait for jobs for ever.
    """
    watched.poll(None)
    os._exit(1)
