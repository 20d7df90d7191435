"""What `mallocgame view` does: finds out what it was given, and of which program."""

import json
import os

from mallocgame._core import GameLog, Plan, Program, read_file
from mallocgame.errors import InvalidInputError
from mallocgame.files import load_log, load_plan, program_of
from mallocgame.programs import decode, hardware, load_program, manifest, named
from mallocgame.viewer.page import write_page

XLA = "xla"


def view(
    shown: str, against: str | None, program: str | None, machine: str | None, bound: str, path: str
) -> dict:
    """Write the page; returns what `--json` prints.

    shown, against: paths of a game or a plan, or "xla" for XLA's own plan. program: a bundled name
    or .mgp path; None: the bundled program that `shown` or `against` is of. machine: hardware as
    elsewhere; None: the game's, else the program's.
    """
    subject_program = _program(program, [shown, against])
    first, first_label = _load(shown, subject_program)
    second, second_label = (None, None) if against is None else _load(against, subject_program)
    if machine is not None:
        target = hardware(machine)
    else:
        target = first.hardware if isinstance(first, GameLog) else subject_program.hardware
    labels = {"label": first_label, "against_label": second_label}
    size = write_page(
        path, first, subject_program, against=second, hardware=target, bound=bound, **labels
    )
    return {
        "page": path,
        "bytes": size,
        "program": subject_program.name,
        "hardware": target.name,
        "shown": first_label,
        "against": second_label,
    }


def _load(name: str, program: Program) -> tuple[Plan | GameLog, str]:
    """The plan or game, and its name on the page."""
    if name == XLA:
        if program.xla_plan is None:
            raise InvalidInputError(f"{XLA}: program '{program.name}' has no plan of XLA's")
        return program.xla_plan, "XLA"
    if _is_json(name):
        return load_plan(name, program), os.path.basename(name)
    log = load_log(name)
    return log, log.solver or os.path.basename(name)


def _program(name: str | None, subjects: list[str | None]) -> Program:
    if name is not None:
        return load_program(name)
    for subject in subjects:
        if subject in (None, XLA):
            continue
        if not _is_json(subject):
            return program_of(load_log(subject))
        return load_program(_bundled_with(subject))
    raise InvalidInputError(f"{XLA}: of which program? name it with --program")


def _is_json(path: str) -> bool:
    return read_file(os.fsencode(path))[:64].lstrip().startswith(b"{")


def _bundled_with(path: str) -> str:
    """Name of the bundled program that a JSON plan is of."""
    text = named(path, lambda: decode(read_file(os.fsencode(path))))
    try:
        plan = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidInputError(f"{path}: not JSON: {error}") from None
    fingerprint = plan.get("program_fingerprint")
    for name, entry in manifest().items():
        if entry["fingerprint"] == fingerprint:
            return name
    found = f"'{plan.get('program')}' ({fingerprint})"
    raise InvalidInputError(
        f"{path}: plan of program {found}, which is no bundled one: name its .mgp file with --program"
    )
