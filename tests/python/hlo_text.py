"""Scheduled HLO modules as text: instructions with their shapes, operands and callees.

It also says what the text does of storage that instructions share.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

pytest.importorskip("jaxlib", reason="needs JAX: pip install 'mallocgame[xla]'")

from jaxlib import _hlo

_SHAPE = re.compile(r"([a-z]\w*)\[([\d,]*)\](?:\{([\d,]*)(?::([^{}]*))?\})?")
_TILES = re.compile(r"\bT((?:\([\d,]+\))+)")
_CALLEES = re.compile(r"(calls|to_apply|condition|body|called_computations|branch_computations)=")


class UnsupportedError(Exception):
    """A module has an instruction that isn't run here."""


@dataclass(frozen=True)
class Shape:
    """Of an array."""

    dtype: str
    dims: tuple[int, ...]
    major_to_minor: tuple[int, ...]
    tiles: tuple[tuple[int, ...], ...] = ()  # each within those before it


Tree = Any  # of shapes, leaves or None: one of them, or a tuple of trees


@dataclass
class Instruction:
    """One line of the module's text."""

    name: str
    shape: Tree
    opcode: str
    inside: str  # the parentheses: operands, or a number or a literal
    operands: tuple[str, ...]
    attributes: str
    text: str  # without its name

    def callees(self) -> list[str]:
        found = []
        for match in _CALLEES.finditer(self.attributes):
            rest = self.attributes[match.end() :]
            inside = rest[1 : rest.index("}")] if rest[0] == "{" else rest.split(",")[0]
            found += [name.strip().lstrip("%") for name in inside.split(",")]
        return found


@dataclass
class Computation:
    name: str
    instructions: dict[str, Instruction] = field(default_factory=dict)
    root: str = ""

    def parameters(self) -> list[Instruction]:
        of = [i for i in self.instructions.values() if i.opcode == "parameter"]
        return sorted(of, key=lambda i: int(i.inside))


