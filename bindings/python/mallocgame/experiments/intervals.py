"""Means and their 95 % intervals, of arrays [seeds, levels].

A level is whatever each seed is measured on: a level, a program, a workload.
"""

import dataclasses
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mallocgame._address_space import check_address_space
from mallocgame.errors import MissingExtraError

CONFIDENCE = 0.95  # of intervals

_RESAMPLES = 2_000


@dataclasses.dataclass(frozen=True)
class Interval:
    """A mean with its 95 % confidence interval."""

    mean: float
    low: float
    high: float

    def exp(self) -> "Interval":
        """Returns the geometric mean, where this one is of logarithms."""
        return Interval(*map(math.exp, dataclasses.astuple(self)))

    def __format__(self, form: str) -> str:
        """MEAN (LOW to HIGH), each in a form like ".4f"; ".3f" if none is given."""
        mean, low, high = (format(one, form or ".3f") for one in dataclasses.astuple(self))
        return f"{mean} ({low} to {high})"

    def __str__(self) -> str:
        return f"{self:.3f}"


def interquartile_mean(scores: NDArray[np.float64]) -> Interval:
    """Returns the mean of the middle half of scores [seeds, levels].

    The interval is rliable's stratified bootstrap, which draws levels, and seeds for each level.
    The same scores give the same interval. MallocGameError: rliable is not installed.
    """
    _, metrics = load_rliable()
    return _interval(scores, metrics.aggregate_iqm, draws_levels=True)


def middle_mean(scores: NDArray[np.float64]) -> float:
    """Returns the mean of interquartile_mean alone."""
    _, metrics = load_rliable()
    return float(metrics.aggregate_iqm(scores))


def mean(scores: NDArray[np.float64]) -> Interval:
    """Returns the mean of all scores; otherwise like interquartile_mean."""
    _, metrics = load_rliable()
    return _interval(scores, metrics.aggregate_mean, draws_levels=True)


def mean_of_levels(scores: NDArray[np.float64]) -> Interval:
    """Returns the mean of scores [seeds, levels] over these very levels.

    The interval is of draws of seeds alone, for each level. With one seed it has no width.
    """
    _, metrics = load_rliable()
    return _interval(scores, metrics.aggregate_mean, draws_levels=False)


def difference(own: NDArray[np.float64], other: NDArray[np.float64]) -> Interval:
    """Returns how much the mean of one sample is above that of another, by Welch's test.

    Of one seed, or of equal ones, the interval has no width.
    """
    between = float(own.mean() - other.mean())
    if min(len(own), len(other)) < 2 or own.std() + other.std() == 0:
        return Interval(between, between, between)
    check_address_space("SciPy")
    from scipy import stats

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # where the seeds of one are equal
        low, high = stats.ttest_ind(own, other, equal_var=False).confidence_interval(CONFIDENCE)
    return Interval(between, float(low), float(high))


def _interval(
    scores: NDArray[np.float64], aggregate: Callable[[Any], float], draws_levels: bool
) -> Interval:
    library, _ = load_rliable()
    # rliable draws from NumPy's global generator, whatever random_state it is given.
    state = np.random.get_state()
    np.random.seed(0)
    try:
        means, intervals = library.get_interval_estimates(
            {"": scores},
            lambda drawn: np.array([aggregate(drawn)]),
            task_bootstrap=draws_levels,
            reps=_RESAMPLES,
            confidence_interval_size=CONFIDENCE,
        )
    finally:
        np.random.set_state(state)
    low, high = intervals[""][:, 0]
    return Interval(float(means[""][0]), float(low), float(high))


def load_rliable() -> tuple[Any, Any]:
    """Returns the modules library and metrics of rliable.

    MallocGameError: it isn't installed, or SciPy, which it needs, has too little address space.
    """
    check_address_space("SciPy")
    try:
        from rliable import library, metrics
    except ModuleNotFoundError:
        raise MissingExtraError("scores need rliable", "benchmark") from None
    return library, metrics
