"""The game as a Gymnasium environment: gymnasium.make("mallocgame/MallocGame-v0",
program="resnet50_b1.tpu_v4i").

An action is 0 Drop, 1 Copy, 2 NoCopy or 3 CopyEarly (docs/rules.md); which of them are legal is in
info["action_mask"] and action_masks(). The reward is the share of the all-main latency that the
decision saves, so that a return is 1 - latency / all-main latency. Episodes end by themselves;
nothing is truncated.
"""

import os
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from mallocgame import programs
from mallocgame._core import Environment, Game, Hardware, Program, State
from mallocgame.envs.registration import register
from mallocgame.observation import layout, settings_of
from mallocgame.viewer import style
from mallocgame.viewer.data import residence_kinds

register()

ProgramLike = str | os.PathLike | Program


class LegalActions(gymnasium.spaces.Discrete):
    """Discrete whose sample() without a mask draws among the actions that are legal now. A copy
    of it is a plain Discrete.
    """

    def __init__(self, environment: Environment, count: int) -> None:
        super().__init__(count)
        self._environment = environment

    def sample(
        self, mask: np.ndarray | None = None, probability: np.ndarray | None = None
    ) -> np.int64:
        if mask is None and probability is None:
            mask = self._environment.mask()
            if not mask.any():
                mask = None
        return super().sample(mask=mask, probability=probability)

    def __reduce__(self):
        return gymnasium.spaces.Discrete, (int(self.n),)

    def __deepcopy__(self, memo: dict) -> gymnasium.spaces.Discrete:
        return gymnasium.spaces.Discrete(int(self.n))


class MallocGameEnv(gymnasium.Env):
    """One game after the other.

    program: a bundled name, a .mgp path, a Program, or a sequence of them, of which each episode
    draws one: that draw is the
        only chance there is. reset(seed=s) makes the episodes from then on those of s.
    hardware: a Hardware, the name of a preset or a JSON path; None: the program's own. observation:
    "dict" of named parts, "flat" (the same numbers in one array), or "compact" (flat, without
    neighbours,
        occupancy and idle time; quick). All numbers are float32 in [-1, 1]; docs/train.md says what
        they mean.
    actions: "full", or "paper" without CopyEarly.
    neighbours, ticks_back, ticks_ahead, ticks_per_column, address_cells: of the observation.
    min_buffer_bytes, keep_free: as Game's.
    render_mode: "ansi" (text) or "rgb_array" (time by address: who has which bytes).

    InvalidInputError for settings; step raises InvalidActionError for an illegal action,
    GameOverError after the end, and changes nothing then.
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012

    def __init__(
        self,
        program: ProgramLike | Sequence[ProgramLike],
        hardware: Hardware | str | os.PathLike | None = None,
        observation: str = "dict",
        actions: str = "full",
        *,
        neighbours: int = 4,
        ticks_back: int = 8,
        ticks_ahead: int = 8,
        ticks_per_column: int = 4,
        address_cells: int = 32,
        min_buffer_bytes: int = 16 << 10,
        keep_free: float = 0.0,
        render_mode: str | None = None,
    ) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise programs.InvalidInputError(
                f"render_mode: found {render_mode!r}, allowed: None, 'ansi', 'rgb_array'"
            )
        settings = settings_of(
            observation,
            {
                "neighbours": neighbours,
                "ticks_back": ticks_back,
                "ticks_ahead": ticks_ahead,
                "ticks_per_column": ticks_per_column,
                "address_cells": address_cells,
            },
        )
        self.games = games_of(
            program,
            hardware,
            actions=actions,
            min_buffer_bytes=min_buffer_bytes,
            keep_free=keep_free,
        )
        self.render_mode = render_mode
        self._environment = Environment(self.games, settings, observation == "dict")
        self._step = self._environment.step
        self._seeded = False
        self.observation_space = observation_space(observation, settings, self.games[0].num_actions)
        self.action_space = LegalActions(self._environment, self.games[0].num_actions)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode: the first one of `seed`, or, without one, the next."""
        super().reset(seed=seed)
        if seed is None and not self._seeded:
            seed = int(self.np_random.integers(2**63))
        self._seeded = True
        return self._environment.reset(None if seed is None else seed % 2**64)

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Decide. At the end info["latency_ps"] is the plan's latency."""
        return self._step(action)

    def action_masks(self) -> np.ndarray:
        """bool array, one an action; the name that sb3-contrib looks for."""
        return self._environment.mask().view(np.bool_)

    @property
    def state(self) -> State:
        """A copy of the position: its plan(), latency_ps, actions ..."""
        return self._environment.state()

    @property
    def game(self) -> Game:
        """The game that is played."""
        return self.games[self._environment.game_index]

    def render(self) -> str | np.ndarray | None:
        if self.render_mode == "ansi":
            return self.state.to_string()
        if self.render_mode == "rgb_array":
            return picture(self.state)
        return None


def games_of(
    program: ProgramLike | Sequence[ProgramLike],
    hardware: Hardware | str | os.PathLike | None,
    **options: Any,
) -> list[Game]:
    """A Game of each program."""
    several = (
        program if isinstance(program, Sequence) and not isinstance(program, str) else [program]
    )
    if isinstance(hardware, str | os.PathLike):
        hardware = programs.hardware(hardware)
    loaded = [one if isinstance(one, Program) else programs.load_program(one) for one in several]
    return [Game(one, hardware=hardware, **options) for one in loaded]


def observation_space(kind: str, settings: dict[str, int], num_actions: int) -> gymnasium.Space:
    parts = layout(settings, num_actions)
    if kind == "dict":
        spaces = {
            part.name: _box(part.shape, 0.0 if part.name == "action_mask" else -1.0)
            for part in parts
        }
        return gymnasium.spaces.Dict(spaces)
    return _box((parts[-1].offset + int(np.prod(parts[-1].shape)),), -1.0)


def _box(shape: tuple[int, ...], low: float) -> gymnasium.spaces.Box:
    return gymnasium.spaces.Box(low, 1.0, shape, np.float32)


def picture(state: State, width: int = 512, height: int = 256) -> np.ndarray:
    """uint8 [height, width, 3]: time to the right, addresses upwards, the page's colours of
    kinds; grey: later than now.
    """
    game = state.game
    ticks, capacity = max(1, game.program.ticks), game.hardware.fast_bytes
    image = np.full((height, width, 3), style.rgb(style.PANEL), np.uint8)
    access = state.current_access()
    if access is not None:
        image[:, int(game.program.accesses[access]["tick"] / ticks * width) :] = style.rgb(
            style.GRID
        )
    sizes, plan = game.program.buffers["size_bytes"], state.plan()
    colours = [style.rgb(colour) for colour in style.KINDS.values()]
    for residence, kind in zip(plan.residences, residence_kinds(plan), strict=True):
        buffer = int(residence["buffer"])
        left, right = (int(residence[end] / ticks * width) for end in ("begin", "end"))
        low = int(residence["offset"] / capacity * height)
        high = int((residence["offset"] + sizes[buffer]) / capacity * height)
        high, right = max(high, low + 1), max(right, left + 1)
        image[height - high : height - low, left:right] = colours[kind]
        if high - low > 3 and right - left > 3:  # a thin gap tells neighbours of one kind apart
            image[height - high, left:right] = image[height - high : height - low, right - 1] = (
                style.rgb(style.PANEL)
            )
    return image
