"""The placement problem as a Gymnasium environment of one step:

    gymnasium.make("mallocgame/Placement-v0", program="resnet50_b1.tpu_v4i")

An action is a memory level for the weights and one for the activations of every node, level 0 the
fastest. docs/placement.md says what a node is and what a map of levels earns. There is no chance in
it.
"""

import os
from typing import Any

import gymnasium
import numpy as np

from mallocgame._core import Hierarchy
from mallocgame.envs.gym import ProgramLike
from mallocgame.envs.registration import register
from mallocgame.errors import GameOverError, InvalidActionError
from mallocgame.programs.placement import placement

register()


class PlacementEnv(gymnasium.Env):
    """One map after the other.

    program: a bundled name, a .mgp path or a Program; hierarchy: as mallocgame.placement()'s.
    action: integers [2 * nodes], weights and activations of node 0, of node 1 ...; observation: the
    graph, always the same (node_features float32 [nodes, features], edge_index int32 [2, edges]).
    info of a step: latency_ps, moved (share of bytes that had to move), map (as carried out); of a
    reset: baseline_ps, baseline_map. step raises InvalidActionError for a map that isn't one,
    GameOverError without a reset.
    """

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self, program: ProgramLike, hierarchy: Hierarchy | str | os.PathLike | None = "nnp_i"
    ) -> None:
        self.placement = placement(program, hierarchy)
        nodes, levels = self.placement.num_nodes, len(self.placement.level_names)
        self._graph = {
            "node_features": self.placement.node_features,
            "edge_index": self.placement.edge_index,
        }
        self._running = False
        self.action_space = gymnasium.spaces.MultiDiscrete(np.full(2 * nodes, levels))
        most = np.sqrt(nodes)  # no standardised number is further from 0
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

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict, dict[str, Any]]:
        """Ready for a map."""
        super().reset(seed=seed)
        self._running = True
        info = {
            "baseline_ps": self.placement.baseline_ps,
            "baseline_map": self.placement.baseline_map,
        }
        return self._observation(), info

    def step(self, action: np.ndarray) -> tuple[dict, float, bool, bool, dict[str, Any]]:
        """Place everything: the episode's only step."""
        if not self._running:
            raise GameOverError("step: the map has been placed; call reset() before the next one")
        levels = np.asarray(action)
        if levels.shape != self.action_space.shape or not self.action_space.contains(
            levels.astype(np.int64)
        ):
            raise InvalidActionError(
                f"action: found shape {levels.shape}, "
                f"values {levels.min(initial=0)} to {levels.max(initial=0)}, allowed: "
                f"{self.action_space.shape[0]} levels from 0 to {self.action_space.nvec[0] - 1}"
            )
        chosen = np.ascontiguousarray(levels.reshape(-1, 2), np.uint8)
        latency_ps, moved, reward = self.placement.evaluate(chosen)
        self._running = False
        info = {"latency_ps": latency_ps, "moved": moved, "map": self.placement.rectify(chosen)}
        return self._observation(), reward, True, False, info

    def _observation(self) -> dict[str, np.ndarray]:
        return {name: array.copy() for name, array in self._graph.items()}
