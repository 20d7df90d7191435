"""Levels: programs to learn on, to choose by, and to be judged on. mallocgame.levels() is the door.

    import mallocgame as mg
    for level in mg.levels("train"):
        game = level.game()

A level is a program drawn at random and compiled for a chip, with the chip's own fast memory or
with less, and with its own main memory or a slower one. The splits differ in the families of their
architectures. docs/levels.md.
"""

import dataclasses
import functools
import os
import pathlib
from typing import Any

from mallocgame import games
from mallocgame._core import Game, Hardware, Plan, Program
from mallocgame.errors import InvalidInputError
from mallocgame.games import GameOptions
from mallocgame.level_sets.level_set import LevelSet, bundled_folder, load_level_set
from mallocgame.level_sets.splits import SCHEDULE, SPLITS, WHOLE_SPLITS, Variant

__all__ = [
    "LEAST_GAIN",
    "MIN_BUFFER_BYTES",
    "SPLITS",
    "WHOLE_SPLITS",
    "Level",
    "find_level",
    "has_score",
    "levels",
    "of_level",
]

# Games of levels ask about buffers of so many bytes and more, unless told otherwise: those in which
# greedy has the latency that scores count from.
MIN_BUFFER_BYTES = 16 << 10
# Greedy's latency over the best known one. Below it a level has no score: it says nothing about
# players, and its scores would be differences of picoseconds, many times enlarged.
LEAST_GAIN = 1.005
_SPLITS = (*SPLITS, SCHEDULE, *WHOLE_SPLITS)


def has_score(greedy_ps: int | None, best_known_ps: int | None) -> bool:
    """Returns whether there is enough to gain over greedy for scores."""
    if greedy_ps is None or best_known_ps is None:
        return False
    return greedy_ps >= LEAST_GAIN * best_known_ps


def of_level(game: GameOptions) -> GameOptions:
    """Returns a game as levels are played, unless it says otherwise."""
    if game.min_buffer_bytes is not None:
        return game
    return dataclasses.replace(game, min_buffer_bytes=MIN_BUFFER_BYTES)


