"""What no plan can beat, with proof, and what bytes and time are worth by the proof.

from mallocgame import bounds
bounds.bound(program, "lp")  # Bound(bound_ps=..., name='lp', status='optimal')
"""

from mallocgame._core import Prices
from mallocgame.bounds.bound import BOUNDS, Bound, bound, verify
from mallocgame.bounds.lagrangian import Certificate
from mallocgame.bounds.shadow_prices import prices

__all__ = ["BOUNDS", "Bound", "Certificate", "Prices", "bound", "prices", "verify"]
