"""Measures who plays the schedule game of a program best (docs/schedule-game.md).

    python benchmarks/quality/schedule_players.py [PROGRAM...] [--seconds 20] [--seeds 1,]

Players are greedy, mcts, and MuZero, which trains so long on the program: as it is, and without
learning. Seconds are of the processor's time on one core, because other programs may share it;
annealing demonstrates little to MuZero, so that it plays instead. Prints a line for each player and
seed, and the bounds at the program's own order and at any. Needs mallocgame[agents,bounds].
"""

import time

import mallocgame as mg
from mallocgame import agents
from mallocgame import experiments as ex

CONFIG: dict[str, object] = {"groups": 1, "demonstration_decisions": 200_000}
NO_LEARNING: dict[str, object] = {"updates": 0, "proposals": "uniform", "prior": "uniform"}


def muzero(program: mg.Program, config: dict[str, object], seed: int, seconds: float) -> float:
    """Returns the latency of the best game that a training finds."""
    trainer = agents.MuZero(program, CONFIG | config, seed=seed, threads=1, game="schedule")
    begin = time.process_time()
    while time.process_time() - begin < seconds:
        trainer.step()
    result = trainer.best()
    assert mg.validate(result.program, result.plan).ok
    return result.report.latency_ps


def search(program: mg.Program, seed: int, seconds: float) -> float:
    """Returns the latency of the best game that mcts finds."""
    begin = time.process_time()
    result = mg.solve(
        program,
        "mcts",
        seconds=0,
        seed=seed,
        game="schedule",
        stop=lambda: time.process_time() - begin >= seconds,
    )
    return result.report.latency_ps


def main(*programs: str, seconds: float = 20, seeds: tuple[int, ...] = (1,)) -> None:
    for name in programs or ("mlp_train_adam_b512.tpu_v6e",):
        play(mg.load_program(name), seconds, seeds)


def play(program: mg.Program, seconds: float, seeds: tuple[int, ...]) -> None:
    for bound in ("lp", "any-order"):
        least = mg.bounds.bound(program, bound).bound_ps
        print(f"bound {bound}: {least / 1e6:.1f} µs", flush=True)
    for seed in seeds:
        for name, latency_ps in (
            ("greedy", mg.solve(program, "greedy", game="schedule").report.latency_ps),
            ("mcts", search(program, seed, seconds)),
            ("MuZero", muzero(program, {}, seed, seconds)),
            ("MuZero without learning", muzero(program, NO_LEARNING, seed, seconds)),
        ):
            print(f"{name}, seed {seed}: {latency_ps / 1e6:.1f} µs", flush=True)


if __name__ == "__main__":
    ex.main(main)
