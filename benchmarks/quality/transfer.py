"""Measures what cloned policies play on a chip, and with a memory, that they were not trained on.

    python benchmarks/quality/transfer.py FOLDER [--split validation] [--stake 2] [--seeds 5]
                                          [--without tpu_v6e,c10]

FOLDER is that of one_game.py. For each text of --without, policies are cloned from levels without
it in their name, FOLDER/without_TEXT/SEED, and play one game of each level that has it. They are
beside the policies of FOLDER/cloning, which saw such levels, and beside greedy in the same game.
Then those of FOLDER/cloning play, at calibrated prices, the levels whose programs can have them
(those of `known`), beside greedy there. Prints the interquartile mean of the scores (0 greedy, 1
best known) with its 95 % interval over levels and seeds, and the same of the differences to greedy
in the same game, level by level; at calibrated prices, where levels have no scores, the geometric
mean of greedy's latency over the policies'. Needs mallocgame[agents,benchmark].
"""

import argparse
import os
import pathlib
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from one_game import EXAMPLES, SPLITS, text  # type: ignore[import-not-found]
from torch.nn import Sequential

import mallocgame as mg
from mallocgame._calibration import calibrated_if_possible
from mallocgame._levels.scores import interquartile_mean, mean, score

sys.path.insert(0, str(EXAMPLES))
from clone_levels import load_policy, play


def train(folder: pathlib.Path, without: str, seed: int) -> Sequential:
    """Returns a policy cloned from levels without this in their name; it is kept."""
    own = folder / f"without_{without}" / str(seed)
    if not (own / "policy.pt").exists():
        arguments = [str(own), "--seed", str(seed), "--without", without]
        arguments += ["--demonstrations", str(folder / "demonstrations.npz")]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        script = str(EXAMPLES / "clone_levels.py")
        subprocess.run([sys.executable, script, *arguments], check=True, env=environment)
    return load_policy(own / "policy.pt")


def latencies(policies: Sequence[Sequential], games: Sequence[mg.Game]) -> NDArray[np.int64]:
    """Returns what the policies reach in one game each, [policies, games]."""
    return np.array([[play(policy, [game])[0].latency_ps for game in games] for policy in policies])


def greedy(games: Sequence[mg.Game]) -> NDArray[np.int64]:
    """Returns what greedy reaches, [1, games]."""
    return np.array([[mg.solve(game, "greedy", 0).report.latency_ps for game in games]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--split", choices=SPLITS, default="validation")
    parser.add_argument("--stake", type=float, default=2.0, help="percent, as of the benchmark")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--without", default="tpu_v6e,c10")
    options = parser.parse_args()
    torch.set_num_threads(1)
    several = [one for one in mg.levels(options.split) if one.gain >= 1 + options.stake / 100]
    seeds = range(options.seeds)
    trained = [load_policy(options.folder / "cloning" / str(seed) / "policy.pt") for seed in seeds]
    print("| levels | player | seeds | score | less greedy in the same game |")
    print("| --- | --- | --: | --: | --: |")
    for without in filter(None, options.without.split(",")):
        levels = [level for level in several if without in level.name]
        games = [level.game(**mg.FINE_GAME) for level in levels]
        players = {
            "greedy": greedy(games),
            "cloning": latencies(trained, games),
            f"cloning without {without}": latencies(
                [train(options.folder, without, seed) for seed in seeds], games
            ),
        }
        scores = {
            name: np.array(
                [
                    [score(level, int(ps)) for level, ps in zip(levels, row, strict=True)]
                    for row in rows
                ]
            )
            for name, rows in players.items()
        }
        for name, rows in scores.items():
            less = interquartile_mean(rows - scores["greedy"])
            cells = [f"{without}, {len(levels)}", name, str(len(rows))]
            print(f"| {' | '.join([*cells, text(interquartile_mean(rows)), text(less)])} |")
    priced = [calibrated_if_possible(one.load_program(), one.hardware()) for one in several]
    games = [mg.Game(program, **mg.FINE_GAME) for program in priced if program is not None]
    if not games:
        raise SystemExit("no level can have calibrated prices")
    theirs, own = greedy(games), latencies(trained, games)
    ratio = mean(np.log(theirs / own))
    faster, slower = (own < theirs).mean(), (own > theirs).mean()
    print(
        f"at calibrated prices, {len(games)} levels: greedy takes {np.exp(ratio.mean):.4f}"
        f" ({np.exp(ratio.low):.4f} to {np.exp(ratio.high):.4f}) times as long as cloning, which is"
        f" faster in {faster:.0%} and slower in {slower:.0%} of {own.size} games"
    )


if __name__ == "__main__":
    main()
