"""Many games at once for Stable-Baselines3 and sb3-contrib, stepped in C++.

    from sb3_contrib import MaskablePPO
    from mallocgame.envs.sb3 import SB3VecEnv

    model = MaskablePPO("MlpPolicy", SB3VecEnv(64, "wavernn_64steps_b8.tpu_v4i", game="priority"))

It needs stable-baselines3. MaskablePPO finds the masks of legal actions by itself. Each info has
`program`, `latency_ps` and `TimeLimit.truncated`, that of an episode's end `terminal_observation`
too and, as VecMonitor's, `episode` with return "r", length "l" and time "t" in seconds.
"""

import time
from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium
import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from mallocgame.envs.vector import AutoresetMode, VectorEnv
from mallocgame.errors import InvalidInputError
from mallocgame.playables import Playable


class SB3VecEnv(VecEnv):
    """num_envs environments as Stable-Baselines3's VecEnv.

    num_envs, program, settings: as VectorEnv's; observation is "compact" if none is given, and
    autoreset_mode is always SAME_STEP, which is what a VecEnv does. Observations are float32 arrays
    [num_envs, numbers], or dicts of them; actions int [num_envs]; rewards float32 [num_envs].
    """

    def __init__(
        self, num_envs: int, program: Playable | Sequence[Playable], **settings: Any
    ) -> None:
        if "autoreset_mode" in settings:
            raise InvalidInputError("autoreset_mode: a VecEnv begins the next episode by itself")
        settings = {"observation": "compact", **settings}
        self.vector = VectorEnv(
            num_envs, program, autoreset_mode=AutoresetMode.SAME_STEP, **settings
        )
        self._begin = time.monotonic()
        self._returns, self._lengths = np.zeros(num_envs), np.zeros(num_envs, np.int64)
        super().__init__(
            num_envs, self.vector.single_observation_space, self.vector.single_action_space
        )

    def reset(self) -> Any:
        """Begins an episode everywhere, of the seeds that seed() has given."""
        given = any(seed is not None for seed in self._seeds)
        observations, info = self.vector.reset(seed=list(self._seeds) if given else None)
        self.reset_infos = _infos(info)
        self._returns[:], self._lengths[:] = 0.0, 0
        self._reset_seeds()
        self._reset_options()
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        """Keeps the actions for step_wait()."""
        self._actions = np.asarray(actions)

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Steps. Returns observations, rewards, ends, and an info for each environment."""
        observations, rewards, ended, _, info = self.vector.step(self._actions)
        self._returns += rewards
        self._lengths += 1
        infos = _infos(info)
        for one in infos:
            one["TimeLimit.truncated"] = False
        for i in np.flatnonzero(ended):
            final = info["final_info"]
            self.reset_infos[i] = {name: infos[i][name] for name in ("program", "latency_ps")}
            infos[i] |= {
                "program": final["program"][i],
                "latency_ps": int(final["latency_ps"][i]),
                "terminal_observation": info["final_obs"][i],
                "episode": {
                    "r": float(self._returns[i]),
                    "l": int(self._lengths[i]),
                    "t": round(time.monotonic() - self._begin, 6),
                },
            }
        self._returns[ended], self._lengths[ended] = 0.0, 0
        return observations, rewards.astype(np.float32), ended, infos

    def close(self) -> None:
        """Ends the threads."""
        self.vector.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Returns an attribute of each environment; those that all share are VectorEnv's."""
        which = list(self._get_indices(indices))
        if attr_name in ("action_masks", "state"):
            return [self._method(attr_name, i) for i in which]
        return [getattr(self.vector, attr_name)] * len(which)

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """InvalidInputError: environments that are stepped together share their settings."""
        raise InvalidInputError(f"set_attr: '{attr_name}' is given when an SB3VecEnv is made")

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """Calls action_masks() or state() of each environment. AttributeError: there is no such."""
        if method_name == "action_masks" and indices is None:
            return list(self.vector.action_masks())
        which = self._get_indices(indices)
        return [self._method(method_name, i)(*method_args, **method_kwargs) for i in which]

    def _method(self, name: str, i: int) -> Any:
        if name == "action_masks":
            return lambda: self.vector.action_masks()[i]
        if name == "state":
            return lambda: self.vector.state(i)
        raise AttributeError(f"SB3VecEnv: found '{name}', allowed: action_masks, state")

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper], indices: Any = None
    ) -> list[bool]:
        """No environment is wrapped; what an end's info says is what Monitor would."""
        from stable_baselines3.common.monitor import Monitor

        return [issubclass(wrapper_class, Monitor)] * len(list(self._get_indices(indices)))

    def get_images(self) -> Sequence[np.ndarray | None]:
        """Returns a picture of each position, with render_mode="rgb_array"."""
        if self.vector.render_mode != "rgb_array":
            return [None] * self.num_envs
        return list(self.vector.render() or ())

    def _get_indices(self, indices: Any) -> Iterable[int]:
        found: Iterable[int] = super()._get_indices(indices)
        return found


def _infos(info: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns what VectorEnv's info says of each environment."""
    latencies_ps = info["latency_ps"].tolist()
    return [
        {"program": name, "latency_ps": latency_ps}
        for name, latency_ps in zip(info["program"], latencies_ps, strict=True)
    ]
