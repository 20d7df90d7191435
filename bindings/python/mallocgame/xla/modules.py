"""What the compiler dumps, and what is kept of it: HloProtos without names of source files."""

import dataclasses
import glob
import os
import pathlib
from collections.abc import Iterator

from mallocgame.errors import InvalidInputError, MissingFileError

# How the dumps' file names end, by field of Compiled.
_DUMPS = {
    "before": ".after_optimizations_before_buffer_assignment.hlo.pb",
    "assigned": ".after_optimizations.hlo.pb",
    "priced": ".after_codegen.hlo.pb",
}

# The numbers of the fields to leave out; a nested dict is about a message inside. In HloProto they
# are hlo_module{computations{instructions{metadata, frontend_attributes}}, stack_frame_index,
# frontend_attributes}.
_SOURCE_LOCATIONS: "Fields" = {1: {3: {2: {7: None, 68: None}}, 17: None, 19: None}}


@dataclasses.dataclass(frozen=True)
class Compiled:
    """One whole answer of the compiler: serialized HloProtos."""

    before: bytes  # scheduled, before memory space assignment
    assigned: bytes  # after it, with the buffer assignment
    priced: bytes  # after code generation, with estimated cycles


Fields = dict[int, "Fields | None"]


def read_dump(folder: str | os.PathLike[str], name: str | None = None) -> Compiled:
    """Reads a module that was dumped in a folder.

    name: what names of its files begin with; None: the largest module's.

    XLA dumps with --xla_dump_to=FOLDER --xla_dump_hlo_as_proto. MissingFileError: no module is
    there. InvalidInputError: a file is damaged.
    """
    found = {}
    for field in dataclasses.fields(Compiled):
        suffix = _DUMPS[field.name]
        pattern = ("*" if name is None else glob.escape(name)) + suffix
        files = [path for path in pathlib.Path(folder).glob(pattern) if path.is_file()]
        if not files:
            raise MissingFileError(
                f"{os.fspath(folder)}: no {pattern}; "
                "dump with XLA_FLAGS='--xla_dump_to=FOLDER --xla_dump_hlo_as_proto'"
            )
        largest = max(files, key=lambda path: (path.stat().st_size, path.name))
        try:
            found[field.name] = without_fields(largest.read_bytes(), _SOURCE_LOCATIONS)
        except (IndexError, ValueError):
            raise InvalidInputError(f"{largest}: damaged HloProto") from None
    return Compiled(**found)


def main_memory_bytes(assignment: bytes) -> int:
    """Returns the bytes of all allocations in main memory of a serialized BufferAssignmentProto.

    IndexError, ValueError: it is no message.
    """
    total = 0
    for number, body in wire_fields(assignment):
        if number == 3 and isinstance(body, bytes):  # buffer_allocations
            fields = dict(wire_fields(body))
            # color, is_thread_local, size
            if not fields.get(8, 0) and not fields.get(3, 0):
                size = fields.get(2, 0)
                total += size if isinstance(size, int) else 0
    return total


def device_count_of_proto(module: bytes) -> int:
    """Returns how many devices a serialized HloProto is for; 1 if it doesn't say.

    IndexError, ValueError: it is no message.
    """
    # hlo_module, its device_assignment, and its replica_count and computation_count
    assignments = [
        body
        for number, inner in wire_fields(module)
        if number == 1 and isinstance(inner, bytes)
        for number_inside, body in wire_fields(inner)
        if number_inside == 15 and isinstance(body, bytes)
    ]
    counts = dict(wire_fields(assignments[0])) if assignments else {}
    product = 1
    for number in (1, 2):
        count = counts.get(number, 1)
        product *= count if isinstance(count, int) else 1
    return product


def hlo_proto(module: bytes, assignment: bytes) -> bytes:
    """Returns a serialized HloProto of a HloModuleProtoWithConfig and a BufferAssignmentProto.

    IndexError, ValueError: the first is no message.
    """
    inner = next(body for number, body in wire_fields(module) if number == 1)
    if not isinstance(inner, bytes):
        raise ValueError("no HloModuleProtoWithConfig")
    proto = b"".join(field_of(number, body) for number, body in ((1, inner), (3, assignment)))
    return without_fields(proto, _SOURCE_LOCATIONS)


def name_of_proto(module: bytes) -> str:
    """Returns the name of the module in a serialized HloProto; empty: it has none that is text."""
    try:
        for number, inner in wire_fields(module):
            if number == 1 and isinstance(inner, bytes):
                names = [body for inside, body in wire_fields(inner) if inside == 1]
                return names[0].decode() if names and isinstance(names[0], bytes) else ""
    except (IndexError, ValueError):
        pass
    return ""


def wire_fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Gives the number and value of each field that is a number or has a length."""
    return ((number, value) for number, value, _ in _parts(message) if value is not None)


def without_fields(message: bytes, fields: Fields) -> bytes:
    """Returns a serialized protobuf message without some fields.

    IndexError, ValueError: it is no message.
    """
    kept = []
    for number, value, whole in _parts(message):
        inside = fields.get(number)
        if number not in fields:
            kept.append(whole)
        elif inside is not None and isinstance(value, bytes):
            kept.append(field_of(number, without_fields(value, inside)))
    return b"".join(kept)


def _parts(message: bytes) -> Iterator[tuple[int, int | bytes | None, bytes]]:
    """Gives the number of each field, its value, None for one of fixed width, and all its bytes."""
    at = 0
    while at < len(message):
        begin = at
        value: int | bytes | None = None
        key, at = _varint(message, at)
        wire_type = key & 7
        if wire_type == 0:
            value, at = _varint(message, at)
        elif wire_type == 2:
            size, at = _varint(message, at)
            value, at = message[at : at + size], at + size
        elif wire_type in (1, 5):
            at += 8 if wire_type == 1 else 4
        else:
            raise ValueError(f"wire type {wire_type}")
        if at > len(message):
            raise IndexError("a field ends behind the message")
        yield key >> 3, value, message[begin:at]


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def field_of(number: int, body: bytes) -> bytes:
    """Returns a field of a message that has a length."""
    return varint_of(number << 3 | 2) + varint_of(len(body)) + body


def varint_of(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint_of(rest) if rest else bytes([low])
