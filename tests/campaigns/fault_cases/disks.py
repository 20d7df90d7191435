"""Disks that are full or read-only, folders that vanish, and files that can't be written."""

import contextlib
import errno
import functools
import os
import pathlib
import random
import shutil
import subprocess
from collections.abc import Iterator

from fault_cases.campaign import SURVIVED, Case, Try
from fault_cases.commands import ALL, Command, References
from fault_cases.judging import again, compared, how_it_ended
from fault_cases.processes import Running

_SOURCE = pathlib.Path(__file__).parents[1] / "failing_files.c"
_NAMES = [name for name in ALL if name != "levels make"]
_DISK = 64 << 20  # bytes
# What is left of it, from nothing to more than a checkpoint.
_FREE = (0, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20)
_ERRORS = {
    "write": (errno.ENOSPC, errno.EIO),
    "fsync": (errno.EIO, errno.ENOSPC),
    "rename": (errno.EIO, errno.EROFS),
}


def cases(references: References, kills: int) -> list[Case]:
    """Full, read-only, vanishing and failing."""
    tries = max(1, kills // 10)
    own = []
    for fault, attempt, times in (
        ("full disk", _full, len(_FREE)),
        ("read-only folder", _read_only, 1),
        ("vanishing folder", _vanishing, tries),
    ):
        own += [
            Case(fault, name, times, functools.partial(attempt, ALL[name], references))
            for name in _NAMES
        ]
    return own + [
        Case(
            f"failing {call}", name, tries, functools.partial(_failing, ALL[name], references, call)
        )
        for call in _ERRORS
        for name in _NAMES
    ]


@contextlib.contextmanager
def small_disk(at: pathlib.Path, size: int) -> Iterator[None]:
    """Mounts an empty file system of `size` bytes, which needs root."""
    at.mkdir(parents=True, exist_ok=True)
    options = ["-t", "tmpfs", "-o", f"size={size}", "tmpfs"]
    subprocess.run(["mount", *options, at], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", at], check=True)


def failing_files(folder: pathlib.Path) -> pathlib.Path:
    """Returns the library that makes calls fail, compiled once for a campaign."""
    library = folder.parents[1] / "failing_files.so"
    if not library.exists():
        command = ["cc", "-shared", "-fPIC", "-O1", "-o", library, _SOURCE, "-ldl"]
        subprocess.run(command, check=True)
    return library


def _full(
    command: Command, references: References, folder: pathlib.Path, index: int, _: random.Random
) -> Try:
    """Has it begin with little space left, then with enough of it."""
    disk = folder / "disk"
    with small_disk(disk, _DISK):
        command.arguments(disk)  # What it prepares is there before.
        ballast = disk / "ballast"
        left = os.statvfs(disk)
        ballast.write_bytes(b"\0" * max(0, left.f_bavail * left.f_frsize - _FREE[index]))
        ended = Running(command.arguments(disk), folder).end()
        ballast.unlink()
        return again(command, references, disk, how_it_ended(ended))


def _read_only(
    command: Command, references: References, folder: pathlib.Path, _: int, draw: random.Random
) -> Try:
    """Has it begin in a folder that can only be read. Root ignores permissions, no mount does."""
    disk = folder / "disk"
    with small_disk(disk, _DISK):
        command.arguments(disk)
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        ended = Running(command.arguments(disk), folder).end()
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
        return again(command, references, disk, how_it_ended(ended))


def _vanishing(
    command: Command, references: References, folder: pathlib.Path, _: int, draw: random.Random
) -> Try:
    """Takes the folder away at any moment. What was in it is lost with it, and nothing else is."""
    place = folder / "place"
    place.mkdir()
    running = Running(command.arguments(place), folder)
    running.wait_until_begun()
    with contextlib.suppress(subprocess.TimeoutExpired):
        running.process.wait(draw.uniform(0.0, references.seconds(command)))
    shutil.rmtree(place, ignore_errors=True)
    ended = running.end()
    place.mkdir(exist_ok=True)
    return again(command, references, place, how_it_ended(ended))


def _failing(
    command: Command,
    references: References,
    call: str,
    folder: pathlib.Path,
    index: int,
    draw: random.Random,
) -> Try:
    """Has one call fail, or from there on all of them."""
    place = folder / "place"
    place.mkdir()
    command.arguments(place)
    error = _ERRORS[call][index % 2]
    environment = {
        "LD_PRELOAD": str(failing_files(folder)),
        "FAIL_UNDER": str(place),
        "FAIL_CALL": call,
        "FAIL_AT": str(1 + int(20 * draw.random() ** 2)),
        "FAIL_ERRNO": str(error),
        "FAIL_LASTING": str(int(error == errno.ENOSPC)),
    }
    ended = Running(command.arguments(place), folder, environment).end()
    found = how_it_ended(ended)
    if found.outcome == SURVIVED:
        found = compared(command, references, place, found)
    return again(command, references, place, found)
