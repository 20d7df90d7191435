"""What space and the copy channel are worth: the dual values of the linear programme."""

import math
import time

from mallocgame import _arguments
from mallocgame._core import Hardware, Prices, Program
from mallocgame.bounds.bound import ASCENT_SHARE, MOST_ACCESSES_OF_LP, check_solver, relaxation_of
from mallocgame.bounds.lagrangian import climb
from mallocgame.errors import InvalidInputError


def shadow_prices(
    program: Program, hardware: Hardware | None = None, seconds: float = 60.0
) -> Prices:
    """Finds out what fast memory and the copy channel are worth at each tick.

    They are the dual values of the linear programme behind the bound `lp`: with one more byte of
    fast memory over the tick, or one more picosecond of the channel's time in it, the bound would
    fall by that many picoseconds. Where there is plenty, the price is 0.

    hardware: None is the program's own. seconds: wall time for the solver; 0 is no limit. Where
    the linear programme isn't solved in time they are the multipliers of the bound `lagrangian`.

    InvalidInputError: seconds < 0. MallocGameError: highspy is not installed.
    """
    _arguments.instance("program", program, Program)
    if not seconds >= 0:
        raise InvalidInputError(f"shadow_prices: seconds must be >= 0, found {seconds}")
    hardware = program.hardware if hardware is None else hardware
    check_solver("shadow_prices")
    risen, end = None, math.inf
    if seconds:
        end = time.monotonic() + seconds
        solves = len(program.accesses) <= MOST_ACCESSES_OF_LP
        share = ASCENT_SHARE if solves else 1.0
        risen = climb(program, hardware, share * seconds, hardware.fast_bytes // 4096).prices
        if not solves:
            return risen
    relaxation = relaxation_of(program, hardware, "shadow_prices")
    solved = relaxation.lp.solve(max(1e-3, end - time.monotonic()))
    if risen is not None and not solved.optimal:
        return risen
    return Prices(*relaxation.prices(solved.duals))
