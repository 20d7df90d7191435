"""Actors that play for MuZero: processes of this machine, or of a Ray cluster."""

import contextlib
from collections.abc import Callable
from typing import Any

from mallocgame._core import Hardware, Program
from mallocgame._jobs import TRIES, Cluster, FailedJobsError, Retrying, Shared, crew_of
from mallocgame.agents.torch_module import torch_module
from mallocgame.errors import InvalidInputError

Problem = tuple[str, Program, Hardware | None]  # a name, a program and its hardware

_SECONDS_BETWEEN_LOOKS = 0.2  # at whether Ctrl-C came


class Actors:
    """Who plays the games of a MuZero, within the block of MuZero.actors.

    Each group of games is a job. A job is what the group is to do, and the networks; what comes
    back is its harvest of games. It depends on the job only, so that a job whose process or machine
    ends is done again by another. The learner is this process.
    """

    def __init__(
        self, trainer: Any, problems: list[Problem], workers: int | str, most_stale: int | None
    ) -> None:
        if isinstance(workers, int) and workers < 1:
            raise InvalidInputError(f"muzero: found {workers} actors, allowed: 1 and more")
        if most_stale is not None and most_stale < 0:
            raise InvalidInputError(f"muzero: found most_stale {most_stale}, allowed: 0 and more")
        self._trainer = trainer
        self._problems = problems
        self._asked = workers
        self._most_stale = most_stale
        self._open = contextlib.ExitStack()
        self._crew: Retrying | None = None
        self._out: set[int] = set()
        self._introduction: Shared | None = None
        self._weights: Shared | None = None

    def __enter__(self) -> "Actors":
        asked = self._asked
        self._workers = (
            self._open.enter_context(Cluster(asked)) if isinstance(asked, str) else asked
        )
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.close()
        self._crew = None

    def step(self) -> dict[str, Any]:
        """Does a step of the training, and returns what MuZero.step does.

        FailedJobsError: a job failed three times. The training then only gives results.
        """
        trainer = self._trainer
        if self._crew is None:
            work = _Work(self._problems, trainer.settings, trainer.seed)
            self._crew = self._open.enter_context(contextlib.closing(crew_of(work, self._workers)))
        if trainer.iterations == 0:
            return self._demonstrate(self._crew)
        if self._introduction is None:
            self._introduction = Shared(trainer.introduction())
        settings = trainer.settings
        groups, updates = int(settings["groups"]), int(settings["updates"])
        self._assign(*(group for group in range(groups) if group not in self._out))
        if self._most_stale is None:
            self._learn(updates)
            harvests = dict(self._harvest() for _ in range(groups))
            for group in range(groups):
                trainer.take(group, harvests[group], None)
        else:
            for taken in range(groups):
                group, harvest = self._harvest()
                trainer.take(group, harvest, self._most_stale)
                self._assign(group)  # first, so that nobody waits for the learner
                self._learn(updates * (taken + 1) // groups - updates * taken // groups)
        done: dict[str, Any] = trainer.end_step()
        return done

    def _demonstrate(self, crew: Retrying) -> dict[str, Any]:
        numbers = range(len(self._problems))
        for number in numbers:
            crew.add(number, number)
        found = dict(self._ended(lambda number: self._problems[number][0]) for _ in numbers)
        begun: dict[str, Any] = self._trainer.take_demonstrations([found[i] for i in numbers])
        return begun

    def _assign(self, *groups: int) -> None:
        assert self._crew is not None, "a step has begun"
        if self._weights is None:
            self._weights = Shared(self._trainer.weights())
        for group in groups:
            job = self._introduction, self._weights, self._trainer.assign(group)
            self._crew.add(group, job)
            self._out.add(group)

    def _learn(self, updates: int) -> None:
        if updates > 0:
            self._weights = None
            self._trainer.learn(updates)

    def _harvest(self) -> tuple[int, bytes]:
        """Waits for a group."""
        group, harvest = self._ended(lambda group: f"group {group}")
        self._out.discard(group)
        return group, harvest

    def _ended(self, name: Callable[[int], str]) -> tuple[int, bytes]:
        """Waits for a job, and gives its number and what came of it."""
        assert self._crew is not None, "a step has begun"
        while True:
            ended = self._crew.wait(_SECONDS_BETWEEN_LOOKS)
            if ended is None:
                continue
            number, outcome = ended
            if outcome.reason is not None:
                raise FailedJobsError(
                    f"muzero: {name(number)} failed {TRIES} times: {outcome.reason}"
                )
            return number, outcome.result


class _Work:
    """Plays what it is asked for: the demonstrations of a problem by its number, or a group."""

    def __init__(self, problems: list[Problem], settings: dict[str, str], seed: int) -> None:
        self._problems = problems
        self._settings = settings
        self._seed = seed
        self._introduction = b""
        self._actor: Any = None  # which knows that introduction

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_introduction": b"", "_actor": None}

    def __call__(self, job: int | tuple[Shared, Shared, bytes]) -> bytes:
        played: bytes
        if isinstance(job, int):
            played = torch_module().muzero_demonstrations(
                self._problems[job], self._settings, self._seed
            )
            return played
        introduction, weights, assignment = job
        if self._introduction != introduction.data:
            self._actor = torch_module().MuZeroActor(self._problems, introduction.data)
            self._introduction = introduction.data
        played = self._actor.play(weights.data, assignment)
        return played
