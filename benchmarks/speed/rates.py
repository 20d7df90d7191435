"""How the Python benchmarks of speed measure."""

import time
from collections.abc import Callable

ROUNDS = 5


def best(run: Callable[[], object], count: int) -> float:
    """Most of `count` things a CPU second over the rounds of run(), after one round to warm up."""
    run()
    rates = []
    for _ in range(ROUNDS):
        start = time.process_time()
        run()
        rates.append(count / (time.process_time() - start))
    return max(rates)
