"""Says what came of a command that a fault happened to."""

import pathlib
from collections.abc import Sequence

from fault_cases.campaign import BAD, LOST, SURVIVED, TOLD, TRIES, Try
from fault_cases.commands import Command, References
from fault_cases.processes import Ended, Running


def how_it_ended(ended: Ended, signalled: Sequence[int] = ()) -> Try:
    """Judges the end alone. `signalled` are exit statuses that a signal may give too."""
    if ended.status is None:
        return Try(BAD, "it hangs")
    if ended.left:
        return Try(BAD, f"it leaves {ended.left} processes")
    if "Traceback" in ended.stderr:
        return Try(BAD, ended.stderr[-1500:])
    if ended.status in signalled:
        quiet = not ended.lines
        return Try(TOLD) if quiet else Try(BAD, f"status {ended.status}: {ended.stderr[-600:]}")
    if ended.status == 0:
        return Try(SURVIVED)
    if ended.status == 2 and len(ended.lines) == 1 and ended.lines[0].startswith("mallocgame"):
        return Try(TOLD, _without_folder(ended.lines[0]))
    return Try(BAD, f"status {ended.status}: {ended.stderr[-1500:]}")


def again(
    command: Command, references: References, folder: pathlib.Path, found: Try, limit: float = 300.0
) -> Try:
    """Runs the command again without the fault. It must then have all that it had, and the rest."""
    if found.outcome in (LOST, BAD) or not command.resumes:
        return found
    before = command.kept(folder)
    ended = Running(command.arguments(folder), folder).end(limit)
    if ended.status != 0:
        return Try(LOST, f"run again: status {ended.status}: {ended.stderr[-1000:]}")
    return command.lost(before, command.kept(folder)) or compared(
        command, references, folder, found
    )


def compared(command: Command, references: References, folder: pathlib.Path, found: Try) -> Try:
    """Compares what a command that ended well has written with an undisturbed run."""
    expected, there = references.stream(command), command.stream(folder)
    for name, value in there.items():
        if name in expected and expected[name] != value:
            return Try(LOST, f"{name}: found {value[:200]}, undisturbed {expected[name][:200]}")
    missing = expected.keys() - there.keys()
    if command.complete and missing:
        return Try(LOST, f"missing: {sorted(missing)[:3]}")
    return found


def _without_folder(line: str) -> str:
    """The line without what differs between tries: folders and numbers of processes."""
    return " ".join(
        "…/" + word.rsplit("/", 1)[1] if word.startswith("/") and f"/{TRIES}/" in word else word
        for word in line.split()
    )
