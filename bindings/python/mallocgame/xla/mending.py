"""A refused plan is mended around what was at fault, without a new search.

A refusal says which rule, which instructions and how many bytes (docs/tpu-method.md). What main
memory serves is never refused, so residences are taken out: those that serve accesses at fault, or,
where fast memory is exceeded, those that lie too high while an instruction runs that takes some for
itself.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mallocgame._core import Hardware, Plan, Program, validate
from mallocgame.xla.compiler_errors import CompilerError
from mallocgame.xla.compiler_messages import CAPACITY


def at_fault(error: CompilerError, program: Program, plan: Plan) -> NDArray[np.intp]:
    """Returns the accesses that a refused plan of `program` serves from fast memory, at fault.

    They are those that the refusal names, and all of the instructions that it names.
    """
    named = set(error.instructions)
    of_named = np.array([name in named for name in program.instruction_names], dtype=bool)
    found = of_named[program.accesses["tick"]]
    found[list(error.accesses)] = True
    return np.flatnonzero(found & (plan.served_by >= 0))


def mended(
    error: CompilerError, program: Program, plan: Plan, hardware: Hardware, ends: Mapping[str, int]
) -> Plan | None:
    """Returns the refused plan without the residences at fault; None: that mends nothing.

    hardware: that the plan is for. ends: as for beyond_ends().
    """
    if error.rule == CAPACITY:
        limits = _limits(program, ends)
        dropped = np.array(
            [
                top > limits[begin:end].min(initial=top)
                for top, begin, end in zip(
                    _tops(program, plan),
                    *(plan.residences[side] for side in ("begin", "end")),
                    strict=True,
                )
            ],
            dtype=bool,
        )
    else:
        dropped = np.zeros(len(plan.residences), dtype=bool)
        dropped[plan.served_by[at_fault(error, program, plan)]] = True
    if not dropped.any():
        return None
    number = np.where(dropped, -1, np.cumsum(~dropped) - 1).astype(np.int32)
    copies = plan.copies[~dropped[plan.copies["residence"]]]
    copies["residence"] = number[copies["residence"]]
    served = plan.served_by.copy()
    served[served >= 0] = number[served[served >= 0]]
    made = Plan.of(program, hardware, plan.residences[~dropped], copies, served)
    return made if validate(program, made, hardware).ok else None


def ends_at(program: Program, plan: Plan) -> NDArray[np.int64]:
    """Returns for each tick where what lies in fast memory ends."""
    ends = np.zeros(len(program.instruction_names), dtype=np.int64)
    for top, residence in zip(_tops(program, plan), plan.residences, strict=True):
        here = ends[residence["begin"] : residence["end"]]
        np.maximum(here, top, out=here)
    return ends


def beyond_ends(
    program: Program, plan: Plan, ends: Mapping[str, int]
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Returns the ticks at which a plan lies too high, and by how many bytes.

    ends: where what lies in fast memory has to end, by instruction.
    """
    beyond = ends_at(program, plan) - _limits(program, ends)
    ticks = np.flatnonzero(beyond > 0)
    return ticks, beyond[ticks]


def _limits(program: Program, ends: Mapping[str, int]) -> NDArray[np.int64]:
    most = np.iinfo(np.int64).max
    return np.array([ends.get(name, most) for name in program.instruction_names], dtype=np.int64)


def _tops(program: Program, plan: Plan) -> NDArray[np.int64]:
    at = plan.residences
    return at["offset"] + program.buffers["size_bytes"][at["buffer"]]
