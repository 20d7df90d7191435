"""Arguments that can't be used, told in the words of the caller.

A message names the argument, what was found, and what is allowed. The extension modules refuse
values of other types than they take themselves, by pybind11's TypeError.
"""

import operator
import os
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mallocgame.errors import InvalidActionError, InvalidInputError

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 60
_short.maxlong = 45

# Where objects of a class come from.
_MAKERS = {
    "NamedSolver": "as the solver() of an agent returns it",
    "SolveResult": "as mallocgame.solve() returns it",
    "GameLog": "as mallocgame.load_log() returns it",
    "Placement": "as mallocgame.placement.problem() returns it",
    "Program": "as mallocgame.load_program() returns it",
    "State": "as Game.initial_state() returns it",
}


def found(value: object) -> str:
    """Returns a value as messages show it: in short, and with its type where that isn't plain."""
    try:
        text = _short.repr(value).replace("\n", " ")
    except Exception:  # What others' __repr__ raises is not what is wrong here.
        text = "something"
    plain = value is None or type(value) in (int, float, str)
    return text if plain else f"{text} ({type(value).__name__})"


def refused(name: str, value: object, allowed: str) -> InvalidInputError:
    """Returns the error for an argument."""
    return InvalidInputError(f"{name}: found {found(value)}, allowed: {allowed}")


def as_integer(value: object) -> int | None:
    """Returns what Python takes as an index, but for truth values; else None."""
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def integer(name: str, value: object, bits: int = 63) -> int:
    """Returns an integer, which may be NumPy's. InvalidInputError: it is none of so many bits."""
    number = as_integer(value)
    if number is None or abs(number) >= 2**bits:
        raise refused(name, value, f"an integer, of at most {bits} bits")
    return number


def given_seed(value: object, name: str = "seed") -> int:
    """Returns a seed. InvalidInputError."""
    number = as_integer(value)
    if number is None or not 0 <= number < 2**64:
        raise refused(name, value, f"an integer from 0 to {2**64 - 1}")
    return number


def seed(value: object, name: str = "seed") -> int | None:
    """Returns a seed, or None for None. InvalidInputError."""
    return None if value is None else given_seed(value, name)


def seeds(value: object, count: int) -> int | list[int | None] | None:
    """Returns one seed, or one of each of `count` environments, or None. InvalidInputError."""
    if value is None or as_integer(value) is not None:
        return seed(value)
    if isinstance(value, str | bytes) or not hasattr(value, "__len__"):
        raise refused("seed", value, f"an integer, {count} of them, or None")
    if len(value) != count:
        raise InvalidInputError(
            f"seed: found {len(value)} of them, allowed: {count}, one an environment"
        )
    given: Sequence[object] = value  # type: ignore[assignment]
    return [seed(one, f"seed[{i}]") for i, one in enumerate(given)]


def reset_options(value: object) -> Mapping[str, Any]:
    """Returns the options of a reset. InvalidInputError."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise refused("options", value, "a dict or None")
    return value


def one_of(name: str, value: object, allowed: Sequence[str | None]) -> Any:
    """Returns a value that is one of those allowed. InvalidInputError."""
    if not any(value is one or (isinstance(value, str) and value == one) for one in allowed):
        raise refused(name, value, ", ".join(map(repr, allowed)))
    return value


def path(name: str, value: object, allowed: str = "a path") -> str:
    """Returns a path as text. InvalidInputError: it is none, or `allowed` says what else."""
    if not isinstance(value, str | bytes | os.PathLike):
        raise refused(name, value, allowed)
    return os.fsdecode(value)


def integers(value: object) -> np.ndarray | None:
    """Returns an array of integers, or None for everything else."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError):  # Rows of different lengths, among others.
        return None
    return array if array.dtype.kind in "iu" else None


def described(value: object) -> str:
    """Returns what an array is that was to hold integers: its dtype and shape, and its range."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        return found(value)
    text = f"{array.dtype} of shape {array.shape}"
    if array.dtype.kind in "iu" and array.size > 0:
        text += f", {array.min()} to {array.max()}"
    return text


def instance(name: str, value: Any, *kinds: type) -> Any:
    """Returns an object of one of these classes. InvalidInputError."""
    if not isinstance(value, kinds):
        made = [f"a {one.__name__}, {_MAKERS.get(one.__name__, '')}" for one in kinds]
        raise refused(name, value, " or ".join(one.rstrip(", ") for one in made))
    return value


def action(value: object) -> int:
    """Returns the number of an action, which need not be one of the game's. InvalidActionError."""
    number = as_integer(value)
    if number is None or not 0 <= number < 2**63:
        raise InvalidActionError(f"action: found {found(value)}, allowed: an integer from 0 on")
    return number
