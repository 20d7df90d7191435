"""Random choices that are the same on every machine and in every version of Python."""

import random
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Choices that follow from a text, such as the name of what is drawn."""

    def __init__(self, text: str) -> None:
        # Of this generator only the stream of random() is promised to stay.
        self._random = random.Random(text).random

    def pick(self, *options: T) -> T:
        return options[int(self._random() * len(options))]

    def chance(self, share: float) -> bool:
        return self._random() < share
