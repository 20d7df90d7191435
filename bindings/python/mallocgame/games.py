"""Games without a program: their options, as Game, environments, solve() and levels take them.

    mg.Game(program, game=mg.PriorityGame(candidates=8))

A name takes the game with its usual options: `game="priority"`. "fine" is FINE_GAME, a
PriorityGame.
"""

import dataclasses
import numbers
from collections.abc import Sequence
from typing import Any, ClassVar

from mallocgame import _arguments
from mallocgame._core import PRIORITY_RULES_VERSION, RULES_VERSION, SCHEDULE_RULES_VERSION
from mallocgame.errors import InvalidInputError


@dataclasses.dataclass(frozen=True, kw_only=True)
class GameOptions:
    """What all games have.

    min_buffer_bytes: smaller buffers stay in main memory; None is 16384, or 512 where smaller
    buffers can save 1 % of the all-main latency.
    keep_free: the share of the capacity that is left free.
    forbidden: indices of accesses that must be served from main memory.

    InvalidInputError: an option is of another type. What is out of range is refused with a program.
    """

    name: ClassVar[str] = ""
    rules_version: ClassVar[int] = 0  # changes with every change of a rule

    min_buffer_bytes: int | None = None
    keep_free: float = 0.0
    forbidden: Sequence[int] = ()

    def __post_init__(self) -> None:
        """Checks types, and makes a tuple of a list."""
        for field in dataclasses.fields(self):
            given = getattr(self, field.name)
            if field.default is not None or given is not None:
                object.__setattr__(self, field.name, _checked(field.name, given, field.default))

    def options(self) -> dict[str, Any]:
        """Returns the options by name, but for those that are None."""
        every = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: one for name, one in every.items() if one is not None}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TimeGame(GameOptions):
    """Decides each access in the order of time (docs/rules.md).

    paper_actions: without CopyEarly.
    drop_backup: accesses that a write's NoCopy binds are decided one by one, and a dead end goes
    back to the write, which is then dropped.
    illegal_penalty: all actions are legal, and one that the rules don't allow costs this share of
    the all-main latency, up to 1; with 0 it is refused.
    """

    name: ClassVar[str] = "time"
    rules_version: ClassVar[int] = RULES_VERSION

    paper_actions: bool = False
    drop_backup: bool = False
    illegal_penalty: float = 0.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class _PlacingGame(GameOptions):
    candidates: int = 4
    bytes_weight: float = 1.0
    time_weight: float = 1.0
    exact_stalls: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class PriorityGame(_PlacingGame):
    """Places residences in the order of importance (docs/priority-game.md).

    candidates: how many of the most important open segments are shown, 1 to 51; an action takes one
    and says how it is served.
    bytes_weight, time_weight: the importance of a segment is its saving / (bytes^bytes_weight *
    time held^time_weight), each weight in [0, 2].
    exact_stalls: schedules the copies at each decision, so that its saving has all stalls; else it
    has a lower bound, and the last decision the rest.
    """

    name: ClassVar[str] = "priority"
    rules_version: ClassVar[int] = PRIORITY_RULES_VERSION


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScheduleGame(_PlacingGame):
    """Decides the order of instructions first, and then is the priority game.

    candidates: up to 47; the others are PriorityGame's.
    main_bytes: the most main memory that an order may need, as Program.main_memory["total_bytes"]
    counts it; None or 0 is what the program's own order needs.
    """

    name: ClassVar[str] = "schedule"
    rules_version: ClassVar[int] = SCHEDULE_RULES_VERSION

    main_bytes: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "main_bytes", self.main_bytes or None)


GAMES: dict[str, type[GameOptions]] = {
    game.name: game for game in (TimeGame, PriorityGame, ScheduleGame)
}
#: What is accepted as the name of a game.
NAMES = (*GAMES, "fine")


def of(game: "str | GameOptions" = "time", **options: Any) -> GameOptions:
    """Returns a game given as such, or as a name and options.

    InvalidInputError: there is no such game, it has no such option, or options are given together
    with a game that has its own. TypeError: no game has such an option.
    """
    # How the options of the time game were spelled before.
    if "actions" in options:
        actions = _arguments.one_of("actions", options.pop("actions"), ("full", "paper"))
        if actions == "paper":
            options["paper_actions"] = True
    known = {field.name for one in GAMES.values() for field in dataclasses.fields(one)}
    if unknown := options.keys() - known:
        raise TypeError(f"no game has the option '{min(unknown)}'")
    if isinstance(game, GameOptions):
        for name, one in options.items():
            raise InvalidInputError(
                f"{name}: found {_arguments.found(one)}, but the {game.name} game given has its own"
            )
        return game
    is_fine = _arguments.one_of("game", game, NAMES) == "fine"
    chosen = GAMES["priority" if is_fine else game]
    own = {field.name for field in dataclasses.fields(chosen)}
    for name, one in options.items():
        if name not in own:
            raise InvalidInputError(
                f"{name}: found {_arguments.found(one)} for the {game} game, "
                f"allowed: {', '.join(sorted(own))}"
            )
    usual = FINE_GAME.options() if is_fine else {}
    return chosen(**usual | options)


def _checked(name: str, value: Any, default: Any) -> Any:
    """Returns a value of the type that the option has. InvalidInputError."""
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise _arguments.refused(name, value, "True or False")
        return value
    if isinstance(default, float):
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise _arguments.refused(name, value, "a number")
        return float(value)
    if isinstance(default, tuple):
        if isinstance(value, str | bytes) or not hasattr(value, "__getitem__"):
            raise _arguments.refused(name, value, "a list")
        return tuple(_index(f"{name}[{i}]", one) for i, one in enumerate(value))
    return _arguments.integer(name, value)


def _index(name: str, value: Any) -> int:
    number = _arguments.integer(name, value)
    if not -(2**31) <= number < 2**31:
        raise _arguments.refused(name, value, f"an integer up to {2**31 - 1}")
    return number


#: The fine game, the one to start with and the one of the leaderboard's policies: five actions for
#: one segment at a time, small buffers included, in an order that fits most levels, and exact
#: rewards.
FINE_GAME = PriorityGame(
    candidates=1, min_buffer_bytes=512, bytes_weight=0.0, time_weight=0.5, exact_stalls=True
)
