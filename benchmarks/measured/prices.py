"""A program's prices as plain values, and the same program with other prices."""

import dataclasses
import gzip
from collections.abc import Callable, Sequence

import wire

import mallocgame as mg

# Numbers of fields in mallocgame/replay/replay.proto.
_PROGRAM, _XLA_PLAN = 1, 3  # of ProgramFile
_COST = 8  # of Program
_INSTRUCTIONS, _ARRAYS, _POOL_ROWS, _ROWS = 2, 3, 4, 5  # of Cost


@dataclasses.dataclass(frozen=True)
class Array:
    """One operand or output array, as mallocgame/program/program.h has it (CostArray)."""

    size_bytes: int
    accessed_bytes: int
    slot: int
    in_main: bool

    @property
    def moved_bytes(self) -> int:
        """The bytes that surely move: what FloorPs counts."""
        return min(self.size_bytes, self.accessed_bytes)

    def main_bytes(self, fast: bool) -> int:
        """Returns the bytes that move over the main-memory channel."""
        return self.moved_bytes if (self.slot >= 0 or self.in_main) and not fast else 0


@dataclasses.dataclass(frozen=True)
class Cost:
    """What an instruction costs (InstructionCost)."""

    operands: tuple[Array, ...]
    outputs: tuple[Array, ...]
    pool: int
    unpriced_bytes: int
    flops: int
    kernel: bool

    def main_bytes(self, row: "Row") -> int:
        """Returns the bytes that move over the main-memory channel in a placement."""
        both = ((self.operands, row.operands), (self.outputs, row.outputs))
        return sum(
            array.main_bytes(bool(bits >> i & 1))
            for arrays, bits in both
            for i, array in enumerate(arrays)
        )


@dataclasses.dataclass(frozen=True, order=True)
class Row:
    """A price of the compiler's: the placement as bits, and the cycles (CostRow)."""

    operands: int
    outputs: int
    cycles: int

    def is_below(self, other: "Row") -> bool:
        """Returns whether all that it has in fast memory the other has there, too."""
        return not (self.operands & ~other.operands or self.outputs & ~other.outputs)


Pools = list[list[Row]]


def read(program: mg.Program) -> tuple[list[Cost], Pools]:
    """Returns the cost of each tick, and the rows of each pool."""
    cost = wire.first(wire.first(_payload(program), _PROGRAM), _COST)
    columns = wire.first(cost, _ARRAYS)
    arrays = iter(
        [
            Array(size, accessed, slot, bool(in_main))
            for size, accessed, slot, in_main in zip(*_columns(columns, range(1, 5)), strict=True)
        ]
    )
    table = wire.first(cost, _INSTRUCTIONS)
    counts = _columns(table, (1, 2, 3, 4, 5))
    kernels = wire.column(table, 8) or [0] * len(counts[0])
    costs = [
        Cost(
            operands=tuple(next(arrays) for _ in range(operands)),
            outputs=tuple(next(arrays) for _ in range(outputs)),
            pool=pool,
            unpriced_bytes=unpriced,
            flops=flops,
            kernel=bool(kernel),
        )
        for operands, outputs, pool, unpriced, flops, kernel in zip(*counts, kernels, strict=True)
    ]
    rows = iter(
        [Row(*row) for row in zip(*_columns(wire.first(cost, _ROWS), (1, 2, 3)), strict=True)]
    )
    return costs, [[next(rows) for _ in range(n)] for n in wire.column(cost, _POOL_ROWS)]


def with_pools(program: mg.Program, pools: Pools) -> mg.Program:
    """Returns the program with other prices, without XLA's plan."""
    payload = _payload(program)
    inside = wire.first(payload, _PROGRAM)
    cost = wire.first(inside, _COST)
    sorted_pools = [sorted(set(rows)) for rows in pools]
    rows = [row for pool in sorted_pools for row in pool]
    table = b"".join(
        wire.column_field(which, [getattr(row, name) for row in rows])
        for which, name in ((1, "operands"), (2, "outputs"), (3, "cycles"))
    )
    kept = b"".join(wire.field(n, v) for n, v in wire.fields(cost) if n not in (_POOL_ROWS, _ROWS))
    cost = kept + wire.column_field(_POOL_ROWS, [len(pool) for pool in sorted_pools])
    cost += wire.field(_ROWS, table)
    payload = b"".join(
        wire.field(n, wire.replaced(inside, _COST, cost) if n == _PROGRAM else v)
        for n, v in wire.fields(payload)
        if n != _XLA_PLAN
    )
    head = program.to_bytes().partition(b"\n")[0]
    return mg.Program.from_bytes(head + b"\n" + gzip.compress(payload, mtime=0))


def moved_plan(plan: mg.Plan, program: mg.Program, to: mg.Program) -> mg.Plan:
    """Returns a plan of a program as one of the same program with other prices."""
    text = plan.to_json(program).replace(program.fingerprint, to.fingerprint)
    return mg.Plan.from_json(text, to)


def repriced(
    program: mg.Program, price: Callable[[Cost, str, Row], int], classes: Sequence[str]
) -> mg.Program:
    """Returns the program with each row's cycles replaced by `price`.

    classes: of each tick. All instructions of a pool are alike, so the first one stands for it. A
    placement never costs more than one of the same pool that has less in fast memory.
    """
    costs, pools = read(program)
    owners: dict[int, tuple[Cost, str]] = {}
    for cost, its_class in zip(costs, classes, strict=True):
        if cost.pool >= 0:
            owners.setdefault(cost.pool, (cost, its_class))
    return with_pools(
        program,
        [
            capped([dataclasses.replace(row, cycles=price(*owners[i], row)) for row in rows])
            if i in owners
            else rows
            for i, rows in enumerate(pools)
        ],
    )


def capped(rows: Sequence[Row]) -> list[Row]:
    """Returns rows in which more in fast memory is never dearer, by lowering what is."""
    return [
        dataclasses.replace(row, cycles=min(other.cycles for other in rows if other.is_below(row)))
        for row in rows
    ]


def _columns(message: bytes, which: Sequence[int]) -> list[list[int]]:
    return [wire.column(message, one) for one in which]


def _payload(program: mg.Program) -> bytes:
    return gzip.decompress(program.to_bytes().partition(b"\n")[2])
