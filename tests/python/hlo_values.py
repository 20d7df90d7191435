"""Runs scheduled HLO modules one instruction at a time, in the order of a Program's instructions.

Arrays lie in storage. What HLO makes in place is made in place: updates of slices, scatters, what
loops carry, donated parameters, bitcasts. So an instruction that runs too late reads what another
one has written over it, and the results differ. Which arrays share storage follows from the text
of the module (hlo_text.py), not from the library.

Values are `Numbers`, which XLA computes on the CPU, instruction by instruction; or `Formulas`,
which say of each array how it was computed, and are equal only if everything was computed of the
same.
"""

import hashlib
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
pytest.importorskip("jaxlib", reason="needs JAX: pip install 'mallocgame[xla]'")

import ml_dtypes
from hlo_text import (
    Computation,
    Instruction,
    Module,
    Shape,
    Tree,
    UnsupportedError,
    at_place,
    leaves,
    map_tree,
    map_with_place,
    split,
)
from jaxlib import _hlo

_DTYPES = {
    "pred": np.bool_,
    "bf16": ml_dtypes.bfloat16,
    **{f"f{n}": f"float{n}" for n in (16, 32, 64)},
    **{f"s{n}": f"int{n}" for n in (8, 16, 32, 64)},
    **{f"u{n}": f"uint{n}" for n in (8, 16, 32, 64)},
}
_LAYOUT = re.compile(r"(\b[a-z]\w*\[[\d,]*\])\{[^{}]*\}")
# What an instruction on a CPU need not know. The first three hold braces.
_DROPPED = re.compile(
    r", (?:sharding|control-predecessors|frontend_attributes|output_to_operand_aliasing)="
    r"\{(?:[^{}]|\{[^{}]*\})*\}|, kind=k\w+|, channel_id=\d+"
)
TRIPS = 3  # of each loop, where values are formulas


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
            map_tree(one.shape, lambda shape, one=one: Leaf(Storage(one.name.encode()), shape))
            for one in module.computations[module.entry].parameters()
        ]

    def store(self, leaf: Leaf, value: Any) -> None:
        leaf.storage.value = value

    def compute(self, one: Instruction, operands: list[Tree]) -> Tree:
        if one.opcode in ("copy", "bitcast"):  # Whether something is copied makes no difference.
            return operands[0].storage.value
        digest = hashlib.blake2b(one.name.encode(), digest_size=16)
        for operand in operands:
            for place, leaf in leaves(operand):
                digest.update(repr(place).encode() + leaf.storage.value)
        made = digest.digest()
        return map_with_place(one.shape, lambda place, _: made + repr(place).encode())

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

    _loaded: ClassVar[dict[str, Any]] = {}  # what XLA has made of each text

    def __init__(self, module: Module, arguments: Sequence[Any]) -> None:
        import jax

        self._module = module
        self._arguments = [np.asarray(one) for one in arguments]
        self._device = jax.devices("cpu")[0]
        self._compiled: dict[str, Any] = {}

    def arguments(self, module: Module) -> list[Tree]:
        found = []
        for one, value in zip(
            module.computations[module.entry].parameters(), self._arguments, strict=True
        ):
            leaf = Leaf(Storage(), one.shape)
            self.store(leaf, value)
            found.append(leaf)
        return found

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
        arrays = [self.read(leaf) for operand in operands for _, leaf in leaves(operand)]
        if one.name not in self._compiled:
            self._compiled[one.name] = self._compile(one)
        results = map(np.asarray, self._compiled[one.name](arrays))
        return map_tree(one.shape, lambda _: next(results))

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

        operands = split(one.inside) if one.operands else []
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
        if module not in self._loaded:
            proto = _hlo.hlo_module_from_text(module).as_serialized_hlo_module_proto()
            mlir = _jax.mlir.xla_computation_to_mlir_module(_hlo.XlaComputation(proto))
            self._loaded[module] = self._device.client.compile_and_load(
                mlir, xla_client.DeviceList((self._device,)), xla_client.CompileOptions()
            )
        loaded = self._loaded[module]

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
            self._check(root.name, at_place(result, place).storage is storage)
        read = [self._values.read(leaf) for _, leaf in leaves(result)]
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
        wanted = {place: destinations.get((one.name, place)) for place, _ in leaves(one.shape)}
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
            out: at_place(operands[operand], place).storage
            for out, operand, place in self._module.in_place(one)
        }

        def place_of(place: tuple[int, ...], shape: Shape) -> Leaf:
            leaf = Leaf(shared.get(place) or wanted[place] or Storage(), shape)
            self._values.store(leaf, at_place(computed, place))
            return leaf

        return map_with_place(one.shape, place_of)

    def _called(
        self, name: str, arguments: list[Tree], wanted: dict[tuple[int, ...], Storage | None]
    ) -> Tree:
        given = {place: storage for place, storage in wanted.items() if storage is not None}
        return self._computation(self._module.computations[name], arguments, given)

    def _loop(self, one: Instruction, state: Tree) -> Tree:
        condition, body = (
            re.search(rf"\b{part}=%?([\w.-]+)", one.attributes)[1] for part in ("condition", "body")
        )
        carried = {place: leaf.storage for place, leaf in leaves(state)}
        trip = 0
        while self._values.goes_on(one.name, trip, self._called(condition, [state], {})):
            after = self._called(body, [state], carried)
            for place, leaf in leaves(after):
                self._check(one.name, leaf.storage is carried[place])
            trip += 1
        return state
