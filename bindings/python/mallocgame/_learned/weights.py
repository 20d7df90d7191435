"""The weights of the solver `learned` as a text file: numbers, separated by commas."""

import os

import numpy as np
from numpy.typing import NDArray

from mallocgame._core import LEARNED_SIZES, read_file, write_file
from mallocgame.errors import InvalidInputError

Weights = NDArray[np.float32]

_IN_A_LINE = 8


def save_weights(weights: Weights, path: str | os.PathLike[str]) -> None:
    """Writes the file, as C++ includes it too. FileAccessError."""
    texts = [f"{number:.6g}" for number in weights.tolist()]
    lines = [", ".join(texts[i : i + _IN_A_LINE]) for i in range(0, len(texts), _IN_A_LINE)]
    write_file(os.fsencode(path), ("".join(line + ",\n" for line in lines)).encode())


def load_weights(path: str | os.PathLike[str]) -> Weights:
    """Reads the file: float32 [network and styles].

    MissingFileError, FileAccessError. InvalidInputError: the file holds something else.
    """
    weights = _load_numbers(path)
    network, style = LEARNED_SIZES["weights"], LEARNED_SIZES["style"]
    if len(weights) <= network or (len(weights) - network) % style:
        raise InvalidInputError(
            f"{os.fspath(path)}: found {len(weights)} numbers, allowed: {network} of the network "
            f"and {style} for each style"
        )
    return weights


def load_network(path: str | os.PathLike[str]) -> Weights:
    """Reads a file of the network alone. Errors as of load_weights()."""
    weights, network = _load_numbers(path), LEARNED_SIZES["weights"]
    if len(weights) != network:
        raise InvalidInputError(
            f"{os.fspath(path)}: found {len(weights)} numbers, allowed: {network} of the network"
        )
    return weights


def _load_numbers(path: str | os.PathLike[str]) -> Weights:
    data = read_file(os.fsencode(path))
    try:
        texts = data.decode("ascii").replace("\n", " ").rstrip(" ,").split(",")
        numbers = np.array([float(text) for text in texts], np.float32)
    except ValueError:
        raise InvalidInputError(
            f"{os.fspath(path)}: no weights of the solver learned; allowed: numbers with commas"
        ) from None
    if not np.isfinite(numbers).all():
        raise InvalidInputError(f"{os.fspath(path)}: allowed: numbers that are finite")
    return numbers
