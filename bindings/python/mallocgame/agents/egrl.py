"""The EGRL agent from Python; users import it from mallocgame.agents."""

import os
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from mallocgame._core import NamedSolver, Placement, read_file
from mallocgame.agents.torch_module import Setting, TorchTrainer, texts, torch_module
from mallocgame.programs import named


class FoundMap(NamedTuple):
    """The fastest map that fits: as Placement.search gives it."""

    map: np.ndarray  # uint8 [num_nodes, 2]; everything in the slowest level if no map fitted
    latency_ps: int
    reward: float
    best_ps: np.ndarray  # int64 [evaluations]: the least latency so far, 0: no map had fitted yet


def egrl_settings() -> list[Setting]:
    """All settings that `config` may have."""
    return [Setting(*setting) for setting in torch_module().egrl_settings()]


def egrl_solver() -> NamedSolver:
    """The solver `egrl`: plays the program's game as a placement problem and trains on it within
    the limits.
    """
    return torch_module().egrl_solver()


class Egrl(TorchTrainer):
    """Training on one placement problem.

    config: settings by name, see egrl_settings(); those left out keep their default. seed, threads:
    the stream of generations depends on problem, config and seed only; threads 0 is one a core.

    InvalidInputError: a setting that isn't one.
    """

    def __init__(
        self,
        problem: Placement,
        config: Mapping[str, object] | None = None,
        seed: int = 0,
        threads: int = 0,
    ) -> None:
        self._problem = problem
        self._trainer = torch_module().EgrlTrainer(
            problem, problem.program.name, texts(config or {}), seed, threads
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str], problem: Placement, threads: int = 0) -> "Egrl":
        """Go on with what save() wrote, the very same stream. InvalidInputError: another
        version, another problem, or damaged.
        """
        module = torch_module()
        trainer = cls.__new__(cls)
        trainer._problem = problem
        content = read_file(os.fsencode(path))
        trainer._trainer = named(
            os.fspath(path), lambda: module.EgrlTrainer.load(problem, content, threads)
        )
        return trainer

    def step(self) -> dict:
        """One generation: the population's maps and the policy gradient's are graded, both learn.

        The dict says what it did: evaluations and best_ps since the begin, fitness of its parts,
        losses, and so on (docs/egrl.md). Ctrl-C ends it and raises KeyboardInterrupt; then only
        results can be asked for.
        """
        return self._trainer.step()

    def train(
        self,
        evaluations: int = 4000,
        seconds: float = 0.0,
        on_step: Callable[[dict], object] | None = None,
    ) -> None:
        """Generations until so many maps have been graded since the begin, or so many seconds
        have passed (0: no limit).
        """
        end = time.monotonic() + seconds
        while self.evaluations < evaluations:
            progress = self.step()
            if on_step is not None:
                on_step(progress)
            if seconds > 0 and time.monotonic() >= end:
                return

    def best(self) -> FoundMap:
        return FoundMap(*self._trainer.best())

    def agent(self) -> "EgrlAgent":
        """The agent as it is now."""
        return EgrlAgent(self._trainer.save())

    @property
    def problem(self) -> Placement:
        return self._problem

    @property
    def generations(self) -> int:
        """Steps done."""
        return self._trainer.generations

    @property
    def evaluations(self) -> int:
        """Maps graded since the begin."""
        return self._trainer.evaluations


class EgrlAgent:
    """A trained agent: places the tensors of any program, also of one that it has not seen."""

    def __init__(self, checkpoint: bytes) -> None:
        self._agent = torch_module().EgrlAgent(checkpoint)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "EgrlAgent":
        """From what Egrl.save or `mallocgame train egrl` wrote."""
        content = read_file(os.fsencode(path))
        return named(os.fspath(path), lambda: cls(content))

    def place(self, problem: Placement, samples: int = 16, seed: int = 0) -> FoundMap:
        """Without training: the most likely map of the policy and of the population's best graph
        network, and `samples` drawn from each, all rectified, so that they fit; the fastest.

        InvalidInputError: another number of levels than it was trained with.
        """
        return FoundMap(*self._agent.place(problem, samples, seed))

    def solver(self, portfolio_share: float = 0.5) -> NamedSolver:
        """Returns the solver `egrl` for mallocgame.solve(extra_solvers=[...]).

        It trains on from this agent's networks. portfolio_share: its share of a portfolio's time,
        on one core.
        """
        return self._agent.solver(portfolio_share)

    @property
    def program(self) -> str:
        """That it was trained on."""
        return self._agent.name

    @property
    def levels(self) -> int:
        """Memory levels of the problems that it can place."""
        return self._agent.levels

    @property
    def settings(self) -> dict[str, str]:
        return self._agent.settings

    @property
    def generations(self) -> int:
        """Of training."""
        return self._agent.generations

    @property
    def evaluations(self) -> int:
        """Of training: maps graded."""
        return self._agent.evaluations
