"""What the placement problem answers, as named tuples."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class PlacementOutcome(NamedTuple):
    """What a map came to."""

    latency_ps: int  # of the map as it was carried out
    moved: float  # share of the bytes that are not where the map wants them
    reward: float


class PlacementOutcomes(NamedTuple):
    """What many maps came to: a PlacementOutcome whose fields are arrays [count]."""

    latency_ps: NDArray[np.int64]
    moved: NDArray[np.float64]
    reward: NDArray[np.float64]


class FoundMap(NamedTuple):
    """The fastest map that fits."""

    map: NDArray[np.uint8]  # [num_nodes, 2]; everything in the slowest level if no map fitted
    latency_ps: int
    reward: float
    best_ps: NDArray[np.int64]  # for each evaluation the least latency so far, 0 if no map fitted
