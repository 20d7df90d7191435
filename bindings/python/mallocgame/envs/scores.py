"""Rewards whose sum over an episode is the score of its plan (docs/levels.md).

The score of a latency x is log(greedy / x) / log(greedy / best known). A decision that brings the
latency from x to y is worth log(x / y) in the same unit, and the end adds log(greedy / all-main), a
constant of the level, because a game begins with everything in main memory.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mallocgame.errors import InvalidInputError
from mallocgame.level_sets import LEAST_GAIN
from mallocgame.playables import Played


class Scores:
    """The unit and the constant of each game in a list.

    InvalidInputError: one of them is no level, or a level without a score.
    """

    def __init__(self, games: Sequence[Played]) -> None:
        for one in games:
            if one.level is None:
                raise InvalidInputError(f"reward: 'score' is of levels, found {one.name}")
            if one.game.program.fingerprint != one.level.features["fingerprint"]:
                raise InvalidInputError(
                    f"reward: the score of level {one.name} is of the compiler's prices only"
                )
            if not one.level.has_score:
                raise InvalidInputError(
                    f"reward: level {one.name} has no score: no plan is known that is "
                    f"{LEAST_GAIN - 1:.1%} faster than greedy's"
                )
        levels = [one.level for one in games if one.level is not None]
        greedy = np.log([float(level.greedy_ps or 1) for level in levels])
        best = np.log([float(level.best_known_ps or 1) for level in levels])
        all_main_ps = np.array([one.game.all_main_ps for one in games], np.int64)
        self._unit = greedy - best
        self._constant = (greedy - np.log(all_main_ps)) / self._unit

    def rewards(
        self,
        index: NDArray[Any] | int,
        before_ps: NDArray[Any] | int,
        after_ps: NDArray[Any] | int,
        ended: NDArray[Any] | bool,
    ) -> NDArray[np.float64]:
        """Returns what decisions are worth.

        index: integers, of the games in the list. before_ps, after_ps: their latencies. ended:
        whether they are over. Each is a number, or an array of one for each game played.
        """
        gained = (np.log(before_ps) - np.log(after_ps)) / self._unit[index]
        worth: NDArray[np.float64] = gained + np.where(ended, self._constant[index], 0.0)
        return worth
