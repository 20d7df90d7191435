"""The actions of the games, what each leads to, and the versions of the rules."""

import enum

from mallocgame import _core
from mallocgame._core import (
    PRIORITY_RULES_VERSION,
    RULES_VERSION,
    SCHEDULE_RULES_VERSION,
    action_returns,
)

__all__ = [
    "PRIORITY_RULES_VERSION",
    "RULES_VERSION",
    "SCHEDULE_RULES_VERSION",
    "Action",
    "Mode",
    "action_returns",
]


class Action(enum.IntEnum):
    """The actions of the time game (docs/rules.md)."""

    DROP = _core.DROP  #: leave in main memory
    COPY = _core.COPY  #: fetch, or evict
    NOCOPY = _core.NOCOPY  #: keep in fast memory
    COPY_EARLY = _core.COPY_EARLY  #: fetch in the earliest window


class Mode(enum.IntEnum):
    """How the priority game serves a segment (docs/priority-game.md).

    The action that serves candidate i so is 5 * i + the mode.
    """

    SKIP = _core.SKIP  #: main memory serves the segment
    LATE = _core.LATE  #: one residence, with bytes reserved as late as copies allow
    EARLY = _core.EARLY  #: one residence, with bytes reserved as early as copies can begin
    PRELOAD = _core.PRELOAD  #: one residence from before the program starts
    SPLIT = _core.SPLIT  #: the segment becomes two
