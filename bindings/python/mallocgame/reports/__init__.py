"""What a large program does with its time, and what more memory or bandwidth would bring.

from mallocgame import reports
told = reports.breakdown([reports.Subject("XLA", program, program.xla_plan)], by="layer")
"""

from mallocgame.reports.breakdown import Breakdown, Part, Spent, Subject, breakdown, tell_together
from mallocgame.reports.scopes import GROUPINGS
from mallocgame.reports.what_if import Point, WhatIf, what_if

__all__ = [
    "GROUPINGS",
    "Breakdown",
    "Part",
    "Point",
    "Spent",
    "Subject",
    "WhatIf",
    "breakdown",
    "tell_together",
    "what_if",
]
