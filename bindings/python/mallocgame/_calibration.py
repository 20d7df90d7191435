"""The two sets of prices that a plan is judged by: the compiler's, and calibrated ones."""

from mallocgame import _arguments, _core
from mallocgame._core import Hardware, Plan, Program, Report, calibrated
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


def simulate(
    program: Program, plan: Plan, hardware: Hardware | None = None, prices: str = "compiler"
) -> Report:
    """Returns what a plan costs.

    hardware: None is the program's own.
    prices: "compiler", those that the program has, or "calibrated", those after a law that was
    fitted to published measurements. calibrated() makes a program that keeps them.

    InvalidInputError: the plan is not one of this program, or it can't have calibrated prices.
    """
    made = priced(program, prices, hardware)
    if made is program:
        return _core.simulate(program, plan, hardware)
    _core.simulate(program, plan, hardware)  # It refuses what is no plan of the program.
    return _core.simulate(made, plan.rebased_on(made))
