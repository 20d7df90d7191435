"""Trains policies that play one game of each level, and compares them with cheap players.

    python benchmarks/quality/one_game.py FOLDER [--split validation] [--stake 2] [--seeds 5]
        [--methods greedy:fine,styles,cloning,improved,PPO,DQN,MuZero,MuZero:search,EGRL] [--jobs 2]

Methods are scripts of examples/, each with the seeds 0, 1 ...:

    cloning, improved   clone_levels.py, and improve_levels.py from its policy
    PPO, DQN            sb3_levels.py, sb3_dqn_levels.py
    MuZero              muzero_levels.py, the policy alone, or greedy's game, which it sees
    MuZero:search       the same agent with a search at each decision
    EGRL                egrl_levels.py with eight maps, each of which is a game

All play the fine game, and so does greedy:fine. styles plays its first rule. The demonstrations are
made once, FOLDER/demonstrations.npz. FOLDER/METHOD/SEED is a submission with the plans of both
splits, finished when it has seconds.txt, so that it goes on where it stopped. Prints
the interquartile mean of the scores (0 greedy, 1 best known) with its 95 % interval over levels and
seeds, the same of the differences to greedy:fine and to styles, level by level, the geometric mean
of the speed-up over greedy, and the share of games that are faster, and slower, than greedy:fine's.
Needs mallocgame[rl,benchmark].
"""

import argparse
import concurrent.futures
import math
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import Sequential

import mallocgame as mg
from mallocgame._levels.judging import judge_submission
from mallocgame._levels.scores import Interval, interquartile_mean, score

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples"))
from clone_levels import load_policy, play

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
FINE_GREEDY = "greedy:fine"
CONTROLS = (FINE_GREEDY, "styles")
# Each with the method whose result it begins with.
LEARNERS = {
    "cloning": None,
    "improved": "cloning",
    "PPO": None,
    "DQN": None,
    "MuZero": None,
    "MuZero:search": "MuZero",
    "EGRL": None,
}
METHODS = (*CONTROLS, *LEARNERS)
SPLITS = ("validation", "test")
STEPS = {"PPO": ("sb3_levels.py", 900_000), "DQN": ("sb3_dqn_levels.py", 300_000)}
TIMED = "seconds.txt"  # how long a method took; it is written last


def folder_of(folder: pathlib.Path, method: str, seed: int) -> pathlib.Path:
    return folder / method.replace(":", "_") / str(seed)


def command(method: str, folder: pathlib.Path, seed: int) -> list[str]:
    """Returns how an example trains, and plays both splits."""
    before = LEARNERS[method]
    trained = folder_of(folder.parents[1], before, seed) if before else folder
    if method in STEPS:
        script, steps = STEPS[method]
        return [script, str(folder), str(steps), str(seed), *SPLITS]
    splits = [part for split in SPLITS for part in ("--split", split)]
    options = [str(folder), "--seed", str(seed), *splits]
    if method == "MuZero":
        return ["muzero_levels.py", *options]
    if method == "MuZero:search":
        return ["muzero_levels.py", *options, "--search", "--agent", str(trained / "agent.muzero")]
    if method == "EGRL":
        return ["egrl_levels.py", *options]
    options += ["--demonstrations", str(folder.parents[1] / "demonstrations.npz")]
    if method == "cloning":
        return ["clone_levels.py", *options]
    return ["improve_levels.py", options[0], str(trained / "policy.pt"), *options[1:]]


def solve(method: str, folder: pathlib.Path) -> None:
    """Writes the plans of a solver that plays one game."""
    folder.mkdir(parents=True, exist_ok=True)
    for level in [level for split in SPLITS for level in mg.levels(split)]:
        game = level.game(**mg.FINE_GAME) if method == FINE_GREEDY else level.game()
        solver = "greedy" if method == FINE_GREEDY else method
        result = mg.solve(game, solver, seconds=0, evaluations=1)
        if result.evaluations > 1:
            raise SystemExit(f"{method} on {level.name}: found {result.evaluations} games")
        mg.save_plan(result.plan, game.program, folder / f"{level.name}.json")


