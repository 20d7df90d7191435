"""What can be played: everything that environments take as `program=`.

A program alone is played on its own hardware. A level is a program with hardware, and a Game has
options besides, so neither can be given others: what would be forgotten silently is refused.
"""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

from mallocgame import _arguments, programs
from mallocgame._core import Game, Hardware, Program
from mallocgame._levels import MIN_BUFFER_BYTES, Level, find_level
from mallocgame.calibration import priced
from mallocgame.errors import InvalidInputError

Playable = str | os.PathLike[str] | Program | Level | Game

# The options of a Game, as environments have them by default.
DEFAULTS: dict[str, Any] = {
    "actions": "full",
    "game": "time",
    "candidates": 4,
    "bytes_weight": 1.0,
    "time_weight": 1.0,
    "min_buffer_bytes": None,
    "keep_free": 0.0,
    "main_bytes": None,
    "exact_stalls": False,
}


#: Settings of the fine game, in which the leaderboard's policies play. It asks about one run at a
#: time, of small buffers too, in an order that fits most levels, and tells stalls as they arise:
#: ``MallocGameEnv(level, **FINE_GAME)``, ``level.game(**FINE_GAME)``.
FINE_GAME: dict[str, Any] = {
    "game": "priority",
    "candidates": 1,
    "min_buffer_bytes": 512,
    "bytes_weight": 0.0,
    "time_weight": 0.5,
    "exact_stalls": True,
}


@dataclasses.dataclass(frozen=True)
class Played:
    """A game to be played, and what it is called."""

    name: str  # of the level, or of the program
    game: Game
    level: Level | None = None  # that the game is of


def played(
    program: Playable | Sequence[Playable],
    hardware: Hardware | str | os.PathLike[str] | None = None,
    prices: str = "compiler",
    **options: Any,
) -> list[Played]:
    """Makes a game of each program.

    program: a bundled name, the name of a level, a .mgp path, a Program, a Level, a Game, or a
    sequence of them. hardware: of programs; a Hardware, the name of a preset or a JSON path; None
    is each program's own. prices: "compiler", those that the program has, or "calibrated". options:
    of DEFAULTS. A Game has its prices and options.

    InvalidInputError: there is none, an option is wrong, or hardware or options are given for what
    has its own. MissingFileError.
    """
    several = (
        program if isinstance(program, Sequence) and not isinstance(program, str) else [program]
    )
    if not several:
        raise InvalidInputError("program: found none, allowed: one or more")
    if hardware is not None and not isinstance(hardware, Hardware):
        hardware = programs.hardware(hardware)
    return [_played(one, hardware, prices, options) for one in several]


def _played(
    program: Playable, hardware: Hardware | None, prices: str, options: dict[str, Any]
) -> Played:
    if isinstance(program, Game):
        _refuse_others(program, hardware, options | {"prices": prices})
        return Played(program.program.name, program)
    if isinstance(program, str):
        program = _level_named(program) or program
    if isinstance(program, Level):
        if hardware is not None:
            raise InvalidInputError(
                f"hardware: found {hardware.name}, but level {program.name} has its own; "
                "give its program, level.load_program()"
            )
        if options.get("min_buffer_bytes") is None:
            options = options | {"min_buffer_bytes": MIN_BUFFER_BYTES}
        return Played(
            program.name,
            _game(program.load_program(), program.hardware(), prices, options),
            program,
        )
    loaded = program if isinstance(program, Program) else programs.load_program(program)
    name = program if isinstance(program, str) else loaded.name
    return Played(name, _game(loaded, hardware, prices, options))


def _game(
    program: Program, hardware: Hardware | None, prices: str, options: dict[str, Any]
) -> Game:
    if prices == "compiler":
        return Game(program, hardware=hardware, **options)
    # Calibrated prices are made for a hardware, which is calibrated with them.
    return Game(priced(program, prices, hardware), **options)


def _level_named(name: str) -> Level | None:
    """Returns the bundled level of a name that is no bundled program's and no file's."""
    if name in programs.program_names() or os.path.exists(name):
        return None
    return find_level(name)


def _refuse_others(game: Game, hardware: Hardware | None, options: dict[str, Any]) -> None:
    """InvalidInputError: something is given that a Game has its own of."""
    usual = DEFAULTS | {"prices": "compiler"}
    given = {name: one for name, one in options.items() if one != usual[name]}
    if given.get("game") == game.kind:
        del given["game"]
    if hardware is not None:
        given["hardware"] = hardware.name
    for name, one in given.items():
        raise InvalidInputError(
            f"{name}: found {_arguments.found(one)}, but the Game given has its own"
        )
