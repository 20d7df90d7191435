"""Compares one game of the learned policy with those of players that have learned nothing.

    python benchmarks/quality/policy_table.py FOLDER [--split whole-test] [--levels LEVELS]
    [--learned FOLDER_OF_TRAINING] [--least-accesses 0]

Players of one game:

    greedy      the fine game, by greedy's rule
    untrained   the rule with weights of 0, in the policy's own game, which is the fine game that
                asks about small buffers too
    styles      the first of its priority rules
    policy      the weights of the library; with --learned each seed that train_policy.py has
                kept there

`styles, all` has some sixty games. Prints how much slower each is than the best known plan, in the
geometric mean, and the ratio to the policy level by level, each with its 95 % interval over levels,
the share of levels on which the policy is faster, and slower, and the CPU time of a game in
milliseconds. Needs mallocgame[benchmark].
"""

import pathlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from train_policy import UNTRAINED  # type: ignore[import-not-found]

import mallocgame as mg
from mallocgame import _core
from mallocgame import experiments as ex


def solved(solver: str, evaluations: int = 0) -> Callable[[mg.Level], int]:
    def play(level: mg.Level) -> int:
        game = level.game(mg.FINE_GAME if solver == "greedy" else "priority")
        return mg.solve(game, solver, seconds=0, evaluations=evaluations).report.latency_ps

    return play


def weighted(weights: NDArray[np.float64]) -> Callable[[mg.Level], int]:
    def play(level: mg.Level) -> int:
        return _core._PolicyGame(level.game("priority")).latency_ps(weights)

    return play


def players(learned: str | None) -> dict[str, Callable[[mg.Level], int]]:
    found = {
        "greedy": solved("greedy"),
        "untrained": weighted(UNTRAINED),
        "styles": solved("styles", evaluations=1),
        "styles, all": solved("styles"),
        "policy": solved("policy"),
    }
    if learned is not None:
        for path in sorted(pathlib.Path(learned).glob("*.npy")):
            found[path.stem] = weighted(np.load(path))
    return found


def best_known(level: mg.Level) -> int:
    """The least latency that is known; without one, the bound."""
    return level.best_known_ps or level.features["bound_ps"]


def measure(name: str, split: str, levels: str | None, learned: str | None) -> dict:
    (level,) = [one for one in mg.levels(split, levels) if one.name == name]
    row: dict[str, Any] = {"best_known_ps": best_known(level), "greedy_ps": level.greedy_ps}
    for player, play in players(learned).items():
        begin = time.process_time()
        row[player] = {"latency_ps": play(level), "seconds": time.process_time() - begin}
    return row


def main(
    bench: ex.Bench,
    *,
    split: str = "whole-test",
    levels: str | None = None,
    learned: str | None = None,
    least_accesses: int = 0,
) -> None:
    names = [
        level.name
        for level in mg.levels(split, levels)
        if level.features["accesses"] >= least_accesses
    ]
    settings = {"split": split, "levels": levels, "learned": learned}
    rows = bench.run(measure, ex.Grid(name=names), settings=settings)
    best = np.array([row["best_known_ps"] for row in rows])
    latency = {
        player: np.array([row[player]["latency_ps"] for row in rows]) for player in players(learned)
    }
    table = ex.Table(
        ("player", "over best known", "over policy", "policy faster", "policy slower", "ms")
    )
    policy = latency["policy"]
    for player, own in latency.items():
        over_best, over_policy = (
            format(ex.mean(np.log(own / other)[None]).exp(), ".4f") for other in (best, policy)
        )
        table.add(
            player,
            over_best,
            over_policy,
            f"{(policy < own).mean():.0%}",
            f"{(policy > own).mean():.0%}",
            f"{1000 * np.median([row[player]['seconds'] for row in rows]):.1f}",
        )
    print(f"{split}, {len(rows)} levels")
    print(table)


if __name__ == "__main__":
    ex.main(main)
