"""The Lagrangian bound: the dual of what instructions and buffers share, maximised.

proof.md has the proof. The certificate of a bound is the multipliers, as integers.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mallocgame._core import Hardware, LagrangianAscent, Prices, Program

# Between two looks at the clock and at Ctrl-C.
_TURN_SECONDS = 0.2


@dataclass(frozen=True, eq=False)
class Certificate:
    """Multipliers that prove a bound. Any others prove one too, mostly a lower one."""

    multipliers: np.ndarray  # int64
    free_below_bytes: int  # buffers of fewer bytes lie anywhere at no cost


@dataclass(frozen=True)
class Climb:
    """Where an ascent ended."""

    bound_ps: int  # proven in integers
    certificate: Certificate
    converged: bool
    prices: Prices


def climb(
    program: Program,
    hardware: Hardware,
    seconds: float,
    free_below_bytes: int,
    progress: Callable[[float, float], object] | None = None,
) -> Climb:
    """Maximises the dual until it has converged, or for `seconds`; 0 is no limit."""
    begin = time.monotonic()
    ascent = LagrangianAscent(program, hardware, free_below_bytes)
    converged = False
    while not converged:
        left = begin + seconds - time.monotonic() if seconds else math.inf
        if left <= 0:
            break
        converged = ascent.run(min(left, _TURN_SECONDS))
        if progress is not None:
            progress(time.monotonic() - begin, ascent.value_ps)
    certificate = Certificate(ascent.multipliers, free_below_bytes)
    bound_ps = ascent.proven_ps(certificate.multipliers.tolist())
    return Climb(bound_ps, certificate, converged, ascent.prices)


def proven_ps(program: Program, hardware: Hardware, certificate: Certificate) -> int:
    """What a certificate proves, in integers. InvalidInputError: it isn't one of the program."""
    ascent = LagrangianAscent(program, hardware, certificate.free_below_bytes)
    return ascent.proven_ps(certificate.multipliers.tolist())
