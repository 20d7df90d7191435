"""The EGRL agent. Users import it from mallocgame.agents."""

import contextlib
import functools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mallocgame._core import Placement, read_file
from mallocgame._jobs import Crew, Shared
from mallocgame._torch import torch_module
from mallocgame.agents.actors import actors_of
from mallocgame.agents.trainer import Setting, TorchAgent, TorchTrainer, texts
from mallocgame.placement_results import FoundMap
from mallocgame.programs import named


def egrl_settings() -> list[Setting]:
    """Returns all settings that `config` may have."""
    return [Setting(*setting) for setting in torch_module().egrl_settings()]


class Egrl(TorchTrainer):
    """The training on a placement problem, or on several with the same networks.

    problems: a Placement, or several with the same number of levels, which take turns. All maps of
    a round, in which each has its turn, are made with the networks of the round's beginning.
    config: settings by name, see egrl_settings(); those left out keep their default.
    seed, threads: the stream of generations depends on problems, config and seed only; threads 0 is
    one for each core.

    InvalidInputError: a setting is none.
    """

    def __init__(
        self,
        problems: Placement | Sequence[Placement],
        config: Mapping[str, object] | None = None,
        seed: int = 0,
        threads: int = 0,
    ) -> None:
        self._problems = _listed(problems)
        self._actors: _Actors | None = None
        self._trainer = torch_module().EgrlTrainer(
            self._problems, texts(config or {}), seed, threads
        )

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        problems: Placement | Sequence[Placement],
        threads: int = 0,
    ) -> "Egrl":
        """Goes on with what save() wrote, with the very same stream.

        InvalidInputError: the file is damaged, or of another version or other problems.
        """
        module = torch_module()
        trainer = cls.__new__(cls)
        trainer._problems = _listed(problems)
        trainer._actors = None
        content = read_file(path)
        trainer._trainer = named(
            os.fspath(path), lambda: module.EgrlTrainer.load(trainer._problems, content, threads)
        )
        return trainer

    def step(self) -> dict[str, Any]:
        """Does one generation of one problem: grades maps, and learns from them.

        Returns what it did: the problem's place among all, its evaluations and best_ps since the
        start, fitness of its parts, losses, and so on (docs/egrl.md). Ctrl-C ends it and raises
        KeyboardInterrupt; then only results can be asked for.
        """
        harvest = None if self._actors is None else self._actors.harvest()
        progress: dict[str, Any] = self._trainer.step(harvest)
        return progress

    @contextlib.contextmanager
    def actors(self, workers: int | str) -> Iterator[None]:
        """Has others make the maps of all steps within the block.

            with trainer.actors("auto"):
                trainer.train()

        The generations of a round are made at the same time, while this process learns. The stream
        stays the same. A step raises FailedJobsError for a generation that failed three times.
        workers: a number of processes of this machine, or the address of a Ray cluster (docs/
        ray.md). At most as many work as there are problems.

        InvalidInputError: the number is too small, or no cluster answers there.
        """
        work = functools.partial(_harvest, self._problems)
        with actors_of("egrl", work, workers) as crew:
            self._actors = _Actors(self._trainer, len(self._problems), crew)
            try:
                yield
            finally:
                self._actors = None

    def train(
        self,
        evaluations: int = 4000,
        seconds: float = 0.0,
        on_step: Callable[[dict[str, Any]], object] | None = None,
    ) -> None:
        """Makes generations until `evaluations` maps of all problems have been graded in all.

        seconds: it ends earlier when they have passed; 0 is no limit.
        """
        end = time.monotonic() + seconds
        while self.evaluations < evaluations:
            progress = self.step()
            if on_step is not None:
                on_step(progress)
            if seconds > 0 and time.monotonic() >= end:
                return

    def best(self, problem: int = 0) -> FoundMap:
        """Returns the fastest map that fits, of a problem by its place."""
        return FoundMap(*self._trainer.best(problem))

    def agent(self) -> "EgrlAgent":
        """Returns the agent as it is now."""
        return EgrlAgent(self._trainer.save())

    @property
    def problems(self) -> list[Placement]:
        """The problems that it is trained on."""
        return self._problems

    @property
    def generations(self) -> int:
        """Steps done."""
        return int(self._trainer.generations)

    @property
    def evaluations(self) -> int:
        """Maps of all problems graded in all."""
        return int(self._trainer.evaluations)


class _Actors:
    """Has the generations of a trainer's rounds made by a crew."""

    def __init__(self, trainer: Any, problems: int, crew: Crew) -> None:
        self._trainer, self._problems, self._crew = trainer, problems, crew
        self._asked: set[int] = set()  # generations, by their number
        self._harvests: dict[int, bytes] = {}

    def harvest(self) -> bytes:
        """Returns the maps of the next generation, and has those of its round begun."""
        wanted: int = self._trainer.generations
        if wanted not in self._asked:
            self._ask(wanted)
        while wanted not in self._harvests:
            number, made = self._crew.done(lambda number: f"egrl: generation {number}")
            self._harvests[number] = made
        self._asked.remove(wanted)
        return self._harvests.pop(wanted)

    def _ask(self, begin: int) -> None:
        networks = Shared(self._trainer.weights())
        for problem in range(begin % self._problems, self._problems):
            number = begin - begin % self._problems + problem
            self._asked.add(number)
            self._crew.add(number, (problem, networks, self._trainer.assign(problem)))


def _harvest(problems: Sequence[Placement], job: tuple[int, Shared, bytes]) -> bytes:
    """Makes the maps of an assigned generation, in a process of its own."""
    problem, networks, assignment = job
    harvest: bytes = torch_module().egrl_harvest(problems[problem], networks.data, assignment, 1)
    return harvest


def _listed(problems: Placement | Sequence[Placement]) -> list[Placement]:
    return [problems] if isinstance(problems, Placement) else list(problems)


class EgrlAgent(TorchAgent):
    """A trained agent. It places the tensors of any program, also of one that it has not seen."""

    _kind = "egrl"

    def place(self, problem: Placement, samples: int = 16, seed: int = 0) -> FoundMap:
        """Returns the fastest of some maps, without training.

        They are the most likely map of the policy and of the population's best graph network, and
        `samples` drawn from each and improved as long as the critics expect more. All are
        rectified, so that they fit. InvalidInputError: the agent was trained with another number of
        levels.
        """
        return FoundMap(*self._agent.place(problem, samples, seed))

    @property
    def program(self) -> str:
        """The names of the programs that it was trained on, with commas between them."""
        return str(self._agent.name)

    @property
    def levels(self) -> int:
        """The number of memory levels of the problems that it can place."""
        return int(self._agent.levels)

    @property
    def generations(self) -> int:
        """Steps of training."""
        return int(self._agent.generations)

    @property
    def evaluations(self) -> int:
        """Maps graded in training."""
        return int(self._agent.evaluations)
