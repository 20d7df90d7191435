"""The dtypes of arrays of records, and the numbers in their columns.

    from mallocgame import records
    residences = np.zeros(2, records.RESIDENCE_ROW)  # as Plan.of() takes them
    reads = program.accesses["kind"] == records.READ

Program.instructions, .buffers, .accesses and .loops, Plan.residences and .copies, and timeline()
say what the columns are.
"""

from mallocgame._core import (
    ACCESS_ROW,
    BUFFER_ROW,
    CONSTANT,
    COPY_ROW,
    EVICTION,
    INSTRUCTION,
    INSTRUCTION_ROW,
    LOOP_ENTRY,
    LOOP_ROW,
    PARAMETER,
    PREFETCH,
    READ,
    RESIDENCE_ROW,
    TICK_ROW,
    UNDEFINED,
    UPDATE,
    WRITE,
)

__all__ = [
    "ACCESS_ROW",
    "BUFFER_ROW",
    "CONSTANT",
    "COPY_ROW",
    "EVICTION",
    "INSTRUCTION",
    "INSTRUCTION_ROW",
    "LOOP_ENTRY",
    "LOOP_ROW",
    "PARAMETER",
    "PREFETCH",
    "READ",
    "RESIDENCE_ROW",
    "TICK_ROW",
    "UNDEFINED",
    "UPDATE",
    "WRITE",
]
