"""The door to mallocgame._agents, the extension that needs Torch.

What the Python classes of its agents have in common stands here as well.
"""

import os
from collections.abc import Mapping
from types import ModuleType
from typing import Any, NamedTuple

from mallocgame._core import write_file
from mallocgame.errors import MallocGameError


class TorchMissingError(MallocGameError, ImportError):
    """The learning agents or Torch are missing, or it isn't the Torch that they were built with."""


def torch_module() -> ModuleType:
    """Returns mallocgame._agents. TorchMissingError says what to install."""
    try:
        from mallocgame._agents_build import TORCH
    except ImportError:
        raise TorchMissingError(
            "mallocgame was installed without its learning agents: "
            "pip install 'mallocgame[agents]', or .ci/setup agents in a clone of mallocgame"
        ) from None
    try:
        import torch
    except ModuleNotFoundError as error:
        raise TorchMissingError(
            f"the learning agents need Torch: pip install torch=={TORCH} ({error})"
        ) from None
    if torch.__version__.partition("+")[0] != TORCH:
        raise TorchMissingError(
            f"mallocgame was built with Torch {TORCH}, found {torch.__version__}: "
            f"pip install torch=={TORCH}, or install mallocgame again "
            "with --no-build-isolation"
        )
    from mallocgame import _agents

    return _agents


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


class TorchTrainer:
    """What the training of every agent has. `_trainer` is the extension's."""

    _trainer: Any

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a checkpoint all or nothing: a reader never sees half of one."""
        write_file(os.fsencode(path), self._trainer.save())

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
