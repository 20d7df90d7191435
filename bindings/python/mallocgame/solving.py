"""solve: one door to every solver."""

from collections.abc import Callable

from mallocgame._core import Game, Hardware, Program, SolveResult, solve_game


def solve(
    program: Program | Game,
    solver: str = "greedy",
    seconds: float = 10.0,
    seed: int = 0,
    evaluations: int = 0,
    hardware: Hardware | None = None,
    progress: Callable[[float, int], object] | None = None,
) -> SolveResult:
    """Let a solver find a plan.

    program: a Program, or a Game where it needs other rules than the default ones.
    solver: one of solver_names().
    seconds: wall time; 0 means no limit. A solver that needs less returns earlier.
    evaluations: complete games or plans looked at; 0 means no limit. With it, and seconds=0, the result depends on the
        seed only.
    hardware: None is the program's own. XLA's plan is known to the solver only on the hardware XLA made it for.
    progress: called as progress(seconds, latency_ps) with each better plan. What it raises ends the solver.

    Ctrl-C ends the solver too. InvalidInputError: no such solver, hardware given twice, limits out of range.
    """
    if isinstance(program, Game):
        if hardware is not None:
            from mallocgame.errors import InvalidInputError

            raise InvalidInputError("solve: a Game has its hardware already, found hardware= as well")
        game = program
    else:
        game = Game(program, hardware=hardware, seed=seed)
    return solve_game(game, solver, seconds, seed, evaluations, progress)
