"""Judging plans of levels: each is validated and simulated, whoever made it.

A submission is a folder with the plan LEVEL.json of each level.
"""

import dataclasses
import os
import pathlib
from collections.abc import Callable, Sequence

from mallocgame._core import read_file, simulate, validate
from mallocgame.errors import InvalidInputError, MissingFileError
from mallocgame.experiments.scores import Budget, Result, score
from mallocgame.files import load_plan
from mallocgame.level_sets import Level

NO_PLAN = "no plan"  # the problem of a level that is missing in a submission


@dataclasses.dataclass(frozen=True)
class Run:
    """A player's plan of one level."""

    level: str
    player: str
    seed: int
    budget: Budget | None  # None: a submission, of which it is not known
    plan: pathlib.Path
    latency_ps: int  # of the plan; of everything in main memory if there is a problem
    in_time_ps: int  # of the last plan within the budget; of everything in main memory without one
    problem: str = ""  # NO_PLAN, or what makes the plan invalid


def judge_plan(level: Level, path: pathlib.Path) -> tuple[int, str]:
    """Returns the latency of the plan in a file, and what is wrong with it; "" is nothing.

    Where something is wrong, the latency is that of everything in main memory. FileAccessError.
    """
    game = level.game()
    try:
        plan = load_plan(path, game.program)
        verdict = validate(game.program, plan, game.hardware)
        if verdict:
            return simulate(game.program, plan, game.hardware).latency_ps, ""
        problem = f"{verdict.rule}: {verdict.message}"
    except MissingFileError:
        problem = NO_PLAN
    except InvalidInputError as error:
        problem = str(error)
    return game.all_main_ps, problem


def judge_submission(
    folder: str | os.PathLike[str],
    levels: Sequence[Level],
    done: Callable[[str], object] = lambda level: None,
) -> list[Run]:
    """Judges a folder of plans; the player is the folder's path.

    A level without a valid plan counts with everything in main memory, and has a problem. done: is
    called with the name of each level. InvalidInputError: there is no plan of any of the levels.
    FileAccessError.
    """
    folder = pathlib.Path(folder)
    paths = {level.name: folder / f"{level.name}.json" for level in levels}
    if not any(path.exists() for path in paths.values()):
        raise InvalidInputError(
            f"{folder}: found no plan of these levels, allowed: LEVEL.json, such as "
            f"{next(iter(paths.values())).name}"
        )
    runs = []
    for level in levels:
        latency_ps, problem = judge_plan(level, paths[level.name])
        path = paths[level.name]
        runs.append(Run(level.name, str(folder), 0, None, path, latency_ps, latency_ps, problem))
        done(level.name)
    return runs


def results_of(runs: Sequence[Run], levels: Sequence[Level]) -> list[Result]:
    """Returns the result of each run: of what was found within the budget.

    InvalidInputError: the set doesn't know the latency of greedy.
    """
    named = {level.name: level for level in levels}
    results = []
    for run in runs:
        level = named[run.level]
        if level.greedy_ps is None:
            raise InvalidInputError(f"level {level.name}: the set has no latency of greedy for it")
        results.append(
            Result(
                level=level.name,
                family=level.family,
                player=run.player,
                seed=run.seed,
                budget=run.budget,
                latency_ps=run.in_time_ps,
                greedy_ps=level.greedy_ps,
                best_known_ps=level.best_known_ps,
                score=score(level, run.in_time_ps),
                problem=run.problem,
            )
        )
    return results


def improve(levels: Sequence[Level], runs: Sequence[Run]) -> list[str]:
    """Keeps plans that are better than the best known, in the set of the levels.

    Returns the names of the levels that have a better one now. Plans are judged again before.
    InvalidInputError: one is not what its run says. FileAccessError.
    """
    best: dict[str, Run] = {}
    for run in sorted(runs, key=lambda run: run.latency_ps):
        if not run.problem:
            best.setdefault(run.level, run)
    better = {}
    for level in levels:
        found, known_ps = best.get(level.name), level.best_known_ps
        if found is None or (known_ps is not None and found.latency_ps >= known_ps):
            continue
        latency_ps, problem = judge_plan(level, found.plan)
        if problem or latency_ps != found.latency_ps:
            raise InvalidInputError(
                f"{found.plan}: found {problem or f'{latency_ps} ps'}, "
                f"allowed: the plan of {found.latency_ps} ps that was judged"
            )
        better[level.name] = latency_ps, found.player, read_file(found.plan)
    return levels[0].level_set.improve(better) if better else []
