"""What a user names as MODULE:NAME."""

import importlib
import os
import sys
from typing import Any

from mallocgame.errors import InvalidInputError


def find_object(text: str) -> Any:
    """Imports what MODULE:NAME names. The module is looked for in the current folder too.

    InvalidInputError: there is no such module, or it has no such name.
    """
    module, _, name = text.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, ValueError) as error:
        raise InvalidInputError(f"'{text}': can't import '{module}': {error}") from None
    except AttributeError:
        raise InvalidInputError(f"'{text}': module '{module}' has no '{name}'") from None
