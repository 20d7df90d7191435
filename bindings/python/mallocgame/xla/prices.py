"""The compiler's prices: cycles of instructions by where their arrays lie."""

import json
from collections.abc import Mapping

from mallocgame._core import InstructionPlacement, PlacedModule
from mallocgame.xla.phases import Lowered

# The memories of an instruction's operands and of the arrays of its result, one character each:
# "1" says that the operand has an array in fast memory, or that the array lies there.
Placement = tuple[str, str]
Prices = Mapping[str, Mapping[Placement, int]]  # by instruction


def placement_of(spaces: InstructionPlacement, fast_memory_space: int) -> Placement:
    """Returns what a price is told by."""
    operands = "".join("01"[fast_memory_space in arrays] for arrays in spaces.operands)
    return operands, "".join("01"[space == fast_memory_space] for space in spaces.results)


def prices_of(
    lowered: Lowered, isolated: Mapping[str, Lowered], placed: PlacedModule, fast_memory_space: int
) -> Prices:
    """Returns the prices that a lowered module has in it, and that its isolated modules have.

    isolated: what phase 2b made, by hash. Kernels and what moves nothing have no price.
    """
    cycles = dict(lowered.cycles)
    for instruction, called in lowered.calls.items():
        for known in isolated[called].cycles.values() if called in isolated else ():
            cycles[instruction] = known
    return {
        instruction: {placement_of(placed.placement([instruction]), fast_memory_space): known}
        for instruction, known in cycles.items()
    }


def merged(prices: Prices, more: Prices) -> Prices:
    """Returns all prices of both; `more` wins."""
    names = {**prices, **more}
    return {name: {**prices.get(name, {}), **more.get(name, {})} for name in names}


def profile_of(prices: Prices) -> bytes:
    """Returns prices as import_hlo() takes them."""
    rows = {
        name: [[operands, results, cycles] for (operands, results), cycles in sorted(known.items())]
        for name, known in sorted(prices.items())
    }
    return json.dumps(rows, separators=(",", ":")).encode()


def read_profile(text: bytes) -> Prices:
    """Reads what profile_of() returned. ValueError, TypeError: it is something else."""
    return {
        str(name): {
            (str(operands), str(results)): int(cycles) for operands, results, cycles in rows
        }
        for name, rows in json.loads(text).items()
    }
