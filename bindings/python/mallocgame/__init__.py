"""mallocgame: memory mapping of TPU programs as a reinforcement-learning game.

Sizes are bytes, times integer picoseconds, intervals half-open. The package needs NumPy alone; the
command line adds rich.

    import mallocgame as mg
    program = mg.load_program("resnet50_b1.tpu_v4i")
    state = mg.Game(program).initial_state()
    while not state.is_terminal():
        state.apply(state.legal_actions()[0])
    report = mg.simulate(program, state.plan())
"""

from typing import TYPE_CHECKING

from mallocgame import (
    actions,
    bounds,
    calibration,
    errors,
    files,
    observation,
    offsets,
    placement,
    records,
)
from mallocgame._core import (
    Game,
    Hardware,
    Plan,
    Program,
    Report,
    SolveResult,
    State,
    Verdict,
    all_main_plan,
    simulate,
    solver_names,
    validate,
)
from mallocgame._moved import moved
from mallocgame._solve import solve
from mallocgame.actions import Action, Mode
from mallocgame.envs import registration
from mallocgame.errors import InvalidInputError, MallocGameError, how_to_install
from mallocgame.files import load_log, load_plan, record, replay, save_log, save_plan
from mallocgame.games import FINE_GAME, PriorityGame, ScheduleGame, TimeGame
from mallocgame.level_sets import Level, levels
from mallocgame.programs import hardware, import_hlo, load_program, program_names, save_program

__version__ = "0.1.0"

registration.register_when_imported()

# These are loaded on first use, because they need Gymnasium, which the rest does not.
_GYMNASIUM = {
    "MallocGameEnv": "mallocgame.envs.gym",
    "VectorEnv": "mallocgame.envs.vector",
    "PlacementEnv": "mallocgame.envs.placement",
}

_MOVED = {
    "actions": "RULES_VERSION PRIORITY_RULES_VERSION SCHEDULE_RULES_VERSION action_returns",
    "actions.Action": "COPY COPY_EARLY DROP NOCOPY",
    "actions.Mode": "EARLY LATE PRELOAD SKIP SPLIT",
    "calibration": "PriceLaw calibrated",
    "errors": "FileAccessError GameOverError InvalidActionError MissingExtraError MissingFileError",
    "files": "GameLog ReplayVerdict load_ordered_plan",
    "observation": "OBSERVATION_VERSION Observer",
}

if TYPE_CHECKING:
    from mallocgame.envs.gym import MallocGameEnv as MallocGameEnv
    from mallocgame.envs.placement import PlacementEnv as PlacementEnv
    from mallocgame.envs.vector import VectorEnv as VectorEnv


def __getattr__(name: str) -> object:
    if name not in _GYMNASIUM:
        return moved(__name__, name, _MOVED)
    import importlib

    try:
        return getattr(importlib.import_module(_GYMNASIUM[name]), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "gymnasium":
            raise
        raise ImportError(f"mallocgame.{name} needs Gymnasium: {how_to_install('gym')}") from error


__all__ = [
    "FINE_GAME",
    "Action",
    "Game",
    "Hardware",
    "InvalidInputError",
    "Level",
    "MallocGameError",
    "Mode",
    "Plan",
    "PriorityGame",
    "Program",
    "Report",
    "ScheduleGame",
    "SolveResult",
    "State",
    "TimeGame",
    "Verdict",
    "actions",
    "all_main_plan",
    "bounds",
    "calibration",
    "errors",
    "files",
    "hardware",
    "import_hlo",
    "levels",
    "load_log",
    "load_plan",
    "load_program",
    "observation",
    "offsets",
    "placement",
    "program_names",
    "record",
    "records",
    "replay",
    "save_log",
    "save_plan",
    "save_program",
    "simulate",
    "solve",
    "solver_names",
    "validate",
]
