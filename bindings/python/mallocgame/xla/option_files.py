"""Compiler options of a plan, and options as a file."""

import json
import os

from mallocgame._core import Plan, read_file, write_file
from mallocgame.errors import InvalidInputError
from mallocgame.programs import decode
from mallocgame.xla.captures import Capture
from mallocgame.xla.overrides import request

_FORMAT = "mallocgame compiler options"


def options(capture: Capture, plan: Plan) -> dict[str, str]:
    """Returns the options that ask XLA:TPU for a plan of `capture.program`.

    They are for jax.jit(..., compiler_options=...). Nothing is compiled, so the compiler may refuse
    some of them; `apply` gives options that it accepts.
    """
    return capture.target.options | request(capture.program, plan, capture.default.before).options()


def save_options(values: dict[str, str], path: str | os.PathLike[str], **about: object) -> None:
    """Writes options as JSON; `about` is kept beside them (program, versions ...)."""
    document = {"format": _FORMAT, **about, "compiler_options": values}
    write_file(os.fsencode(path), (json.dumps(document, indent=1) + "\n").encode())


def load_options(path: str | os.PathLike[str]) -> dict[str, str]:
    """Reads what save_options wrote. MissingFileError; InvalidInputError: it is no such file."""
    text = os.fspath(path)
    try:
        document = json.loads(decode(read_file(os.fsencode(text))))
    except ValueError as error:
        raise InvalidInputError(f"{text}: {error}") from None
    values = document.get("compiler_options") if isinstance(document, dict) else None
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise InvalidInputError(
            f"{text}: no object compiler_options of text values; found {str(values)[:60]}"
        )
    return values
