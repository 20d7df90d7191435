"""What each part of the solver `learned` is worth, on levels of architectures it never saw.

    python benchmarks/quality/learned_parts.py FOLDER [--jobs 2]

Trains with and without each part in FOLDER (a quarter of an hour), and goes on where it was.
Then plays the split `test` with --seconds 0 by each one's weights, and prints the tables of
docs/results/learned.md: scores after packing anew, and the best of the first games before it.
Needs mallocgame[agents,benchmark].
"""

import argparse
import pathlib
import shutil

import numpy as np

import mallocgame as mg
from mallocgame._core import LEARNED_SIZES, LearningGame
from mallocgame._learned.training import Settings, train
from mallocgame._learned.weights import load_weights
from mallocgame._levels.scores import interquartile_mean, score

WITHOUT = {
    "all parts": {},
    "another seed": {"seed": "1"},
    "a third seed": {"seed": "2"},
    "without the network": {"epochs": "0"},
    "returns followed too": {"generations": "60"},
    "returns followed, nothing imitated": {"epochs": "0", "generations": "60"},
    "a quarter of the programs": {"share": "0.25"},
    "one style": {"styles": "1"},
}
GAMES = (1, 4, 8, 16, 32, 48)


def trained(folder: pathlib.Path, name: str, jobs: int) -> pathlib.Path:
    """Returns the file of weights that a variant of training writes."""
    own, first = folder / name.replace(" ", "_"), folder / "all_parts" / "demonstrations"
    if first.exists() and not own.exists():
        shutil.copytree(first, own / "demonstrations")
    train(
        own,
        Settings.of(WITHOUT[name]),
        jobs,
        lambda step, text: print(f"\r{name}: {step}: {text}        ", end="", flush=True),
    )
    print()
    return own / "weights.csv"


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    weights = {name: trained(options.folder, name, options.jobs) for name in WITHOUT}
    levels = [level for level in mg.levels("test") if score(level, 1) is not None]
    games = [LearningGame(level.game()) for level in levels]
    print("| trained | score | 95 % |", *(f" {count} |" for count in GAMES), sep="")
    print("| --- | --: | --: |", " --: |" * len(GAMES), sep="")
    for name, path in weights.items():
        results = [
            mg.solve(level.game(), "learned", seconds=0, weights=path).report.latency_ps
            for level in levels
        ]
        own = interquartile_mean(_scores(levels, np.array(results)[:, None]).T)
        numbers = load_weights(path)
        network, styles = np.split(numbers, [LEARNED_SIZES["weights"]])
        styles = styles.reshape(-1, LEARNED_SIZES["style"])
        each = _scores(levels, np.array([game.play(network, styles) for game in games]))
        means = [
            f"{interquartile_mean(each[:, :count].max(axis=1)[None]).mean:.3f}"
            if count <= len(styles)
            else ""
            for count in GAMES
        ]
        print(
            f"| {name} | {own.mean:.3f} | {own.low:.3f} to {own.high:.3f} |",
            *(f" {mean} |" for mean in means),
            sep="",
        )


def _scores(levels: list, latencies_ps: np.ndarray) -> np.ndarray:
    return np.array(
        [
            [score(level, int(latency)) for latency in row]
            for level, row in zip(levels, latencies_ps, strict=True)
        ],
        np.float64,
    )


if __name__ == "__main__":
    main()
