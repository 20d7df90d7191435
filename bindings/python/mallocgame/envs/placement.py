"""The placement problem as a Gymnasium environment of one step.

It is made by gymnasium.make("mallocgame/Placement-v0", program="resnet50_b1.tpu_v4i").

An action is a memory level for the weights and one for the activations of every node; level 0 is
the fastest. docs/placement.md says what a node is and what a map of levels earns. There is no
chance in it unless `noise` asks for some.
"""

import os
from typing import Any

import gymnasium
import numpy as np

from mallocgame import _arguments
from mallocgame._core import Hierarchy, Program
from mallocgame.envs.registration import register
from mallocgame.errors import GameOverError, InvalidActionError
from mallocgame.placement import problem

register()


class PlacementEnv(gymnasium.Env):
    """One map after the other.

    program: a bundled name, a .mgp path or a Program. hierarchy: as
    mallocgame.placement.problem()'s. noise: the relative standard deviation of latency_ps, as if it
    were measured on a chip, 0 to 0.2; drawn from the environment's seed.

    An action is integers [2 * nodes]: weights and activations of node 0, of node 1 and so on. The
    observation is the graph, always the same (node_features float32 [nodes, features], edge_index
    int32 [2, edges]). info has latency_ps, moved (the share of bytes that had to move) and map (as
    it is carried out) of the step's map, or after reset() of the baseline's, and always baseline_ps
    and baseline_map. step raises InvalidActionError for a map that is none, and GameOverError
    without a reset.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium declares it for instances)

    def __init__(
        self,
        program: str | os.PathLike[str] | Program,
        hierarchy: Hierarchy | str | os.PathLike[str] | None = "nnp_i",
        noise: float = 0.0,
    ) -> None:
        self.placement, self._noise = problem(program, hierarchy), noise
        self.placement.evaluate(self.placement.baseline_map, noise)  # refuses another noise
        self._running = False
        self._levels = len(self.placement.level_names)
        self.action_space = gymnasium.spaces.MultiDiscrete(
            np.full(2 * self.placement.num_nodes, self._levels)
        )
        self._begin()

    def _begin(self) -> None:
        """Makes what would be large in a pickle."""
        nodes = self.placement.num_nodes
        self._graph = {
            "node_features": self.placement.node_features,
            "edge_index": self.placement.edge_index,
        }
        most = np.sqrt(nodes)  # No standardised number is further from 0.
        self.observation_space = gymnasium.spaces.Dict(
            {
                "node_features": gymnasium.spaces.Box(
                    -most, most, self._graph["node_features"].shape, np.float32
                ),
                "edge_index": gymnasium.spaces.Box(
                    0, nodes - 1, self._graph["edge_index"].shape, np.int32
                ),
            }
        )

    def __getstate__(self) -> dict[str, Any]:
        made = {"_graph", "observation_space"}
        return {name: value for name, value in self.__dict__.items() if name not in made}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict, dict[str, Any]]:
        """Makes the environment ready for a map."""
        _arguments.reset_options(options)
        super().reset(seed=_arguments.seed(seed))
        self._running = True
        placement = self.placement
        info = self._info(placement.baseline_ps, 0.0, placement.baseline_map)
        return self._observation(), info

    def step(self, action: np.ndarray) -> tuple[dict, float, bool, bool, dict[str, Any]]:
        """Places everything: the episode's only step."""
        if not self._running:
            raise GameOverError("step: the map has been placed; call reset() before the next one")
        levels = _arguments.integers(action)
        right_shape = levels is not None and levels.shape == self.action_space.shape
        if levels is None or not right_shape or not ((levels >= 0) & (levels < self._levels)).all():
            raise InvalidActionError(
                f"action: found {_arguments.described(action)}, allowed: "
                f"{2 * self.placement.num_nodes} integers from 0 to {self._levels - 1}"
            )
        chosen = np.ascontiguousarray(levels.reshape(-1, 2), np.uint8)
        latency_ps, moved, reward = self.placement.evaluate(
            chosen, self._noise, int(self.np_random.integers(2**63)) if self._noise else 0
        )
        self._running = False
        info = self._info(latency_ps, moved, self.placement.rectify(chosen))
        return self._observation(), reward, True, False, info

    def _info(self, latency_ps: int, moved: float, levels: np.ndarray) -> dict[str, Any]:
        return {
            "latency_ps": np.int64(latency_ps),
            "moved": np.float64(moved),
            "map": levels,
            "baseline_ps": np.int64(self.placement.baseline_ps),
            "baseline_map": self.placement.baseline_map,
        }

    def _observation(self) -> dict[str, np.ndarray]:
        return {name: array.copy() for name, array in self._graph.items()}
