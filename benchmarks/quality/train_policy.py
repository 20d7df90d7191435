"""Learns the network of the solver `policy`, and writes its weights into the library.

    python benchmarks/quality/train_policy.py FOLDER [--levels LEVELS] [--seeds 3]
    [--designs imitation,rule] [--generations 30] [--trials 20000] [--share 0.3] [--write]

Two designs, each with the seeds 0, 1 ...:

    imitation   learns how plans of `packing` serve each run of the levels of whole-train:
                in main memory, in one residence, or split; then evolution finds by its own games
                how much that counts beside what greedy looks at
    rule        evolution finds a dozen weights of its linear part, by its own games alone

Of each design and seed the games of whole-validation and validation are played, beside those of the
network before it has learned anything. --write keeps the best of them as
mallocgame/solvers/policy/learned_weights.inc; then the library has to be built again. FOLDER keeps
the plans of `packing`, and each result.
"""

import functools
import pathlib
import typing
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

import mallocgame as mg
from mallocgame import _core
from mallocgame import experiments as ex

TRAIN, VALIDATION = "whole-train", "whole-validation"
LEAST_ACCESSES = 150  # of a level of the split train
WEIGHTS = pathlib.Path(__file__).parents[2] / "mallocgame/solvers/policy/learned_weights.inc"
HIDDEN, OUTPUTS = 16, 5
IMPORTANCE, PLACE, EARLY, PRELOAD, SPLIT = range(OUTPUTS)
SKIPPED, LATE, EARLY_MODE, PRELOADED, SPLIT_MODE = range(5)  # modes of actions
MOST_ROWS = 12_000  # of runs that imitation looks at
Floats = NDArray[np.float32]
Design = Literal["imitation", "rule"]


class Layout:
    """Where the parts of a vector of weights are (policy_network.h)."""

    def __init__(self, features: int) -> None:
        sizes = {
            "into": (features, HIDDEN),
            "bias": (HIDDEN,),
            "out": (HIDDEN, OUTPUTS),
            "linear": (features, OUTPUTS),
            "last": (OUTPUTS,),
            "saved": (1,),
        }
        self.parts, self.size = {}, 0
        for name, shape in sizes.items():
            self.parts[name] = (self.size, shape)
            self.size += int(np.prod(shape))

    def of(self, weights: Floats, part: str) -> Floats:
        """A view of one part."""
        begin, shape = self.parts[part]
        return weights[begin : begin + int(np.prod(shape))].reshape(shape)


NAMES = _core._policy_features()
LAYOUT = Layout(len(NAMES))
# The scale of the feature log_importance, which is an eighth of what greedy sorts by.
GREEDY_SCALE = 8.0


def untrained() -> Floats:
    """Weights that play as greedy does: by importance, each run where it saves most."""
    weights = np.zeros(LAYOUT.size, np.float32)
    LAYOUT.of(weights, "linear")[NAMES.index("priced_log_importance"), IMPORTANCE] = GREEDY_SCALE
    LAYOUT.of(weights, "saved")[0] = 1
    return weights


class Games:
    """The games of levels, and what is known of these."""

    def __init__(self, levels: Sequence[mg.Level]) -> None:
        self.levels = list(levels)
        self.games = [_core._PolicyGame(level.game("priority")) for level in levels]
        self.untrained = self.latencies(untrained())

    def latencies(self, weights: Floats) -> NDArray[np.float64]:
        return np.array([game.latency_ps(weights) for game in self.games], np.float64)

    def gain(self, weights: Floats) -> float:
        """The mean of ln(latency of the untrained network / that of this one)."""
        return float(np.log(self.untrained / self.latencies(weights)).mean())


def teach(level: mg.Level, folder: pathlib.Path, trials: int) -> mg.Plan:
    """A plan of `packing` that depends on no clock."""
    path, program = folder / f"{level.name}.json", level.load_program()
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        result = mg.solve(level.game("priority"), "packing", seconds=0, evaluations=trials)
        mg.save_plan(result.plan, program, path)
    return mg.load_plan(path, program)


def hidden_of(weights: Floats, features: Floats) -> Floats:
    return np.maximum(features @ LAYOUT.of(weights, "into") + LAYOUT.of(weights, "bias"), 0)


def outputs_of(weights: Floats, features: Floats) -> Floats:
    """What the network says: [runs, outputs]."""
    hidden = hidden_of(weights, features)
    told = hidden @ LAYOUT.of(weights, "out") + features @ LAYOUT.of(weights, "linear")
    return told + LAYOUT.of(weights, "last")


