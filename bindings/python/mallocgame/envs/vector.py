"""Many environments at once, stepped in C++.

It is a Gymnasium VectorEnv that does what SyncVectorEnv does, faster.
"""

import copy
import os
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Discrete, MultiDiscrete
from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv as GymnasiumVectorEnv
from gymnasium.vector.utils import batch_space

from mallocgame import _arguments
from mallocgame._core import EnvironmentBatch, Hardware, State
from mallocgame.envs.gym import MallocGameEnv
from mallocgame.envs.scores import Scores
from mallocgame.envs.settings import METADATA, Observations, check_render_mode, is_scored
from mallocgame.errors import InvalidInputError
from mallocgame.games import GameOptions
from mallocgame.playables import Playable, played
from mallocgame.plots.position import picture

if TYPE_CHECKING:
    from mallocgame.envs.xla import XlaEnv

# What VectorEnv._begin makes.
_MADE = {
    "_all",
    "_all_main_ps",
    "_batch",
    "_final",
    "_latency_ps",
    "_masks",
    "_observations",
    "_playing",
    "_returned",
    "_rewards",
    "_terminated",
    "_truncated",
    "observation_space",
    "single_observation_space",
}


class LegalActionsOfAll(MultiDiscrete):
    """A MultiDiscrete whose sample() without a mask draws among the actions that are legal now.

    mask: as gymnasium's, or an array [num_envs, actions], as VectorEnv.action_masks() returns it.
    Where no action is legal, it draws among all. A copy of it alone is a plain MultiDiscrete; a
    copy of its environment has its own.
    """

    def __init__(self, environment: "VectorEnv", actions: int) -> None:
        super().__init__([actions] * environment.num_envs)
        self._environment = weakref.ref(environment)

    def sample(self, mask: Any = None, probability: Any = None) -> np.ndarray:
        environment = self._environment()
        if mask is None and environment is not None:
            mask = environment.action_masks()
        if probability is not None or mask is None:
            return super().sample(mask=mask, probability=probability)
        rows = np.array(mask, np.bool_)
        if rows.shape != (len(self.nvec), self.nvec[0]):
            raise InvalidInputError(
                f"mask: found {_arguments.described(mask)}, allowed: an array of shape "
                f"{(len(self.nvec), int(self.nvec[0]))}"
            )
        rows[~rows.any(axis=1)] = True
        drawn = self.np_random.random(rows.shape)
        return np.where(rows, drawn, -1.0).argmax(axis=1).astype(self.dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        own = {key: value for key, value in self.__dict__.items() if key != "_environment"}
        return MultiDiscrete, (self.nvec,), own

    def of(self, environment: "VectorEnv") -> "LegalActionsOfAll":
        """Returns the space of another environment, which draws on from where this one is."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(copy.deepcopy(self).__dict__)
        twin._environment = weakref.ref(environment)
        return twin


class VectorEnv(GymnasiumVectorEnv):
    """num_envs environments. The settings that are not named here are MallocGameEnv's.

    assign: "drawn": each episode of each environment draws its program; "fixed": environment i
    always plays program[i % len(program)].
    autoreset_mode: Gymnasium's NEXT_STEP, SAME_STEP or DISABLED, or its value as a string.
    threads: 0 is one for each core from 256 environments on, else none but the caller's; n is
    always n.
    copy: True: each call returns new arrays, written in place by C++. False: the same arrays every
    time.

    reset(seed=s) gives environment i the seed s + i. An illegal action raises InvalidActionError, a
    step after the end (DISABLED) GameOverError, and each names the environment. Then none has
    moved, and the batch can be used on. Actions are an integer array [num_envs], else
    InvalidInputError.
    """

    metadata = dict(METADATA)  # noqa: RUF012 (Gymnasium declares it for instances)
    _Layout = Observations

    def __init__(
        self,
        num_envs: int,
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
        assign: str = "drawn",
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        threads: int = 0,
        copy: bool = True,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        self.num_envs = _arguments.integer("num_envs", num_envs, 31)
        self._threads = _arguments.integer("threads", threads, 31)
        self._fixed = _arguments.one_of("assign", assign, ("drawn", "fixed")) == "fixed"
        self.render_mode = check_render_mode(render_mode)
        if not isinstance(autoreset_mode, AutoresetMode):
            modes = [mode.value for mode in AutoresetMode]
            autoreset_mode = AutoresetMode(
                _arguments.one_of("autoreset_mode", autoreset_mode, modes)
            )
        self.autoreset_mode = autoreset_mode
        several = played(program, hardware, prices, game, **options)
        self.games = [one.game for one in several]
        self._names = np.array([one.name for one in several], dtype=object)
        self._scores = Scores(several) if is_scored(reward) else None
        self.copy = copy
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}

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
        self._num_actions = num_actions
        self._seeded = False
        self._begin()  # refuses numbers that are out of range
        self._over = np.zeros(self.num_envs, np.bool_)  # whose last step was its episode's
        self._any_over = False
        self.single_action_space = Discrete(num_actions)
        self.action_space = LegalActionsOfAll(self, num_actions)

    def _begin(self) -> None:
        """Makes what can't be pickled, or would be large."""
        num_envs = self.num_envs
        self._batch = EnvironmentBatch(
            self.games,
            num_envs,
            self._layout.settings,
            self.autoreset_mode.value,
            self._fixed,
            self._threads,
        )
        self.single_observation_space = self._layout.space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._all = np.ones(num_envs, np.bool_)
        self._observations, self._masks = self._new_arrays()
        self._latency_ps = np.zeros(num_envs, np.int64)
        self._playing = self._batch.game_indices()
        self._all_main_ps = np.array([game.all_main_ps for game in self.games], np.int64)
        self._rewards = np.zeros(num_envs)
        self._terminated = np.zeros(num_envs, np.bool_)
        self._truncated = np.zeros(num_envs, np.bool_)
        same_step = self.autoreset_mode == AutoresetMode.SAME_STEP
        self._final = self._new_arrays() if same_step else None
        self._returned = self._layout.of(self._observations)

    def __deepcopy__(self, memo: dict[int, Any]) -> "VectorEnv":
        fork = type(self).__new__(type(self))
        memo[id(self)] = fork
        for space in (self.observation_space, self.single_observation_space):
            memo[id(space)] = space
        if isinstance(self.action_space, LegalActionsOfAll):
            memo[id(self.action_space)] = self.action_space.of(fork)
        memo[id(self._batch)] = self._batch.fork()
        own = {name: value for name, value in self.__dict__.items() if name != "_returned"}
        fork.__dict__.update(copy.deepcopy(own, memo))
        fork._returned = fork._layout.of(fork._observations)  # the same memory
        return fork

    def __getstate__(self) -> dict[str, Any]:
        """What it was made of, and the actions of each environment since its episode began."""
        kept = {name: value for name, value in self.__dict__.items() if name not in _MADE}
        return kept | {"points": self._batch.points()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        points, drawn = state.pop("points"), state.pop("action_space")
        self.__dict__.update(state)
        self._begin()
        self._batch.resume(points, self._observations, self._masks, self._latency_ps)
        self._playing = self._batch.game_indices()
        self.action_space = LegalActionsOfAll(self, self._num_actions)
        self.action_space.__dict__.update(drawn.__dict__)  # It draws on.

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode everywhere, or where bool [num_envs] options["reset_mask"] is True."""
        seeds = self._seeds(seed)
        which = _arguments.reset_options(options).get("reset_mask")
        if self.copy:
            # What is not reset keeps its observation.
            self._use(self._observations.copy(), self._masks.copy())
        masks = self._masks
        self._batch.reset(seeds, which, self._observations, masks, self._latency_ps)
        begun = self._all if which is None else which
        self._playing = self._batch.game_indices()
        self._over = self._over & ~begun
        self._any_over = bool(self._over.any())
        return self._returned, self._info(masks.copy(), begun, self._latency_ps)

    def step(
        self, actions: np.ndarray
    ) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Steps all environments.

        info is as SyncVectorEnv's: that of each environment (MallocGameEnv), and with SAME_STEP, as
        soon as one has ended, final_obs and final_info.
        """
        chosen = _arguments.integers(actions)
        if chosen is None or chosen.shape != (self.num_envs,):
            raise InvalidInputError(
                f"actions: found {_arguments.described(actions)}, allowed: "
                f"integers of shape ({self.num_envs},)"
            )
        before_ps = self._before_ps()
        if self.copy:
            observations, masks = self._new_arrays()
            rewards, terminated = np.empty(self.num_envs), np.empty(self.num_envs, np.bool_)
            truncated = np.zeros(self.num_envs, np.bool_)
        else:
            observations, masks = self._observations, self._masks
            rewards, terminated, truncated = self._rewards, self._terminated, self._truncated
        self._batch.step(
            np.ascontiguousarray(chosen, np.int64),
            observations,
            masks,
            self._latency_ps,
            rewards,
            terminated,
            *(self._final or (None, None)),
        )
        if self.copy:
            self._use(observations, masks)
        if self._scores is not None:
            rewards[:] = self._scores.rewards(
                self._playing, before_ps, self._latency_ps, terminated
            )
            if self.autoreset_mode == AutoresetMode.NEXT_STEP:
                rewards[self._over] = 0.0
        any_ended, ended_in = bool(terminated.any()), self._playing
        if any_ended or self._any_over:
            self._playing = self._batch.game_indices()
            self._over, self._any_over = terminated.copy(), any_ended
        masks = masks.copy() if self.copy else masks
        if self._final is None or not any_ended:
            info = self._info(masks, self._all, self._latency_ps)
        else:
            begun_ps = self._all_main_ps[self._playing]
            latency_ps = np.where(terminated, begun_ps, self._latency_ps)
            info = self._info(masks, self._all, latency_ps) | self._final_info(terminated, ended_in)
        return self._returned, rewards, terminated, truncated, info

    def _info(
        self,
        masks: np.ndarray,
        which: np.ndarray,
        latency_ps: np.ndarray,
        playing: np.ndarray | None = None,
    ) -> dict[str, Any]:
        """Returns the info of some environments. It is given the masks."""
        names: Any = self._names[self._playing if playing is None else playing]
        if which is not self._all:
            masks[~which] = 0
            latency_ps, names = np.where(which, latency_ps, 0), np.where(which, names, None)
        elif self.copy:
            latency_ps = latency_ps.copy()
        return {
            "action_mask": masks,
            "_action_mask": which.copy(),
            "latency_ps": latency_ps,
            "_latency_ps": which.copy(),
            "program": names,
            "_program": which.copy(),
        }

    def _final_info(self, terminated: np.ndarray, ended_in: np.ndarray) -> dict[str, Any]:
        """Returns what SAME_STEP tells of the episodes that have ended, and of what they played."""
        assert self._final is not None
        observations, masks = self._final
        final = np.full(self.num_envs, None, dtype=object)
        for i in np.flatnonzero(terminated):
            final[i] = self._layout.of(observations[i].copy())
        return {
            "final_obs": final,
            "_final_obs": terminated.copy(),
            "final_info": self._info(masks.copy(), terminated, self._latency_ps, ended_in),
            "_final_info": terminated.copy(),
        }

    def _before_ps(self) -> np.ndarray:
        """Returns the latencies of all positions, for scores only.

        An episode begins with everything in main memory.
        """
        if self._scores is None:
            return self._latency_ps
        return np.where(self._over, self._all_main_ps[self._playing], self._latency_ps)

    def render(self) -> tuple[Any, ...] | None:
        """Shows each position as text or as a picture; None without a render mode."""
        if self.render_mode is None:
            return None
        states = [self.state(i) for i in range(self.num_envs)]
        return tuple(
            state.to_string() if self.render_mode == "ansi" else picture(state) for state in states
        )

    def xla(self) -> "XlaEnv":
        """Returns (handle, reset, step) for JAX: a fork of these environments inside XLA.

        It goes on from where these are, and these stay where they are (mallocgame.envs.xla).
        InvalidInputError: rewards are scores, JAX is not installed, or this build had no jaxlib.
        """
        if self._scores is not None:
            raise InvalidInputError("reward: found 'score', allowed with xla(): 'saved'")
        environments = self._batch.xla()
        try:
            from mallocgame.envs.xla import xla_env
        except ModuleNotFoundError as error:
            if error.name != "jax":
                raise
            raise InvalidInputError("xla: JAX isn't installed: pip install jax") from error
        return xla_env(environments, self.num_envs, self._num_actions, self._layout)

    def action_masks(self) -> np.ndarray:
        """bool [num_envs, num_actions]: what is legal now."""
        return self._masks.astype(np.bool_)

    def state(self, index: int) -> State:
        """Returns a copy of one environment's position."""
        return self._batch.state(index)

    def _seeds(self, given: int | Sequence[int | None] | None) -> list[int | None]:
        seed = _arguments.seeds(given, self.num_envs)
        chance: list[int | None] = [None] * self.num_envs
        if not self._seeded:
            chance = [int(one) for one in self.np_random.integers(2**63, size=self.num_envs)]
        self._seeded = True
        if seed is None:
            return chance
        if isinstance(seed, int):
            super().reset(seed=seed)
            return [(seed + i) % 2**64 for i in range(self.num_envs)]
        return [other if one is None else one for one, other in zip(seed, chance, strict=True)]

    def _new_arrays(self) -> tuple[np.ndarray, np.ndarray]:
        return np.empty((self.num_envs, self._layout.size), np.float32), np.empty(
            (self.num_envs, self._num_actions), np.int8
        )

    def _use(self, observations: np.ndarray, masks: np.ndarray) -> None:
        self._observations, self._masks = observations, masks
        self._returned = self._layout.of(observations)


__all__ = ["AutoresetMode", "MallocGameEnv", "VectorEnv"]
