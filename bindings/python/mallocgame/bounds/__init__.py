"""What no plan can beat, with proof, and what bytes and time are worth by the proof.

from mallocgame import bounds
bounds.bound(program, "lp")  # Bound(bound_ps=..., name='lp', status='optimal')
"""

from mallocgame._core import Prices
from mallocgame._moved import former
from mallocgame.bounds.bound import BOUNDS, Bound, bound, verify
from mallocgame.bounds.duals import shadow_prices
from mallocgame.bounds.lagrangian import Certificate

__all__ = ["BOUNDS", "Bound", "Certificate", "Prices", "bound", "shadow_prices", "verify"]


def __getattr__(name: str) -> object:
    return former(__name__, name, {"prices": "shadow_prices"})
