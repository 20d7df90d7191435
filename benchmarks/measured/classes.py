"""What kind of work an instruction does, read from its HLO.

matmul   a dot or convolution, alone or in a fusion
reduce   a reduction without one of those
copy     nothing but another place or another layout
stream   all other work on elements
kernel   a custom call
"""

import dataclasses
import functools
from collections.abc import Iterator, Mapping

import wire

CLASSES = ("matmul", "reduce", "copy", "stream", "kernel")
_MATMUL = {"convolution", "dot", "ragged-dot"}
_REDUCE = {"reduce", "reduce-window", "select-and-scatter", "sort"}
_MOVE = {
    "copy",
    "transpose",
    "bitcast",
    "reshape",
    "slice",
    "dynamic-slice",
    "concatenate",
    "parameter",
    "constant",
    "tuple",
    "get-tuple-element",
}
# Bytes of an element by PrimitiveType in xla_data.proto.
_WIDTHS = {1: 1, 2: 1, 6: 1, 3: 2, 7: 2, 10: 2, 16: 2, 4: 4, 8: 4, 11: 4, 5: 8, 9: 8, 12: 8}


@dataclasses.dataclass(frozen=True)
class Work:
    """What an instruction does: its class, and the width of what it moves.

    width: the bytes of its operands and results over those of as many elements of 4 bytes.
    """

    class_: str
    width: float


def works(module: bytes) -> Mapping[str, Work]:
    """Returns the work of each instruction by name, from a serialized HloProto."""
    computations = wire.inner(wire.first(module, 1), 3)
    instructions = {wire.number(one, 5): wire.inner(one, 2) for one in computations}
    shapes = {
        wire.number(one, 35): wire.first(one, 3)
        for inside in instructions.values()
        for one in inside
    }

    @functools.cache
    def opcodes_of(computation: int) -> frozenset[str]:
        found = set()
        for one in instructions.get(computation, []):
            found.add(_text(one, 2))
            for called in wire.packed(one, 38):
                found |= opcodes_of(called)
        return frozenset(found)

    def work(one: bytes) -> Work:
        opcode = _text(one, 2)
        inside = frozenset({opcode})
        if opcode == "fusion":
            inside = frozenset().union(*(opcodes_of(c) for c in wire.packed(one, 38)))
        arrays = [wire.first(one, 3), *(shapes[i] for i in wire.packed(one, 36) if i in shapes)]
        sizes = [pair for shape in arrays for pair in _sizes(shape)]
        elements = sum(count for count, _ in sizes)
        width = sum(count * wide for count, wide in sizes) / (4 * elements) if elements else 1.0
        return Work(_class_of(opcode, inside), width)

    return {_text(one, 1): work(one) for inside in instructions.values() for one in inside}


def _class_of(opcode: str, inside: frozenset[str]) -> str:
    if inside & _MATMUL:
        return "matmul"
    if opcode == "custom-call":
        return "kernel"
    if inside & _REDUCE:
        return "reduce"
    return "copy" if inside <= _MOVE else "stream"


def _sizes(shape: bytes) -> Iterator[tuple[int, int]]:
    """Yields elements and bytes of an element of each array in a shape."""
    parts = wire.inner(shape, 4)
    for part in parts:
        yield from _sizes(part)
    width = _WIDTHS.get(wire.number(shape, 2))
    if not parts and width is not None:
        count = 1
        for side in wire.packed(shape, 3):
            count *= side
        yield count, width


def _text(message: bytes, which: int) -> str:
    return wire.first(message, which).decode()
