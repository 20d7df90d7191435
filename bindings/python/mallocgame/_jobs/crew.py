"""What all that do jobs have in common."""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any

from mallocgame.errors import InvalidInputError, MallocGameError

TRIES = 3  # of a job that fails
SECONDS_BETWEEN_LOOKS = 0.2  # at whether Ctrl-C came, or the caller wants no more


class FailedJobsError(MallocGameError):
    """Jobs that failed each time that they were tried. All others are done."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of a job."""

    result: Any = None
    reason: str | None = None  # why it failed, in one line; None: it is done


@dataclasses.dataclass(frozen=True, eq=False)
class Shared:
    """Bytes that many jobs take. A cluster stores them once, and as long as this lives."""

    data: bytes


class Crew(abc.ABC):
    """Does numbered jobs, in the order in which they are added as far as it can.

    A job that fails, or whose process or machine ends, is tried again twice. Each process has a
    copy of what does them, made when it does the first.
    """

    @abc.abstractmethod
    def add(self, number: int, job: Any) -> None:
        """Has a job done."""

    @abc.abstractmethod
    def wait(self, seconds: float) -> tuple[int, Outcome] | None:
        """Returns a job that is done, or has failed for the last time.

        None: none has ended within that time. InvalidInputError: a job's input is wrong.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Leaves all jobs as they are."""

    def done(self, name: Callable[[int], str]) -> tuple[int, Any]:
        """Waits for a job, and returns its number and its result.

        FailedJobsError: it has failed for the last time. It tells the job's name(number).
        """
        while True:
            ended = self.wait(SECONDS_BETWEEN_LOOKS)
            if ended is None:
                continue
            number, outcome = ended
            if outcome.reason is not None:
                raise FailedJobsError(f"{name(number)} failed {TRIES} times: {outcome.reason}")
            return number, outcome.result


class JobError(Exception):
    """A job that failed, with why in one line."""


def carry_out(work: Callable[[Any], Any], job: Any) -> Any:
    """Does a job where it was sent to. JobError, or InvalidInputError for a wrong input.

    Only these go back, because what others raise may not be pickled.
    """
    try:
        return work(job)
    except InvalidInputError as error:
        raise InvalidInputError(str(error)) from None
    except Exception as error:  # Whatever it is, the others go on.
        text = " ".join(str(error).split())
        ours = isinstance(error, MallocGameError)
        raise JobError(text if ours else f"{type(error).__name__}: {text}") from None
