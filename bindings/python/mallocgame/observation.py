"""What an observation consists of.

The C++ header mallocgame/game/observation.h defines every number.
"""

from typing import NamedTuple

from mallocgame import _arguments
from mallocgame._core import (
    OBSERVATION_VERSION,
    Observer,
    access_features,
    action_features,
    candidate_features,
    observation_layout,
    scalar_features,
    unit_features,
)
from mallocgame.games import GameOptions

__all__ = [
    "COMPACT",
    "OBSERVATION_VERSION",
    "Observer",
    "Part",
    "access_features",
    "action_features",
    "candidate_features",
    "layout",
    "scalar_features",
    "settings_of",
    "unit_features",
]

# The settings of "compact": only the access or the candidates at hand, the actions, the scalars and
# the mask.
COMPACT = {
    "neighbours": 0,
    "ticks_back": 0,
    "ticks_ahead": 0,
    "ticks_per_column": 1,
    "address_cells": 0,
}


class Part(NamedTuple):
    """A part of the flat observation: numbers [offset, offset + product of shape), row-major."""

    name: str
    offset: int
    shape: tuple[int, ...]


def layout(settings: dict[str, int], game: str | GameOptions = "time") -> list[Part]:
    """Returns the parts in their order. InvalidInputError: a name is no setting, or no game."""
    return [Part(*part) for part in observation_layout(settings, game)]


def settings_of(kind: str, settings: dict[str, int]) -> dict[str, int]:
    """Returns the settings behind observation="dict", "flat" or "compact". InvalidInputError."""
    _arguments.one_of("observation", kind, ("dict", "flat", "compact"))
    return COMPACT if kind == "compact" else settings
