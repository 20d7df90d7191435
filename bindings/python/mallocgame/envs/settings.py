"""What one environment and many have in common: checked settings, observations."""

from math import prod
from typing import Any

import gymnasium
import numpy as np

from mallocgame import _arguments
from mallocgame._core import Game
from mallocgame.observation import layout, settings_of

METADATA: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}


def check_render_mode(mode: str | None) -> str | None:
    """Returns a mode that is one. InvalidInputError."""
    checked: str | None = _arguments.one_of("render_mode", mode, (None, *METADATA["render_modes"]))
    return checked


def is_scored(reward: str) -> bool:
    """Says whether rewards are scores. InvalidInputError: there are no such rewards."""
    checked: str = _arguments.one_of("reward", reward, ("saved", "score"))
    return checked == "score"


class Observations:
    """How the flat observations of the games are given: named parts, or one array.

    kind: "dict", "flat" or "compact". settings: as MallocGameEnv's. InvalidInputError.
    """

    def __init__(self, kind: str, game: Game, settings: dict[str, int]) -> None:
        self.settings = settings_of(kind, settings)
        parts = layout(self.settings, game.options)
        self.size = parts[-1].offset + prod(parts[-1].shape)  # of the flat observation
        self._parts = None
        if kind == "dict":
            self._parts = [
                (name, slice(offset, offset + prod(shape)), shape) for name, offset, shape in parts
            ]

    @property
    def named(self) -> bool:
        """Whether an observation is a dict of named parts."""
        return self._parts is not None

    @property
    def space(self) -> gymnasium.Space[Any]:
        """The space of one observation."""
        if self._parts is None:
            return _box((self.size,), -1.0)
        return gymnasium.spaces.Dict(
            {
                name: _box(shape, 0.0 if name == "action_mask" else -1.0)
                for name, _, shape in self._parts
            }
        )

    def of(self, rows: Any) -> Any:
        """The observations in the last axis of an array: the same memory, split into its parts."""
        if self._parts is None:
            return rows
        lead = rows.shape[:-1]
        return {name: rows[..., place].reshape(lead + shape) for name, place, shape in self._parts}


def _box(shape: tuple[int, ...], low: float) -> gymnasium.Space[Any]:
    return gymnasium.spaces.Box(low, 1.0, shape, np.float32)
