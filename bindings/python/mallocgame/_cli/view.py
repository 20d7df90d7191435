"""`mallocgame view`: finds out what it was given, and of which program, and writes the page."""

import argparse
import json
import os
from typing import Any

from mallocgame._cli import console, parser
from mallocgame._cli.rows import print_json
from mallocgame._core import GameLog, Plan, Program, read_file
from mallocgame.errors import InvalidInputError
from mallocgame.files import load_log, load_ordered_plan, load_plan, program_of
from mallocgame.programs import decode, load_program, manifest, named
from mallocgame.viewer.page import write_page

_XLA = "xla"


def register(commands: parser.Commands) -> None:
    """Adds the command of this module."""
    command = commands.add(
        "view", _view, "a page that shows a plan, a game, or two of them side by side"
    )
    command.takes(
        "shown GAME|PLAN", "a game (.mgr), a plan (JSON), or xla: the compiler's own plan"
    )
    command.takes("--against GAME|PLAN", "compare with this one; likewise")
    command.takes(
        "--program PROGRAM", "of the plan, where it is no bundled one or xla alone is shown"
    )
    parser.add_hardware(command)
    parser.add_bound(command)
    command.takes("-o --output PAGE", "the HTML file to write", parser.output_file, required=True)


def _view(options: argparse.Namespace) -> int:
    with console.working(f"drawing {options.shown}"):
        row = _write(options)
    if options.json:
        return print_json(row)
    console.print_line(
        f"{row['page']}: {row['bytes'] / 1e6:.1f} MB, opens in any browser, needs no network"
    )
    return parser.OK


def _write(options: argparse.Namespace) -> dict[str, Any]:
    """Writes the page and returns what `--json` prints.

    The program is that of --program, else the bundled one that the first plan or game is of. The
    hardware is that of --hardware, else the game's, else the program's, with --preloads.
    """
    program = _program(options.program, [options.shown, options.against])
    if options.shown != _XLA and _is_json(options.shown):
        # A plan with an order of instructions of its own is of the program in that order.
        program = load_ordered_plan(options.shown, program)[0]
    first, first_label = _load(options.shown, program)
    second, second_label = (
        (None, None) if options.against is None else _load(options.against, program)
    )
    hardware = parser.hardware_of(
        options, first.hardware if isinstance(first, GameLog) else program.hardware
    )
    size = write_page(
        options.output,
        first,
        program,
        against=second,
        hardware=hardware,
        bound=options.bound,
        label=first_label,
        against_label=second_label,
    )
    return {
        "page": options.output,
        "bytes": size,
        "program": program.name,
        "hardware": hardware.name,
        "shown": first_label,
        "against": second_label,
    }


def _load(name: str, program: Program) -> tuple[Plan | GameLog, str]:
    """Returns the plan or game, and its label on the page."""
    if name == _XLA:
        if program.xla_plan is None:
            raise InvalidInputError(f"{_XLA}: program '{program.name}' has no plan of XLA's")
        return program.xla_plan, "XLA"
    if _is_json(name):
        return load_plan(name, program), os.path.basename(name)
    log = load_log(name)
    return log, log.solver or os.path.basename(name)


def _program(name: str | None, subjects: list[str | None]) -> Program:
    """Returns the program by its name, or the bundled one that a subject is of."""
    if name is not None:
        return load_program(name)
    for subject in subjects:
        if subject is None or subject == _XLA:
            continue
        if not _is_json(subject):
            return program_of(load_log(subject))
        return load_program(_bundled_with(subject))
    raise InvalidInputError(f"{_XLA}: of which program? name it with --program")


def _is_json(path: str) -> bool:
    return read_file(path)[:64].lstrip().startswith(b"{")


def _bundled_with(path: str) -> str:
    """Returns the name of the bundled program that a JSON plan is of."""
    text = named(path, lambda: decode(read_file(path)))
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
        f"{path}: plan of program {found}, which is no bundled one: "
        "name its .mgp file with --program"
    )
