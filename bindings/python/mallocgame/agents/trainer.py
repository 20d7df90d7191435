"""What the Python classes of all agents have in common."""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

from mallocgame._core import write_file


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
