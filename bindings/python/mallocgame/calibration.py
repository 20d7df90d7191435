"""The two sets of prices that a plan is judged by: the compiler's, and calibrated ones."""

from mallocgame import _arguments
from mallocgame._core import Hardware, PriceLaw, Program, at_both_prices, calibrated, cautious
from mallocgame.errors import InvalidInputError

__all__ = [
    "PriceLaw",
    "at_both_prices",
    "calibrated",
    "calibrated_if_possible",
    "cautious",
    "error_sentence",
    "priced",
]

PRICES = ("compiler", "calibrated")
_CALIBRATED = "calibrated"  # the cost_model of such a program
# Median errors of calibrated prices on two sets of published times that no law was fitted to
# (docs/results/measured.md).
_MISSED = {"tpu_v5p": (0.10, 0.17), "tpu_v6e": (0.07, 0.12), "tpu7x": (0.16, 0.29)}


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


def error_sentence(hardware: str) -> str:
    """Says how far calibrated prices of a hardware's chip are from published times."""
    for chip, (least, most) in _MISSED.items():
        if hardware == chip or hardware.startswith(f"{chip}_"):
            return (
                f"Calibrated prices of {chip} have a median error of {least:.0%} to {most:.0%} on "
                "published times."
            )
    return "Too few published times test the calibrated prices of this chip."
