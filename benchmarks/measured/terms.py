"""Where the time of a captured function goes under XLA's own plan, one term for each tick."""

import dataclasses
from typing import Any

import classes
import prices
from law import Law

import mallocgame.xla as mgx
from mallocgame._core import timeline

_FREE, _UNPRICED, _KERNEL = 0, 3, 6  # sources of prices, as timeline() has them


@dataclasses.dataclass(frozen=True)
class Term:
    """One instruction in XLA's own plan; times are of one run."""

    name: str
    class_: str
    width: float
    trips: int
    price_ps: int  # by the compiler, without its wait for copies
    main_bytes: int
    flops: int
    source: int

    @property
    def work(self) -> classes.Work:
        """Its class and width."""
        return classes.Work(self.class_, self.width)


@dataclasses.dataclass(frozen=True)
class Terms:
    """A captured function as what a law needs of it."""

    terms: list[Term]
    stall_ps: int  # waits for copies, all trips
    stalls: int  # how many instructions wait
    spec_bytes_per_second: int
    flops_per_second: int

    def compiler_ps(self) -> float:
        """Returns the time at the compiler's prices."""
        return sum(term.trips * term.price_ps for term in self.terms) + self.stall_ps

    def calibrated_ps(self, law: Law) -> float:
        """Returns the time by a law. Copies wait as before, over the achieved bandwidth."""
        slower = self.spec_bytes_per_second / law.achieved_bytes_per_second
        waits = self.stall_ps * slower + self.stalls * law.copy_latency_ps
        return waits + sum(term.trips * self._time_ps(term, law) for term in self.terms)

    def _time_ps(self, term: Term, law: Law) -> float:
        if term.source == _KERNEL:
            compute = term.flops * 1e12 / (self.flops_per_second * law.kernel)
            return max(compute, law.transfer_ps(term.main_bytes))
        if term.source == _UNPRICED:
            return term.price_ps * self.spec_bytes_per_second / law.achieved_bytes_per_second
        return law.time_ps(term.work, term.price_ps, term.main_bytes)


def of(captured: mgx.Capture) -> Terms:
    """Returns the terms of a capture under XLA's own plan."""
    program, plan = captured.program, captured.xla_plan
    works = classes.works(captured.before)
    costs, _ = prices.read(program)
    spent = timeline(program, plan)
    table = program.instructions
    terms = [
        Term(
            name=program.instruction_names[tick],
            class_=works[program.instruction_names[tick]].class_,
            width=works[program.instruction_names[tick]].width,
            trips=int(table["trips"][tick]),
            price_ps=int(spent["compute_ps"][tick]) // int(table["trips"][tick]),
            main_bytes=costs[tick].main_bytes(_row(costs[tick], plan, table[tick])),
            flops=costs[tick].flops,
            source=int(spent["source"][tick]),
        )
        for tick in range(program.ticks)
        if spent["compute_ps"][tick] > 0
    ]
    hardware = program.hardware
    return Terms(
        terms,
        int(spent["stall_ps"].sum()),
        int((spent["stall_ps"] > 0).sum()),
        hardware.main_bytes_per_second,
        hardware.flops_per_second,
    )


def to_json(terms: Terms) -> dict[str, Any]:
    """Returns plain values, for a file."""
    return dataclasses.asdict(terms)


def from_json(values: dict[str, Any]) -> Terms:
    """Reads what to_json() returned."""
    return Terms(**values | {"terms": [Term(**term) for term in values["terms"]]})


def _row(cost: prices.Cost, plan: Any, instruction: Any) -> prices.Row:
    """Returns the placement that a plan gives an instruction."""

    def bits(arrays: tuple[prices.Array, ...]) -> int:
        first = int(instruction["first_access"])
        return sum(
            1 << i
            for i, array in enumerate(arrays)
            if array.slot >= 0 and plan.served_by[first + array.slot] >= 0
        )

    return prices.Row(bits(cost.operands), bits(cost.outputs), 0)
