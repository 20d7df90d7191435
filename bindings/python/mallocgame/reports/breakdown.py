"""Where the time of plans goes, by layer, named scope or opcode."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from mallocgame._core import PREFETCH, Hardware, Plan, Program, timeline
from mallocgame.reports.scopes import Group, default_grouping, group_instructions


@dataclasses.dataclass(frozen=True)
class Spent:
    """What some instructions take under one plan, all trips of loops together.

    compute_ps: in which they run. stall_ps: in which they wait for copies. main_bytes: what they
    move of arrays in main memory. copied_bytes: of prefetches that they are the first to need, and
    of evictions that begin at them; preloads are left out.
    """

    compute_ps: int = 0
    stall_ps: int = 0
    main_bytes: int = 0
    copied_bytes: int = 0

    @property
    def latency_ps(self) -> int:
        """Both times together."""
        return self.compute_ps + self.stall_ps

    def __add__(self, other: Spent) -> Spent:
        """Returns the sums."""
        return Spent(*(a + b for a, b in zip(_values(self), _values(other), strict=True)))


@dataclasses.dataclass(frozen=True)
class Part:
    """A layer, scope or opcode, and what it takes under each plan.

    parts: those that it tells together, as layer_* does with layer_0 to layer_31, in the order of
    the program.
    """

    name: str
    instructions: int
    spent: tuple[Spent, ...]
    parts: tuple[Part, ...] = ()


@dataclasses.dataclass(frozen=True)
class Breakdown:
    """The times of plans in parts, those first in which the first plan spends most.

    Over all parts they add up to `total`, and that is what simulate() says, to the picosecond.
    """

    program: str
    hardware: str
    by: str
    plans: tuple[str, ...]  # their labels
    parts: tuple[Part, ...]
    total: Part

    def document(self) -> dict[str, Any]:
        """Returns it as JSON has it."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class Subject:
    """A plan to be told of, and the program that it is of, which may be in an order of its own."""

    label: str
    program: Program
    plan: Plan


def breakdown(
    subjects: Sequence[Subject],
    by: str | None = None,
    depth: int = 2,
    hardware: Hardware | None = None,
) -> Breakdown:
    """Tells where the time of one plan goes, or of several of one program.

    by: layer, scope or opcode (scopes.py); None is the first of them that the program has. depth:
    how many names of a scope count. hardware: None is the program's own.

    InvalidInputError: a plan is not of its program, or the program has no layers.
    """
    program = subjects[0].program
    by = default_grouping(program) if by is None else by
    machine = program.hardware if hardware is None else hardware
    none = Spent()
    table: dict[Group, list[Spent]] = collections.defaultdict(lambda: [none] * len(subjects))
    counts: collections.Counter[Group] = collections.Counter()
    for place, subject in enumerate(subjects):
        groups = group_instructions(subject.program, by, depth)
        if place == 0:
            counts.update(groups)
        for group, spent in _spent(subject, groups, machine).items():
            table[group][place] += spent
    together: dict[str, list[Part]] = collections.defaultdict(list)
    for group, several in table.items():
        together[group.together].append(Part(group.name, counts[group], tuple(several)))
    parts = [
        tell_together(name, members) if len(members) > 1 else members[0]
        for name, members in together.items()
    ]
    parts.sort(key=lambda part: -part.spent[0].latency_ps)
    labels = tuple(subject.label for subject in subjects)
    total = dataclasses.replace(tell_together("total", parts), parts=())
    return Breakdown(program.name, machine.name, by, labels, tuple(parts), total)


def tell_together(name: str, parts: Sequence[Part]) -> Part:
    """Returns the sums of parts, with these inside."""
    spent = tuple(
        sum(several, Spent()) for several in zip(*(part.spent for part in parts), strict=True)
    )
    return Part(name, sum(part.instructions for part in parts), spent, tuple(parts))


def _values(spent: Spent) -> tuple[int, ...]:
    return (spent.compute_ps, spent.stall_ps, spent.main_bytes, spent.copied_bytes)


def _spent(subject: Subject, groups: Sequence[Group], hardware: Hardware) -> dict[Group, Spent]:
    """Returns what each group takes, in the order of the program."""
    names = list(dict.fromkeys(groups))
    number = {group: place for place, group in enumerate(names)}
    of_tick = np.array([number[group] for group in groups], np.intp)
    times = timeline(subject.program, subject.plan, hardware)
    columns = [times["compute_ps"], times["stall_ps"], times["main_bytes"]]
    columns.append(_copied_bytes(subject.program, subject.plan))
    sums = []
    for column in columns:  # np.bincount would add in floating point.
        total = np.zeros(len(names), np.int64)
        np.add.at(total, of_tick, column)
        sums.append(total.tolist())
    return {group: Spent(*row) for group, row in zip(names, zip(*sums, strict=True), strict=True)}


def _copied_bytes(program: Program, plan: Plan) -> np.ndarray:
    """Returns the bytes of copies at each tick, all trips together."""
    copied = np.zeros(program.ticks, np.int64)
    copies = plan.copies[~plan.copies["preload"]]
    last = program.ticks - 1
    needed = np.where(copies["kind"] == PREFETCH, copies["end"], copies["begin"])
    trips = program.instructions["trips"][np.minimum(copies["begin"], last)]
    trips = np.where(copies["begin"] > last, 1, trips)
    size = copies["part_end"] - copies["part_begin"]
    np.add.at(copied, np.minimum(needed, last), size * trips)
    return copied