class Lessons:
    """How plans serve the runs of games, as rows for a classifier."""

    def __init__(self, games: Games, plans: Sequence[mg.Plan]) -> None:
        rows, modes, counts = [], [], []
        saving = NAMES.index("saving")
        for game, plan in zip(games.games, plans, strict=True):
            features, served = game.features, game.modes(plan)
            asked = served <= SPLIT_MODE
            rows.append(features[asked])
            modes.append(served[asked])
            # Runs count as what they save does, the sum of a level's as that of any other.
            share = np.exp(2 * (features[asked, saving] - 2))
            counts.append(share / share.sum())
        # Some thousand rows say as much as all, which repeat themselves as layers do.
        step = max(1, sum(map(len, rows)) // MOST_ROWS)
        self.features = np.concatenate(rows)[::step]
        self.modes = np.concatenate(modes)[::step]
        self.counts = np.concatenate(counts)[::step].astype(np.float32)
        self.counts /= self.counts.sum()

    def gradient(self, weights: Floats) -> tuple[float, Floats]:
        """The cross-entropy of three classes (main memory, one residence, split), and its slope.

        Early and Preload against Late are two further classes of what has a residence, and the
        importance of a run is learned as whether it isn't left in main memory.
        """
        told, hidden = outputs_of(weights, self.features), hidden_of(weights, self.features)
        placed = np.isin(self.modes, (LATE, EARLY_MODE, PRELOADED))
        split = self.modes == SPLIT_MODE
        logits = np.stack([np.zeros(len(told)), told[:, PLACE], told[:, SPLIT]], 1)
        logits -= logits.max(1, keepdims=True)
        chances = np.exp(logits)
        chances /= chances.sum(1, keepdims=True)
        wanted = np.stack([~(placed | split), placed, split], 1).astype(np.float32)
        slope = np.zeros_like(told)
        slope[:, [PLACE, SPLIT]] = (chances - wanted)[:, 1:]
        loss = -(np.log(np.maximum(chances, 1e-9)) * wanted).sum(1)
        for output, is_so, among in (
            (IMPORTANCE, placed | split, np.ones(len(told), bool)),
            (EARLY, self.modes == EARLY_MODE, placed),
            (PRELOAD, self.modes == PRELOADED, placed),
        ):
            chance = 1 / (1 + np.exp(-told[:, output]))
            slope[:, output] = (chance - is_so) * among
            likely = np.where(is_so, chance, 1 - chance)
            loss -= np.log(np.maximum(likely, 1e-9)) * among
        slope *= self.counts[:, None]
        found = np.zeros_like(weights)
        LAYOUT.of(found, "linear")[:] = self.features.T @ slope
        LAYOUT.of(found, "last")[:] = slope.sum(0)
        LAYOUT.of(found, "out")[:] = hidden.T @ slope
        back = (slope @ LAYOUT.of(weights, "out").T) * (hidden > 0)
        LAYOUT.of(found, "into")[:] = self.features.T @ back
        LAYOUT.of(found, "bias")[:] = back.sum(0)
        return float((loss * self.counts).sum()), found


def imitate(lessons: Lessons, seed: int, steps: int = 400, decay: float = 1e-4) -> Floats:
    """Descends by Adam."""
    rng = np.random.default_rng(seed)
    weights = np.zeros(LAYOUT.size, np.float32)
    into = LAYOUT.of(weights, "into")
    into[:] = rng.normal(0, 1 / np.sqrt(len(NAMES)), into.shape)
    LAYOUT.of(weights, "out")[:] = rng.normal(0, 0.1, (HIDDEN, OUTPUTS))
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, steps + 1):
        _, slope = lessons.gradient(weights)
        mean += 0.1 * (slope - mean)
        square += 0.01 * (slope**2 - square)
        rate = 0.01 * (1 - step / (steps + 1))
        found = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
        weights -= rate * (found + decay * weights)
    return weights


def joined(learned: Floats, scales: NDArray[np.float64]) -> Floats:
    """What was learned beside greedy's rule, each with its weight.

    scales: of each output that was learned; what is added to the worths of placing and of
    splitting; and to what the true saving counts.
    """
    weights, each = learned.copy(), scales[:OUTPUTS].astype(np.float32)
    for part in ("out", "linear", "last"):
        LAYOUT.of(weights, part)[:] *= each
    LAYOUT.of(weights, "last")[[PLACE, SPLIT]] += scales[OUTPUTS : OUTPUTS + 2]
    weights += untrained()
    LAYOUT.of(weights, "saved")[0] = 1 + scales[OUTPUTS + 2]
    return weights


