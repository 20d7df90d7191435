"""Programs and hardware by name or by file: the bundled corpus, .mgp files, HLO modules, JSON
hardware.
"""

import json
import os
import zlib
from collections.abc import Sequence

from mallocgame._core import Hardware, Program, import_modules, read_file, write_file
from mallocgame.errors import InvalidInputError

_FOLDER = os.path.dirname(__file__)
_SUFFIX = ".mgp"
_LARGEST_MODULE_BYTES = 1 << 30

SUITES = ("all", "contended")

Module = bytes | str | os.PathLike  # bytes, or the path of a file


def program_names() -> list[str]:
    """Names of the bundled programs, sorted."""
    return sorted(name[: -len(_SUFFIX)] for name in os.listdir(_FOLDER) if name.endswith(_SUFFIX))


def manifest() -> dict:
    """What is known of each bundled program: name to counts, origin, hashes and the totals its
    source recorded.
    """
    with open(os.path.join(_FOLDER, "manifest.json"), encoding="utf-8") as file:
        return json.load(file)["programs"]


def suite(name: str) -> list[str]:
    """Names of the bundled programs of a suite.

    all: every one. contended: those where the `lp` bound leaves at least 3 % over XLA's own plan
    (docs/bounds.md).
    """
    if name not in SUITES:
        raise InvalidInputError(f"suite: found '{name}', allowed: {', '.join(SUITES)}")
    if name == "all":
        return program_names()
    with open(os.path.join(_FOLDER, "suites.json"), encoding="utf-8") as file:
        return json.load(file)["suites"][name]


def load_program(name_or_path: str | os.PathLike) -> Program:
    """A bundled program by name, else a .mgp file by path.

    InvalidInputError (unknown name, with the closest known ones, or a file that isn't one),
    MissingFileError.
    """
    text = os.fspath(name_or_path)
    if text in program_names():
        return Program.from_bytes(read_file(os.fsencode(os.path.join(_FOLDER, text + _SUFFIX))))
    if os.path.exists(text) or text.endswith(_SUFFIX) or os.path.dirname(text):
        return named(text, lambda: Program.from_bytes(read_file(os.fsencode(text))))
    raise InvalidInputError(
        f"program '{text}': neither a bundled program nor a file{_close_to(text, program_names())}"
    )


def save_program(program: Program, path: str | os.PathLike) -> None:
    """Write a .mgp file; equal programs give equal bytes. FileAccessError names the path."""
    write_file(os.fsencode(path), program.to_bytes())


def hardware(name_or_path: str | os.PathLike) -> Hardware:
    """A preset by name (tpu_v4i, tpu_v4i_16mib ...), else a JSON file by path."""
    text = os.fspath(name_or_path)
    if text.endswith(".json") or os.path.dirname(text):
        return named(text, lambda: Hardware.from_json(decode(read_file(os.fsencode(text)))))
    return Hardware.preset(text)


def import_hlo(
    module: Module,
    assigned: Module | None = None,
    priced: Sequence[Module] = (),
    profile: Module | None = None,
    hardware: Hardware | str = "tpu_v4i",
    name: str = "",
    default_trips: int = 5,
    origin: str = "",
) -> Program:
    """Make a Program of a scheduled HloProto, from before memory space assignment.

    module, assigned, priced, profile: bytes or paths, gzip or not. assigned: the HloProto after
    memory space assignment,
        of which XLA's plan is read. priced: HloProtos after code generation, with estimated cycles.
        profile: JSON {instruction: [[operands, outputs, cycles], ...]}. Without priced and profile
        the cost model is a roofline.
    hardware: a Hardware, or the name of a preset.
    name: of the program, default the module's.
    default_trips: of loops whose trip count can't be read from the module.
    origin: free text kept in the program, such as compiler versions.

    InvalidInputError says what is wrong with which module; MissingFileError.
    """
    if isinstance(hardware, str):
        hardware = Hardware.preset(hardware)
    return import_modules(
        _module_bytes(module),
        hardware=hardware,
        assigned=None if assigned is None else _module_bytes(assigned),
        priced=[_module_bytes(one) for one in priced],
        profile=None if profile is None else _module_bytes(profile),
        name=name,
        default_trips=default_trips,
        origin=origin,
    )


def _module_bytes(module: Module) -> bytes:
    if not isinstance(module, bytes):
        return read_file(os.fsencode(module))
    if module[:2] != b"\x1f\x8b":
        return module
    unpacker = zlib.decompressobj(wbits=31)
    try:
        data = unpacker.decompress(module, _LARGEST_MODULE_BYTES)
    except zlib.error as error:
        raise InvalidInputError(f"module: damaged gzip ({error})") from None
    if not unpacker.eof:
        raise InvalidInputError(
            f"module: gzip that is cut short or unpacks to over {_LARGEST_MODULE_BYTES} bytes"
        )
    return data


def decode(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"not UTF-8 text: byte {error.start} is {data[error.start]:#04x}"
        ) from None


def named(path: str, load):
    """load(), with the path in front of what it says when the content is wrong."""
    try:
        return load()
    except InvalidInputError as error:
        message = str(error)
        raise InvalidInputError(message if path in message else f"{path}: {message}") from None


def _close_to(text: str, names: list[str]) -> str:
    import difflib

    close = difflib.get_close_matches(text, names, n=3, cutoff=0.4)
    return (
        f"; close: {', '.join(close)}"
        if close
        else "; `mallocgame programs` lists the bundled ones"
    )
