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

from typing import Any

from mallocgame._bounds.bound import Bound, bound
from mallocgame._bounds.optimal_placement import OptimalMap, optimal_map
from mallocgame._bounds.prices import prices
from mallocgame._core import (
    COPY,
    COPY_EARLY,
    DROP,
    NOCOPY,
    OBSERVATION_VERSION,
    PRIORITY_RULES_VERSION,
    RULES_VERSION,
    Game,
    GameLog,
    Hardware,
    Hierarchy,
    Observer,
    OffsetResult,
    OffsetTable,
    OffsetVerdict,
    Placement,
    Plan,
    PriceLaw,
    Prices,
    Program,
    ProgramGraph,
    ReplayVerdict,
    Report,
    SolveResult,
    State,
    Verdict,
    action_returns,
    all_main_plan,
    calibrated,
    check_offsets,
    simulate,
    solve_offsets,
    solver_names,
    validate,
)
from mallocgame._levels import Level, levels
from mallocgame._solve import solve
from mallocgame.envs import registration
from mallocgame.errors import (
    FileAccessError,
    GameOverError,
    InvalidActionError,
    InvalidInputError,
    MallocGameError,
    MissingExtraError,
    MissingFileError,
    how_to_install,
)
from mallocgame.files import (
    load_log,
    load_offsets,
    load_ordered_plan,
    load_plan,
    record,
    replay,
    save_log,
    save_offsets,
    save_plan,
)
from mallocgame.programs import hardware, import_hlo, load_program, program_names, save_program
from mallocgame.programs.placement import load_hierarchy, placement, play_map

__version__ = "0.1.0"

registration.register_when_imported()

# These are loaded on first use, because they need Gymnasium, which the rest does not.
_GYMNASIUM = {
    "MallocGameEnv": "mallocgame.envs.gym",
    "VectorEnv": "mallocgame.envs.vector",
    "PlacementEnv": "mallocgame.envs.placement",
}


def __getattr__(name: str) -> Any:
    if name not in _GYMNASIUM:
        raise AttributeError(f"module 'mallocgame' has no attribute {name!r}")
    import importlib

    try:
        return getattr(importlib.import_module(_GYMNASIUM[name]), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "gymnasium":
            raise
        raise ImportError(f"mallocgame.{name} needs Gymnasium: {how_to_install('gym')}") from error


__all__ = [
    "COPY",
    "COPY_EARLY",
    "DROP",
    "NOCOPY",
    "OBSERVATION_VERSION",
    "PRIORITY_RULES_VERSION",
    "RULES_VERSION",
    "Bound",
    "FileAccessError",
    "Game",
    "GameLog",
    "GameOverError",
    "Hardware",
    "Hierarchy",
    "InvalidActionError",
    "InvalidInputError",
    "Level",
    "MallocGameError",
    "MissingExtraError",
    "MissingFileError",
    "Observer",
    "OffsetResult",
    "OffsetTable",
    "OffsetVerdict",
    "OptimalMap",
    "Placement",
    "Plan",
    "PriceLaw",
    "Prices",
    "Program",
    "ProgramGraph",
    "ReplayVerdict",
    "Report",
    "SolveResult",
    "State",
    "Verdict",
    "action_returns",
    "all_main_plan",
    "bound",
    "calibrated",
    "check_offsets",
    "hardware",
    "import_hlo",
    "levels",
    "load_hierarchy",
    "load_log",
    "load_offsets",
    "load_ordered_plan",
    "load_plan",
    "load_program",
    "optimal_map",
    "placement",
    "play_map",
    "prices",
    "program_names",
    "record",
    "replay",
    "save_log",
    "save_offsets",
    "save_plan",
    "save_program",
    "simulate",
    "solve",
    "solve_offsets",
    "solver_names",
    "validate",
]
