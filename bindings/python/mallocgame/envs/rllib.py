"""The games for RLlib's new API stack, with masks of the legal actions.

Importing this module registers the environment "mallocgame":

    PPOConfig()
    .environment("mallocgame", env_config={"program": "resnet50_b1.tpu_v4i"})
    .env_runners(num_envs_per_env_runner=8, gym_env_vectorize_mode="vector_entry_point")
    .rl_module(rl_module_spec=RLModuleSpec(module_class=mallocgame.envs.rllib.MaskedModule))

env_config has the settings of mallocgame.MallocGameEnv, game="priority" for the priority game among
them. It needs ray[rllib], Torch and Gymnasium. What RLlib shows as an example of masks imports
names that RLlib has given up, and changes the batches that it reads; MaskedModule does neither.
"""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import torch
from ray.rllib.algorithms.ppo.torch.default_ppo_torch_rl_module import DefaultPPOTorchRLModule
from ray.rllib.core.columns import Columns
from ray.rllib.utils.torch_utils import FLOAT_MIN
from ray.tune import register_env

from mallocgame._core import Game
from mallocgame.envs.gym import MallocGameEnv
from mallocgame.envs.settings import Observations
from mallocgame.envs.vector import AutoresetMode, VectorEnv
from mallocgame.errors import InvalidInputError

_OBSERVATIONS, _MASK = "observations", "action_mask"  # RLlib's names.


class _MaskedObservations(Observations):
    """Flat observations, and the mask that is their last part beside them."""

    def __init__(self, kind: str, game: Game, settings: dict[str, int]) -> None:
        if kind == "dict":
            raise InvalidInputError(f"observation: found {kind!r}, allowed: 'flat', 'compact'")
        super().__init__(kind, game, settings)
        self._num_actions = game.num_actions

    @property
    def space(self) -> gymnasium.Space[Any]:
        mask = gymnasium.spaces.Box(0.0, 1.0, (self._num_actions,), np.float32)
        return gymnasium.spaces.Dict({_OBSERVATIONS: super().space, _MASK: mask})

    def of(self, rows: np.ndarray) -> Any:
        return {_OBSERVATIONS: rows, _MASK: rows[..., -self._num_actions :]}


class MaskedEnv(MallocGameEnv):
    """A MallocGameEnv that observes {"observations": flat numbers, "action_mask": what is legal}.

    settings: as MallocGameEnv's; observation is "compact" or "flat".
    """

    _Layout = _MaskedObservations

    def __init__(self, program: Any, *, observation: str = "compact", **settings: Any) -> None:
        super().__init__(program, observation=observation, **settings)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        observation, info = super().reset(seed=seed, options=options)
        return self._layout.of(observation), info

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, *others = super().step(action)
        return self._layout.of(observation), *others


class MaskedVectorEnv(VectorEnv):
    """Many MaskedEnv, stepped in C++. settings: as VectorEnv's.

    InvalidInputError: another autoreset_mode than NEXT_STEP, the only one that RLlib understands.
    """

    _Layout = _MaskedObservations

    def __init__(
        self, num_envs: int, program: Any, *, observation: str = "compact", **settings: Any
    ) -> None:
        super().__init__(num_envs, program, observation=observation, **settings)
        if self.autoreset_mode != AutoresetMode.NEXT_STEP:
            raise InvalidInputError(
                f"autoreset_mode: found {self.autoreset_mode.value!r}, allowed: "
                f"{AutoresetMode.NEXT_STEP.value!r}"
            )


def make_env(config: Mapping[str, Any]) -> MaskedEnv | MaskedVectorEnv:
    """Makes one environment, or many where RLlib adds num_envs to what env_config says."""
    return MaskedVectorEnv(**config) if "num_envs" in config else MaskedEnv(**config)


class MaskedModule(DefaultPPOTorchRLModule):
    """PPO's module with illegal actions left out when it plays, explores and learns.

    model_config is that of RLlib's own module. InvalidInputError: the environment shows no mask.
    """

    def __init__(self, *, observation_space: Any = None, **others: Any) -> None:
        if not {_OBSERVATIONS, _MASK} <= set(getattr(observation_space, "spaces", {})):
            raise InvalidInputError(
                f"MaskedModule: found observations {observation_space}, allowed: a Dict with "
                f"{_OBSERVATIONS!r} and {_MASK!r}"
            )
        # The networks are made for what is observed without the mask.
        super().__init__(observation_space=observation_space[_OBSERVATIONS], **others)
        self.observation_space = observation_space

    def _forward(self, batch: dict[str, Any], **options: Any) -> dict[str, Any]:
        return _masked(super()._forward(_unmasked(batch), **options), batch)

    def _forward_train(self, batch: dict[str, Any], **options: Any) -> dict[str, Any]:
        return _masked(super()._forward_train(_unmasked(batch), **options), batch)

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Any:
        return super().compute_values(_unmasked(batch), embeddings)


def _unmasked(batch: dict[str, Any]) -> dict[str, Any]:
    return {**batch, Columns.OBS: batch[Columns.OBS][_OBSERVATIONS]}


def _masked(output: dict[str, Any], batch: dict[str, Any]) -> dict[str, Any]:
    logits, mask = output[Columns.ACTION_DIST_INPUTS], batch[Columns.OBS][_MASK]
    # The end of a game has no legal action: the least number leaves a distribution, -inf would not.
    return {**output, Columns.ACTION_DIST_INPUTS: torch.where(mask > 0, logits, FLOAT_MIN)}


def register() -> None:
    """Registers the environment "mallocgame", as importing this module does.

    Ray forgets it with ray.shutdown(): a process that goes on with RLlib calls this again.
    """
    register_env("mallocgame", make_env)


register()
