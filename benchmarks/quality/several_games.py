"""Plays several games of each level with learned policies, beside solvers with as many games.

    python benchmarks/quality/several_games.py FOLDER [--split validation] [--games 8,64]
        [--stake 2] [--seeds 5] [--policies improved] [--most-accesses 1000000] [--jobs 1]

FOLDER is that of one_game.py, whose policies of the method `--policies` play. The first game takes
the most likely modes, the others draw modes and the order of runs (examples/clone_levels.py).
`policy and styles` leaves half of its games to styles. `greedy, drawn orders` is greedy in such
orders, without a policy. The best game counts, and its plan is validated and simulated.
FOLDER/several_games keeps what is done, so that it goes on where it stopped; other policies or
numbers of games need another folder. Prints the interquartile mean of the scores (0 greedy, 1 best
known) with its 95 % interval over levels and seeds, and the same of the differences to styles,
annealing and greedy in drawn orders with as many games, level by level. Needs
mallocgame[agents,benchmark].
"""

import argparse
import functools
import json
import multiprocessing
import pathlib
import sys
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from one_game import SPLITS, text  # type: ignore[import-not-found]
from torch.nn import Sequential

import mallocgame as mg
from mallocgame._levels.scores import interquartile_mean, score

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples"))
from clone_levels import drawn_orders, load_policy, play_several

SOLVERS = {"styles": "time", "anneal": "priority"}  # and the games that they play
ORDERS, POLICY, BOTH = "greedy, drawn orders", "policy", "policy and styles"
CONTROLS = (*SOLVERS, ORDERS)

Found = tuple[int, mg.Plan]  # a latency, and the plan that has it


def judged(level: mg.Level, found: Sequence[Found]) -> int:
    """Returns the latency of the best of these plans, which must be valid."""
    program, hardware = level.load_program(), level.hardware()
    plan = min(found, key=lambda one: one[0])[1]
    if not (verdict := mg.validate(program, plan, hardware)):
        raise SystemExit(f"{level.name}: {verdict.rule}: {verdict.message}")
    return mg.simulate(program, plan, hardware).latency_ps


def solved(game: mg.Game, solver: str, games: int) -> Found:
    """Returns what a solver finds with so many games."""
    result = mg.solve(game, solver, seconds=0, evaluations=games)
    if result.evaluations > games:
        raise SystemExit(f"{solver} on {game.program.name}: found {result.evaluations} games")
    return result.report.latency_ps, result.plan


def scores(
    level: mg.Level, games: list[int], policies: list[Sequential]
) -> dict[tuple[str, int], list[float]]:
    """Returns the scores of each player with each number of games, one for each of its seeds."""
    played: list[list[Found]] = [
        [(end.latency_ps, end.plan()) for end in play_several(policy, level, max(games), seed)]
        for seed, policy in enumerate(policies)
    ]
    orders = [level.game(**mg.FINE_GAME), *drawn_orders(level, max(games) - 1, 0)]
    greedy = [solved(game, "greedy", 1) for game in orders]
    found: dict[tuple[str, int], list[int]] = {}
    for count in games:
        for solver, kind in SOLVERS.items():
            found[solver, count] = [judged(level, [solved(level.game(game=kind), solver, count)])]
        half = solved(level.game(), "styles", count - count // 2)
        found[ORDERS, count] = [judged(level, greedy[:count])]
        found[POLICY, count] = [judged(level, own[:count]) for own in played]
        found[BOTH, count] = [judged(level, [half, *own[: count // 2]]) for own in played]
    return {
        player: [score(level, latency_ps) or 0.0 for latency_ps in several]
        for player, several in found.items()
    }


def keep(
    level: mg.Level, folder: pathlib.Path, games: list[int], policies: list[Sequential]
) -> None:
    """Writes the scores of a level, if they aren't there."""
    torch.set_num_threads(1)
    path = folder / f"{level.name}.json"
    if not path.exists():
        own = [[*player, row] for player, row in scores(level, games, policies).items()]
        path.write_text(json.dumps(own))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--split", choices=SPLITS, default="validation")
    parser.add_argument("--games", default="8,64")
    parser.add_argument("--stake", type=float, default=2.0, help="percent, as of the benchmark")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--policies", choices=("cloning", "improved"), default="improved")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--most-accesses", type=int, default=10**6, help="leaves out larger levels")
    options = parser.parse_args()
    games = [int(count) for count in options.games.split(",")]
    own = options.folder / options.policies
    policies = [load_policy(own / str(n) / "policy.pt") for n in range(options.seeds)]
    levels = [one for one in mg.levels(options.split) if one.gain >= 1 + options.stake / 100]
    levels = [one for one in levels if one.features["accesses"] <= options.most_accesses]
    levels.sort(key=lambda level: level.features["accesses"])
    kept = options.folder / "several_games"
    kept.mkdir(exist_ok=True)
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        task = functools.partial(keep, folder=kept, games=games, policies=policies)
        pool.map(task, levels, chunksize=1)
    several: dict[tuple[str, int], list[list[float]]] = {}
    for level in levels:
        for player, count, row in json.loads((kept / f"{level.name}.json").read_text()):
            several.setdefault((player, count), []).append(row)
    found: dict[tuple[str, int], NDArray[np.float64]] = {
        player: np.array(rows).T
        for player, rows in several.items()  # [seeds, levels]
    }
    print(f"{options.split}, {len(levels)} levels with {options.stake:g} % at stake")
    print(f"| player | games | seeds | score | {' | '.join(f'less {one}' for one in CONTROLS)} |")
    print(f"| --- | --: | --: | --: |{' --: |' * len(CONTROLS)}")
    for (player, count), rows in found.items():
        cells = [player, str(count), str(len(rows)), text(interquartile_mean(rows))]
        cells += [text(interquartile_mean(rows - found[one, count])) for one in CONTROLS]
        print(f"| {' | '.join(cells)} |")
    for count in games:
        each = [interquartile_mean(row[None]).mean for row in found[POLICY, count]]
        print(f"policy, {count} games: each seed {', '.join(f'{one:.3f}' for one in each)}")


if __name__ == "__main__":
    main()
