"""Measures what cloned policies play on a chip, and with a memory, that they were not trained on.

    python benchmarks/quality/transfer.py FOLDER [--split validation] [--min-headroom 2] [--seeds 5]
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

import contextlib
import os
import pathlib
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from one_game import EXAMPLES, Split, with_headroom  # type: ignore[import-not-found]
from torch.nn import Sequential

import mallocgame as mg
from mallocgame import experiments as ex

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


def calibrated(levels: Sequence[mg.Level]) -> list[mg.Game]:
    """Returns the games at calibrated prices of those levels whose programs can have them."""
    games = []
    for level in levels:
        with contextlib.suppress(mg.InvalidInputError):
            program = mg.calibration.calibrated(level.load_program(), level.hardware())
            games.append(mg.Game(program, game=mg.FINE_GAME))
    return games


def main(
    folder: pathlib.Path,
    *,
    split: Split = "validation",
    min_headroom: float = 2.0,
    seeds: tuple[int, ...] = tuple(range(5)),
    without: tuple[str, ...] = ("tpu_v6e", "c10"),
) -> None:
    torch.set_num_threads(1)
    several = with_headroom(split, min_headroom)
    trained = [load_policy(folder / "cloning" / str(seed) / "policy.pt") for seed in seeds]
    table = ex.Table(["levels", "player", "seeds", "score", "less greedy in the same game"], left=2)
    for part in without:
        levels = [level for level in several if part in level.name]
        games = [level.game(mg.FINE_GAME) for level in levels]
        others = [train(folder, part, seed) for seed in seeds]
        players = {
            "greedy": greedy(games),
            "cloning": latencies(trained, games),
            f"cloning without {part}": latencies(others, games),
        }
        scored = {name: ex.scores_of(levels, rows) for name, rows in players.items()}
        for name, rows in scored.items():
            less = ex.interquartile_mean(rows - scored["greedy"])
            what = f"{part}, {len(levels)}"
            table.add(what, name, len(rows), ex.interquartile_mean(rows), less)
    print(table)
    games = calibrated(several)
    if not games:
        raise SystemExit("no level can have calibrated prices")
    theirs, own = greedy(games), latencies(trained, games)
    ratio = ex.mean(np.log(theirs / own)).exp()
    faster, slower = (own < theirs).mean(), (own > theirs).mean()
    print(
        f"at calibrated prices, {len(games)} levels: greedy takes {ratio:.4f} times as long as "
        f"cloning, which is faster in {faster:.0%} and slower in {slower:.0%} of {own.size} games"
    )


if __name__ == "__main__":
    ex.main(main)
