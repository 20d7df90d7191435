"""Learns the rule of the solver `policy`, and writes its weights into the library.

    python benchmarks/quality/train_policy.py FOLDER [--levels LEVELS] [--seeds 3]
    [--generations 30] [--share 0.3] [--write]

Evolution finds the dozen weights of the rule (PolicyWeight in policy_game.h) by its own games on
levels of whole-train and train, once for each of the seeds 0, 1 ... With each the games of
whole-validation and validation are played, beside those with weights of 0, which have learned
nothing. --write keeps the best of them as mallocgame/solvers/policy/learned_weights.inc; then the
library has to be built again. FOLDER keeps each result.
"""

import pathlib
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

import mallocgame as mg
from mallocgame import _core
from mallocgame import experiments as ex

TRAIN, VALIDATION = "whole-train", "whole-validation"
LEAST_ACCESSES = 150  # of a level of the split train
WEIGHTS = pathlib.Path(__file__).parents[2] / "mallocgame/solvers/policy/learned_weights.inc"
# How far weights are first drawn from 0: five of the importance, which is a logarithm, and those of
# worths, which are shares of a saving.
SPREAD = np.array(5 * [2.0] + 7 * [0.3])
UNTRAINED = np.zeros(len(SPREAD))  # plays as greedy does
Floats = NDArray[np.float64]


class Games:
    """The games of levels, and what is known of these."""

    def __init__(self, levels: Sequence[mg.Level]) -> None:
        self.levels = list(levels)
        self.games = [_core._PolicyGame(level.game("priority")) for level in levels]
        self.untrained = self.latencies(UNTRAINED)

    def latencies(self, weights: Floats) -> Floats:
        return np.array([game.latency_ps(weights) for game in self.games], np.float64)

    def gain(self, weights: Floats) -> float:
        """The mean of ln(latency with weights of 0 / that with these)."""
        return float(np.log(self.untrained / self.latencies(weights)).mean())


def learn(value: Callable[[Floats], float], generations: int, seed: int, size: int = 8) -> Floats:
    """Evolution with a spread for each weight (separable CMA-ES, Ros and Hansen 2008)."""
    rng, count = np.random.default_rng(seed), len(SPREAD)
    share = np.log(size / 2 + 0.5) - np.log(np.arange(1, size // 2 + 1))
    share /= share.sum()
    effective = 1 / (share**2).sum()
    fade_step = (effective + 2) / (count + effective + 5)
    fade_path = 4 / (count + 4)
    forget = min(1.0, (count + 2) / 3 * 2 / ((count + 1.3) ** 2 + effective))
    mean, step, variance = UNTRAINED.copy(), 1.0, SPREAD**2
    path_step, path = np.zeros(count), np.zeros(count)
    usual = np.sqrt(count) * (1 - 1 / (4 * count) + 1 / (21 * count**2))
    best, most = mean.copy(), value(mean)
    for _ in range(generations):
        drawn = rng.normal(size=(size, count))
        points = mean + step * np.sqrt(variance) * drawn
        values = np.array([value(point) for point in points])
        order = np.argsort(-values, kind="stable")[: size // 2]
        if values[order[0]] > most:
            best, most = points[order[0]].copy(), float(values[order[0]])
        move = share @ drawn[order]
        mean = mean + step * np.sqrt(variance) * move
        path_step = (1 - fade_step) * path_step + np.sqrt(
            fade_step * (2 - fade_step) * effective
        ) * move
        path = (1 - fade_path) * path + np.sqrt(fade_path * (2 - fade_path) * effective) * (
            np.sqrt(variance) * move
        )
        ranked = share @ (variance * drawn[order] ** 2)
        variance = (1 - forget) * variance + forget * (0.3 * path**2 + 0.7 * ranked)
        step *= np.exp(fade_step * (np.linalg.norm(path_step) / usual - 1))
    return best if value(mean) < most else mean


def write_weights(weights: Floats, path: pathlib.Path = WEIGHTS) -> None:
    head = "// The weights of the solver policy. benchmarks/quality/train_policy.py writes them."
    path.write_text("\n".join([head, *(f"{one:#.6g}F," for one in weights)]) + "\n")


def levels_to_learn_on(folder: str | None, share: float) -> list[mg.Level]:
    """Whole models on their chips, and a share of the larger levels of train, evenly chosen."""
    small = [
        level
        for level in mg.levels("train", scored=True)
        if level.features["accesses"] >= LEAST_ACCESSES and level.variant.bandwidth == 100
    ]
    count = round(share * len(small))
    chosen = [small[i * len(small) // max(1, count)] for i in range(count)]
    return on_their_chips(TRAIN, folder) + chosen


def on_their_chips(split: str, folder: str | None) -> list[mg.Level]:
    """Returns the levels of whole models that are no variants."""
    return [level for level in mg.levels(split, folder) if level.name == level.program_name]


def main(
    bench: ex.Bench,
    *,
    levels: str | None = None,
    seeds: tuple[int, ...] = (0, 1, 2),
    generations: int = 30,
    share: float = 0.3,
    write: bool = False,
) -> None:
    games = Games(levels_to_learn_on(levels, share))
    judged = Games(on_their_chips(VALIDATION, levels) + mg.levels("validation"))
    print(f"{len(games.levels)} levels to learn on, {len(judged.levels)} to choose by")
    found, table = {}, ex.Table(("seed", "gain to learn on", "gain to choose by"))
    for seed in seeds:
        path = bench.folder / f"seed{seed}.npy"
        if not path.exists():
            np.save(path, learn(games.gain, generations, seed))
        weights = np.load(path)
        found[path] = judged.gain(weights)
        table.add(seed, f"{games.gain(weights):.4f}", f"{found[path]:.4f}")
    print(table)
    best = max(found, key=lambda path: found[path])
    print(f"chosen: {best.stem}")
    if write:
        write_weights(np.load(best))


if __name__ == "__main__":
    ex.main(main)
