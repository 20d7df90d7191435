"""JAX functions of the kinds that people post, for tests/campaigns/functions.py.

They are written for it, of moderate size, and no test or benchmark beside it has them.
"""

from . import devices, numerics, sequences, training
from .kept import FUNCTIONS, Posted

__all__ = ["FUNCTIONS", "Posted", "devices", "numerics", "sequences", "training"]
