"""The door to mallocgame._agents, the extension that needs Torch.

What the Python classes of its agents have in common stands here as well.
"""

import contextlib
import ctypes
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

from mallocgame._address_space import check_address_space
from mallocgame._core import write_file
from mallocgame.errors import MallocGameError, how_to_install


class TorchMissingError(MallocGameError, ImportError):
    """The learning agents or Torch are missing, or it isn't the Torch that they were built with."""


def torch_module() -> ModuleType:
    """Returns mallocgame._agents.

    TorchMissingError says what to install. MallocGameError: Torch needs more address space.
    """
    try:
        from mallocgame._agents_build import TORCH
    except ImportError:
        raise TorchMissingError(
            f"mallocgame was installed without its learning agents: {how_to_install('agents')}"
        ) from None
    try:
        found = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError as error:
        raise TorchMissingError(
            f"the learning agents need Torch: pip install torch=={TORCH} ({error})"
        ) from None
    if found.partition("+")[0] != TORCH:
        raise TorchMissingError(
            f"mallocgame was built with Torch {TORCH}, found {found}: "
            f"pip install torch=={TORCH}, or install mallocgame again "
            "with --no-build-isolation"
        )
    _load_torch()
    from mallocgame import _agents

    return _agents


def _load_torch() -> None:
    """Loads the libraries of Torch, as importing it would, which takes seconds."""
    if "torch" in sys.modules:
        return
    check_address_space("Torch")
    package = importlib.util.find_spec("torch")
    for folder in (package and package.submodule_search_locations) or ():
        with contextlib.suppress(OSError):
            ctypes.CDLL(os.path.join(folder, "lib", "libtorch.so"))
            return
    # Such as a build with CUDA, whose libraries Torch itself knows how to find.
    import torch  # noqa: F401


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
