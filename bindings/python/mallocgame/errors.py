"""The exceptions of mallocgame. Each is a MallocGameError; where Python has a class of its own
for it, it is that too.
"""


class MallocGameError(Exception):
    """Root of everything that mallocgame raises on purpose."""


class InvalidInputError(MallocGameError, ValueError):
    """A file, module, name or setting that can't be used; the message says what, where, found
    and allowed.
    """


class InvalidActionError(MallocGameError, ValueError):
    """An action that isn't legal now. The state is as it was."""


class GameOverError(InvalidActionError, RuntimeError):
    """A decision after the last one. The state is as it was."""


class FileAccessError(MallocGameError, OSError):
    """A file that can't be read or written."""


class MissingFileError(FileAccessError, FileNotFoundError):
    """A file that isn't there."""
