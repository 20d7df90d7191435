"""The games as environments of LightZero, for its MuZero, EfficientZero, Gumbel MuZero and others.

They need LightZero (pip install lightzero). A configuration of LightZero names the type and this
module:

    env=dict(type="mallocgame_lightzero", import_names=["mallocgame.envs.lightzero"])

and its `env` has the settings of MallocGameEnv: program="resnet50_b1.tpu_v4i", game="priority".
Actions, rewards and ends are those of MallocGameEnv; docs/embed.md has a whole configuration.
"""

import logging
from typing import Any

import gymnasium
import numpy as np
from ding.envs import BaseEnv, BaseEnvTimestep
from ding.utils import ENV_REGISTRY
from easydict import EasyDict

from mallocgame import _arguments
from mallocgame.envs.gym import MallocGameEnv

# What LightZero adds to `env` for itself.
_NOT_OURS = {
    "cfg_type", "collector_env_num", "evaluator_env_num", "import_names", "manager",
    "n_evaluator_episode", "stop_value", "type",
}  # fmt: skip
_ONE_PLAYER = np.array(-1)


@ENV_REGISTRY.register("mallocgame_lightzero")
class LightZeroEnv(BaseEnv):
    """One game after the other, made at the first reset().

    cfg: the settings of MallocGameEnv; the observation is "compact" unless it says "flat".
    Observations are dicts of observation, float32 [numbers]; action_mask, int8 [actions];
    to_play, -1; and timestep, the decisions so far. Rewards are float32 []. At the end info has
    eval_episode_return, the sum of them.
    An illegal action is replaced by a legal one that is drawn, with a warning, as in the board
    games of LightZero. InvalidInputError: as MallocGameEnv's.
    """

    config: dict[str, Any] = {}  # noqa: RUF012 (LightZero reads it)

    def __init__(self, cfg: dict[str, Any]) -> None:
        given = {name: value for name, value in dict(cfg).items() if name not in _NOT_OURS}
        self._settings: dict[str, Any] = {"observation": "compact"} | given
        self._seed: int | None = None
        self._next_seed: int | None = None

    @classmethod
    def default_config(cls) -> EasyDict:
        return EasyDict(cls.config | {"cfg_type": cls.__name__ + "Dict"})

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        """Sets the seed of the episodes from the next one on. dynamic_seed: False repeats it."""
        self._seed = self._next_seed = _arguments.seed(seed)
        self._dynamic_seed = dynamic_seed
        self._random = np.random.default_rng(seed)

    def reset(self) -> dict[str, np.ndarray]:
        """Begins an episode."""
        if not hasattr(self, "_env"):
            self._env = MallocGameEnv(**self._settings)
        if self._seed is None:
            self.seed(0)
        numbers, info = self._env.reset(seed=self._next_seed)
        self._next_seed = None if self._dynamic_seed else self._seed
        self._timestep, self._return = 0, np.zeros((), np.float32)
        return self._observed(numbers, info)

    def step(self, action: int | np.ndarray) -> BaseEnvTimestep:
        """Decides."""
        chosen = int(np.asarray(action).reshape(()))
        mask = self._env.action_masks()
        if not (0 <= chosen < len(mask) and mask[chosen]):
            drawn = int(self.random_action()[0])
            logging.warning("mallocgame: action %d is illegal here, %d is taken", chosen, drawn)
            chosen = drawn
        numbers, reward, done, _, info = self._env.step(chosen)
        self._timestep += 1
        rewards = np.array(reward, np.float32)
        self._return = np.asarray(self._return + rewards)
        if done:
            info = info | {"eval_episode_return": self._return}
        return BaseEnvTimestep(self._observed(numbers, info), rewards, done, info)

    def random_action(self) -> np.ndarray:
        """int64 [1]: a legal action."""
        return self._random.choice(np.flatnonzero(self._env.action_masks()), size=1)

    def close(self) -> None:
        """Forgets the game; reset() makes it again."""
        self.__dict__.pop("_env", None)

    def _observed(self, numbers: np.ndarray, info: dict[str, Any]) -> dict[str, np.ndarray]:
        return {
            "observation": numbers.copy(),
            "action_mask": info["action_mask"].copy(),
            "to_play": _ONE_PLAYER.copy(),
            "timestep": np.array(self._timestep),
        }

    @property
    def observation_space(self) -> gymnasium.spaces.Dict:
        spaces, actions = gymnasium.spaces, self._made.games[0].num_actions
        return spaces.Dict(
            observation=self._made.observation_space,
            action_mask=spaces.Box(0, 1, (actions,), np.int8),
            to_play=spaces.Box(-1, -1, (), np.int64),
            timestep=spaces.Box(0, np.iinfo(np.int64).max, (), np.int64),
        )

    @property
    def action_space(self) -> gymnasium.Space:
        return self._made.action_space

    @property
    def reward_space(self) -> gymnasium.spaces.Box:
        return gymnasium.spaces.Box(-np.inf, np.inf, (), np.float32)

    @property
    def _made(self) -> MallocGameEnv:
        if not hasattr(self, "_env"):
            self.reset()
        return self._env

    def __repr__(self) -> str:
        return f"LightZeroEnv({self._settings})"
