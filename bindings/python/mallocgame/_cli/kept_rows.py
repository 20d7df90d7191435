"""Rows of a long comparison, kept in a file as they come, so that it goes on where it was ended."""

import json
import os
from typing import Any

from mallocgame._cli.rows import Row
from mallocgame._core import Program, read_file, write_file
from mallocgame.errors import InvalidInputError, MissingFileError

SUFFIX = ".part"


class KeptRows:
    """The rows so far, in a file beside the one that is written at the end.

    path: of the latter; None keeps nothing.
    """

    def __init__(self, path: str | None, settings: dict[str, Any]) -> None:
        """`settings` is what rows must have in common. InvalidInputError: those there differ."""
        self._path = None if path is None else path + SUFFIX
        self._settings = settings
        self._rows = {} if self._path is None else _load(self._path, settings)

    def find(self, program: Program, solver: str) -> Row | None:
        """Returns the row of a solver on a program; None: there is none yet."""
        return self._rows.get(_name(program, solver))

    def add(self, program: Program, solver: str, row: Row) -> None:
        """Keeps a row. FileAccessError."""
        self._rows[_name(program, solver)] = row
        if self._path is not None:
            document = {"settings": self._settings, "rows": self._rows}
            write_file(os.fsencode(self._path), (json.dumps(document, indent=1) + "\n").encode())

    def forget(self) -> None:
        """Takes the file away, once all rows are where they belong."""
        if self._path is not None and os.path.exists(self._path):
            os.unlink(self._path)


def _name(program: Program, solver: str) -> str:
    return f"{program.name} {program.fingerprint} {solver}"


def _load(path: str, settings: dict[str, Any]) -> dict[str, Row]:
    try:
        document = json.loads(read_file(os.fsencode(path)))
        found, rows = dict(document["settings"]), dict(document["rows"])
    except MissingFileError:
        return {}
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInputError(f"{path}: no rows of a comparison ({error!r}); delete it") from None
    for name, value in settings.items():
        if found.get(name) != value:
            raise InvalidInputError(
                f"{path}: found results of a comparison with {name} {found.get(name)}, allowed: "
                f"{value}; delete it, or write to another file"
            )
    return rows
