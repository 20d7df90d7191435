"""From levels to a MuZero agent that plays one game of a level it has not seen, to a submission.

It sees greedy's game beside its own, so a level takes two games, and the faster one counts.

    .ci/setup agents && .ci/setup benchmark
    python examples/muzero_levels.py FOLDER [--seconds 300] [--seed 0] [--split validation]
    python examples/muzero_levels.py FOLDER --agent FILE --search
"""

import argparse
import pathlib
import time

import mallocgame as mg
from mallocgame import agents

# It imitates annealing's plans for most of its updates, and searches beside that.
CONFIG = {
    "candidates": mg.FINE_GAME.candidates,
    "baseline": "greedy",
    "groups": 1,
    "updates": 100,
    "demonstration_decisions": 200_000,
    "demonstration_share": 0.7,
    "imitation": 1,
    "restart_share": 0.5,
    "varied_decisions": 0,
}
STAKE = 1.01  # levels on which the best known plan is 1 % faster than greedy's, or more
ACCESSES = (20, 700)  # of a level
EVERY = 4  # of so many of these levels


def train(seconds: float, seed: int) -> agents.MuZero:
    """Returns a training of so much processor time."""
    levels = [
        level
        for level in mg.levels("train", scored=True)
        if level.gain >= STAKE and ACCESSES[0] <= level.features["accesses"] <= ACCESSES[1]
    ]
    games = [level.game(mg.FINE_GAME) for level in levels[::EVERY]]
    trainer = agents.MuZero(games, CONFIG, seed, threads=1)
    end = time.process_time() + seconds
    while time.process_time() < end:
        progress = trainer.step()
        print(
            f"step {progress['iteration']}: policy loss {progress['policy_loss']:.3f}", flush=True
        )
    return trainer


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path, help="for plans and agent")
    parser.add_argument("--seconds", type=float, default=300, help="of training (300)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--split", action="append", help="to play: validation, whole-test ...")
    parser.add_argument("--agent", type=pathlib.Path, help="of an earlier run, instead of training")
    parser.add_argument("--search", action="store_true", help="at each decision, without rollouts")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.agent:
        agent = agents.MuZeroAgent.load(options.agent)
    else:
        trainer = train(options.seconds, options.seed)
        trainer.save(options.folder / "agent.muzero")
        agent = trainer.agent()
    # A rollout would be another game.
    search = {"rollout_share": 0} if options.search else {"simulations": 1}
    for split in options.split or ["validation"]:
        for level in mg.levels(split):
            game = level.game(mg.FINE_GAME)
            both = (agent.baseline(game), agent.play(game, config=search))
            faster = min(both, key=lambda result: result.report.latency_ps)
            mg.save_plan(faster.plan, game.program, options.folder / f"{level.name}.json")
        print(f"mallocgame benchmark --submission {options.folder} --split {split}")
