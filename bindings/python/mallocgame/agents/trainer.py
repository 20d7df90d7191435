"""What the Python classes of all agents have in common."""

import os
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

from mallocgame._core import NamedSolver, read_file, write_file
from mallocgame._torch import AGENTS, PORTFOLIO_SHARE, torch_module
from mallocgame.programs import named


class Setting(NamedTuple):
    """A setting of an agent, as text."""

    name: str
    default: str
    allowed: str
    meaning: str


def texts(config: Mapping[str, object]) -> dict[str, str]:
    """Returns settings as the extension takes them."""
    return {
        name: str(int(value)) if isinstance(value, bool) else str(value)
        for name, value in config.items()
    }


class TorchAgent:
    """What every trained agent has. It is made of a checkpoint; `_agent` is the extension's."""

    _kind: ClassVar[str]  # the name of its solver

    def __init__(self, checkpoint: bytes) -> None:
        self.checkpoint = checkpoint
        self._agent = getattr(torch_module(), AGENTS[self._kind])(checkpoint)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.checkpoint,)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Reads what save() of its trainer or `mallocgame train` wrote. InvalidInputError."""
        content = read_file(path)
        return named(os.fspath(path), lambda: cls(content))

    def solver(self, portfolio_share: float = PORTFOLIO_SHARE) -> NamedSolver:
        """Returns the agent as a solver for mallocgame.solve(extra_solvers=[...]).

        `egrl` trains on from the agent's networks. portfolio_share: its share of a portfolio's
        time, on one core.
        """
        solver: NamedSolver = self._agent.solver(portfolio_share)
        return solver

    @property
    def settings(self) -> dict[str, str]:
        """All settings of the training as text, by name."""
        settings: dict[str, str] = self._agent.settings
        return settings


class TorchTrainer:
    """What the training of every agent has. `_trainer` is the extension's."""

    _trainer: Any

    def __reduce__(self) -> NoReturn:
        name = type(self).__name__
        raise TypeError(
            f"{name} can't be pickled or copied: save() it, and load() it where it goes on"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a checkpoint all or nothing: a reader never sees half of one."""
        write_file(path, self._trainer.save())

    @property
    def settings(self) -> dict[str, str]:
        """All settings as text, by name."""
        settings: dict[str, str] = self._trainer.settings
        return settings

    @property
    def seed(self) -> int:
        """The seed that the training was begun with."""
        return int(self._trainer.seed)

    @property
    def parameters(self) -> int:
        """The number of weights of the networks that play."""
        return int(self._trainer.parameters)
