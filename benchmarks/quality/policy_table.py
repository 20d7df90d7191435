"""Compares one game of the learned policy with those of players that have learned nothing.

    python benchmarks/quality/policy_table.py FOLDER [--split whole-test | --suite core]
    [--prices compiler] [--levels LEVELS] [--learned FOLDER_OF_TRAINING] [--least-accesses 0]

On the levels of a split, or on the programs of a bundled suite. With --prices calibrated they have
these prices, otherwise those that a level's name says. Programs that aren't here or can't have
such prices are left out. Players of one game:

    greedy      the fine game, by greedy's rule
    untrained   the rule with weights of 0, in the policy's own game, which is the fine game that
                asks about small buffers too
    styles      the first of its priority rules
    policy      the weights of the library; with --learned each seed that train_policy.py has
                kept there

`styles, all` has some sixty games. Prints how much slower each is than the best known plan, where
that is known, in the geometric mean, and the ratio to the policy, each with its 95 % interval over
programs, of whose levels the mean counts; the share of levels on which the policy is faster, and
slower; and the CPU time of a game in milliseconds. Then greedy's ratio to the policy by chip and
prices. Needs mallocgame[benchmark].
"""

import pathlib
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from train_policy import UNTRAINED  # type: ignore[import-not-found]

import mallocgame as mg
from mallocgame import _core
from mallocgame import experiments as ex
from mallocgame.games import GameOptions
from mallocgame.playables import played
from mallocgame.programs import suite as names_of_suite

MakeGame = Callable[[str | GameOptions], mg.Game]


def solved(solver: str, evaluations: int = 0) -> Callable[[MakeGame], int]:
    def play(game: MakeGame) -> int:
        own = game(mg.FINE_GAME if solver == "greedy" else "priority")
        return mg.solve(own, solver, seconds=0, evaluations=evaluations).report.latency_ps

    return play


def weighted(weights: NDArray[np.float64]) -> Callable[[MakeGame], int]:
    return lambda game: _core._PolicyGame(game("priority")).latency_ps(weights)


def players(learned: str | None) -> dict[str, Callable[[MakeGame], int]]:
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


def subject(name: str, split: str, levels: str | None) -> mg.Level | str:
    """Returns a level of a split, or the name of a program, which is of no split."""
    return next((one for one in mg.levels(split, levels) if one.name == name), name)


def measure(
    name: str, split: str, prices: str, levels: str | None, learned: str | None
) -> dict[str, Any]:
    one = subject(name, split, levels)
    row: dict[str, Any] = {"best_known_ps": None}
    if isinstance(one, mg.Level) and (prices == "compiler" or one.variant.calibrated):
        row["best_known_ps"] = one.best_known_ps or one.bound_ps

    def game(game: str | GameOptions) -> mg.Game:
        return played(one, prices=prices, game=game)[0].game

    try:
        own = game("priority")
    except mg.InvalidInputError as error:
        return {"refused": str(error)}
    chip = one.features["hardware"] if isinstance(one, mg.Level) else own.hardware.name
    row |= {"chip": chip, "prices": own.program.cost_model}
    for player, play in players(learned).items():
        begin = time.process_time()
        row[player] = {"latency_ps": play(game), "seconds": time.process_time() - begin}
    return row


def over_programs(rows: Sequence[dict], ratios: NDArray[np.float64]) -> ex.Interval:
    """Returns the geometric mean over programs, of whose levels the mean counts."""
    programs = np.array([row["name"].partition("@")[0] for row in rows])
    each = [np.log(ratios[programs == one]).mean() for one in dict.fromkeys(programs)]
    return ex.mean(np.array([each])).exp()


def print_by_kind(rows: Sequence[dict], ratios: NDArray[np.float64]) -> None:
    """Prints where greedy is slower than the policy, and where it is faster."""
    kinds = np.array([f"{row['chip']}, {row['prices']}" for row in rows])
    table = ex.Table(("chip, prices", "levels", "greedy over policy"))
    for kind in sorted(set(kinds)):
        of_kind = [row for row, one in zip(rows, kinds, strict=True) if one == kind]
        ratio = over_programs(of_kind, ratios[kinds == kind])
        table.add(kind, len(of_kind), format(ratio, ".4f"))
    print(table)


def main(
    bench: ex.Bench,
    *,
    split: str = "whole-test",
    suite: str | None = None,
    prices: Literal["compiler", "calibrated"] = "compiler",
    levels: str | None = None,
    learned: str | None = None,
    least_accesses: int = 0,
) -> None:
    names = (
        names_of_suite(suite)
        if suite
        else [
            level.name
            for level in mg.levels(split, levels)
            if level.features["accesses"] >= least_accesses
        ]
    )
    settings = {"split": split, "prices": prices, "levels": levels, "learned": learned}
    found = bench.run(measure, ex.Grid(name=names), settings=settings)
    rows = [row for row in found if "refused" not in row]
    latency = {
        player: np.array([row[player]["latency_ps"] for row in rows]) for player in players(learned)
    }
    known = all(row["best_known_ps"] for row in rows)
    best = np.array([row["best_known_ps"] for row in rows]) if known else None
    table = ex.Table(
        ("player", "over best known", "over policy", "policy faster", "policy slower", "ms")
    )
    policy = latency["policy"]
    for player, own in latency.items():
        table.add(
            player,
            "-" if best is None else format(over_programs(rows, own / best), ".4f"),
            format(over_programs(rows, own / policy), ".4f"),
            f"{(policy < own).mean():.0%}",
            f"{(policy > own).mean():.0%}",
            f"{1000 * np.median([row[player]['seconds'] for row in rows]):.1f}",
        )
    programs = {row["name"].partition("@")[0] for row in rows}
    left_out = len(found) - len(rows)
    print(f"{suite or split}: {len(rows)} levels of {len(programs)} programs; {left_out} left out")
    print(table)
    print_by_kind(rows, latency["greedy"] / policy)


if __name__ == "__main__":
    ex.main(main)
