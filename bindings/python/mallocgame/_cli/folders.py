"""Folders that a command works in alone."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from typing import IO

from mallocgame.errors import InvalidInputError

_LOCK = ".lock"


@contextlib.contextmanager
def working_in(folder: str) -> Iterator[None]:
    """Makes a folder, and keeps other commands out of it for the length of the block.

    The lock ends with the process, however that ends. InvalidInputError: another process works in
    the folder, or it is no folder. OSError.
    """
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise InvalidInputError(f"{folder}: is no folder")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, _LOCK)
    with contextlib.ExitStack() as stack:
        while True:
            # Appending creates the file and leaves what another process wrote.
            file = stack.enter_context(open(path, "a+", encoding="utf-8"))
            _lock(file, folder)
            # Between the two calls its owner may have ended and taken the file away.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                    break
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        stack.callback(os.unlink, path)
        yield


def _lock(file: IO[str], folder: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        raise InvalidInputError(
            f"{folder}: process {file.read().strip() or 'unknown'} works in it; wait for its end, "
            "or give another folder"
        ) from None
