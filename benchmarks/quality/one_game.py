"""Trains policies that play one game of each level, and compares them with cheap players.

    python benchmarks/quality/one_game.py FOLDER [--split validation] [--min-headroom 2] [--seeds 5]
        [--methods greedy:fine,styles,cloning,fine-tuned,PPO,DQN,MuZero,MuZero:search,EGRL]
        [--jobs 2]

Methods are scripts of examples/, each with the seeds 0, 1 ...:

    cloning, fine-tuned   clone_levels.py, and finetune_levels.py from its policy
    PPO, DQN            sb3_levels.py, sb3_dqn_levels.py
    MuZero              muzero_levels.py, the policy alone, or greedy's game, which it sees
    MuZero:search       the same agent with a search at each decision
    EGRL                egrl_levels.py with eight maps, each of which is a game

All play the fine game, and so does greedy:fine. styles plays its first rule. The demonstrations are
made once, FOLDER/demonstrations.npz. FOLDER/METHOD/SEED is a submission with the plans of both
splits, finished when there is METHOD/SEED.json, so that it goes on where it stopped. Prints the
interquartile mean of the scores (0 greedy, 1 best known) with its 95 % interval over levels and
seeds, the same of the differences to greedy:fine and to styles, level by level, the geometric mean
of the speed-up over greedy, and the share of games that are faster, and slower, than greedy:fine's.
Needs mallocgame[rl,benchmark].
"""

import functools
import math
import os
import pathlib
import subprocess
import sys
import time
import typing
from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import Sequential

import mallocgame as mg
from mallocgame import experiments as ex

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples"))
from clone_levels import load_policy, play

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
FINE_GREEDY = "greedy:fine"
CONTROLS = (FINE_GREEDY, "styles")
# Each with the method whose result it begins with.
LEARNERS = {
    "cloning": None,
    "fine-tuned": "cloning",
    "PPO": None,
    "DQN": None,
    "MuZero": None,
    "MuZero:search": "MuZero",
    "EGRL": None,
}
Method = Literal[
    "greedy:fine",
    "styles",
    "cloning",
    "fine-tuned",
    "PPO",
    "DQN",
    "MuZero",
    "MuZero:search",
    "EGRL",
]
Split = Literal["validation", "test"]
SPLITS = ("validation", "test")
STEPS = {"PPO": ("sb3_levels.py", 900_000), "DQN": ("sb3_dqn_levels.py", 300_000)}


def folder_of(folder: pathlib.Path, method: str, seed: int) -> pathlib.Path:
    return folder / method / str(seed)


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
    return ["finetune_levels.py", options[0], str(trained / "policy.pt"), *options[1:]]


def solve(method: str, folder: pathlib.Path) -> None:
    """Writes the plans of a solver that plays one game."""
    folder.mkdir(parents=True, exist_ok=True)
    for level in [level for split in SPLITS for level in mg.levels(split)]:
        game = level.game(mg.FINE_GAME) if method == FINE_GREEDY else level.game()
        solver = "greedy" if method == FINE_GREEDY else method
        result = mg.solve(game, solver, seconds=0, evaluations=1)
        if result.evaluations > 1:
            raise SystemExit(f"{method} on {level.name}: found {result.evaluations} games")
        mg.save_plan(result.plan, game.program, folder / f"{level.name}.json")


def make(method: str, seed: int, within: pathlib.Path) -> dict:
    """Makes a submission."""
    begin, folder = time.monotonic(), folder_of(within, method, seed)
    if method in LEARNERS:
        script, *arguments = command(method, folder, seed)
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        subprocess.run(
            [sys.executable, str(EXAMPLES / script), *arguments], check=True, env=environment
        )
    else:
        solve(method, folder)
    return {"seconds": round(time.monotonic() - begin)}


def latencies(folders: Sequence[pathlib.Path], levels: Sequence[mg.Level]) -> NDArray[np.int64]:
    """Returns what the submissions reach, [seeds, levels]. Every plan must be there and valid."""
    runs = [ex.judge_submission(folder, levels) for folder in folders]
    for problem in [f"{run.plan}: {run.problem}" for own in runs for run in own if run.problem]:
        raise SystemExit(problem)
    return np.array([[run.latency_ps for run in own] for own in runs])


def game_ms(policy: Sequential, levels: Sequence[mg.Level]) -> NDArray[np.float64]:
    """Returns how long a game of each level takes."""
    torch.set_num_threads(1)
    took = []
    for level in levels:
        game = level.game(mg.FINE_GAME)
        begin = time.process_time()
        play(policy, [game])
        took.append(1000 * (time.process_time() - begin))
    return np.array(took)


def with_headroom(split: str, percent: float) -> list[mg.Level]:
    return [one for one in mg.levels(split) if one.gain >= 1 + percent / 100]


def main(
    bench: ex.Bench,
    *,
    split: Split = "validation",
    min_headroom: float = 2.0,
    methods: tuple[Method, ...] = typing.get_args(Method),
    seeds: tuple[int, ...] = tuple(range(5)),
) -> None:
    grid = ex.Grid(method=dict.fromkeys((*CONTROLS, *methods)), seed=seeds)
    grid = grid.where(lambda method, seed: method in LEARNERS or seed == seeds[0])
    work = functools.partial(make, within=bench.folder)
    rows = []
    for begins_with_another in (False, True):
        part = grid.where(
            lambda method, seed, now=begins_with_another: (LEARNERS.get(method) is not None) == now
        )
        rows += bench.run(work, part)
    folders = {
        method: [folder_of(bench.folder, method, row["seed"]) for row in several]
        for method, several in ex.grouped(rows, "method").items()
    }
    levels = with_headroom(split, min_headroom)
    greedy = np.array([level.greedy_ps for level in levels])
    found = {method: latencies(own, levels) for method, own in folders.items()}
    scored = {method: ex.scores_of(levels, own) for method, own in found.items()}
    print(f"{split}, {len(levels)} levels with {min_headroom:g} % of headroom")
    titles = ["player", "seeds", "score", *(f"less {one}" for one in CONTROLS), "speed-up"]
    titles += [f"{word} than {FINE_GREEDY}" for word in ("faster", "slower")] + ["seconds"]
    table = ex.Table(titles)
    for method, several in ex.grouped(rows, "method").items():
        own = found[method]
        table.add(
            method,
            len(own),
            ex.interquartile_mean(scored[method]),
            *(ex.interquartile_mean(scored[method] - scored[one]) for one in CONTROLS),
            f"{math.exp(np.log(greedy / own).mean()):.3f}",
            f"{(own < found[FINE_GREEDY]).mean():.0%}",
            f"{(own > found[FINE_GREEDY]).mean():.0%}",
            f"{np.median([row['seconds'] for row in several]):.0f}",
        )
    print(table)
    for method, each in scored.items():
        print(f"{method}: each seed {', '.join(f'{ex.middle_mean(row):.3f}' for row in each)}")
    for method in [one for one in ("cloning", "fine-tuned") if one in found]:
        policy = load_policy(folders[method][0] / "policy.pt")
        parameters, took = sum(one.numel() for one in policy.parameters()), game_ms(policy, levels)
        print(
            f"{method}: {parameters:,} parameters, a game takes {np.median(took):.1f} ms in the"
            f" median and {took.mean():.1f} ms in the mean"
        )


if __name__ == "__main__":
    ex.main(main)
