"""The two sets of prices that a plan is judged by: the compiler's, and calibrated ones."""

from mallocgame import _arguments
from mallocgame._core import Hardware, Program, calibrated
from mallocgame.errors import InvalidInputError

PRICES = ("compiler", "calibrated")
_CALIBRATED = "calibrated"  # the cost_model of such a program


def priced(program: Program, prices: str, hardware: Hardware | None = None) -> Program:
    """Returns the program at the prices of that name. InvalidInputError: it can't have them."""
    if _arguments.one_of("prices", prices, PRICES) == "compiler":
        return program
    return program if program.cost_model == _CALIBRATED else calibrated(program, hardware)


def calibrated_if_possible(program: Program, hardware: Hardware | None = None) -> Program | None:
    """Returns the program at calibrated prices; None if it can't have them."""
    try:
        return priced(program, _CALIBRATED, hardware)
    except InvalidInputError:
        return None