@dataclasses.dataclass(frozen=True)
class Level:
    """One problem of a split."""

    name: str  # PROGRAM, or PROGRAM@VARIANT
    split: str
    family: str
    variant: Variant = dataclasses.field(repr=False)
    level_set: LevelSet = dataclasses.field(repr=False, compare=False)

    @property
    def program_name(self) -> str:
        """The name of the program."""
        return self.name.partition("@")[0]

    @property
    def features(self) -> dict[str, Any]:
        """What is known of the program (docs/levels.md). Times are for the chip's own hardware."""
        return dict(self.level_set.programs[self.program_name])

    @property
    def greedy_ps(self) -> int | None:
        """The latency of the solver greedy, from which scores count."""
        return self.level_set.greedy_ps(self.name)

    @property
    def best_known_ps(self) -> int | None:
        """The least latency that is known: that of a plan in the set, or on train of solvers."""
        return self.level_set.best_ps(self.name)

    @property
    def has_score(self) -> bool:
        """Whether plans on it have scores: enough can be gained over greedy (LEAST_GAIN)."""
        return has_score(self.greedy_ps, self.best_known_ps)

    @property
    def gain(self) -> float:
        """Greedy's latency over the least that is known, 1 if neither is: what is at stake."""
        if self.greedy_ps is None or self.best_known_ps is None:
            return 1.0
        return self.greedy_ps / self.best_known_ps

    def __reduce__(self) -> tuple[Any, ...]:
        """A level goes to other processes as its name and its set's folder; None: the bundled."""
        folder = self.level_set.folder
        given = None if folder == bundled_folder(self.split) else folder
        return _find, (self.name, self.split, given)

    @property
    def bound_ps(self) -> int | None:
        """No plan of the level is faster, where that is known: on the chip's own hardware, and on
        every level of a whole model."""
        return self._known("bound_ps")

    @property
    def xla_ps(self) -> int | None:
        """The latency of XLA's own plan, where that is known and the plan is valid."""
        return self._known("xla_ps")

    def _known(self, name: str) -> int | None:
        figures = self.level_set.figures(self.name)
        if self.variant == Variant():
            figures = self.features | figures
        elif figures is self.level_set.programs[self.program_name]:
            return None  # They are of another variant.
        known: int | None = figures.get(name)
        return known

    def load_program(self) -> Program:
        """Reads the program, at the prices of the level."""
        program = self.level_set.load_program(self.program_name)
        return self.variant.priced(program, program.hardware, self.features["peak_bytes"])

    def hardware(self) -> Hardware:
        """The chip of the program as the variant changes it."""
        if self.variant.calibrated:  # Calibrated prices are made with it.
            return self.load_program().hardware
        features = self.level_set.programs[self.program_name]
        return self.variant.of(Hardware.preset(features["hardware"]), features["peak_bytes"])

    def game(self, game: str | GameOptions = "time", **options: Any) -> Game:
        """Returns the Game of the level, of buffers from 16 KiB on by default.

        game, options: as Game takes them.
        """
        return Game(self.load_program(), self.hardware(), of_level(games.of(game, **options)))

    def best_known_plan(self) -> Plan | None:
        """The plan of best_known_ps; None on train, where plans aren't kept.

        Where there is a best_known_order it is a plan of load_program().reordered of that.
        """
        return self.level_set.best_plan(self.name, self.load_program)

    def best_known_order(self) -> list[int] | None:
        """The order of instructions of best_known_plan(); None: it is the program's own."""
        return self.level_set.best_order(self.name)

    @property
    def free_pairs(self) -> int:
        """How many pairs of instructions may stand in either order (Program.free_pairs).

        With 0 the order is fixed, or the program's dependences aren't known.
        """
        return int(self.level_set.programs[self.program_name].get("free_pairs", 0))

    @property
    def own_order_bound_ps(self) -> int | None:
        """On the split schedule: no plan at the program's own order is faster."""
        bound_ps: int | None = self.level_set.figures(self.name).get("own_order_bound_ps")
        return bound_ps


def levels(
    split: str = "train",
    folder: str | os.PathLike[str] | None = None,
    scored: bool = False,
    free_order: bool = False,
) -> list[Level]:
    """Returns the levels of a split, in a fixed order.

    train: each program with its own hardware, and in all variants in which there is something to
    decide. validation and test: one for each program; in the bundled set those of the suite
    contended are another family of test, `known`. schedule: bundled programs with fast memories in
    which another order of instructions is faster than any plan at XLA's; it is no split to learn on
    or to be judged on, because its programs are in test too.

    folder: as `mallocgame levels make` writes it; None is the bundled set. scored: only levels that
    have a score, because the best known plan is 0.5 % faster than greedy's or more. free_order:
    only levels whose instructions may stand in another order, as the schedule game decides it.

    InvalidInputError: there is no such split, or the folder holds no finished set.
    MissingFileError.
    """
    if split not in _SPLITS:
        allowed = ", ".join(_SPLITS)
        raise InvalidInputError(f"levels: found split '{split}', allowed: {allowed}")
    known = load_level_set(bundled_folder(split) if folder is None else folder)
    found = [
        Level(
            name,
            split,
            known.programs[name.partition("@")[0]]["family"],
            Variant.named(name),
            known,
        )
        for name in known.names(split)
    ]
    return [
        level
        for level in found
        if (not scored or level.has_score) and (not free_order or level.free_pairs > 0)
    ]


def find_level(name: str) -> Level | None:
    """Returns the bundled level of this name, if there is one."""
    for split in _SPLITS:
        if name in (known := _by_name(split, None)):
            return known[name]
    return None


def _find(name: str, split: str, folder: pathlib.Path | None) -> Level:
    return _by_name(split, folder)[name]


@functools.lru_cache(maxsize=4)
def _by_name(split: str, folder: pathlib.Path | None) -> dict[str, Level]:
    return {level.name: level for level in levels(split, folder)}
