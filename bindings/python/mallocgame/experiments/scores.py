"""Scores: how much of what there is to gain over the solver greedy a plan gains.

The score of a latency is log(greedy / latency) / log(greedy / best known): 0 is the latency of
greedy, 1 that of the best plan known, and slower plans than greedy's are below 0.
"""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mallocgame.experiments.intervals import Interval, interquartile_mean, middle_mean
from mallocgame.level_sets import Level, has_score


@dataclasses.dataclass(frozen=True)
class Budget:
    """What a player may use on a level: time of one core, or complete games. The other is 0.

    Every game and every plan that is evaluated counts as a game, warm starts and rollouts included.
    """

    seconds: float = 0.0
    games: int = 0

    def __str__(self) -> str:
        if self.games:
            return f"{self.games} game{'' if self.games == 1 else 's'}"
        return f"{1000 * self.seconds:g} ms" if self.seconds < 1 else f"{self.seconds:g} s"

    @property
    def name(self) -> str:
        """As a folder is called."""
        return f"{self.games}games" if self.games else f"{self.seconds:g}s"


@dataclasses.dataclass(frozen=True)
class Result:
    """What a player reached on a level."""

    level: str
    family: str
    player: str
    seed: int
    budget: Budget | None  # None: a submission, of which it is not known
    latency_ps: int
    greedy_ps: int
    best_known_ps: int | None
    score: float | None
    problem: str = ""  # why it is the latency of everything in main memory; "": there is a plan


@dataclasses.dataclass(frozen=True)
class Summary:
    """All results of a player with a budget."""

    player: str
    budget: Budget | None
    seeds: int
    levels: int
    scored: int  # of the levels have a score
    score: Interval | None  # interquartile mean; None: no level has a score
    speedup: float  # over greedy: the geometric mean over seeds and all levels
    room: float | None  # the same of the latency over the best known one; None: it isn't known
    beaten: int  # levels with a better plan than the best known
    problems: int  # levels that count with everything in main memory
    families: dict[str, float | None]  # family -> interquartile mean


def score(level: Level, latency_ps: int) -> float | None:
    """Returns the score of a latency. None: the level has none (LEAST_GAIN)."""
    greedy_ps, best_ps = level.greedy_ps, level.best_known_ps
    if greedy_ps is None or best_ps is None or not has_score(greedy_ps, best_ps):
        return None
    return math.log(greedy_ps / latency_ps) / math.log(greedy_ps / best_ps)


def scores_of(levels: Sequence[Level], latencies_ps: NDArray[np.int64]) -> NDArray[np.float64]:
    """Returns the scores of latencies [seeds, levels]; NaN where a level has none."""
    rows = [zip(levels, row, strict=True) for row in latencies_ps]
    return np.array([[score(level, int(ps)) for level, ps in row] for row in rows], np.float64)


def summarize(results: Sequence[Result]) -> list[Summary]:
    """Sums up the results of each player and budget, in the order in which they come.

    Each player has results of the same levels with each of its seeds. MallocGameError: rliable is
    not installed.
    """
    grouped: dict[tuple[str, Budget | None], list[Result]] = {}
    for result in results:
        grouped.setdefault((result.player, result.budget), []).append(result)
    return [_summary(group) for group in grouped.values()]


def _summary(results: Sequence[Result]) -> Summary:
    scores = _scores(results)
    families = dict.fromkeys(result.family for result in results)
    return Summary(
        player=results[0].player,
        budget=results[0].budget,
        seeds=len({result.seed for result in results}),
        levels=len({result.level for result in results}),
        scored=scores.shape[1],
        score=interquartile_mean(scores) if scores.size else None,
        speedup=math.exp(np.mean([math.log(one.greedy_ps / one.latency_ps) for one in results])),
        room=_room(results),
        beaten=len(
            {
                one.level
                for one in results
                if one.best_known_ps is not None and one.latency_ps < one.best_known_ps
            }
        ),
        problems=len({one.level for one in results if one.problem}),
        families={
            family: _mean(_scores([one for one in results if one.family == family]))
            for family in families
        },
    )


def _room(results: Sequence[Result]) -> float | None:
    over = [math.log(one.latency_ps / one.best_known_ps) for one in results if one.best_known_ps]
    return math.exp(np.mean(over)) if over else None


def _mean(scores: NDArray[np.float64]) -> float | None:
    return middle_mean(scores) if scores.size else None


def _scores(results: Sequence[Result]) -> NDArray[np.float64]:
    """Returns an array [seeds, levels] of the levels that have a score."""
    by_seed: dict[int, list[float]] = {result.seed: [] for result in results}
    for result in sorted(results, key=lambda result: result.level):
        if result.score is not None:
            by_seed[result.seed].append(result.score)
    return np.array(list(by_seed.values()), np.float64)
