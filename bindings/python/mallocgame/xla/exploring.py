"""Which placements of single instructions are worth a price before any plan has them.

A search stays away from what prediction calls slow, so that what is wrongly called so is never
tried. Prices of an instruction with all that it moves in fast memory, and with all but one array,
and with one array only, tell most.
"""

import collections
from collections.abc import Iterator, Mapping

import numpy as np

from mallocgame._core import InstructionPlacement, Program, all_main_plan, find_uses, timeline
from mallocgame.xla.phases import Scheduled

_LEAST_BYTES = 16384  # Smaller arrays hardly change a price.
_LEAST_SHARE = 1e-3  # of the time of the program, for instructions that are looked at

Use = tuple[int, tuple[int, ...]]  # the number of an operand, -1 for the result, and a tuple index


def placements_of(
    program: Program, scheduled: Scheduled, calls: Mapping[str, str]
) -> Iterator[tuple[str, frozenset[Use]]]:
    """Yields instructions, with those of their arrays that shall be in fast memory.

    What may tell most comes first: by kind of placement, then by the time of all instructions that
    are lowered alike. calls: the hash of each instruction that is lowered by itself.
    """
    time_ps: collections.Counter[str] = collections.Counter()
    first: dict[str, str] = {}
    names = program.instruction_names
    times = timeline(program, all_main_plan(program))["compute_ps"]
    for tick, name in enumerate(names):
        if name in calls:
            time_ps[calls[name]] += int(times[tick])
            first.setdefault(calls[name], name)
    movable = _movable(program, scheduled.module)
    least = _LEAST_SHARE * sum(time_ps.values())
    kinds = [
        (instruction, movable[instruction])
        for called, spent in time_ps.most_common()
        if spent >= least and (instruction := first[called]) in movable
    ]
    for instruction, arrays in kinds:
        yield instruction, frozenset().union(*arrays)
    for instruction, arrays in kinds:
        if len(arrays) > 1:
            for left_out in arrays:
                yield instruction, frozenset().union(*arrays) - left_out
    for instruction, arrays in kinds:
        if len(arrays) > 2:
            yield from ((instruction, array) for array in arrays)


def _movable(program: Program, module: bytes) -> dict[str, list[frozenset[Use]]]:
    """Returns what each instruction can have in fast memory: the uses of each large buffer."""
    sizes = program.buffers["size_bytes"][program.accesses["buffer"]]
    ticks, names = program.accesses["tick"], program.instruction_names
    uses: dict[int, set[Use]] = {}
    pinned: set[int] = set()
    for access, operand, index, space in find_uses(program, module):
        uses.setdefault(access, set()).add((operand, tuple(index)))
        if space is not None:
            pinned.add(int(ticks[access]))
    found: dict[str, list[frozenset[Use]]] = {}
    for large in np.flatnonzero(sizes >= _LEAST_BYTES).tolist():
        tick = int(ticks[large])
        if tick not in pinned and large in uses:
            found.setdefault(names[tick], []).append(frozenset(uses[large]))
    return found


def moved(
    placement: InstructionPlacement, fast: frozenset[Use], fast_memory_space: int
) -> InstructionPlacement:
    """Returns a placement with some arrays in fast memory. Only whole operands are moved."""
    operands = [
        [fast_memory_space] * len(spaces) if (number, ()) in fast else list(spaces)
        for number, spaces in enumerate(placement.operands)
    ]
    results = [
        fast_memory_space if (-1, index) in fast else space
        for index, space in zip(_indices(placement), placement.results, strict=True)
    ]
    shared = [
        (operand, array, result)
        for operand, array, result in placement.shared
        if operands[operand][array] == results[result]
    ]
    return InstructionPlacement(
        operands=operands,
        results=results,
        values=placement.values,
        shared=shared,
        backend_config=placement.backend_config,
        channel_id=placement.channel_id,
        frontend_attributes=placement.frontend_attributes,
    )


def _indices(placement: InstructionPlacement) -> list[tuple[int, ...]]:
    """Returns the indices of the arrays of the result: none, or one in a flat tuple."""
    count = len(placement.results)
    return [()] if count == 1 else [(number,) for number in range(count)]
