"""The games as a dm_env.Environment, for Acme and others that use its interface.

Environment("resnet50_b1.tpu_v4i") is the time game, with game="priority" besides the priority game.
It needs dm_env and Gymnasium.
Actions, observations and rewards are those of mallocgame.MallocGameEnv; the legal actions are part
of the dict observation. The discount is 1, at the end 0.
"""

from typing import Any

import dm_env
import numpy as np
from dm_env import specs

from mallocgame import _arguments
from mallocgame.envs.gym import MallocGameEnv
from mallocgame.playables import Playable


class Environment(dm_env.Environment):
    """One game after the other.

    program, settings: as MallocGameEnv's. seed: of the draw among several programs; None takes one
    from the system.
    """

    def __init__(self, program: Playable, *, seed: int | None = None, **settings: Any) -> None:
        self.env = MallocGameEnv(program, **settings)
        self._seed = _arguments.seed(seed)
        self._over = True

    def reset(self) -> dm_env.TimeStep:
        """Begins a game."""
        observation, _ = self.env.reset(seed=self._seed)
        self._seed = None
        self._over = False
        return dm_env.restart(observation)

    def step(self, action: int) -> dm_env.TimeStep:
        """Decides. After the end the next game begins instead, as dm_env asks."""
        if self._over:
            return self.reset()
        observation, reward, self._over, _, _ = self.env.step(action)
        return (
            dm_env.termination(reward, observation)
            if self._over
            else dm_env.transition(reward, observation)
        )

    def observation_spec(self) -> specs.Array | dict[str, specs.Array]:
        """The arrays of an observation."""
        space = self.env.observation_space
        spaces = getattr(space, "spaces", None)
        return (
            _spec(space, "observation")
            if spaces is None
            else {name: _spec(one, name) for name, one in spaces.items()}
        )

    def action_spec(self) -> specs.DiscreteArray:
        """The actions, from 0 on."""
        return specs.DiscreteArray(self.env.games[0].num_actions, dtype=np.int64, name="action")


def _spec(box: Any, name: str) -> specs.BoundedArray:
    return specs.BoundedArray(box.shape, box.dtype, box.low, box.high, name)
