"""Plans and game logs: saving, loading, recording and replaying."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mallocgame import _arguments
from mallocgame._core import (
    Game,
    GameLog,
    Plan,
    Program,
    ReplayVerdict,
    SolveResult,
    State,
    read_file,
    write_file,
)
from mallocgame._core import record_game as _record_game
from mallocgame._core import replay_log as _replay_log
from mallocgame.errors import InvalidInputError
from mallocgame.programs import decode, load_program, manifest, named

__all__ = [
    "GameLog",
    "ReplayVerdict",
    "load_log",
    "load_ordered_plan",
    "load_plan",
    "record",
    "replay",
    "save_log",
    "save_plan",
]


def save_plan(
    plan: Plan,
    program: Program,
    path: str | os.PathLike[str],
    order: Sequence[int] | NDArray[np.integer[Any]] | None = None,
) -> None:
    """Writes a plan as JSON, with names next to the indices.

    order: the plan is of program.reordered(order), and the file says so. None, or the program's own
    order: it is of the program itself.
    """
    if order is None or plan.program_fingerprint == program.fingerprint:
        text = plan.to_json(program)
    else:
        text = plan.to_ordered_json(program, list(order), program.reordered(order))
    write_file(_arguments.path("path", path), text.encode())


def load_plan(path: str | os.PathLike[str], program: Program) -> Plan:
    """Reads a JSON plan of this program.

    InvalidInputError: it is malformed, or of another program, as a plan with an order of
    instructions of its own is (load_ordered_plan). MissingFileError.
    """
    text = _arguments.path("path", path)
    return named(text, lambda: Plan.from_json(decode(read_file(text)), program))


def load_ordered_plan(
    path: str | os.PathLike[str], program: Program
) -> tuple[Program, Plan, NDArray[np.int32]]:
    """Reads a JSON plan that may have an order of instructions of its own.

    Returns the program that the plan is of, the plan, and the order of the instructions of
    `program` in it, which is empty if it is the program's own.

    InvalidInputError: it is malformed, of another program, or the order is not legal.
    MissingFileError.
    """
    text = _arguments.path("path", path)
    return named(text, lambda: Plan.from_ordered_json(decode(read_file(text)), program))


def record(
    game: Game | State | SolveResult,
    actions: Sequence[int] | NDArray[np.integer[Any]] | None = None,
    solver: str = "",
    seed: int | None = None,
    search: tuple[ArrayLike, ArrayLike] | None = None,
) -> GameLog:
    """Plays the actions, and logs every reward, the plan and the report.

    game: of a State the decisions made so far are the actions; of a SolveResult those of the
    solver, with its name and seed.
    search: visits and values of the search that chose the actions, each [decisions, actions]: a
    column for each action of the game, 0 where it is illegal or was never taken. A value is the
    return expected from there on. `mallocgame view` shows them. None of a SolveResult means the
    solver's own, if it searched.

    InvalidInputError: the game doesn't end with the last action, the plan was not made by playing,
    or the search's numbers are not of this shape.
    """
    _arguments.instance("game", game, Game, State, SolveResult)
    if isinstance(game, SolveResult):
        solver, seed = solver or game.solver, game.seed if seed is None else seed
        if actions is None and not _was_played(game):
            raise InvalidInputError(
                f"record: the plan of solver '{game.solver}' was not made by playing a game"
            )
        if actions is None and search is None:
            search = game.search
    if isinstance(game, State | SolveResult):
        actions = game.actions if actions is None else actions
        game = game.game
    if actions is None:
        raise InvalidInputError("record: a Game needs the actions to play")
    visits, values = (
        ([], []) if search is None else _search_columns(search, (len(actions), game.num_actions))
    )
    return _record_game(
        game, _actions(actions), solver, game.seed if seed is None else seed, visits, values
    )


def _actions(given: Sequence[int] | NDArray[np.integer[Any]]) -> list[int]:
    actions = _arguments.integers(given)
    if len(given) == 0:
        return []
    if actions is None or actions.ndim != 1:
        raise InvalidInputError(
            f"actions: found {_arguments.described(given)}, allowed: a list of integers"
        )
    numbers: list[int] = actions.tolist()
    return numbers


def _was_played(result: SolveResult) -> bool:
    """Whether the actions of a result make its plan.

    A game in which nothing is to be decided has no actions either, but makes a plan.
    """
    if len(result.actions) > 0:
        return True
    start = result.game.initial_state()
    return start.is_terminal() and start.plan() == result.plan


def _search_columns(
    search: tuple[ArrayLike, ArrayLike], shape: tuple[int, int]
) -> tuple[list[int], list[float]]:
    visits, values = (np.asarray(numbers) for numbers in search)
    for name, numbers in (("visits", visits), ("values", values)):
        if numbers.shape != shape:
            raise InvalidInputError(
                f"record: search {name}: found shape {numbers.shape}, allowed: {shape}"
            )
    return visits.astype(np.int32).ravel().tolist(), values.astype(np.float32).ravel().tolist()


def save_log(log: GameLog, path: str | os.PathLike[str]) -> None:
    """Writes a .mgr file; equal games give equal bytes. FileAccessError names the path."""
    write_file(_arguments.path("path", path), log.to_bytes())


def load_log(path: str | os.PathLike[str]) -> GameLog:
    """Reads a .mgr file.

    InvalidInputError: it is no game log, or damaged. MissingFileError.
    """
    text = _arguments.path("path", path)
    return named(text, lambda: GameLog.from_bytes(read_file(text)))


def replay(log: GameLog, program: Program | None = None) -> ReplayVerdict:
    """Plays a log again, and says whether it comes out the same and if not, what differs first.

    program: None is the one of the bundled corpus with the log's fingerprint.
    """
    _arguments.instance("log", log, GameLog)
    return _replay_log(log, program_of(log) if program is None else program)


def program_of(log: GameLog) -> Program:
    """Returns the bundled program that a log was played on. InvalidInputError: there is none."""
    for name, entry in manifest().items():
        if entry["fingerprint"] == log.program_fingerprint:
            return load_program(name)
    raise InvalidInputError(
        f"log of program '{log.program_name}' ({log.program_fingerprint}), "
        "which is no bundled one: name its .mgp file"
    )
