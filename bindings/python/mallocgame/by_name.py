"""What a user names as MODULE:NAME, and what their own code raises."""

import importlib
import os
import sys
import sysconfig
import traceback
from typing import Any

from mallocgame.errors import InvalidInputError

# Where code is that isn't the user's.
_OTHERS = (
    *(sysconfig.get_path(kind) + os.sep for kind in ("stdlib", "purelib", "platlib")),
    os.path.dirname(os.path.abspath(__file__)) + os.sep,
    "<",  # of no file, such as importlib's
)


def find_object(text: str) -> Any:
    """Imports what MODULE:NAME names. The module is looked for in the current folder too.

    InvalidInputError: there is no such module, it raises an error, or it has no such name.
    """
    module, _, name = text.partition(":")
    if not module or not name:
        raise InvalidInputError(f"'{text}': allowed: MODULE:NAME, as in my_model:step")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # The module may raise anything.
        raise InvalidInputError(f"'{text}': can't import '{module}': {in_a_line(error)}") from error
    if not hasattr(found, name):
        raise InvalidInputError(f"'{text}': module '{module}' has no '{name}'")
    return getattr(found, name)


def in_a_line(error: BaseException) -> str:
    """Returns what the user's code raised, and the innermost line of theirs that was at work."""
    said = next(iter(str(error).strip().splitlines()), "")
    if isinstance(error, SyntaxError):
        said = error.msg
        places = [(error.filename, error.lineno)]
    else:
        frames = traceback.extract_tb(error.__traceback__)
        places = [
            (frame.filename, frame.lineno)
            for frame in frames
            if not frame.filename.startswith(_OTHERS)
        ]
    where = f" ({places[-1][0]}, line {places[-1][1]})" if places else ""
    return f"{type(error).__name__}{': ' if said else ''}{said}{where}"
