"""From levels to an EGRL agent that places the runs of a level it has not seen, to a submission.

A map says of all runs of the priority game how they are served, and in which order. A level takes
as many games as maps.

    .ci/setup agents && .ci/setup benchmark
    python examples/egrl_levels.py FOLDER [--maps 8] [--seed 0] [--split validation]
    python examples/egrl_levels.py FOLDER --agent FILE --maps 64
"""

import argparse
import dataclasses
import pathlib

import mallocgame as mg
from mallocgame import agents

# A map is graded at its end.
GAME = dataclasses.replace(mg.FINE_GAME, candidates=51, exact_stalls=False)
STAKE = 1.01  # levels on which the best known plan is 1 % faster than greedy's, or more
ACCESSES = (20, 700)  # of a level


def problem(level: mg.Level) -> mg.placement.Placement:
    """Returns a problem whose reward is over greedy, and whose first map places nothing."""
    game = level.game(GAME)
    return mg.placement.Placement.of_game(game, level.greedy_ps, game.initial_state().plan())


def train(count: int, maps: int, seed: int) -> agents.Egrl:
    """Returns a training on so many levels, with so many maps of each."""
    levels = [
        level
        for level in mg.levels("train", scored=True)
        if level.gain >= STAKE and ACCESSES[0] <= level.features["accesses"] <= ACCESSES[1]
    ]
    problems = [problem(level) for level in levels[:: len(levels) // count][:count]]
    trainer = agents.Egrl(problems, seed=seed, threads=1)
    trainer.train(count * maps)
    return trainer


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path, help="for plans and agent")
    parser.add_argument("--maps", type=int, default=8, help="of each level, at least 2 (8)")
    parser.add_argument("--train-levels", type=int, default=96, help="to train on (96)")
    parser.add_argument("--train-maps", type=int, default=400, help="of each of them (400)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--split", action="append", help="to play: validation, whole-test ...")
    parser.add_argument("--agent", type=pathlib.Path, help="of an earlier run, instead of training")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.agent:
        agent = agents.EgrlAgent.load(options.agent)
    else:
        trainer = train(options.train_levels, options.train_maps, options.seed)
        trainer.save(options.folder / "agent.egrl")
        agent = trainer.agent()
    for split in options.split or ["validation"]:
        for level in mg.levels(split):
            placement = problem(level)
            # The most likely maps of two networks, and as many draws from each.
            found = agent.place(placement, samples=options.maps // 2 - 1, seed=options.seed)
            plan = mg.placement.play_map(placement, found.map).plan()
            mg.save_plan(plan, level.load_program(), options.folder / f"{level.name}.json")
        print(f"mallocgame benchmark --submission {options.folder} --split {split}")
