"""Monte Carlo tree search with a model of your own: a network, rules, anything.

It needs NumPy alone.

    from mallocgame import mcts

    search = mcts.search(roots=64, num_actions=model.num_actions, simulations=50)
    search.run(model, seed=0)
    search.actions, search.policy, search.values

The search never sees a position. It hands out slots, integers in [0, slots); the model keeps
positions, or hidden states, under them, in whatever form. A model is any object with the members of
`Model`; examples/custom_search_model.py is one.
"""

import math
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from mallocgame._core import Predictions, Search

__all__ = ["Model", "Predictions", "Search", "search"]


class Model(Protocol):
    """What a search asks for. All arrays are int32 and belong to the model once it has them.

    `out` holds arrays to be filled in place; row i is about row i of the request. They are logits
    [rows, actions] of the policy, values [rows] (the return expected from the position on), rewards
    [rows] of the step that led there, discounts [rows] of what follows that step (-1: two players,
    and the value is always that of the player to move), legal [rows, actions] and terminal [rows].
    What a model has nothing to say about it leaves as it is: 0, 0, 0, the search's discount, True
    and False.

    A model may also have advance(root: int, slot: int) -> None. Search.advance() calls it
    when the position under `slot` becomes the root's.
    """

    num_actions: int

    def reserve(self, slots: int) -> None:
        """Takes the number of slots before each search. What was kept before stays."""

    def start(self, roots: np.ndarray, slots: np.ndarray, out: Predictions) -> None:
        """Keeps the position of root roots[i] under slots[i].

        The model knows the positions of roots by its own means.
        """

    def step(
        self,
        roots: np.ndarray,
        parents: np.ndarray,
        actions: np.ndarray,
        slots: np.ndarray,
        out: Predictions,
    ) -> None:
        """Keeps under slots[i] where actions[i] leads from the position under parents[i]."""


def search(
    roots: int,
    num_actions: int,
    selection: str = "gumbel",
    *,
    simulations: int = 50,
    max_nodes: int = 0,
    leaves: int = 1,
    max_batch: int = 0,
    threads: int = 1,
    discount: float = 1.0,
    scaling: str = "tree",
    min_value: float = 0.0,
    max_value: float = 1.0,
    min_range: float = 0.01,
    max_range: float = math.inf,
    settings: Mapping[str, float] | None = None,
) -> Search:
    """Makes a search over `roots` positions at a time.

    selection: "gumbel" (sequential halving with completed values) or "puct".
    simulations: for each root and run.
    max_nodes: of a root's tree; 0 is simulations + 1. A subtree that advance() kept counts.
    leaves: of one root that are evaluated together. With more than one a leaf is chosen before the
    values of the others are known.
    max_batch: rows of one call of the model; 0 is no limit.
    threads: that work on the trees. They change no result: a root's tree depends on its position,
    seed and these options.
    discount: of each step, unless the model says another.
    scaling: how returns are mapped to [0, 1]: "tree" by the least and greatest in the tree, "node"
    by those at the node, "known" by min_value and max_value.
    min_range: returns that differ by less count as differing by that.
    max_range: returns further below the greatest one count as so far below it.
    settings: of the rule. gumbel: considered (16), c_visit (50), c_scale (0.1), noise_scale (1).
    puct: c_init (1.25), c_base (19652), dirichlet_fraction (0.25), dirichlet_alpha (0.3),
    unvisited_worst (1: actions without visits count as the worst, 0: as the node's own value).

    InvalidInputError names what is out of range.
    """
    return Search(
        roots,
        num_actions,
        selection,
        simulations,
        max_nodes,
        leaves,
        max_batch,
        threads,
        discount,
        scaling,
        min_value,
        max_value,
        min_range,
        max_range,
        dict(settings or {}),
    )