def make(method: str, folder: pathlib.Path, seed: int) -> None:
    """Makes a submission, if it isn't finished."""
    if (folder / TIMED).exists():
        return
    begin = time.monotonic()
    if method in LEARNERS:
        script, *arguments = command(method, folder, seed)
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        subprocess.run(
            [sys.executable, str(EXAMPLES / script), *arguments], check=True, env=environment
        )
    else:
        solve(method, folder)
    (folder / TIMED).write_text(f"{time.monotonic() - begin:.0f}\n", encoding="utf-8")


def latencies(folders: Sequence[pathlib.Path], levels: Sequence[mg.Level]) -> NDArray[np.int64]:
    """Returns what the submissions reach, [seeds, levels]. Every plan must be there and valid."""
    runs = [judge_submission(folder, levels) for folder in folders]
    for problem in [f"{run.plan}: {run.problem}" for own in runs for run in own if run.problem]:
        raise SystemExit(problem)
    return np.array([[run.latency_ps for run in own] for own in runs])


def game_ms(policy: Sequential, levels: Sequence[mg.Level]) -> NDArray[np.float64]:
    """Returns how long a game of each level takes."""
    torch.set_num_threads(1)
    took = []
    for level in levels:
        game = level.game(**mg.FINE_GAME)
        begin = time.process_time()
        play(policy, [game])
        took.append(1000 * (time.process_time() - begin))
    return np.array(took)


def text(interval: Interval) -> str:
    return f"{interval.mean:.3f} ({interval.low:.3f} to {interval.high:.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--split", choices=SPLITS, default="validation")
    parser.add_argument("--stake", type=float, default=2.0, help="percent, as of the benchmark")
    parser.add_argument("--methods", default=",".join(METHODS), help=f"of {', '.join(METHODS)}")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)

    methods = dict.fromkeys((*CONTROLS, *options.methods.split(",")))
    folders = {
        method: [
            folder_of(options.folder, method, seed)
            for seed in range(options.seeds if method in LEARNERS else 1)
        ]
        for method in methods
    }
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for begins_with_another in (False, True):
            made = [
                pool.submit(make, method, folder, seed)
                for method in methods
                if (LEARNERS.get(method) is not None) == begins_with_another
                for seed, folder in enumerate(folders[method])
            ]
            for one in made:
                one.result()

    levels = [one for one in mg.levels(options.split) if one.gain >= 1 + options.stake / 100]
    greedy = np.array([level.greedy_ps for level in levels])
    found = {method: latencies(own, levels) for method, own in folders.items()}
    scores = {
        method: np.array(
            [[score(level, int(ps)) for level, ps in zip(levels, row, strict=True)] for row in rows]
        )
        for method, rows in found.items()
    }
    print(f"{options.split}, {len(levels)} levels with {options.stake:g} % at stake")
    titles = ["player", "seeds", "score", *(f"less {one}" for one in CONTROLS), "speed-up"]
    titles += [f"{word} than {FINE_GREEDY}" for word in ("faster", "slower")] + ["seconds"]
    print(f"| {' | '.join(titles)} |")
    print(f"| --- |{' --: |' * (len(titles) - 1)}")
    for method, rows in found.items():
        seconds = [int((folder / TIMED).read_text()) for folder in folders[method]]
        cells = [method, str(len(rows)), text(interquartile_mean(scores[method]))]
        cells += [text(interquartile_mean(scores[method] - scores[one])) for one in CONTROLS]
        cells += [f"{math.exp(np.log(greedy / rows).mean()):.3f}"]
        cells += [f"{(rows < found[FINE_GREEDY]).mean():.0%}"]
        cells += [f"{(rows > found[FINE_GREEDY]).mean():.0%}", f"{np.median(seconds):.0f}"]
        print(f"| {' | '.join(cells)} |")
    for method in found:
        each = [interquartile_mean(row[None]).mean for row in scores[method]]
        print(f"{method}: each seed {', '.join(f'{one:.3f}' for one in each)}")
    for method in [one for one in ("cloning", "improved") if one in found]:
        policy = load_policy(folders[method][0] / "policy.pt")
        parameters, took = sum(one.numel() for one in policy.parameters()), game_ms(policy, levels)
        print(
            f"{method}: {parameters:,} parameters, a game takes {np.median(took):.1f} ms in the"
            f" median and {took.mean():.1f} ms in the mean"
        )


if __name__ == "__main__":
    main()
