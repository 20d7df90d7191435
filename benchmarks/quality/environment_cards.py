"""Lengths and returns of typical games, as docs/environments.md has them.

    python benchmarks/quality/environment_cards.py [PROGRAM ...]

One row for each program and game: the least and the most decisions of random games and of greedy's
game, the mean return of the random ones, and the returns of greedy, of XLA's plan, of the best plan
that `portfolio` finds, and of the Lagrangian bound.
"""

import numpy as np

import mallocgame as mg
from mallocgame import experiments as ex
from mallocgame import games

PROGRAMS = [
    "wavernn_64steps_b8.tpu_v4i",
    "mlp_train_adam_b512.tpu_v6e",
    "resnet50_b1.tpu_v4i_16mib",
    "alphatensor_b4.tpu_v4i",
]
GAMES = 20  # random ones
SECONDS = 2.0  # of portfolio


def random_game(game: mg.Game, seed: int) -> tuple[int, int]:
    """Returns the number of decisions and the latency of a game of random legal actions."""
    state, chance = game.initial_state(), np.random.default_rng(seed)
    while not state.is_terminal():
        state.apply(int(chance.choice(state.legal_actions())))
    return len(state.actions), state.latency_ps


def main(*programs: str) -> None:
    players = ("random", "greedy", "XLA", "portfolio", "bound")
    table = ex.Table(("program", "game", "decisions", *players), left=2)
    for name in programs or PROGRAMS:
        program = mg.load_program(name)
        assert program.xla_plan is not None
        most = mg.simulate(program, program.xla_plan).all_main_ps

        def gained(latency_ps: float, most: int = most) -> str:
            return f"{1 - latency_ps / most:.3f}"

        known = [
            mg.simulate(program, program.xla_plan).latency_ps,
            mg.solve(program, "portfolio", SECONDS).report.latency_ps,
            mg.bounds.bound(program, "lagrangian").bound_ps,
        ]
        for kind in reversed(games.NAMES):
            game = mg.Game(program, game=kind)
            played = [random_game(game, seed) for seed in range(GAMES)]
            greedy = mg.solve(game, "greedy", seconds=0)
            lengths = [*(length for length, _ in played), len(mg.record(greedy).actions)]
            mean = np.mean([latency for _, latency in played])
            returns = map(gained, [float(mean), greedy.report.latency_ps, *known])
            table.add(name, kind, f"{min(lengths)} to {max(lengths)}", *returns)
    print(table)


if __name__ == "__main__":
    ex.main(main)
