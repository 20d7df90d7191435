"""Commands that are killed, interrupted, or begun twice."""

import functools
import pathlib
import random
import shutil
import signal
import time

from fault_cases.campaign import BAD, SURVIVED, TOLD, Case, Try
from fault_cases.commands import ALL, Command, Compare, References, Solve
from fault_cases.judging import again, compared, how_it_ended
from fault_cases.processes import Ended, Running

_KILLED = ("train muzero", "train egrl", "xla tune", "benchmark", "compare --csv")
_LOCKED = ("train muzero", "train egrl", "benchmark", "offline", "compare --csv", "xla tune")

_HURRIES = 6  # runs that are begun, until one is struck


def cases(references: References, kills: int) -> list[Case]:
    """SIGKILL, SIGINT and SIGTERM at random moments, and two runs in one folder."""
    own = [
        Case("SIGKILL", name, kills, functools.partial(_kill, ALL[name], references))
        for name in _KILLED
    ]
    signals = max(1, kills // 5)
    own += [
        Case(number.name, name, signals, functools.partial(_signal, command, references, number))
        for number in (signal.SIGINT, signal.SIGTERM)
        for name, command in ALL.items()
    ]
    return own + [
        Case("two at once", name, 2, functools.partial(_twice, ALL[name], references))
        for name in _LOCKED
    ]


def _struck(
    command: Command,
    references: References,
    number: signal.Signals,
    folder: pathlib.Path,
    draw: random.Random,
) -> tuple[Ended, pathlib.Path] | None:
    """Sends a signal at any moment of a run. Returns how it ended, and its folder.

    Machines have moods: where it has ended before, another one is struck earlier. None: all ended.
    """
    share = draw.random()
    for hurry in range(_HURRIES):
        place = folder / str(hurry)
        place.mkdir()
        running = Running(command.arguments(place), place)
        # A kill comes while packages are imported too. Of a signal Python itself would end there.
        if number != signal.SIGKILL:
            running.wait_until_begun()
        sent = running.send_after(share * references.seconds(command) * 0.6**hurry, number)
        ended = running.end()
        # One that came after the results has changed nothing.
        if sent and not (ended.stdout and ended.status in (0, -number)):
            return ended, place
        shutil.rmtree(place)
    return None


def _kill(
    command: Command, references: References, folder: pathlib.Path, _: int, draw: random.Random
) -> Try:
    """Kills it at any moment, the import of packages included."""
    struck = _struck(command, references, signal.SIGKILL, folder, draw)
    if struck is None:
        return Try(SURVIVED, "each run ended before the signal")
    ended, place = struck
    left = Try(BAD, f"it leaves {ended.left} processes") if ended.left else Try(SURVIVED)
    return again(command, references, place, left)


def _signal(
    command: Command,
    references: References,
    number: signal.Signals,
    folder: pathlib.Path,
    _: int,
    draw: random.Random,
) -> Try:
    """Interrupts it at any moment from its begin."""
    struck = _struck(command, references, number, folder, draw)
    if struck is None:
        return Try(SURVIVED, "each run ended before the signal")
    ended, place = struck
    # With `python -m` Python ends itself by SIGINT, which shells call 130 too, if the interruption
    # comes while it runs code made from text, as packages do when they are imported.
    found = how_it_ended(ended, signalled=(130, -signal.SIGINT))
    there = command.stream(place)
    if isinstance(command, Solve | Compare) and ended.stdout and not there:
        return Try(BAD, f"it reports what it did not write: {ended.stdout[-500:]}")
    if "False" in there.values():
        return Try(BAD, "its plan is not valid")
    return again(command, references, place, found)


def _twice(
    command: Command, references: References, folder: pathlib.Path, _: int, draw: random.Random
) -> Try:
    """Begins it where another one works. That one goes on undisturbed."""
    command.arguments(folder)  # It may have something to prepare.
    first = Running(command.arguments(folder), folder)
    deadline = time.monotonic() + 60
    while not _locked(folder) and first.process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    second = Running(command.arguments(folder), folder).end()
    ended = first.end()
    if ended.status != 0:
        return Try(BAD, f"the first ended with {ended.status}: {ended.stderr[-800:]}")
    found = compared(command, references, folder, how_it_ended(second))
    if found.outcome == TOLD and "process" not in found.note:
        return Try(BAD, f"it does not say who works there: {found.note}")
    # A second one that began after the first had ended has nothing to refuse.
    return found if found.outcome != TOLD else Try(TOLD, "process … works in it")


def _locked(folder: pathlib.Path) -> bool:
    return any(folder.glob("*.lock")) or (folder / "out" / ".lock").exists()
