"""Folders and files that a command works on alone."""

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
    with _locked(os.path.join(folder, _LOCK), f"{folder}: process {{}} works in it", "folder"):
        yield


@contextlib.contextmanager
def writing(path: str | None) -> Iterator[None]:
    """Keeps other commands from a file for the length of the block; None: there is no file.

    The file itself is replaced as a whole, so the lock is a file beside it. InvalidInputError:
    another process writes it. OSError.
    """
    if path is None:
        yield
        return
    with _locked(path + _LOCK, f"{path}: process {{}} writes it", "file"):
        yield


@contextlib.contextmanager
def _locked(path: str, refusal: str, what: str) -> Iterator[None]:
    """Holds a lock. `refusal` has a place for the process that holds it already."""
    with contextlib.ExitStack() as stack:
        while True:
            # Appending creates the file and leaves what another process wrote.
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
            file = stack.enter_context(open(descriptor, "r+b", buffering=0))
            _lock(file, refusal, what)
            # Between the two calls its owner may have ended and taken the file away.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                    break
        stack.callback(_unlink, path)
        # Who holds it is for people to know. A full disk keeps it from them, and it is held still.
        with contextlib.suppress(OSError):
            file.truncate(0)
            file.write(f"{os.getpid()}\n".encode())
        yield


def _lock(file: IO[bytes], refusal: str, what: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read().decode(errors="replace").strip() or "unknown"
        raise InvalidInputError(
            f"{refusal.format(holder)}; wait for its end, or give another {what}"
        ) from None


def _unlink(path: str) -> None:
    """Takes the file of a lock away. Left behind it does no harm: no process holds it."""
    with contextlib.suppress(OSError):
        os.unlink(path)
