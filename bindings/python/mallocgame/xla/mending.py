"""A refused plan is mended around what was at fault, without a new search.

A refusal says which rule, and which instructions (docs/tpu-method.md). Main memory can serve all
that they access, so accesses at fault go there.
"""

import numpy as np
from numpy.typing import NDArray

from mallocgame._core import PREFETCH, READ, Hardware, Plan, Program, validate
from mallocgame.xla.compiler_errors import CompilerError


def at_fault(error: CompilerError, program: Program, plan: Plan) -> NDArray[np.intp]:
    """Returns the accesses that a refused plan of `program` serves from fast memory, at fault.

    They are those that the refusal names, and all of the instructions that it names.
    """
    named = set(error.instructions)
    of_named = np.array([name in named for name in program.instruction_names], dtype=bool)
    found = of_named[program.accesses["tick"]]
    found[list(error.accesses)] = True
    return np.flatnonzero(found & (plan.served_by >= 0))


def mended(error: CompilerError, program: Program, plan: Plan, hardware: Hardware) -> Plan | None:
    """Returns the refused plan with what is at fault in main memory; None: nothing is.

    Reads go there alone, if the value is there too, so that no other instruction has another
    placement. Else whole residences go.

    hardware: that the plan is for.
    """
    accesses = at_fault(error, program, plan)
    copied = plan.copies["residence"][plan.copies["kind"] == PREFETCH]
    reads = program.accesses["kind"][accesses] == READ
    reads &= np.isin(plan.served_by[accesses], copied)
    for alone in (accesses[reads], accesses[:0]):
        served = plan.served_by.copy()
        served[alone] = -1
        dropped = np.isin(np.arange(len(plan.residences)), served, invert=True)
        dropped[served[np.setdiff1d(accesses, alone)]] = True
        if not dropped.any() and not len(alone):
            continue
        made = _of(program, plan, hardware, dropped, served)
        if made is not None:
            return made
    return None


def _of(
    program: Program,
    plan: Plan,
    hardware: Hardware,
    dropped: NDArray[np.bool_],
    served: NDArray[np.int32],
) -> Plan | None:
    """Returns the plan with these served, without some residences; None: it isn't valid."""
    number = np.where(dropped, -1, np.cumsum(~dropped) - 1).astype(np.int32)
    copies = plan.copies[~dropped[plan.copies["residence"]]]
    copies["residence"] = number[copies["residence"]]
    served = np.where(served >= 0, number[served], -1).astype(np.int32)
    made = Plan.of(program, hardware, plan.residences[~dropped], copies, served)
    return made if validate(program, made, hardware).ok else None
