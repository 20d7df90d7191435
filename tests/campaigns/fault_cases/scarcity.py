"""Little memory, and a clock that jumps."""

import functools
import pathlib
import random

from fault_cases.campaign import SURVIVED, Case, Try
from fault_cases.commands import ALL, Command, References
from fault_cases.disks import failing_files
from fault_cases.judging import again, compared, how_it_ended
from fault_cases.processes import Running

# Below the first Python itself can't import NumPy.
_MEGABYTES = (200, 250, 300, 400, 500, 600, 800, 1000, 1500, 2000, 3000, 6000)
_NAMES = [name for name in ALL if name != "levels make"]


def cases(references: References, kills: int) -> list[Case]:
    """Limits of the address space from 200 MB, and jumps of the time of day."""
    limited = [
        Case(
            "address space",
            name,
            len(_MEGABYTES),
            functools.partial(_limited, ALL[name], references),
        )
        for name in _NAMES
    ]
    return limited + [
        Case("clock jumps", name, 1, functools.partial(_jumping, ALL[name], references))
        for name in _NAMES
    ]


def _limited(
    command: Command, references: References, folder: pathlib.Path, index: int, _: random.Random
) -> Try:
    prefix = ["prlimit", f"--as={_MEGABYTES[index] * 10**6}"]
    found = how_it_ended(Running(command.arguments(folder), folder, prefix=prefix).end())
    return again(command, references, folder, found)


def _jumping(
    command: Command, references: References, folder: pathlib.Path, _: int, draw: random.Random
) -> Try:
    environment = {"LD_PRELOAD": str(failing_files(folder)), "CLOCK_JUMPS": "1"}
    found = how_it_ended(Running(command.arguments(folder), folder, environment).end())
    if found.outcome == SURVIVED:
        found = compared(command, references, folder, found)
    return again(command, references, folder, found)
