"""What space and the copy channel are worth: the dual values of the linear programme."""

import math

from mallocgame import _arguments
from mallocgame._core import Hardware, Prices, Program
from mallocgame.bounds.bound import relaxation_of
from mallocgame.errors import InvalidInputError


def prices(program: Program, hardware: Hardware | None = None, seconds: float = 60.0) -> Prices:
    """Finds out what fast memory and the copy channel are worth at each tick.

    They are the dual values of the linear programme behind the bound `lp`: with one more byte of
    fast memory over the tick, or one more picosecond of the channel's time in it, the bound would
    fall by so many picoseconds. Where there is plenty the price is 0.

    hardware: None is the program's own. seconds: wall time for the solver; 0 is no limit. If the
    time is over the prices are poor, at worst 0 everywhere.

    InvalidInputError: seconds < 0. MallocGameError: highspy is not installed.
    """
    _arguments.instance("program", program, Program)
    if not seconds >= 0:
        raise InvalidInputError(f"prices: seconds must be >= 0, found {seconds}")
    hardware = program.hardware if hardware is None else hardware
    relaxation = relaxation_of(program, hardware, "prices")
    return Prices(*relaxation.prices(relaxation.lp.solve(seconds or math.inf).duals))
