"""Plays several games of each level with learned policies, beside solvers with as many games.

    python benchmarks/quality/several_games.py FOLDER [--split validation] [--games 8,64]
        [--min-headroom 2] [--seeds 5] [--policies fine-tuned] [--most-accesses 1000000] [--jobs 1]

FOLDER is that of one_game.py, whose policies of the method `--policies` play. The first game takes
the most likely modes, the others draw modes and the order of runs (examples/clone_levels.py).
`policy and styles` leaves half of its games to styles. `greedy, drawn orders` is greedy in such
orders, without a policy. The best game counts, and its plan is validated and simulated.
FOLDER/several_games/POLICIES keeps what is done, so that it goes on where it stopped. Prints the
interquartile mean of the scores (0 greedy, 1 best known) with its 95 % interval over levels and
seeds, and the same of the differences to styles, annealing and greedy in drawn orders with as many
games, level by level. Needs mallocgame[agents,benchmark].
"""

import dataclasses
import functools
import pathlib
import sys
from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from one_game import Split, with_headroom  # type: ignore[import-not-found]

import mallocgame as mg
from mallocgame import experiments as ex

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


def measure(
    level: mg.Level, games: tuple[int, ...], seeds: tuple[int, ...], folder: pathlib.Path
) -> dict:
    """Returns the scores of each player with each number of games, one for each of its seeds."""
    torch.set_num_threads(1)
    policies = [load_policy(folder / str(seed) / "policy.pt") for seed in seeds]
    played: list[list[Found]] = [
        [(end.latency_ps, end.plan()) for end in play_several(policy, level, max(games), seed)]
        for seed, policy in zip(seeds, policies, strict=True)
    ]
    orders = [level.game(mg.FINE_GAME), *drawn_orders(level, max(games) - 1, 0)]
    greedy = [solved(game, "greedy", 1) for game in orders]
    found: list[tuple[str, int, list[int]]] = []
    for count in games:
        for solver, kind in SOLVERS.items():
            one = judged(level, [solved(level.game(game=kind), solver, count)])
            found.append((solver, count, [one]))
        half = solved(level.game(), "styles", count - count // 2)
        found.append((ORDERS, count, [judged(level, greedy[:count])]))
        found.append((POLICY, count, [judged(level, own[:count]) for own in played]))
        both = [judged(level, [half, *own[: count // 2]]) for own in played]
        found.append((BOTH, count, both))
    return {
        "scores": [
            (player, count, [ex.score(level, ps) or 0.0 for ps in several])
            for player, count, several in found
        ]
    }


def main(
    bench: ex.Bench,
    *,
    split: Split = "validation",
    games: tuple[int, ...] = (8, 64),
    min_headroom: float = 2.0,
    seeds: tuple[int, ...] = tuple(range(5)),
    policies: Literal["cloning", "fine-tuned"] = "fine-tuned",
    most_accesses: int = 10**6,
) -> None:
    levels = [
        x for x in with_headroom(split, min_headroom) if x.features["accesses"] <= most_accesses
    ]
    levels.sort(key=lambda level: level.features["accesses"])
    work = functools.partial(measure, folder=bench.folder / policies)
    own = dataclasses.replace(bench, folder=bench.folder / "several_games" / policies)
    settings = {"games": games, "seeds": seeds}
    several: dict[tuple[str, int], list[list[float]]] = {}
    for row in own.run(work, ex.Grid(level=levels), settings=settings):
        for player, count, scores in row["scores"]:
            several.setdefault((player, count), []).append(scores)
    found = {player: np.array(rows).T for player, rows in several.items()}  # [seeds, levels]
    print(f"{split}, {len(levels)} levels with {min_headroom:g} % of headroom")
    table = ex.Table(["player", "games", "seeds", "score", *(f"less {one}" for one in CONTROLS)])
    for (player, count), rows in found.items():
        less = (ex.interquartile_mean(rows - found[one, count]) for one in CONTROLS)
        table.add(player, count, len(rows), ex.interquartile_mean(rows), *less)
    print(table)
    for count in games:
        each = ", ".join(f"{ex.middle_mean(row):.3f}" for row in found[POLICY, count])
        print(f"policy, {count} games: each seed {each}")


if __name__ == "__main__":
    ex.main(main)
