"""The door to mallocgame._agents, the extension that needs Torch, and what its agents have in
common.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

from mallocgame._core import write_file
from mallocgame.errors import MallocGameError


class TorchMissingError(MallocGameError, ImportError):
    """There is no Torch, or not the one that mallocgame was built with."""


def torch_module():
    """mallocgame._agents, or a sentence that says what to install."""
    try:
        from mallocgame._agents_build import TORCH
    except ImportError:
        raise TorchMissingError(
            "mallocgame was built without Torch, which its learning agents need: "
            "pip install torch==2.13.0, then install mallocgame again with --no-build-isolation"
        ) from None
    try:
        import torch
    except ImportError as error:
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
    """What can be set of an agent, as text."""

    name: str
    default: str
    allowed: str
    meaning: str


def texts(config: Mapping[str, object]) -> dict[str, str]:
    """Settings as the extension takes them."""
    return {
        name: str(int(value)) if isinstance(value, bool) else str(value)
        for name, value in config.items()
    }


class TorchTrainer:
    """What the training of every agent has. `_trainer` is the extension's."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """All or nothing: a reader never sees half a checkpoint."""
        write_file(os.fsencode(path), self._trainer.save())

    @property
    def settings(self) -> dict[str, str]:
        """All of them, by name."""
        return self._trainer.settings

    @property
    def seed(self) -> int:
        """That it was begun with."""
        return self._trainer.seed

    @property
    def parameters(self) -> int:
        """Weights of the networks that play."""
        return self._trainer.parameters
