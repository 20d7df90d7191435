"""Runs scheduled HLO modules one instruction at a time, in the order of a Program's instructions.

Arrays lie in storage. What HLO makes in place is made in place: updates of slices, scatters, what
loops carry, donated parameters, bitcasts. So an instruction that runs too late reads what another
one has written over it, and the results differ. Which arrays share storage is found here, from the
text of the module, and not by the library.

Values are `Numbers`, which XLA computes on the CPU, instruction by instruction; or `Formulas`,
which say of each array how it was computed, and are equal only if everything was computed of the
same.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
pytest.importorskip("jaxlib", reason="needs JAX: pip install 'mallocgame[xla]'")

import ml_dtypes
from jaxlib import _hlo

_DTYPES = {
    "pred": np.bool_,
    "bf16": ml_dtypes.bfloat16,
    **{f"f{n}": f"float{n}" for n in (16, 32, 64)},
    **{f"s{n}": f"int{n}" for n in (8, 16, 32, 64)},
    **{f"u{n}": f"uint{n}" for n in (8, 16, 32, 64)},
}
_SHAPE = re.compile(r"([a-z]\w*)\[([\d,]*)\](?:\{([\d,]*)(?::[^{}]*)?\})?")
_LAYOUT = re.compile(r"(\b[a-z]\w*\[[\d,]*\])\{[^{}]*\}")
# What an instruction on a CPU need not know. The first three hold braces.
_DROPPED = re.compile(
    r", (?:sharding|control-predecessors|frontend_attributes|output_to_operand_aliasing)="
    r"\{(?:[^{}]|\{[^{}]*\})*\}|, kind=k\w+|, channel_id=\d+"
)
_CALLEES = re.compile(r"(calls|to_apply|condition|body|called_computations|branch_computations)=")
TRIPS = 3  # of each loop, where values are formulas


class UnsupportedError(Exception):
    """A module has an instruction that isn't run here."""


@dataclass(frozen=True)
class Shape:
    """Of an array."""

    dtype: str
    dims: tuple[int, ...]
    major_to_minor: tuple[int, ...]


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


def _split(text: str) -> list[str]:
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
        return tuple(_shape(part) for part in _split(text[1:-1]))
    match = _SHAPE.fullmatch(text)
    if match is None:
        return Shape(text, (), ())  # a token, or what asynchronous pairs share
    dims = tuple(int(n) for n in match[2].split(",") if n)
    minor = [int(n) for n in (match[3] or "").split(",") if n] or list(range(len(dims)))[::-1]
    return Shape(match[1], dims, tuple(minor[::-1]))


def _instruction(line: str) -> Instruction:
    name, rest = line.removeprefix("ROOT ").split(" = ", 1)
    end = _balanced(rest, 0) + 1 if rest[0] == "(" else rest.index(" ")
    opens = rest.index("(", end)
    closes = _balanced(rest, opens)
    opcode, inside = rest[end:opens].strip(), rest[opens + 1 : closes]
    operands: tuple[str, ...] = ()
    if opcode not in ("parameter", "constant"):
        operands = tuple(part.split("%")[-1] for part in _split(inside))
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
            pairs += [(place, 0, place) for place, _ in _leaves(one.shape)]
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