def evolve(
    value: Callable[[NDArray[np.float64]], float],
    begin: NDArray[np.float64],
    spread: NDArray[np.float64],
    generations: int,
    seed: int,
    size: int = 8,
) -> NDArray[np.float64]:
    """Evolution with a spread for each number (separable CMA-ES, Ros and Hansen 2008)."""
    rng, count = np.random.default_rng(seed), len(begin)
    share = np.log(size / 2 + 0.5) - np.log(np.arange(1, size // 2 + 1))
    share /= share.sum()
    effective = 1 / (share**2).sum()
    fade_step = (effective + 2) / (count + effective + 5)
    fade_path = 4 / (count + 4)
    learn = min(1.0, (count + 2) / 3 * 2 / ((count + 1.3) ** 2 + effective))
    mean, step, variance = begin.copy(), 1.0, spread**2
    path_step, path = np.zeros(count), np.zeros(count)
    usual = np.sqrt(count) * (1 - 1 / (4 * count) + 1 / (21 * count**2))
    best, most = begin.copy(), value(begin)
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
        variance = (1 - learn) * variance + learn * (0.3 * path**2 + 0.7 * ranked)
        step *= np.exp(fade_step * (np.linalg.norm(path_step) / usual - 1))
    return best if value(mean) < most else mean


def learn_by_imitation(games: Games, lessons: Lessons, seed: int, generations: int) -> Floats:
    learned = imitate(lessons, seed)
    spread = np.array([1, 0.2, 0.1, 0.1, 0.2, 0.3, 0.3, 0.3])
    found = evolve(
        lambda scales: games.gain(joined(learned, scales)),
        np.zeros(len(spread)),
        spread,
        generations,
        seed,
    )
    return joined(learned, found)


# What a rule weighs: a feature of a run, and what it speaks for.
RULE = (
    ("saving", IMPORTANCE),
    ("bytes", IMPORTANCE),
    ("held", IMPORTANCE),
    ("priced_used", IMPORTANCE),
    ("priced_worth", IMPORTANCE),
    ("one", PLACE),
    ("priced_used", PLACE),
    ("priced_worth", PLACE),
    ("one", EARLY),
    ("one", SPLIT),
    ("priced_against_parts", SPLIT),
    ("priced_gap", SPLIT),
)


def learn_a_rule(games: Games, seed: int, generations: int) -> Floats:
    """Changes a dozen weights of the linear part, and looks at no plan."""

    def weights_of(change: NDArray[np.float64]) -> Floats:
        weights = untrained()
        linear = LAYOUT.of(weights, "linear")
        for (feature, output), weight in zip(RULE, change, strict=True):
            linear[NAMES.index(feature), output] += weight
        return weights

    spread = np.array([2.0 if output == IMPORTANCE else 0.3 for _, output in RULE])
    found = evolve(
        lambda change: games.gain(weights_of(change)),
        np.zeros(len(RULE)),
        spread,
        generations,
        seed,
    )
    return weights_of(found)


def write_weights(weights: Floats, path: pathlib.Path = WEIGHTS) -> None:
    numbers = [float(np.float32(f"{one:.6g}")) for one in weights]
    text = ",\n".join(f"{one:.6e}F" for one in numbers)
    head = "// The weights of the solver policy. benchmarks/quality/train_policy.py writes them."
    path.write_text(f"{head}\n{text}\n")


def levels_to_learn_on(folder: str | None, share: float) -> list[mg.Level]:
    """Whole models, and of the larger levels of the split train a share, evenly chosen."""
    small = [
        level
        for level in mg.levels("train", scored=True)
        if level.features["accesses"] >= LEAST_ACCESSES and level.variant.bandwidth == 100
    ]
    count = round(share * len(small))
    chosen = [small[i * len(small) // max(1, count)] for i in range(count)]
    return mg.levels(TRAIN, folder) + chosen


def main(
    bench: ex.Bench,
    *,
    levels: str | None = None,
    designs: tuple[Design, ...] = typing.get_args(Design),
    seeds: tuple[int, ...] = (0, 1, 2),
    generations: int = 30,
    trials: int = 20_000,
    share: float = 0.3,
    write: bool = False,
) -> None:
    plans = bench.folder / "plans"
    games = Games(levels_to_learn_on(levels, share))
    judged = Games(mg.levels(VALIDATION, levels) + mg.levels("validation"))
    print(f"{len(games.levels)} levels to learn on, {len(judged.levels)} to choose by")
    lessons = Lessons(games, [teach(level, plans, trials) for level in games.levels])
    print(f"{len(lessons.modes)} runs to learn from")
    learners = {
        "imitation": functools.partial(learn_by_imitation, games, lessons),
        "rule": functools.partial(learn_a_rule, games),
    }
    found, table = {}, ex.Table(("design", "seed", "gain to learn on", "gain to choose by"))
    for design in designs:
        for seed in seeds:
            path = bench.folder / f"{design}.{seed}.npy"
            if not path.exists():
                np.save(path, learners[design](seed, generations))
            weights = np.load(path)
            found[path] = judged.gain(weights)
            table.add(design, seed, f"{games.gain(weights):.4f}", f"{found[path]:.4f}")
    print(table)
    best = max(found, key=lambda path: found[path])
    print(f"chosen: {best.stem}")
    if write:
        write_weights(np.load(best))


if __name__ == "__main__":
    ex.main(main)
