"""Independent jobs, in processes that work side by side."""

import concurrent.futures
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from mallocgame.errors import MallocGameError

Job = TypeVar("Job")
Result = TypeVar("Result")


def cores() -> list[int]:
    """Returns the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def run_jobs(
    work: Callable[[Job], Result], jobs: Iterable[Job], processes: int, pinned: bool = False
) -> Generator[tuple[Job, Result], None, None]:
    """Gives each job with what work(job) returns, as soon as it is there.

    Close the generator, so that what has not begun is left undone: contextlib.closing.

    work, jobs: what other processes can be handed. processes: 0 is this one. pinned: whether each
    process has a core of its own, its threads included; then there are at most as many as cores().

    What `work` raises is raised here. MallocGameError: a process ended.
    """
    if processes == 0:
        for job in jobs:
            yield job, work(job)
        return
    context = multiprocessing.get_context("spawn")  # the caller may have threads
    free = context.SimpleQueue()
    for core in cores()[:processes] if pinned else [None] * processes:
        free.put(core)
    # Nobody writes to it. Its end tells the processes that this one has ended or wants no more.
    watched, lifeline = context.Pipe(duplex=False)
    with (
        watched,
        concurrent.futures.ProcessPoolExecutor(processes, context, _start, (free, watched)) as pool,
        lifeline,
    ):
        running = {pool.submit(work, job): job for job in jobs}
        try:
            for future in concurrent.futures.as_completed(running):
                yield running.pop(future), future.result()
        except BrokenProcessPool:
            raise MallocGameError(
                "a process that worked on a job has ended; run it again to go on"
            ) from None


def _start(free: Any, watched: Any) -> None:
    """Begins a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which ends it.
    threading.Thread(target=_end_with, args=(watched,), daemon=True).start()
    core = free.get()
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def _end_with(watched: Any) -> None:
    """Ends this process as soon as its parent has ended or closes the lifeline.

    Without it a killed parent would leave processes that wait for jobs for ever.
    """
    watched.poll(None)
    os._exit(1)