def _leaves(tree: Tree, place: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    if not isinstance(tree, tuple):
        yield place, tree
        return
    for i, part in enumerate(tree):
        yield from _leaves(part, (*place, i))


def _at(tree: Tree, place: Sequence[int]) -> Tree:
    for i in place:
        tree = tree[i]
    return tree


class Storage:
    """Where an array lies: the one that was written last, in the order of its layout."""

    __slots__ = ("value",)

    def __init__(self, value: Any = None) -> None:
        self.value = value


@dataclass(frozen=True)
class Leaf:
    """An array in storage."""

    storage: Storage
    shape: Shape


class Formulas:
    """Values that are digests of what they were computed of."""

    def __init__(self, module: Module, branch: int = 0) -> None:
        self._branch = branch
        self._decisions: list[bytes] = []

    def arguments(self, module: Module) -> list[Tree]:
        self._decisions = []
        return [
            _map(one.shape, lambda shape, one=one: Leaf(Storage(one.name.encode()), shape))
            for one in module.computations[module.entry].parameters()
        ]

    def store(self, leaf: Leaf, value: Any) -> None:
        leaf.storage.value = value

    def compute(self, one: Instruction, operands: list[Tree]) -> Tree:
        if one.opcode in ("copy", "bitcast"):  # Whether something is copied makes no difference.
            return operands[0].storage.value
        digest = hashlib.blake2b(one.name.encode(), digest_size=16)
        for operand in operands:
            for place, leaf in _leaves(operand):
                digest.update(repr(place).encode() + leaf.storage.value)
        made = digest.digest()
        return _map_with_place(one.shape, lambda place, _: made + repr(place).encode())

    def goes_on(self, loop: str, trip: int, condition: Leaf) -> bool:
        self._decisions.append(f"{loop} {trip} ".encode() + condition.storage.value)
        return trip < TRIPS

    def branch(self, conditional: str, index: Leaf, count: int) -> int:
        self._decisions.append(f"{conditional} ".encode() + index.storage.value)
        return self._branch % count

    def decisions(self) -> list[bytes]:
        """What said how often loops run, and which branches: that has to be the same too."""
        return sorted(self._decisions)

    def read(self, leaf: Leaf) -> Any:
        return leaf.storage.value


class Numbers:
    """Values that XLA computes, one instruction at a time."""

    def __init__(self, module: Module, arguments: Sequence[Any]) -> None:
        import jax

        self._module = module
        self._arguments = [np.asarray(one) for one in arguments]
        self._device = jax.devices("cpu")[0]
        self._compiled: dict[str, Any] = {}

    def arguments(self, module: Module) -> list[Tree]:
        leaves = []
        for one, value in zip(
            module.computations[module.entry].parameters(), self._arguments, strict=True
        ):
            leaf = Leaf(Storage(), one.shape)
            self.store(leaf, value)
            leaves.append(leaf)
        return leaves

    def store(self, leaf: Leaf, value: np.ndarray) -> None:
        linear = np.ascontiguousarray(value.transpose(leaf.shape.major_to_minor)).reshape(-1)
        leaf.storage.value = linear.view(np.uint8).copy()

    def read(self, leaf: Leaf) -> np.ndarray:
        shape = leaf.shape
        dims = [shape.dims[i] for i in shape.major_to_minor]
        linear: np.ndarray = leaf.storage.value.view(np.dtype(_DTYPES[shape.dtype]))
        return linear.reshape(dims).transpose(np.argsort(shape.major_to_minor))

    def compute(self, one: Instruction, operands: list[Tree]) -> Tree:
        if 'custom_call_target="AllocateBuffer"' in one.attributes:  # of no value yet
            return np.zeros(one.shape.dims, _DTYPES[one.shape.dtype])
        if one.opcode == "custom-call":
            raise UnsupportedError(f"{one.name}: {one.text}")
        arrays = [self.read(leaf) for operand in operands for _, leaf in _leaves(operand)]
        if one.name not in self._compiled:
            self._compiled[one.name] = self._compile(one)
        results = map(np.asarray, self._compiled[one.name](arrays))
        return _map(one.shape, lambda _: next(results))

    def goes_on(self, loop: str, trip: int, condition: Leaf) -> bool:
        return bool(self.read(condition))

    def decisions(self) -> list[bytes]:
        return []

    def branch(self, conditional: str, index: Leaf, count: int) -> int:
        chosen = self.read(index)
        if chosen.dtype == np.bool_:
            return 0 if chosen else 1
        return int(chosen) if 0 <= chosen < count else count - 1

    def _compile(self, one: Instruction) -> Callable[[list[np.ndarray]], list[Any]]:
        import jax
        from jaxlib import _jax, xla_client

        operands = _split(one.inside) if one.operands else []
        if any(operand.startswith("(") for operand in operands):
            raise UnsupportedError(f"{one.name}: {one.opcode} of a tuple")
        lines = [f"  %in.{i} = {operand.split(' %')[0]} parameter({i})"
                 for i, operand in enumerate(operands)]  # fmt: skip
        text = one.text
        if operands:
            inside = ", ".join(f"%in.{i}" for i in range(len(operands)))
            text = text.replace(f"({one.inside})", f"({inside})", 1)
        lines.append(f"  ROOT %out = {_on_a_cpu(one, text)}")
        pieces = [self._callee(name) for name in self._all_callees(one)]
        pieces.append("ENTRY %one {\n" + "\n".join(lines) + "\n}\n")
        module = "HloModule one\n\n" + _plain("\n".join(pieces))
        proto = _hlo.hlo_module_from_text(module).as_serialized_hlo_module_proto()
        mlir = _jax.mlir.xla_computation_to_mlir_module(_hlo.XlaComputation(proto))
        loaded = self._device.client.compile_and_load(
            mlir, xla_client.DeviceList((self._device,)), xla_client.CompileOptions()
        )

        def run(arrays: list[np.ndarray]) -> list[Any]:
            given = [jax.device_put(array, self._device) for array in arrays]
            results = loaded.execute_sharded(given)
            return [shards[0] for shards in results.disassemble_into_single_device_arrays()]

        return run

    def _all_callees(self, one: Instruction) -> list[str]:
        """With those that they call, each behind what it calls."""
        found: list[str] = []
        for name in one.callees():
            for inside in self._module.computations[name].instructions.values():
                found += [other for other in self._all_callees(inside) if other not in found]
            if name not in found:
                found.append(name)
        return found

    def _callee(self, name: str) -> str:
        computation = self._module.computations[name]
        lines = []
        for one in computation.instructions.values():
            text = _on_a_cpu(one, one.text)
            if one.opcode == "bitcast":
                operand = computation.instructions[one.operands[0]]
                before, text = _as_reshape(one, operand.shape)
                lines += before
            root = "ROOT " if one.name == computation.root else ""
            lines.append(f"  {root}%{one.name} = {text}")
        return f"%{name} {{\n" + "\n".join(lines) + "\n}\n"


def _on_a_cpu(one: Instruction, text: str) -> str:
    """Says in other words what XLA has for a TPU only."""
    if 'custom_call_target="AssumeGatherIndicesInBound"' in one.attributes:
        return text.split(", custom_call_target")[0].replace("custom-call(", "copy(", 1)
    if one.opcode == "copy":  # It may convert.
        return text.replace("copy(", "convert(", 1)
    return text


def _as_reshape(one: Instruction, operand: Shape) -> tuple[list[str], str]:
    """Returns instructions that do what a bitcast does, without layouts: others, and the last."""
    if operand.dtype != one.shape.dtype:
        raise UnsupportedError(f"{one.name}: a bitcast to another type")

    def text(shape: Shape, order: Sequence[int]) -> str:
        return f"{shape.dtype}[{','.join(str(shape.dims[i]) for i in order)}]"

    def numbers(order: Sequence[int]) -> str:
        return "{" + ",".join(str(i) for i in order) + "}"

    first, last = operand.major_to_minor, one.shape.major_to_minor
    name = f"%{one.name}"
    before = [
        f"  {name}.1 = {text(operand, first)} transpose({text(operand, range(len(first)))} "
        f"%{one.operands[0]}), dimensions={numbers(first)}",
        f"  {name}.2 = {text(one.shape, last)} reshape({text(operand, first)} {name}.1)",
    ]
    back = [last.index(i) for i in range(len(last))]
    whole = text(one.shape, range(len(last)))
    return (
        before,
        f"{whole} transpose({text(one.shape, last)} {name}.2), dimensions={numbers(back)}",
    )


def _plain(text: str) -> str:
    """Without layouts, and with calls in place of fusions."""
    text = _DROPPED.sub("", _LAYOUT.sub(r"\1", text))
    return re.sub(r"\bfusion\(", "call(", text).replace("calls=", "to_apply=")


def _map(tree: Tree, function: Callable[[Any], Any]) -> Tree:
    if isinstance(tree, tuple):
        return tuple(_map(part, function) for part in tree)
    return function(tree)


def _map_with_place(
    tree: Tree, function: Callable[[tuple[int, ...], Any], Any], place: tuple[int, ...] = ()
) -> Tree:
    if isinstance(tree, tuple):
        return tuple(_map_with_place(part, function, (*place, i)) for i, part in enumerate(tree))
    return function(place, tree)


class Run:
    """One run of a module. `place` says when each instruction of a computation runs."""

    def __init__(self, module: Module, place: dict[str, int], values: Any) -> None:
        self._module, self._place, self._values = module, place, values

    def results(self) -> list[Any]:
        arguments = self._values.arguments(self._module)
        root = self._module.computations[self._module.entry]
        wanted = {
            place: arguments[parameter].storage for place, parameter in self._module.donated()
        }
        result = self._computation(root, arguments, wanted)
        for place, storage in wanted.items():
            self._check(root.name, _at(result, place).storage is storage)
        read = [self._values.read(leaf) for _, leaf in _leaves(result)]
        return read + self._values.decisions()

    def _check(self, what: str, holds: bool) -> None:
        if not holds:
            raise UnsupportedError(f"{what}: a result lies elsewhere than it has to")

    def _destinations(
        self, computation: Computation, wanted: dict[tuple[int, ...], Storage]
    ) -> dict[tuple[str, tuple[int, ...]], Storage]:
        """Where the results of instructions have to lie, as what they become lies there."""
        found: dict[tuple[str, tuple[int, ...]], Storage] = {}
        left = [(computation.root, place, storage) for place, storage in wanted.items()]
        while left:
            name, place, storage = left.pop()
            one = computation.instructions[name]
            if one.opcode == "tuple":
                left.append((one.operands[place[0]], place[1:], storage))
            elif one.opcode == "get-tuple-element":
                index = int(re.search(r"index=(\d+)", one.attributes)[1])
                left.append((one.operands[0], (index, *place), storage))
            elif one.opcode == "bitcast":
                left.append((one.operands[0], place, storage))
            elif one.opcode == "copy-done":
                left.append((one.operands[0], (0, *place), storage))
            else:
                pairs = [pair for pair in self._module.in_place(one) if pair[0] == place]
                for _, operand, inside in pairs:
                    left.append((one.operands[operand], inside, storage))
                if not pairs:
                    self._check(name, found.get((name, place), storage) is storage)
                    found[name, place] = storage
        return found

    def _computation(
        self,
        computation: Computation,
        arguments: Sequence[Tree],
        wanted: dict[tuple[int, ...], Storage],
    ) -> Tree:
        destinations = self._destinations(computation, wanted)
        made: dict[str, Tree] = {}
        for one in sorted(computation.instructions.values(), key=lambda i: self._place[i.name]):
            operands = [made[name] for name in one.operands]
            made[one.name] = self._instruction(one, operands, arguments, destinations)
        return made[computation.root]

    def _instruction(
        self,
        one: Instruction,
        operands: list[Tree],
        arguments: Sequence[Tree],
        destinations: dict[tuple[str, tuple[int, ...]], Storage],
    ) -> Tree:
        if one.opcode == "parameter":
            return arguments[int(one.inside)]
        if one.opcode == "tuple":
            return tuple(operands)
        if one.opcode == "get-tuple-element":
            return operands[0][int(re.search(r"index=(\d+)", one.attributes)[1])]
        if one.opcode == "bitcast":
            return Leaf(operands[0].storage, one.shape)
        if one.opcode == "optimization-barrier":
            return operands[0]
        wanted = {place: destinations.get((one.name, place)) for place, _ in _leaves(one.shape)}
        if one.opcode == "while":
            return self._loop(one, operands[0])
        if one.opcode == "conditional":
            branches = one.callees()
            taken = self._values.branch(one.name, operands[0], len(branches))
            return self._called(branches[taken], [operands[1 + taken]], wanted)
        if one.opcode == "call":
            return self._called(one.callees()[0], operands, wanted)
        if one.opcode == "copy-start":
            target = Leaf(wanted[(0,)] or Storage(), one.shape[0])
            self._values.store(target, self._values.read(operands[0]))
            # It is read until it is done, and must be the same then.
            return target, operands[0], Leaf(Storage(self._values.read(operands[0])), one.shape[2])
        if one.opcode == "copy-done":
            target, source, before = operands[0]
            if not np.array_equal(self._values.read(source), before.storage.value):
                self._values.store(target, self._values.read(source))
            return target
        computed = self._values.compute(one, operands)
        shared = {
            out: _at(operands[operand], place).storage
            for out, operand, place in self._module.in_place(one)
        }

        def place_of(place: tuple[int, ...], shape: Shape) -> Leaf:
            leaf = Leaf(shared.get(place) or wanted[place] or Storage(), shape)
            self._values.store(leaf, _at(computed, place))
            return leaf

        return _map_with_place(one.shape, place_of)

    def _called(
        self, name: str, arguments: list[Tree], wanted: dict[tuple[int, ...], Storage | None]
    ) -> Tree:
        given = {place: storage for place, storage in wanted.items() if storage is not None}
        return self._computation(self._module.computations[name], arguments, given)

    def _loop(self, one: Instruction, state: Tree) -> Tree:
        condition, body = (
            re.search(rf"\b{part}=%?([\w.-]+)", one.attributes)[1] for part in ("condition", "body")
        )
        carried = {place: leaf.storage for place, leaf in _leaves(state)}
        trip = 0
        while self._values.goes_on(one.name, trip, self._called(condition, [state], {})):
            after = self._called(body, [state], carried)
            for place, leaf in _leaves(after):
                self._check(one.name, leaf.storage is carried[place])
            trip += 1
        return state
