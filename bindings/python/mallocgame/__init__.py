"""mallocgame: memory mapping of TPU programs as a reinforcement-learning game.

Sizes are bytes, times integer picoseconds, intervals half-open. Needs NumPy alone; the command line adds rich.

    import mallocgame as mg
    program = mg.load_program("resnet50_b1.tpu_v4i")
    state = mg.Game(program).initial_state()
    while not state.is_terminal():
        state.apply(state.legal_actions()[0])
    report = mg.simulate(program, state.plan())
"""

from mallocgame._core import (
    COPY,
    COPY_EARLY,
    DROP,
    NOCOPY,
    RULES_VERSION,
    Game,
    GameLog,
    Hardware,
    Plan,
    Program,
    ReplayVerdict,
    Report,
    SolveResult,
    State,
    Verdict,
    all_main_plan,
    simulate,
    solver_names,
    validate,
)
from mallocgame.errors import (
    FileAccessError,
    GameOverError,
    InvalidActionError,
    InvalidInputError,
    MallocGameError,
    MissingFileError,
)
from mallocgame.files import load_log, load_plan, record, replay, save_log, save_plan
from mallocgame.programs import hardware, import_hlo, load_program, program_names, save_program
from mallocgame.solving import solve

__version__ = "0.1.0"

__all__ = [
    "COPY",
    "COPY_EARLY",
    "DROP",
    "NOCOPY",
    "RULES_VERSION",
    "FileAccessError",
    "Game",
    "GameLog",
    "GameOverError",
    "Hardware",
    "InvalidActionError",
    "InvalidInputError",
    "MallocGameError",
    "MissingFileError",
    "Plan",
    "Program",
    "ReplayVerdict",
    "Report",
    "SolveResult",
    "State",
    "Verdict",
    "all_main_plan",
    "hardware",
    "import_hlo",
    "load_log",
    "load_plan",
    "load_program",
    "program_names",
    "record",
    "replay",
    "save_log",
    "save_plan",
    "save_program",
    "simulate",
    "solve",
    "solver_names",
    "validate",
]
