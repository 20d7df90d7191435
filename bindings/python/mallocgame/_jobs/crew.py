"""What all that do jobs have in common."""

import dataclasses
import pickle
from collections.abc import Callable
from typing import Any, Protocol

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
    refused: bool = False  # whether its input is wrong, so that it would fail again


@dataclasses.dataclass(frozen=True, eq=False)
class Shared:
    """Bytes that many jobs take. A cluster stores them once, and as long as this lives."""

    data: bytes


class Crew(Protocol):
    """Does numbered jobs, in the order in which they are added as far as it can.

    Each of its processes has a copy of what does them, made when it does the first.
    """

    def add(self, number: int, job: Any) -> None:
        """Has a job done, if it failed also once more."""

    def wait(self, seconds: float) -> tuple[int, Outcome] | None:
        """Returns a job that has ended; None: none has within that time."""

    def close(self) -> None:
        """Leaves all jobs as they are."""


class Retrying:
    """A Crew that tries a job that fails again twice, before it says so."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._running: dict[int, tuple[Any, int]] = {}  # by number the job and how often it failed

    def add(self, number: int, job: Any) -> None:
        self._running[number] = job, 0
        self._crew.add(number, job)

    def wait(self, seconds: float) -> tuple[int, Outcome] | None:
        """Returns a job that is done, or has failed for the last time.

        InvalidInputError: a job's input is wrong.
        """
        ended = self._crew.wait(seconds)
        if ended is None:
            return None
        number, outcome = ended
        if outcome.refused:
            raise InvalidInputError(outcome.reason)
        job, failures = self._running.pop(number)
        if outcome.reason is not None and failures + 1 < TRIES:
            self._running[number] = job, failures + 1
            self._crew.add(number, job)
            return None
        return number, outcome

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

    def close(self) -> None:
        self._crew.close()


def outcome_of(work: Callable[[Any], Any], job: Any) -> bytes:
    """Does a job where it was sent to, and returns its Outcome, pickled."""
    try:
        return pickle.dumps(Outcome(work(job)))
    except InvalidInputError as error:
        outcome = Outcome(reason=_line(error), refused=True)
    except Exception as error:  # Whatever it is, the others go on.
        outcome = Outcome(reason=_line(error))
    return pickle.dumps(outcome)


def _line(error: Exception) -> str:
    """An exception as one line; with its class where it is none of ours."""
    text = " ".join(str(error).split())
    return text if isinstance(error, MallocGameError) else f"{type(error).__name__}: {text}"
