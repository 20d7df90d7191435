"""The games as a Gymnasium environment.

gymnasium.make(ID, program="resnet50_b1.tpu_v4i") makes the fine game with the id
"mallocgame/FineGame-v0", the one to start with; the time game with "mallocgame/MallocGame-v0", the
priority game with "mallocgame/PriorityGame-v0" and the schedule game with
"mallocgame/ScheduleGame-v0".

An action of the time game is 0 Drop, 1 Copy, 2 NoCopy or 3 CopyEarly; one of the priority game is
5 * candidate + mode, of which 0 is Skip, 1 Late, 2 Early, 3 Preload and 4 Split
(docs/priority-game.md).
The schedule game has 17 actions before these, which decide the order of instructions first: 0 to 15
take a unit that is shown, 16 shows the next ones (docs/schedule-game.md).
Which of them are legal is in info["action_mask"] and action_masks(). The reward is the share of the
all-main latency that the decision saves, so that a return is 1 - latency / all-main latency; with
reward="score" a return is the score of the plan on its level. Episodes end by themselves; nothing
is truncated.
"""

import copy
import os
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from mallocgame import _arguments
from mallocgame._core import Environment, Game, Hardware, State
from mallocgame.envs.registration import register
from mallocgame.envs.scores import Scores
from mallocgame.envs.settings import METADATA, Observations, check_render_mode, is_scored
from mallocgame.games import GameOptions
from mallocgame.playables import Playable, played
from mallocgame.plots.position import picture

register()


