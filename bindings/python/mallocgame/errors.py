"""The exceptions of mallocgame.

Each is a MallocGameError. Where Python has a class of its own for it, it is of that class too.
"""

from collections.abc import Iterable
from typing import Self


class MallocGameError(Exception):
    """The root of everything that mallocgame raises on purpose.

    The message is for people. The refusal of a plan, a module or an assignment has fields too, and
    programs read those.
    """

    rule: str = ""  # the stable name of the rule that is broken; "": the error is about none
    instructions: tuple[str, ...] = ()  # at fault, by their HLO names
    accesses: tuple[int, ...] = ()  # at fault, of the program whose plan is refused
    exceeded_bytes: int = 0  # by how many bytes a memory is too small

    def about(
        self,
        rule: str,
        instructions: Iterable[str] = (),
        accesses: Iterable[int] = (),
        exceeded_bytes: int = 0,
    ) -> Self:
        """Sets the fields of a refusal, and returns it."""
        self.rule, self.instructions = rule, tuple(instructions)
        self.accesses, self.exceeded_bytes = tuple(accesses), exceeded_bytes
        return self


class InvalidInputError(MallocGameError, ValueError):
    """A file, module, name or setting that can't be used.

    The message says what it is, where, what was found and what is allowed.
    """


class InvalidActionError(MallocGameError, ValueError):
    """An action that is not legal now. The state is as it was."""


class GameOverError(InvalidActionError, RuntimeError):
    """A decision after the last one. The state is as it was."""


class FileAccessError(MallocGameError, OSError):
    """A file that can't be read or written."""


class MissingFileError(FileAccessError, FileNotFoundError):
    """A file that is not there."""


class MissingExtraError(MallocGameError, ImportError):
    """A package that a feature needs is not installed; `extra` of pyproject.toml has it."""

    def __init__(self, needs: str, extra: str) -> None:
        super().__init__(f"{needs}: {how_to_install(extra)}")


def how_to_install(extra: str) -> str:
    """Returns what to type to get the packages of an extra of pyproject.toml."""
    return f".ci/setup {extra} in a clone of mallocgame, else pip install 'mallocgame[{extra}]'"
