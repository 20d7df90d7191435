"""Runs assigned HLO modules in bytes: every value lies where the buffer assignment puts it.

Nothing is known here of which values may share bytes. Each instruction reads what lies in its
operands' bytes and writes its results' bytes, so a value that another one was written over too
early is a wrong operand, and the results differ. What a program, a writer or a judge takes for in
place counts for nothing: an instruction whose result lies over an operand is run as the chip may
run it, half of the result first, the other half from what then lies in the operand's bytes. That
gives the same only if each element is made of the one that it replaces.

- An update that HLO makes in place (hlo_text.py) writes its slice only. The rest is what lies in
  the bytes of its result.
- A result that lies apart is made in one pass with those that lie over operands.
- A copy reads half of its source when it starts and half when it is done, and until then fills its
  destination with noise.
- An instruction fills its scratch with noise. All memory begins as noise.
"""

import functools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hlo_text import (
    Instruction,
    Module,
    Shape,
    Tree,
    UnsupportedError,
    at_place,
    leaves,
    map_with_place,
    split,
)
from hlo_values import _DTYPES, Leaf, Numbers, Storage

from mallocgame.xla.modules import wire_fields


@dataclass(frozen=True)
class Place:
    """A stretch of bytes of one memory."""

    memory: int  # an allocation; -1: fast memory, which all its allocations share
    offset: int
    size: int

    @property
    def end(self) -> int:
        return self.offset + self.size


@dataclass(frozen=True)
class Placed:
    """An array in bytes. None: it has none, as tables of tuples and flags needn't."""

    place: Place | None
    shape: Shape


Key = tuple[str, tuple[int, ...]]  # an instruction, and the place of an array in its result


class Assigned:
    """A module with its buffer assignment, as the compiler's later phases get them."""

    def __init__(self, module: bytes, assignment: bytes, fast_space: int) -> None:
        self.module = Module(module)
        self.places: dict[Key, Place] = {}
        self.wrapped: dict[str, str] = {}  # by *-start: the root of what it runs
        self.scratch: dict[str, list[Place]] = {}
        self._names: dict[int, str] = {}
        self._read_module(_inside(module, 1), fast_space)
        self._read_assignment(assignment, fast_space)

    def _read_module(self, module: bytes, fast_space: int) -> None:
        roots: dict[int, int] = {}
        called: dict[str, int] = {}
        for computation in _all(module, 3):
            fields = dict(wire_fields(computation))
            roots[fields[5]] = fields[6]
            for instruction in _all(computation, 2):
                of = dict(wire_fields(instruction))
                name = of[1].decode()
                self._names[of[35]] = name
                if of[2] == b"async-start":
                    called[name] = _numbers(of[38])[0]
                self.scratch[name] = _scratch(of.get(43, b""), fast_space)
        self.wrapped = {name: self._names[roots[of]] for name, of in called.items()}

    def _read_assignment(self, assignment: bytes, fast_space: int) -> None:
        of_buffer: dict[int, tuple[Key, int]] = {}
        for buffer in _all(assignment, 1):
            fields = dict(wire_fields(buffer))
            at = dict(wire_fields(fields[3]))
            place = (self._names[at[4]], tuple(_numbers(at.get(3, b""))))
            of_buffer[fields.get(1, 0)] = place, fields.get(4, 0)
        for allocation in _all(assignment, 3):
            index = dict(wire_fields(allocation)).get(1, 0)
            for assigned in _all(allocation, 9):
                fields = dict(wire_fields(assigned))
                key, color = of_buffer[fields.get(1, 0)]
                memory = -1 if color == fast_space else index
                self.places[key] = Place(memory, fields.get(2, 0), fields.get(3, 0))


def _all(message: bytes, number: int) -> list[bytes]:
    return [body for field, body in wire_fields(message) if field == number]


def _inside(message: bytes, number: int) -> bytes:
    return _all(message, number)[0]


def _numbers(packed: bytes | int) -> list[int]:
    if isinstance(packed, int):
        return [packed]
    found, number, shift = [], 0, 0
    for byte in packed:
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            found.append(number)
            number = shift = 0
    return found


