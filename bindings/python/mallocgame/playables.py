"""What can be played: everything that environments take as `program=`.

A program alone is played on its own hardware. A level is a program with hardware, and a Game has
options besides, so neither can be given others: what would be forgotten silently is refused.
"""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

from mallocgame import _arguments, games, programs
from mallocgame._core import Game, Hardware, Program
from mallocgame.calibration import priced
from mallocgame.errors import InvalidInputError
from mallocgame.games import GameOptions
from mallocgame.level_sets import Level, find_level, of_level

Playable = str | os.PathLike[str] | Program | Level | Game


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
    game: str | GameOptions = "time",
    **options: Any,
) -> list[Played]:
    """Makes a game of each program.

    program: a bundled name, the name of a level, a .mgp path, a Program, a Level, a Game, or a
    sequence of them. hardware: of programs; a Hardware, the name of a preset or a JSON path; None
    is each program's own. prices: "compiler", those that the program has, or "calibrated". game:
    as Game takes it, perhaps a name and options. A Game has its prices and options.

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
    chosen = games.of(game, **options)
    return [_played(one, hardware, prices, chosen) for one in several]


def _played(
    program: Playable, hardware: Hardware | None, prices: str, chosen: GameOptions
) -> Played:
    if isinstance(program, Game):
        _refuse_others(program, hardware, prices, chosen)
        return Played(program.program.name, program)
    if isinstance(program, str):
        program = _level_named(program) or program
    if isinstance(program, Level):
        if hardware is not None:
            raise InvalidInputError(
                f"hardware: found {hardware.name}, but level {program.name} has its own; "
                "give its program, level.load_program()"
            )
        own = _game(program.load_program(), program.hardware(), prices, of_level(chosen))
        return Played(program.name, own, program)
    loaded = program if isinstance(program, Program) else programs.load_program(program)
    name = program if isinstance(program, str) else loaded.name
    return Played(name, _game(loaded, hardware, prices, chosen))


def _game(program: Program, hardware: Hardware | None, prices: str, chosen: GameOptions) -> Game:
    if prices == "compiler":
        return Game(program, hardware, chosen)
    # Calibrated prices are made for a hardware, which is calibrated with them.
    return Game(priced(program, prices, hardware), game=chosen)


def _level_named(name: str) -> Level | None:
    """Returns the bundled level of a name that is no bundled program's and no file's."""
    if name in programs.program_names() or os.path.exists(name):
        return None
    return find_level(name)


def _refuse_others(game: Game, hardware: Hardware | None, prices: str, chosen: GameOptions) -> None:
    """InvalidInputError: something is given that a Game has its own of."""
    usual = games.of(game.kind)
    given = {} if chosen == games.of() else {"game": chosen.name}
    if chosen.name == game.kind:
        given = {
            name: one for name, one in chosen.options().items() if one != usual.options().get(name)
        }
    if hardware is not None:
        given["hardware"] = hardware.name
    if prices != "compiler":
        given["prices"] = prices
    for name, one in given.items():
        raise InvalidInputError(
            f"{name}: found {_arguments.found(one)}, but the Game given has its own"
        )
