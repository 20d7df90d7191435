"""The arrays that a program takes and gives, of StableHLO and of an executable, to be compared."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from mallocgame.errors import InvalidInputError
from mallocgame.xla.modules import wire_fields

_MLIR_TYPES = {"i1": "pred", "complex<f32>": "c64", "complex<f64>": "c128"}
_Array = tuple[str, tuple[int, ...]]  # type and dimensions


@dataclasses.dataclass(frozen=True)
class Signature:
    """What a caller of a program must know. Arrays are written as in f32[8,128]."""

    devices: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    donated: tuple[int, ...]  # the inputs whose bytes results may take
    shardings: tuple[str, ...]  # of inputs and outputs over several devices, as StableHLO says

    @classmethod
    def from_json(cls, document: Any) -> "Signature":
        """Returns what dataclasses.asdict() and JSON made of one. TypeError: it is none."""
        fields: dict[str, Any] = {
            name: tuple(it) if isinstance(it, list) else it for name, it in dict(document).items()
        }
        return cls(**fields)

    def unlike(self, other: "Signature") -> str:
        """Says in what another program's signature is another; empty: in nothing."""
        return _first(
            difference
            for field in dataclasses.fields(self)
            for difference in _unlike(
                field.name, getattr(other, field.name), getattr(self, field.name)
            )
        )

    def refuses(self, executable: "Signature") -> str:
        """Says why callers of this program can't call an executable; empty: they can.

        Of a program for several devices an executable has the part on one of them.
        """
        return _first(self._differences(executable))

    def _differences(self, executable: "Signature") -> Iterator[str]:
        if executable.devices != self.devices:
            yield f"devices: found {executable.devices}, allowed: {self.devices}"
        for what in ("inputs", "outputs"):
            arrays, its = getattr(self, what), getattr(executable, what)
            if len(its) != len(arrays):
                yield f"{what}: found {len(its)}, allowed: {len(arrays)}"
            for number, (array, part) in enumerate(zip(arrays, its, strict=False)):
                if not _is_part(part, array, self.devices):
                    yield f"{what[:-1]} {number}: found {part}, allowed: {array}"
        for number in sorted({*executable.donated} - {*self.donated}):
            yield f"input {number}: found donated, allowed: kept"


def signature_of_stablehlo(module: Any) -> Signature:
    """Returns the signature of a parsed StableHLO module.

    InvalidInputError: it has no function main, or one with arguments that are no plain arrays.
    """
    for operation in module.body.operations:
        if operation.operation.name == "func.func" and operation.name.value == "main":
            break
    else:
        raise InvalidInputError("StableHLO module: found no function main")
    inputs, outputs = operation.type.inputs, operation.type.results
    given = _attributes(operation, "arg_attrs", len(inputs))
    partitions = module.operation.attributes
    count = "mhlo.num_partitions"
    devices = partitions[count].value if count in partitions else 1
    return Signature(
        devices,
        tuple(map(_mlir_array, inputs)),
        tuple(map(_mlir_array, outputs)),
        tuple(
            number
            for number, said in enumerate(given)
            if "tf.aliasing_output" in said or "jax.buffer_donor" in said
        ),
        tuple(
            said.get("sdy.sharding", said.get("mhlo.sharding", ""))
            for said in [*given, *_attributes(operation, "res_attrs", len(outputs))]
            if devices > 1
        ),
    )


def signature_of_text(stablehlo: str) -> Signature:
    """Returns the signature of StableHLO text. InvalidInputError."""
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir

    with mlir.make_ir_context():
        try:
            return signature_of_stablehlo(ir.Module.parse(stablehlo))
        except ir.MLIRError as error:
            raise InvalidInputError(f"no StableHLO text: {str(error).splitlines()[0]}") from None