def _scratch(config: bytes, fast_space: int) -> list[Place]:
    if b"scoped_memory_configs" not in config:
        return []
    configs = json.loads(config)["scoped_memory_configs"]
    of = [one for one in configs if int(one.get("memory_space", 0)) == fast_space]
    return [Place(-1, int(one.get("offset", 0)), int(one["size"])) for one in of]


@functools.cache
def _tiled(shape: Shape) -> tuple[np.ndarray, int]:
    """Where each element lies among those of the layout, in logical order; how many there are."""
    dims = [shape.dims[i] for i in shape.major_to_minor]
    count = int(np.prod(dims, dtype=np.int64))
    order = np.arange(count).reshape(dims)
    for number, tile in enumerate(shape.tiles):
        rank = len(tile)
        if order.ndim < rank:
            order = order.reshape((1,) * (rank - order.ndim) + order.shape)
        outer, own = order.shape[: order.ndim - rank], order.shape[order.ndim - rank :]
        assert number == 0 or all(d % t == 0 for d, t in zip(own, tile, strict=True))
        padding = [(0, 0)] * len(outer) + [(0, -d % t) for d, t in zip(own, tile, strict=True)]
        order = np.pad(order, padding, constant_values=-1)
        own = order.shape[len(outer) :]
        parts = [part for d, t in zip(own, tile, strict=True) for part in (d // t, t)]
        first = len(outer)
        axes = [*range(first), *range(first, first + 2 * rank, 2),
                *range(first + 1, first + 2 * rank, 2)]  # fmt: skip
        order = order.reshape((*outer, *parts)).transpose(axes)
    flat = order.reshape(-1)
    at = np.empty(count, np.int64)
    at[flat[flat >= 0]] = np.flatnonzero(flat >= 0)
    return at, len(flat)


class PlacedRun:
    """One run of an assigned module, in the order of its schedule."""

    def __init__(self, assigned: Assigned, values: Numbers, seed: int = 0) -> None:
        self._assigned, self._module, self._values = assigned, assigned.module, values
        self._noise = np.random.default_rng(seed)
        ends: dict[int, int] = {}
        places = [*assigned.places.values(), *(p for s in assigned.scratch.values() for p in s)]
        for place in places:
            ends[place.memory] = max(ends.get(place.memory, 0), place.end)
        self._memory = {
            memory: self._noise.integers(0, 256, end, np.uint8) for memory, end in ends.items()
        }
        self._copied: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self.over: set[str] = set()  # instructions that wrote over an operand

    def results(self) -> list[np.ndarray]:
        """Returns what the module makes of the arguments that the values have."""
        entry = self._module.computations[self._module.entry]
        for computation in self._module.computations.values():
            for one in computation.instructions.values():
                if one.opcode == "constant" and (one.name, ()) in self._assigned.places:
                    self._set(self._own(one, (), one.shape), self._values.compute(one, []))
        given = []
        for one, leaf in zip(entry.parameters(), self._values.arguments(self._module), strict=True):
            placed = self._own(one, (), one.shape)
            self._set(placed, self._values.read(leaf))
            given.append(placed)
        return [self._get(leaf) for _, leaf in leaves(self._computation(entry.name, given))]

    # Bytes.

    def _bytes(self, place: Place) -> np.ndarray:
        return self._memory[place.memory][place.offset : place.end]

    def _spoil(self, place: Place) -> None:
        self._bytes(place)[:] = self._noise.integers(0, 256, place.size, np.uint8)

    def _halves(self, arrays: Sequence[Placed]) -> list[np.ndarray]:
        """Half of the elements of each array, as bytes; of arrays of one size the same elements."""
        chosen: dict[int, np.ndarray] = {}
        halves = []
        for leaf in arrays:
            size = np.dtype(_DTYPES[leaf.shape.dtype]).itemsize
            count = -(-leaf.place.size // size)
            first = chosen.setdefault(count, self._noise.random(count) < 0.5)
            halves.append(np.repeat(first, size)[: leaf.place.size])
        return halves

    def _get(self, leaf: Placed) -> np.ndarray:
        assert leaf.place is not None, leaf
        return self._decoded(self._bytes(leaf.place), leaf.shape)

    def _decoded(self, held: np.ndarray, shape: Shape) -> np.ndarray:
        dtype = np.dtype(_DTYPES[shape.dtype])
        at, count = _tiled(shape)
        if held.size < count * dtype.itemsize:
            raise AssertionError(f"{shape} has {held.size} bytes, needs {count * dtype.itemsize}")
        linear = held[: count * dtype.itemsize].copy().view(dtype)[at]
        dims = [shape.dims[i] for i in shape.major_to_minor]
        return linear.reshape(dims).transpose(np.argsort(shape.major_to_minor))

    def _set(self, leaf: Placed, value: np.ndarray) -> None:
        assert leaf.place is not None, leaf
        at, count = _tiled(leaf.shape)
        linear = np.ascontiguousarray(value.transpose(leaf.shape.major_to_minor)).reshape(-1)
        self._spoil(leaf.place)  # the padding too
        held = np.zeros(count, linear.dtype)
        held[at] = linear
        mask = np.zeros(count, bool)
        mask[at] = True
        own = self._bytes(leaf.place)[: count * linear.itemsize]
        mask = np.repeat(mask, linear.itemsize)
        own[mask] = held.view(np.uint8)[mask]

    # Instructions.

    def _own(self, one: Instruction, place: tuple[int, ...], shape: Shape) -> Placed:
        return Placed(self._assigned.places.get((one.name, place)), shape)

    def _or(self, one: Instruction, tree: Tree) -> Tree:
        """Where the result lies, and else what it hands on."""

        def of(place: tuple[int, ...], shape: Shape) -> Placed:
            own = self._own(one, place, shape)
            return own if own.place is not None else Placed(at_place(tree, place).place, shape)

        return map_with_place(one.shape, of)

    def _computation(self, name: str, arguments: Sequence[Tree]) -> Tree:
        computation = self._module.computations[name]
        made: dict[str, Tree] = {}
        for one in computation.instructions.values():
            operands = [made[operand] for operand in one.operands]
            made[one.name] = self._instruction(one, operands, arguments)
        return made[computation.root]

    def _instruction(
        self, one: Instruction, operands: list[Tree], arguments: Sequence[Tree]
    ) -> Tree:
        for place in self._assigned.scratch.get(one.name, ()):
            self._spoil(place)
        if one.opcode == "parameter":
            return self._or(one, arguments[int(one.inside)])
        if one.opcode == "constant":
            return self._own(one, (), one.shape)
        if one.opcode == "tuple":
            return tuple(operands)
        if one.opcode == "get-tuple-element":
            return operands[0][int(re.search(r"index=(\d+)", one.attributes)[1])]
        if one.opcode in ("bitcast", "optimization-barrier"):
            return self._or(one, operands[0])
        if 'custom_call_target="ConcatBitcast"' in one.attributes:  # Its operands lie in it.
            return self._own(one, (), one.shape)
        if 'custom_call_target="AllocateBuffer"' in one.attributes:
            return self._own(one, (), one.shape)
        if one.opcode == "while":
            return self._loop(one, self._or(one, operands[0]))
        if one.opcode == "conditional":
            branches = one.callees()
            taken = self._values.branch(one.name, self._leaf(operands[0]), len(branches))
            return self._or(one, self._computation(branches[taken], [operands[1 + taken]]))
        if one.opcode == "call":
            return self._or(one, self._computation(one.callees()[0], operands))
        if one.opcode == "copy-start":
            target = self._own(one, (0,), one.shape[0])
            return self._start(one, target, operands[0], (target, operands[0], None))
        if one.opcode == "copy-done":
            target, source, _ = operands[0]
            self._set(target, self._arrived(one, source))
            return target
        if one.opcode == "slice-start":
            place = self._assigned.places[self._assigned.wrapped[one.name], ()]
            target = Placed(place, one.shape[1])
            return self._start(one, target, operands[0], ((operands[0],), target, one))
        if one.opcode == "slice-done":
            (source,), target, start = operands[0]
            leaf = Leaf(Storage(), source.shape)
            self._values.store(leaf, self._arrived(one, source))
            self._set(target, self._values.compute(_slice_of(start), [leaf]))
            return target
        return self._computed(one, operands)

    def _start(self, one: Instruction, target: Placed, source: Placed, tree: Tree) -> Tree:
        held = self._bytes(source.place).copy()
        self._copied[one.name] = held, self._halves([source])[0]
        self._spoil(target.place)
        return tree

    def _arrived(self, done: Instruction, source: Placed) -> np.ndarray:
        before, first = self._copied.pop(done.operands[0])
        return self._decoded(np.where(first, before, self._bytes(source.place)), source.shape)

    def _loop(self, one: Instruction, state: Tree) -> Tree:
        condition, body = (
            re.search(rf"\b{part}=%?([\w.-]+)", one.attributes)[1] for part in ("condition", "body")
        )
        trip = 0
        while self._values.goes_on(
            one.name, trip, self._leaf(self._computation(condition, [state]))
        ):
            self._computation(body, [state])
            trip += 1
        return state

    def _leaf(self, placed: Placed) -> Leaf:
        leaf = Leaf(Storage(), placed.shape)
        self._values.store(leaf, self._get(placed))
        return leaf

    def _computed(self, one: Instruction, operands: list[Tree]) -> Tree:
        """Runs an instruction. What lies over its operands is written in two halves."""
        result = map_with_place(one.shape, lambda place, shape: self._own(one, place, shape))
        for out, operand, inside in self._module.in_place(one):
            # Of the operand only what lies where the result does can be kept.
            operands[operand] = map_with_place(
                operands[operand],
                lambda place, leaf, out=out, inside=inside: (
                    Placed(at_place(result, out).place, leaf.shape) if place == inside else leaf
                ),
            )
        outs = [leaf for _, leaf in leaves(result)]
        if any(leaf.place is None for leaf in outs):
            raise UnsupportedError(f"{one.name}: a result without bytes")
        read = [leaf.place for operand in operands for _, leaf in leaves(operand)]
        over = [any(_overlap(place, leaf.place) for place in read) for leaf in outs]
        before = [self._bytes(leaf.place).copy() for leaf in outs]
        values = self._run(one, operands)
        for leaf, value in zip(outs, values, strict=True):
            self._set(leaf, value)
        if not any(over) or one.opcode == "sort":  # A sort may move its arrays where they lie.
            return result
        self.over.add(one.name)
        made = [self._bytes(leaf.place).copy() for leaf in outs]
        halves = self._halves(outs)
        for leaf, first, new, old in zip(outs, halves, made, before, strict=True):
            self._bytes(leaf.place)[:] = np.where(first, new, old)
        again = self._run(one, operands)
        # What lies apart from the operands is made together with what lies over them.
        for leaf, value, first, new, is_over in zip(outs, again, halves, made, over, strict=True):
            self._set(leaf, value)
            own = self._bytes(leaf.place)
            own[:] = np.where(first, new, own) if is_over else new
        return result

    def _run(self, one: Instruction, operands: list[Tree]) -> list[np.ndarray]:
        held = [map_with_place(tree, lambda _, leaf: self._leaf(leaf)) for tree in operands]
        return [np.asarray(value) for _, value in leaves(self._values.compute(one, held))]


def _overlap(one: Place, other: Place) -> bool:
    return one.memory == other.memory and one.offset < other.end and other.offset < one.end


def _slice_of(start: Instruction) -> Instruction:
    """What a slice-start runs, as an instruction of its own."""
    shapes = split(start.text[1 : start.text.index(" slice-start(") - 1])
    text = f"{shapes[1]} slice({start.inside}){start.attributes}"
    return Instruction(
        f"{start.name}.slice", start.shape[1], "slice", start.inside, start.operands,
        start.attributes, text,
    )  # fmt: skip
