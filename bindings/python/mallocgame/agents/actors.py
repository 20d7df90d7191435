"""Actors that play for an agent that learns: processes of this machine, or of a Ray cluster."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from mallocgame._core import Game, Hardware, Program
from mallocgame._jobs import Cluster, Crew, Shared, crew_of
from mallocgame._torch import torch_module
from mallocgame.errors import InvalidInputError


class Problem(NamedTuple):
    """What MuZero is trained on."""

    name: str
    played: Program | Game
    hardware: Hardware | None  # of a program; None: its own
    prices: str | None  # by which plans are compared: "both", "compiler"; None: both if possible


@contextlib.contextmanager
def actors_of(agent: str, work: Callable[[Any], object], workers: int | str) -> Iterator[Crew]:
    """Gives those who do the jobs of an agent, by `work`, within the block.

    workers: a number of processes, or the address of a Ray cluster. InvalidInputError: the number
    is too small, or no cluster answers there.
    """
    if isinstance(workers, int) and workers < 1:
        raise InvalidInputError(f"{agent}: found {workers} actors, allowed: 1 and more")
    with contextlib.ExitStack() as opened:
        where = opened.enter_context(Cluster(workers)) if isinstance(workers, str) else workers
        yield opened.enter_context(contextlib.closing(crew_of(work, where)))


class Actors:
    """Who plays the games of a MuZero, within the block of MuZero.actors.

    Each group of games is a job. A job is what the group is to do, and the networks; what comes
    back is its harvest of games. It depends on the job only, so that a job whose process or machine
    ends is done again by another. The learner is this process.
    """

    def __init__(
        self, trainer: Any, problems: list[Problem], crew: Crew, most_stale: int | None
    ) -> None:
        """crew: does the jobs by PlayGames."""
        if most_stale is not None and most_stale < 0:
            raise InvalidInputError(f"muzero: found most_stale {most_stale}, allowed: 0 and more")
        self._trainer = trainer
        self._problems = problems
        self._crew = crew
        self._most_stale = most_stale
        self._out: set[int] = set()
        self._introduction: Shared | None = None
        self._weights: Shared | None = None

    def step(self) -> dict[str, Any]:
        """Does a step of the training, and returns what MuZero.step does.

        FailedJobsError: a job failed three times. The training then only gives results.
        """
        trainer = self._trainer
        if trainer.iterations == 0:
            return self._demonstrate()
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

    def _demonstrate(self) -> dict[str, Any]:
        numbers = range(len(self._problems))
        for number in numbers:
            self._crew.add(number, number)
        names = [f"muzero: {problem.name}" for problem in self._problems]
        found = dict(self._crew.done(lambda number: names[number]) for _ in numbers)
        begun: dict[str, Any] = self._trainer.take_demonstrations([found[i] for i in numbers])
        return begun

    def _assign(self, *groups: int) -> None:
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
        group, harvest = self._crew.done(lambda group: f"muzero: group {group}")
        self._out.discard(group)
        return group, harvest


class PlayGames:
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
