"""Models drawn at random from real parts, in families by architecture.

    from workloads.drawn import FAMILIES, draw
    function, args = draw("encoder", 7)
    jax.jit(function).lower(*args)

The number gives the model: the same everywhere. Like all workloads these are shapes without values.
"""

from collections.abc import Callable

from ..parameters import Program
from . import loops, networks
from .deep import DEEP_FAMILIES
from .dice import Dice

# Name -> function that draws one program of the family.
FAMILIES: dict[str, Callable[[Dice], Program]] = {
    family.__name__: family
    for family in (
        networks.perceptron,
        networks.convolution,
        networks.encoder,
        networks.translator,
        networks.ranker,
        networks.autoencoder,
        networks.mixer,
        networks.retrieval,
        networks.mixture,
        networks.graph,
        networks.cached_decoder,
        loops.recurrent,
        loops.stacked,
        loops.iterative,
        loops.rollout,
        loops.sampler,
        loops.state_space,
        loops.generator,
    )
}


def draw(family: str, number: int, seed: int = 0) -> Program:
    """Draws model `number` of a family, of whole models too. KeyError: there is no such family."""
    return (FAMILIES | DEEP_FAMILIES)[family](Dice(f"{seed}/{family}/{number}"))
