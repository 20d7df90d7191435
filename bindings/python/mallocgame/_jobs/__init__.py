"""Independent jobs: in this process, in others of this machine, or on a Ray cluster.

    with contextlib.closing(run_jobs(work, jobs, workers)) as finished:
        for job, result in finished:
            ...

Jobs and results are pickled, so that they come out the same wherever they are done.
"""

import contextlib
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, TypeVar

from mallocgame._jobs.cluster import Cluster
from mallocgame._jobs.crew import SECONDS_BETWEEN_LOOKS, TRIES, Crew, FailedJobsError, Shared
from mallocgame._jobs.processes import Processes, cores

__all__ = [
    "HERE",
    "Cluster",
    "Crew",
    "FailedJobsError",
    "Shared",
    "Workers",
    "cores",
    "crew_of",
    "run_jobs",
    "workers_of",
]

Job = TypeVar("Job")
Result = TypeVar("Result")
Workers = int | Cluster  # how many processes of this machine, or a cluster

HERE = 0  # as Workers: this process


@contextlib.contextmanager
def workers_of(jobs: int, ray: str | None, here: bool = False) -> Iterator[Workers]:
    """Gives so many processes, or where `ray` is an address, that cluster (Cluster).

    here: whether one process is this one.
    """
    if ray is None:
        yield HERE if here and jobs == 1 else jobs
    else:
        with Cluster(ray) as cluster:
            yield cluster


def run_jobs(
    work: Callable[[Job], Result],
    jobs: Iterable[Job],
    workers: Workers,
    *,
    pinned: bool = False,
    name: Callable[[Job], str] = str,
    stop: Callable[[], bool] = lambda: False,
) -> Generator[tuple[Job, Result], None, None]:
    """Gives each job with what work(job) returns, as soon as it is there.

    Close the generator, so that what has not begun is left undone: contextlib.closing.

    work, jobs: what other processes can be handed. HERE takes a job when the one before is done,
    others take all at once. pinned: whether each job of another process has a core of its own, its
    threads included; on this machine there are at most as many processes as cores(). name: of a
    job, for people. stop: once it returns True, nothing more is given.

    A job that fails in another process, or whose process or machine ends, is tried again twice.
    FailedJobsError names those that failed each time, after all others are given. InvalidInputError
    is raised at once, and HERE whatever `work` raises.
    """
    if workers == HERE:
        for job in jobs:
            if stop():
                return
            yield job, work(job)
        return
    wanted = list(jobs)
    left = set(range(len(wanted)))
    failed: dict[int, str] = {}
    with contextlib.closing(crew_of(work, workers, pinned=pinned)) as crew:
        for number, job in enumerate(wanted):
            crew.add(number, job)
        while left and not stop():
            ended = crew.wait(SECONDS_BETWEEN_LOOKS)
            if ended is None:
                continue
            number, outcome = ended
            left.remove(number)
            if outcome.reason is None:
                yield wanted[number], outcome.result
            else:
                failed[number] = outcome.reason
    if failed:
        reasons = "; ".join(
            f"{' '.join(name(wanted[number]).split())}: {failed[number]}"
            for number in sorted(failed)
        )
        raise FailedJobsError(
            f"{len(failed)} of {len(wanted)} jobs failed {TRIES} times: {reasons}; "
            "run it again to go on"
        )


def crew_of(work: Callable[[Any], object], workers: int | Cluster, *, pinned: bool = False) -> Crew:
    """Gives who does jobs that are not all known from the beginning; close it in the end.

    work, pinned: as run_jobs takes them. workers: a number of processes, 1 or more, or a cluster.
    """
    if isinstance(workers, Cluster):
        return workers.crew(work, pinned)
    return Processes(work, workers, pinned)
