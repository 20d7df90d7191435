"""What the compiler dumps, and which of it is kept: three HloProtos without names of source
files.
"""

import dataclasses
import os
import pathlib

from mallocgame.errors import InvalidInputError, MissingFileError

# Ends of the dumps' file names, by field of Compiled.
_DUMPS = {
    "before": ".after_optimizations_before_buffer_assignment.hlo.pb",
    "assigned": ".after_optimizations.hlo.pb",
    "priced": ".after_codegen.hlo.pb",
}

# Fields to leave out, by number; a nested dict says so of a message inside. Of HloProto:
# hlo_module{computations{ instructions{metadata, frontend_attributes}}, stack_frame_index,
# frontend_attributes}.
_SOURCE_LOCATIONS = {1: {3: {2: {7: None, 68: None}}, 17: None, 19: None}}


@dataclasses.dataclass(frozen=True)
class Assigned:
    """What the compiler gets done until after memory space assignment: serialized HloProtos of
    one program.
    """

    before: bytes  # scheduled, before memory space assignment
    assigned: bytes  # after it, with the buffer assignment


@dataclasses.dataclass(frozen=True)
class Compiled(Assigned):
    """One whole answer of the compiler."""

    priced: bytes  # after code generation, with estimated cycles


def read_dump(folder: str | os.PathLike[str], kind: type[Assigned] = Compiled) -> Assigned:
    """The largest module dumped in a folder, as a `kind`: made with --xla_dump_to=FOLDER
    --xla_dump_hlo_as_proto.

    MissingFileError: no module was dumped there. InvalidInputError: a file is damaged.
    """
    found = {}
    for field in dataclasses.fields(kind):
        suffix = _DUMPS[field.name]
        files = [path for path in pathlib.Path(folder).glob("*" + suffix) if path.is_file()]
        if not files:
            raise MissingFileError(
                f"{os.fspath(folder)}: no *{suffix}; "
                "dump with XLA_FLAGS='--xla_dump_to=FOLDER --xla_dump_hlo_as_proto'"
            )
        largest = max(files, key=lambda path: (path.stat().st_size, path.name))
        try:
            found[field.name] = without_fields(largest.read_bytes(), _SOURCE_LOCATIONS)
        except (IndexError, ValueError):
            raise InvalidInputError(f"{largest}: damaged HloProto") from None
    return kind(**found)


def without_fields(message: bytes, fields: dict) -> bytes:
    """A serialized protobuf message without some fields. IndexError or ValueError: it isn't one."""
    kept = []
    at = 0
    while at < len(message):
        begin = at
        key, at = _varint(message, at)
        number, wire_type = key >> 3, key & 7
        if wire_type == 2:
            size, at = _varint(message, at)
            body, at = message[at : at + size], at + size
            if at > len(message):
                raise IndexError("a field ends behind the message")
            if number in fields:
                if fields[number] is not None:
                    inner = without_fields(body, fields[number])
                    kept += [_to_varint(key), _to_varint(len(inner)), inner]
                continue
        elif wire_type == 0:
            _, at = _varint(message, at)
        elif wire_type in (1, 5):
            at += 8 if wire_type == 1 else 4
        else:
            raise ValueError(f"wire type {wire_type}")
        if number not in fields:
            kept.append(message[begin:at])
    return b"".join(kept)


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _to_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
