"""Figures of predictions beside measurements, as rows of Markdown."""

import dataclasses
from collections.abc import Sequence

import numpy as np


@dataclasses.dataclass(frozen=True)
class Figures:
    """How predictions relate to what was measured."""

    n: int
    bias: float  # geometric mean of predicted over measured
    spread: float  # geometric standard deviation of it
    error: float  # median of |log|
    after: float  # the same with the row's own median taken out
    rank: float  # Spearman's


def figures(predicted: Sequence[float], measured: Sequence[float]) -> Figures:
    """Returns the figures of at least one pair of times."""
    logs = np.log(np.asarray(predicted) / np.asarray(measured))
    return Figures(
        n=len(logs),
        bias=float(np.exp(logs.mean())),
        spread=float(np.exp(logs.std())),
        error=float(np.median(np.abs(logs))),
        after=float(np.median(np.abs(logs - np.median(logs)))),
        rank=_spearman(predicted, measured),
    )


def heading(first: str) -> list[str]:
    """Returns the first two lines of a table."""
    return [
        f"| {first} | n | bias | spread | median error | after | rank |",
        "| --- | --: | --: | --: | --: | --: | --: |",
    ]


def line(name: str, found: Figures) -> str:
    """Returns a row of a table. Where there are few points there is no spread and no rank."""
    few = found.n < 4
    spread = "" if few else f"{found.spread:.2f}"
    after, rank = ("", "") if few else (f"{found.after:.3f}", f"{found.rank:.3f}")
    cells = [f"{found.n}", f"{found.bias:.2f}", spread, f"{found.error:.3f}", after, rank]
    return f"| {name} | {' | '.join(cells)} |"


def _spearman(a: Sequence[float], b: Sequence[float]) -> float:
    ranks = [np.argsort(np.argsort(one)) for one in (a, b)]
    if len(a) < 2:
        return 1.0
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])