class LegalActions(gymnasium.spaces.Discrete):
    """A Discrete whose sample() without a mask draws among the actions that are legal now.

    A copy of it alone is a plain Discrete; a copy of its environment has its own.
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
        if mask is not None:
            mask = np.asarray(mask).astype(np.int8, copy=False)  # action_masks() are bool
        return super().sample(mask=mask, probability=probability)

    def __reduce__(self) -> tuple[Any, ...]:
        own = {key: value for key, value in self.__dict__.items() if key != "_environment"}
        return gymnasium.spaces.Discrete, (int(self.n),), own

    def of(self, environment: Environment) -> "LegalActions":
        """Returns the space of another environment, which draws on from where this one is."""
        twin = LegalActions(environment, int(self.n))
        twin.__dict__.update(copy.deepcopy(self).__dict__)
        return twin


class MallocGameEnv(gymnasium.Env):
    """One game after the other.

    program: a bundled name, the name of a level, a .mgp path, a Program, a Level, a Game, or a
    sequence of them. Of a sequence each episode draws one; there is no other chance. reset(seed=s)
    makes the episodes from then on those of s.
    hardware: of programs; a Hardware, the name of a preset or a JSON path; None is the program's
    own. A Level or a Game has its own, and a Game its options.
    observation: "dict" of named parts, "flat" (the same numbers in one array), or "compact" (flat,
    without neighbours, occupancy and idle time; quick). All numbers are float32 in [-1, 1];
    docs/observations.md says what they mean.
    game: a TimeGame, PriorityGame or ScheduleGame with its options; or its name, "time",
    "priority", "fine" or "schedule", and then options as keyword arguments.
    neighbours, ticks_back, ticks_ahead, ticks_per_column, address_cells: of the observation.
    prices: "compiler", those that the program has, or "calibrated", as calibrated() makes them.
    reward: "saved", the share of the all-main latency; or "score", of levels only (docs/levels.md).
    render_mode: "ansi" (text) or "rgb_array" (a picture of fast memory, time by address).

    info has the same keys after reset() and after each step: action_mask, int8 [actions], what is
    legal; latency_ps, with everything undecided in main memory, at the end the plan's; program, the
    name of what is played. copy.deepcopy() makes a fork, which goes on from here and shares what
    never changes.

    InvalidInputError: a setting or a seed is out of range. step raises InvalidActionError for an
    illegal action and GameOverError after the end, and changes nothing then.
    """

    metadata = dict(METADATA)  # noqa: RUF012 (Gymnasium declares it for instances)
    _Layout = Observations

    def __init__(
        self,
        program: Playable | Sequence[Playable],
        hardware: Hardware | str | os.PathLike[str] | None = None,
        observation: str = "dict",
        *,
        game: str | GameOptions = "time",
        neighbours: int = 4,
        ticks_back: int = 8,
        ticks_ahead: int = 8,
        ticks_per_column: int = 4,
        address_cells: int = 32,
        prices: str = "compiler",
        reward: str = "saved",
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        several = played(program, hardware, prices, game, **options)
        self.games = [one.game for one in several]
        self._names = [one.name for one in several]
        self._scores = Scores(several) if is_scored(reward) else None
        self._latency_ps = 0  # of the position, for scores
        num_actions = self.games[0].num_actions
        self._layout = self._Layout(
            observation,
            self.games[0],
            {
                "neighbours": neighbours,
                "ticks_back": ticks_back,
                "ticks_ahead": ticks_ahead,
                "ticks_per_column": ticks_per_column,
                "address_cells": address_cells,
            },
        )
        self.render_mode = check_render_mode(render_mode)
        self._seeded = False
        self._begin()
        self.action_space = LegalActions(self._environment, num_actions)

    def _begin(self) -> None:
        """Makes what can't be pickled, or would be large."""
        self._environment = Environment(
            self.games, self._layout.settings, self._layout.named, self._names
        )
        self._step = self._environment.step if self._scores is None else self._scored_step
        self.observation_space = self._layout.space

    def __deepcopy__(self, memo: dict[int, Any]) -> "MallocGameEnv":
        fork = type(self).__new__(type(self))
        memo[id(self)] = fork
        memo[id(self.observation_space)] = self.observation_space
        memo[id(self._environment)] = forked = self._environment.fork()
        if isinstance(self.action_space, LegalActions):
            memo[id(self.action_space)] = self.action_space.of(forked)
        fork.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return fork

    def __getstate__(self) -> dict[str, Any]:
        """What it was made of, and its actions since the episode began."""
        made = {"_environment", "_step", "observation_space"}
        kept = {name: value for name, value in self.__dict__.items() if name not in made}
        return kept | {"point": self._environment.point()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        point, drawn = state.pop("point"), state.pop("action_space")
        self.__dict__.update(state)
        self._begin()
        self._environment.resume(point)
        self.action_space = LegalActions(self._environment, int(drawn.n))
        self.action_space.__dict__.update(drawn.__dict__)  # It draws on.

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode: the first one of `seed`, or, without one, the next."""
        if seed is not None:
            seed = _arguments.seed(seed)
        if options is not None:
            _arguments.reset_options(options)
        super().reset(seed=seed)
        if seed is None and not self._seeded:
            seed = int(self.np_random.integers(2**63))
        self._seeded = True
        result = self._environment.reset(seed)
        self._latency_ps = self.game.all_main_ps
        return result

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Decides."""
        return self._step(action)

    def _scored_step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Decides; the reward is in the unit of scores."""
        assert self._scores is not None
        observation, saved, ended, truncated, info = self._environment.step(action)
        before_ps = self._latency_ps
        self._latency_ps -= round(saved * self.game.all_main_ps)
        index = self._environment.game_index
        reward = float(self._scores.rewards(index, before_ps, self._latency_ps, ended))
        return observation, reward, ended, truncated, info

    def action_masks(self) -> np.ndarray:
        """bool [actions]: what is legal now. sb3-contrib looks for this name."""
        return self._environment.mask().view(np.bool_)

    @property
    def state(self) -> State:
        """A copy of the position, with its plan(), latency_ps, actions and so on."""
        return self._environment.state()

    @property
    def game(self) -> Game:
        """The game that is played."""
        return self.games[self._environment.game_index]

    def render(self) -> str | np.ndarray | None:
        """Shows the position as text or as a picture; None without a render mode."""
        if self.render_mode == "ansi":
            return self.state.to_string()
        if self.render_mode == "rgb_array":
            return picture(self.state)
        return None
