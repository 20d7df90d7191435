"""Protocol buffers without their schemas: fields by number, as far as it is needed here."""

from mallocgame.xla.modules import wire_fields as fields

Value = int | bytes


def inner(message: bytes, number: int) -> list[bytes]:
    """Returns the values of a field that has a length."""
    return [v for found, v in fields(message) if found == number and isinstance(v, bytes)]


def first(message: bytes, number: int) -> bytes:
    """Returns the first value of a field that has a length; empty: there is none."""
    return next(iter(inner(message, number)), b"")


def number(message: bytes, which: int) -> int:
    """Returns the last value of a varint field; 0: there is none."""
    found = [v for n, v in fields(message) if n == which and isinstance(v, int)]
    return found[-1] if found else 0


def packed(message: bytes, which: int) -> list[int]:
    """Returns the varints of a repeated field, packed or not."""
    found: list[int] = []
    for n, value in fields(message):
        if n == which:
            found += [value] if isinstance(value, int) else varints(value)
    return found


def varints(data: bytes) -> list[int]:
    """Returns all varints of packed data."""
    found, at = [], 0
    while at < len(data):
        value, at = _varint(data, at)
        found.append(value)
    return found


def column(message: bytes, which: int) -> list[int]:
    """Returns a column of our own files: zigzag differences, modulo 2^64."""
    total, found = 0, []
    for value in packed(message, which):
        total = (total + ((value >> 1) ^ -(value & 1))) % 2**64
        found.append(total if total < 2**63 else total - 2**64)
    return found


def column_field(which: int, values: list[int]) -> bytes:
    """Returns the field of a column, as `column` reads it."""
    data, before = b"", 0
    for value in values:
        step = (value - before + 2**63) % 2**64 - 2**63
        data += _as_varint(step << 1 if step >= 0 else ((-step) << 1) - 1)
        before = value
    return field(which, data)


def field(which: int, value: Value) -> bytes:
    """Returns a field with its number."""
    if isinstance(value, int):
        return _as_varint(which << 3) + _as_varint(value)
    return _as_varint(which << 3 | 2) + _as_varint(len(value)) + value


def replaced(message: bytes, which: int, value: bytes) -> bytes:
    """Returns a message with another value of one field that has a length."""
    return b"".join(field(n, value if n == which else v) for n, v in fields(message))


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = data[at]
        value, at, shift = value | (byte & 127) << shift, at + 1, shift + 7
        if byte < 128:
            return value, at


def _as_varint(value: int) -> bytes:
    data = bytearray()
    while value > 127:
        data.append(value & 127 | 128)
        value >>= 7
    return bytes(data + bytes([value]))