def _balanced(text: str, at: int) -> int:
    """Returns where the bracket closes that opens at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if depth == 0:
            return i
    raise UnsupportedError(text)


def split(text: str) -> list[str]:
    """Splits at commas outside of brackets."""
    parts, depth, begin = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append(text[begin:i].strip())
            begin = i + 1
    last = text[begin:].strip()
    return [*parts, last] if last else parts


def _shape(text: str) -> Tree:
    if text.startswith("("):
        return tuple(_shape(part) for part in split(text[1:-1]))
    match = _SHAPE.fullmatch(text)
    if match is None:
        return Shape(text, (), ())  # a token, or what asynchronous pairs share
    dims = tuple(int(n) for n in match[2].split(",") if n)
    minor = [int(n) for n in (match[3] or "").split(",") if n] or list(range(len(dims)))[::-1]
    tiled = _TILES.search(match[4] or "")
    tiles = [_index(tile) for tile in re.findall(r"[\d,]+", tiled[1])] if tiled else []
    return Shape(match[1], dims, tuple(minor[::-1]), tuple(tiles))


def _instruction(line: str) -> Instruction:
    name, rest = line.removeprefix("ROOT ").split(" = ", 1)
    end = _balanced(rest, 0) + 1 if rest[0] == "(" else rest.index(" ")
    opens = rest.index("(", end)
    closes = _balanced(rest, opens)
    opcode, inside = rest[end:opens].strip(), rest[opens + 1 : closes]
    operands: tuple[str, ...] = ()
    if opcode not in ("parameter", "constant"):
        operands = tuple(part.split("%")[-1] for part in split(inside))
    return Instruction(
        name.lstrip("%"), _shape(rest[:end]), opcode, inside, operands, rest[closes + 1 :], rest
    )


class Module:
    """A module, read from a protocol buffer (HloProto or HloModuleProto)."""

    def __init__(self, proto: bytes) -> None:
        self.proto = proto
        options = _hlo.HloPrintOptions()
        options.print_metadata = options.print_backend_config = False
        options.print_operand_shape = options.print_large_constants = True
        parsed = _hlo.HloModule.from_serialized_hlo_module_proto(_module_of(proto))
        self.text = text = re.sub(r"/\*.*?\*/", "", parsed.to_string(options))
        self.computations: dict[str, Computation] = {}
        self.entry = ""
        current: Computation | None = None
        for line in text.splitlines():
            if line.startswith("HloModule"):
                self.header = line
            elif line.endswith("{") and not line.startswith(" "):
                words = line.split()
                current = Computation(words[words[0] == "ENTRY"].lstrip("%"))
                self.computations[current.name] = current
                if words[0] == "ENTRY":
                    self.entry = current.name
            elif line.startswith("  ") and current is not None:
                one = _instruction(line.strip())
                current.instructions[one.name] = one
                if line.strip().startswith("ROOT "):
                    current.root = one.name

    def without_copy(self, computation: str, name: str) -> "Module":
        """Returns the module in which a copy lies where its operand does."""
        one = self.computations[computation].instructions[name]
        begin = self.text.index(f"%{name} = {one.text}")
        before, after = self.text[:begin], self.text[begin:]
        changed = before + after.replace(" copy(", " bitcast(", 1)
        return _read(changed)

    def without_control_predecessors(self) -> "Module":
        return _read(re.sub(r", control-predecessors=\{[^}]*\}", "", self.text))

    def in_place(self, one: Instruction) -> list[tuple[tuple[int, ...], int, tuple[int, ...]]]:
        """(place in the result, operand, place in it): what shares storage."""
        pairs = []
        pattern = r"\{([\d, ]*)\}: \((\d+), \{([\d, ]*)\}"
        aliasing = re.search(r"output_to_operand_aliasing=\{(.*?\)[^)]*?)\}", one.attributes)
        for out, operand, place in re.findall(pattern, aliasing[1] if aliasing else ""):
            pairs.append((_index(out), int(operand), _index(place)))
        if one.opcode in ("dynamic-update-slice", "scatter"):
            count = len(one.shape) if isinstance(one.shape, tuple) else 0
            pairs += [((i,), i, ()) for i in range(count)] or [((), 0, ())]
        elif one.opcode == "fusion":
            called = self.computations[one.callees()[0]]
            root = called.instructions[called.root]
            outputs = [((), root)]
            if root.opcode == "tuple":
                outputs = [
                    ((i,), called.instructions[name]) for i, name in enumerate(root.operands)
                ]
            for place, output in outputs:
                number = self._updated(called, output)
                if number is not None:
                    pairs.append((place, number, ()))
        elif one.opcode in ("while", "optimization-barrier"):
            pairs += [(place, 0, place) for place, _ in leaves(one.shape)]
        return pairs

    def _updated(self, computation: Computation, one: Instruction) -> int | None:
        """Returns the parameter of a fused computation that `one` updates in place."""
        while one.opcode == "bitcast":
            one = computation.instructions[one.operands[0]]
        if one.opcode == "fusion":
            pairs = [pair for pair in self.in_place(one) if pair[0] == ()]
            if not pairs:
                return None
            one = computation.instructions[one.operands[pairs[0][1]]]
        elif one.opcode in ("dynamic-update-slice", "scatter"):
            one = computation.instructions[one.operands[0]]
        else:
            return None
        while one.opcode == "bitcast":
            one = computation.instructions[one.operands[0]]
        return int(one.inside) if one.opcode == "parameter" else self._updated(computation, one)

    def donated(self) -> list[tuple[tuple[int, ...], int]]:
        """(place in the result, parameter): what the entry computation shares storage of."""
        found = re.search(r"input_output_alias=\{(.*?\}, [\w-]+\))\s*\}", self.header)
        pairs = re.findall(r"\{([\d, ]*)\}: \((\d+), ", found[1] if found else "")
        return [(_index(out), int(parameter)) for out, parameter in pairs]

    def ordered_callees(self, one: Instruction) -> list[str]:
        """The computations whose instructions are in the schedule too."""
        return one.callees() if one.opcode in ("while", "conditional", "call") else []


def _read(text: str) -> Module:
    return Module(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())


def _module_of(proto: bytes) -> bytes:
    """Takes the module out of an HloProto, of which it is field 1: another message."""
    length = shift = 0
    for at in range(1, len(proto)):
        length |= (proto[at] & 127) << shift
        shift += 7
        if proto[at] < 128:
            inside = proto[at + 1 : at + 1 + length]
            break
    # Field 1 of an HloModuleProto is its name.
    return inside if proto[0] == 10 and inside[:1] == b"\n" else proto


def _index(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split(",") if n.strip())


def leaves(tree: Tree, place: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    if not isinstance(tree, tuple):
        yield place, tree
        return
    for i, part in enumerate(tree):
        yield from leaves(part, (*place, i))


def at_place(tree: Tree, place: Sequence[int]) -> Tree:
    for i in place:
        tree = tree[i]
    return tree


def map_tree(tree: Tree, function: Callable[[Any], Any]) -> Tree:
    if isinstance(tree, tuple):
        return tuple(map_tree(part, function) for part in tree)
    return function(tree)


def map_with_place(
    tree: Tree, function: Callable[[tuple[int, ...], Any], Any], place: tuple[int, ...] = ()
) -> Tree:
    if isinstance(tree, tuple):
        return tuple(map_with_place(part, function, (*place, i)) for i, part in enumerate(tree))
    return function(place, tree)