def signature_of_hlo(module: bytes, devices: int) -> Signature:
    """Returns the signature of an executable, by its serialized HloModuleProto.

    InvalidInputError: it is damaged.
    """
    from jax.errors import JaxRuntimeError
    from jaxlib.xla_client import XlaComputation

    try:
        shape = XlaComputation(module).program_shape()
        aliased = [body for number, body in wire_fields(module) if number == 8]
        return Signature(
            devices,
            tuple(array for one in shape.parameter_shapes() for array in _hlo_arrays(one)),
            tuple(_hlo_arrays(shape.result_shape())),
            tuple(sorted({_parameter(entry) for body in aliased for entry in _entries(body)})),
            (),
        )
    except (JaxRuntimeError, KeyError, TypeError, ValueError) as error:
        raise InvalidInputError(f"HLO module: {type(error).__name__} {error}") from None


def _attributes(function: Any, name: str, count: int) -> list[dict[str, str]]:
    """Returns what a function says of each of its arguments or results."""
    if name not in function.attributes:
        return [{}] * count
    found = function.attributes[name]
    return [
        {said[place].name: str(said[place].attr) for place in range(len(said))} for said in found
    ]


def _mlir_array(kind: Any) -> str:
    element = str(kind.element_type) if hasattr(kind, "element_type") else str(kind)
    if not hasattr(kind, "shape") or not kind.has_static_shape:
        raise InvalidInputError(f"StableHLO module: found {kind}, allowed: arrays of fixed shapes")
    name = _MLIR_TYPES.get(element, element.lower())
    name = name.replace("ui", "u") if name.startswith("ui") else name
    name = "s" + name[1:] if name.startswith("i") else name
    return f"{name}[{','.join(map(str, kind.shape))}]"


def _hlo_arrays(shape: Any) -> Iterator[str]:
    """Yields the arrays of a shape, with those in tuples, without their layouts."""
    if shape.is_tuple():
        for inner in shape.tuple_shapes():
            yield from _hlo_arrays(inner)
    else:
        yield str(shape).partition("{")[0]


def _entries(aliases: Any) -> list[dict[int, Any]]:
    """Returns the entries of a HloInputOutputAliasProto."""
    entries: list[Any] = [body for number, body in wire_fields(aliases) if number == 1]
    return [dict(wire_fields(entry)) for entry in entries]


def _parameter(entry: dict[int, Any]) -> int:
    """Returns the number of an aliased input. Many are elements of a tuple, the one parameter."""
    inside = list(_numbers(entry[3])) if 3 in entry else []
    return inside[0] if inside else int(entry.get(2, 0))


def _numbers(packed: Any) -> Iterator[int]:
    """Yields the numbers of a repeated field, packed or not."""
    if isinstance(packed, int):
        yield packed
        return
    number = shift = 0
    for byte in packed:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield number
            number = shift = 0


def _is_part(part: str, array: str, devices: int) -> bool:
    """Whether a device may hold `part` of an array."""
    if devices == 1:
        return part == array
    (kind, sizes), (whole_kind, whole) = parsed(part), parsed(array)
    return (
        kind == whole_kind
        and len(sizes) == len(whole)
        and all(size <= of for size, of in zip(sizes, whole, strict=True))
    )


def parsed(array: str) -> _Array:
    """Returns the type and the dimensions of an array of a Signature."""
    kind, _, sizes = array.rstrip("]").partition("[")
    return kind, tuple(int(size) for size in sizes.split(",") if size)


def _unlike(name: str, found: Any, allowed: Any) -> Iterator[str]:
    """Yields what of a field is another; of many elements each that is."""
    if not isinstance(found, tuple) or name == "donated":
        if found != allowed:
            yield f"{name}: found {_words(found)}, allowed: {_words(allowed)}"
        return
    if len(found) != len(allowed):
        yield f"{name}: found {len(found)}, allowed: {len(allowed)}"
    for number, (one, other) in enumerate(zip(found, allowed, strict=False)):
        if one != other:
            yield f"{name[:-1]} {number}: found {one or 'none'}, allowed: {other or 'none'}"


def _words(value: Any) -> str:
    return " ".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)


def _first(sentences: Iterator[str]) -> str:
    return next(sentences, "")
