"""Levels to train on, each with the best plan that the solver `priority` finds."""

import contextlib
import dataclasses
import json
import math
import os
import pathlib
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mallocgame._core import LearningGame, Plan, write_file
from mallocgame._jobs import run_jobs
from mallocgame._levels import Level
from mallocgame._solve import solve
from mallocgame.files import load_plan, save_plan

_LEAST_GAIN = 1.01  # levels with less between greedy and the best plan teach nothing
_LEAST_LOG_GAIN = 0.02  # what a score is divided by at least: little gains shout no louder


@dataclasses.dataclass(frozen=True)
class Demonstration:
    """A level as training sees it."""

    name: str
    game: LearningGame
    plan: Plan
    greedy_ps: int
    best_ps: int

    def scores(self, latencies_ps: NDArray[np.int64]) -> NDArray[np.float64]:
        """0 is greedy's plan, 1 the demonstration's."""
        gain = max(math.log(self.greedy_ps / self.best_ps), _LEAST_LOG_GAIN)
        return np.log(self.greedy_ps / latencies_ps) / gain


def demonstrate(
    levels: Sequence[Level],
    folder: pathlib.Path,
    evaluations: int,
    jobs: int,
    done: Callable[[str], object],
) -> None:
    """Writes FOLDER/LEVEL.json, a plan, and FOLDER/scores/LEVEL.json for each level not there yet.

    evaluations: those of priority. The plans don't depend on the number of `jobs`.
    """
    (folder / "scores").mkdir(parents=True, exist_ok=True)
    missing = [
        _Job(level, folder, evaluations) for level in levels if not _path(folder, level).exists()
    ]
    for _ in range(len(levels) - len(missing)):
        done("")
    with contextlib.closing(run_jobs(_demonstrate, missing, jobs)) as finished:
        for job, _ in finished:
            done(job.level.name)


def load_demonstrations(
    levels: Sequence[Level], folder: pathlib.Path, most_runs: int
) -> list[Demonstration]:
    """Reads those of levels that leave something to win and have at most so many runs."""
    found = []
    for level in levels:
        told = json.loads(_path(folder, level).read_bytes())
        if told["greedy_ps"] < _LEAST_GAIN * told["best_ps"]:
            continue
        game = level.game()
        advised = LearningGame(game)
        if len(advised) <= most_runs:
            plan = load_plan(folder / f"{level.name}.json", game.program)
            found.append(
                Demonstration(level.name, advised, plan, told["greedy_ps"], told["best_ps"])
            )
    return found


@dataclasses.dataclass(frozen=True)
class _Job:
    level: Level
    folder: pathlib.Path
    evaluations: int


def _path(folder: pathlib.Path, level: Level) -> pathlib.Path:
    return folder / "scores" / f"{level.name}.json"


def _demonstrate(job: _Job) -> None:
    game = job.level.game()
    greedy = solve(game, "greedy", seconds=0)
    best = solve(game, "priority", seconds=0, evaluations=job.evaluations)
    save_plan(best.plan, game.program, job.folder / f"{job.level.name}.json")
    told = {"greedy_ps": greedy.report.latency_ps, "best_ps": best.report.latency_ps}
    write_file(os.fsencode(_path(job.folder, job.level)), json.dumps(told).encode())
