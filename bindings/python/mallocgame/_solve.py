"""solve: one door to every solver."""

import os
import warnings
from collections.abc import Callable, Sequence

from mallocgame import _arguments, games
from mallocgame._core import (
    Game,
    Hardware,
    NamedSolver,
    Program,
    SolveResult,
    solve_game,
    solver_game,
)
from mallocgame._torch import AGENTS, egrl_solver, solver_of
from mallocgame.errors import InvalidInputError
from mallocgame.games import GameOptions


def solve(
    program: Program | Game,
    solver: str = "greedy",
    seconds: float = 10.0,
    seed: int = 0,
    evaluations: int = 0,
    hardware: Hardware | None = None,
    progress: Callable[[float, int], object] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    extra_solvers: Sequence[NamedSolver] = (),
    game: str | GameOptions | None = None,
    stop: Callable[[], bool] | None = None,
    order: bool = False,
    main_bytes: int | None = None,
) -> SolveResult:
    """Lets a solver find a plan.

    program: a Program, or a Game where it needs other rules than the default ones.
    solver: one of solver_names(); with Torch also `egrl`, which trains as it solves, and `muzero`,
    which needs a checkpoint.
    seconds: wall time; 0 is no limit. A solver that needs less returns earlier.
    evaluations: complete games or plans that are looked at; 0 is no limit. With it, and seconds=0,
    the result depends on the seed only.
    hardware: None is the program's own. The solver knows XLA's plan only on the hardware that XLA
    made it for.
    progress: called as progress(seconds, latency_ps) with each better plan. What it raises ends the
    solver.
    checkpoint: of a trained agent (docs/muzero.md, docs/egrl.md): it is the solver `muzero` or
    `egrl`, and one more member of `portfolio`.
    extra_solvers: solvers in addition to those of solver_names(), as mallocgame.agents makes them.

    game: the game that solvers play which play one, as Game takes it: a TimeGame, PriorityGame or
    ScheduleGame, or a name. "time" decides about accesses in the order of time, "priority" places
    residences in the order of importance (docs/priority-game.md), "schedule" decides the order of
    instructions and then does that (docs/schedule-game.md); its plan is of `result.program`. None
    is the solver's own: "priority" for `anneal`, `mcts` and `egrl`, for an agent the game that it
    was trained in, else "time"; or the kind of the Game given.
    stop: asked some times a second; once it returns True, the solver ends with the best plan so
    far, and its status is "stopped" where it would have gone on.
    order: whether the order of instructions is searched too (docs/schedule.md). The plan is then of
    `result.program`, the program with its instructions in `result.order`; it is never slower than
    the plan that the solver finds at the program's own order.
    main_bytes: with order, or in the schedule game, the most main memory that an order may need, as
    Program.main_memory["total_bytes"] counts it; None is what the program's own order needs.

    If a member of a portfolio fails, the others go on: a RuntimeWarning says why, as
    `result.failures` does. Ctrl-C ends the solver too, without a plan. InvalidInputError: there is
    no such solver, it does not play that game, the hardware or the game is given twice, or a limit
    is out of range.
    """
    for i, one in enumerate(extra_solvers):
        _arguments.instance(f"extra_solvers[{i}]", one, NamedSolver)
    if checkpoint is not None:
        extra_solvers = [*extra_solvers, solver_of(checkpoint)]
    if solver in AGENTS and all(other.name != solver for other in extra_solvers):
        extra_solvers = [*extra_solvers, _untrained(solver)]
    _arguments.instance("program", program, Program, Game)
    seed = _arguments.given_seed(seed)
    evaluations = _arguments.integer("evaluations", evaluations)
    if main_bytes is not None:
        main_bytes = _arguments.integer("main_bytes", main_bytes)
    if isinstance(program, Game):
        for name, given in (("hardware", hardware), ("game", game)):
            if given is not None:
                raise InvalidInputError(f"solve: a Game has its {name} already, found {name}= too")
        played = program
    else:
        chosen = games.of(game or solver_game(solver, extra_solvers))
        if main_bytes is not None and not order:
            if not hasattr(chosen, "main_bytes"):
                raise InvalidInputError(
                    "solve: main_bytes limits other orders, so it needs order=True or a schedule "
                    "game"
                )
            chosen = games.of(chosen.name, **chosen.options() | {"main_bytes": main_bytes})
        played = Game(program, hardware, chosen, seed)
    result = solve_game(
        played,
        solver=solver,
        seconds=seconds,
        seed=seed,
        evaluations=evaluations,
        progress=progress,
        extra_solvers=list(extra_solvers),
        stop=stop,
        order=order,
        main_bytes=main_bytes,
    )
    for failure in result.failures:
        warnings.warn(f"solve: a part of {solver} failed: {failure}", RuntimeWarning, stacklevel=2)
    return result


def _untrained(agent: str) -> NamedSolver:
    if agent == "muzero":
        raise InvalidInputError(
            "solve: the solver muzero needs checkpoint=, as `mallocgame train muzero` writes it"
        )
    return egrl_solver()
