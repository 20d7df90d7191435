"""The second and third step: weights that win more, and styles that win together."""

import concurrent.futures
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mallocgame._core import LEARNED_SIZES as SIZES
from mallocgame._learned.demonstrations import Demonstration
from mallocgame._learned.weights import Weights

Styles = NDArray[np.float32]  # [styles, numbers of Style in advised_game.h]

_PAIRS = 24  # of changes tried in a generation, each with its opposite
_BATCH = 24  # levels that a generation plays
_CHANGE = 0.04  # the standard deviation of a change
_RATE = 0.01
_MOMENTUM, _SCALE = 0.9, 0.99  # Adam's
_AVERAGE = 0.98  # the weights returned are a moving average
_LEAST_SCORE, _MOST_SCORE = -1.0, 1.5


def evolve(
    weights: Weights,
    styles: Styles,
    demonstrations: Sequence[Demonstration],
    generations: int,
    seed: int,
    threads: int,
    told: Callable[[int, float], object],
) -> Weights:
    """Follows the returns by evolution strategies (Salimans et al. 2017, arXiv 1703.03864).

    The return is that of the best game in one of the styles. A game has no gradient but takes a
    millisecond. `told` hears each generation's mean score.
    """
    rng = np.random.default_rng(seed)
    average, current = weights.copy(), weights.astype(np.float64)
    mean, square = np.zeros(len(weights)), np.zeros(len(weights))
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for generation in range(1, generations + 1):
            places = rng.choice(len(demonstrations), min(_BATCH, len(demonstrations)), False)
            batch = [demonstrations[place] for place in places]
            changes = rng.normal(size=(_PAIRS, len(weights)))
            tried = np.concatenate([current + _CHANGE * changes, current - _CHANGE * changes])
            scores = np.array(list(pool.map(lambda one, on=batch: _scores(one, on, styles), tried)))
            # Levels differ in how much there is to win, which says nothing of the change.
            spread = scores.std(axis=0) + 0.05
            fitness = ((scores - scores.mean(axis=0)) / spread).mean(axis=1)
            gradient = (fitness[:_PAIRS] - fitness[_PAIRS:]) @ changes / (2 * _CHANGE * _PAIRS)
            mean = _MOMENTUM * mean + (1 - _MOMENTUM) * gradient
            square = _SCALE * square + (1 - _SCALE) * gradient**2
            step = (mean / (1 - _MOMENTUM**generation)) / (
                np.sqrt(square / (1 - _SCALE**generation)) + 1e-8
            )
            current = current + _RATE * step
            keep = min(_AVERAGE, 1 - 1 / generation)
            average = (keep * average + (1 - keep) * current).astype(np.float32)
            told(generation, float(scores.mean()))
    return average


def choose_styles(
    weights: Weights,
    groups: Sequence[Sequence[Demonstration]],
    tried: int,
    chosen: int,
    seed: int,
    threads: int,
) -> Styles:
    """Draws styles, and chooses one after the other the one that adds most to the best so far.

    What it adds is a mean over the groups, whatever their sizes; empty ones don't count.
    """
    styles = _draw_styles(tried, seed)
    levels = [one for group in groups for one in group]
    worth = np.concatenate([np.full(len(group), 1 / max(1, len(group))) for group in groups])
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        rows = pool.map(lambda one: one.scores(one.game.play(weights, styles)), levels)
        scores = np.clip(np.array(list(rows)), _LEAST_SCORE, _MOST_SCORE)  # [levels, styles]
    best = np.full(len(scores), _LEAST_SCORE)
    found: list[int] = []
    for _ in range(min(chosen, tried)):
        gains = worth @ np.maximum(scores - best[:, None], 0)
        gains[found] = -1
        found.append(int(gains.argmax()))
        best = np.maximum(best, scores[:, found[-1]])
    return styles[found]


def plain_style() -> Styles:
    """The style that takes advice as it is."""
    style = np.zeros((1, SIZES["style"]), np.float32)
    style[0, -1] = 1
    return style


def _draw_styles(count: int, seed: int) -> Styles:
    rng = np.random.default_rng(seed)
    styles = np.repeat(plain_style(), count, axis=0)
    others = count - 1
    styles[1:, :3] = rng.normal(0, 0.5, (others, 3))
    styles[1:, 3:7] = rng.normal(0, 0.3, (others, 4))
    styles[1:, 7] = rng.choice([0, 0.5, 1, 1.5], others)
    return styles


def _scores(
    weights: NDArray[np.float64], on: Sequence[Demonstration], styles: Styles
) -> NDArray[np.float64]:
    own = weights.astype(np.float32)
    scores = np.array([one.scores(one.game.play(own, styles)).max() for one in on])
    return np.clip(scores, _LEAST_SCORE, _MOST_SCORE)
