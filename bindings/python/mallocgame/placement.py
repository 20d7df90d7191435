"""Programs as placement problems, in which every tensor gets one of several memories at once.

from mallocgame import placement
problem = placement.problem("resnet50_b1.tpu_v4i", "nnp_i")
problem.evaluate(problem.baseline_map)
"""

import json
import os
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mallocgame import _arguments
from mallocgame._core import (
    MAX_CANDIDATES,
    Game,
    Hardware,
    Hierarchy,
    Placement,
    Program,
    State,
    read_file,
    simulate,
    solve_game,
)
from mallocgame._core import placement_searches as searches
from mallocgame.bounds.optimal_placement import OptimalMap, optimal_map
from mallocgame.errors import InvalidInputError
from mallocgame.games import PriorityGame
from mallocgame.programs import decode, load_program, named

__all__ = [
    "Hierarchy",
    "OptimalMap",
    "Placement",
    "load_hierarchy",
    "optimal_map",
    "play_map",
    "problem",
    "searches",
]


def problem(
    program: Program | str | os.PathLike[str],
    hierarchy: Hierarchy | str | os.PathLike[str] | None = None,
    hardware: Hardware | None = None,
    game: Literal["time", "priority"] = "time",
) -> Placement:
    """Makes the placement problem of a program.

    hierarchy: a Hierarchy, or what load_hierarchy() takes. None: the problem is a game on the
    hardware. Then the latency that counts as 1 is that of XLA's plan or, where that is not known,
    of the baseline's map.
    hardware: of the game; None is the program's own.
    game: "time" has a level for each tensor, fast or main memory; everything in fast memory as far
    as that is legal is the baseline's map. "priority" has one for each segment of accesses to a
    buffer, how the priority game serves it; the baseline's map is that of XLA's plan or, where that
    is not known, of the plan of the solver rent.

    InvalidInputError: a hierarchy and also a hardware or the priority game are given, there is no
    such preset, or the last level does not hold the program.
    """
    _arguments.one_of("game", game, ("time", "priority"))
    loaded = program if isinstance(program, Program) else load_program(program)
    if hierarchy is not None:
        if hardware is not None or game != "time":
            found = "a hardware" if hardware is not None else "the priority game"
            raise InvalidInputError(
                f"placement: found a hierarchy and {found}, allowed: one of them"
            )
        return Placement(
            loaded, hierarchy if isinstance(hierarchy, Hierarchy) else load_hierarchy(hierarchy)
        )
    xla = loaded.xla_plan if hardware in (None, loaded.hardware) else None
    xla_ps = None if xla is None else simulate(loaded, xla).latency_ps
    if game == "time":
        return Placement.of_game(Game(loaded, hardware=hardware), xla_ps)
    plan = solve_game(Game(loaded, hardware), "rent").plan if xla is None else xla
    # With fewer candidates a segment has its turn later than its map says.
    played = Game(loaded, hardware, PriorityGame(candidates=MAX_CANDIDATES))
    return Placement.of_game(played, xla_ps, plan)


def load_hierarchy(name_or_path: str | os.PathLike[str]) -> Hierarchy:
    """Returns a preset by name (Hierarchy.preset_names()), else that of a JSON file by path.

    docs/placement.md has an example of a file.
    """
    text = _arguments.path("hierarchy", name_or_path, "a preset's name, a JSON path or a Hierarchy")
    if text.endswith(".json") or os.path.dirname(text):
        return named(text, lambda: _hierarchy_of(decode(read_file(text))))
    return Hierarchy.preset(text)


def play_map(problem: Placement, map: NDArray[np.uint8]) -> State:
    """Plays a map, uint8 [num_nodes, 2], and returns the finished game.

    InvalidInputError: the problem is on a hierarchy.
    """
    actions = _arguments.instance("problem", problem, Placement).play(map)
    assert problem.game is not None, "play() refuses a hierarchy"
    state = problem.game.initial_state()
    for action in actions:
        state.apply(int(action))
    return state


def _hierarchy_of(text: str) -> Hierarchy:
    try:
        document = json.loads(text)
        levels = [
            (
                level["name"],
                _arguments.integer("capacity_bytes", level["capacity_bytes"]),
                _arguments.integer("bytes_per_second", level["bytes_per_second"]),
            )
            for level in document["levels"]
        ]
        shared = {key: document[key] for key in ("engines", "staging_bytes") if key in document}
        return Hierarchy(document["name"], levels, document["flops_per_second"], **shared)
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        found = f"no key {error}" if isinstance(error, KeyError) else "values of other types"
        if isinstance(error, json.JSONDecodeError):
            found = str(error)
        raise InvalidInputError(
            f"not a hierarchy: found {found}, allowed: an object with name, "
            "flops_per_second, levels (a list of objects with name, capacity_bytes and "
            "bytes_per_second), and where it needs them engines and staging_bytes, all numbers "
            "integers"
        ) from None
