"""Programs and hardware by name or by file.

The bundled corpus lies beside this file; others are .mgp files, HLO modules and JSON hardware.
The suite `large` stands apart from the corpus: its smaller programs lie in the folder `large`, and
the others are where `mallocgame xla large` puts them.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from mallocgame import _arguments
from mallocgame._core import Hardware, Program, import_modules, read_file, write_file
from mallocgame.calibration import priced
from mallocgame.errors import InvalidInputError
from mallocgame.programs.module_forms import Module, is_text, module_bytes, unpacked

_FOLDER = os.path.dirname(__file__)
_BUNDLED_LARGE = os.path.join(_FOLDER, "large")
_SUFFIX = ".mgp"

MADE = "~/.cache/mallocgame/programs"  # where programs of `large` are that aren't bundled

LARGE = "large"
SUITES = ("all", "core", "contended", "cloud", "sharded", LARGE)
SCHEDULES = ("instructions", "module")

T = TypeVar("T")


def program_names() -> list[str]:
    """Returns the names of the bundled programs, sorted."""
    return sorted(name[: -len(_SUFFIX)] for name in os.listdir(_FOLDER) if name.endswith(_SUFFIX))


def manifest() -> dict[str, Any]:
    """Returns what is known of each bundled program, by name.

    That is its counts, its origin, hashes and the totals that its source recorded.
    """
    with open(os.path.join(_FOLDER, "manifest.json"), encoding="utf-8") as file:
        programs: dict[str, Any] = json.load(file)["programs"]
    return programs


def large_manifest() -> dict[str, Any]:
    """Returns what is known of each program of the suite large, by name, as it was made once."""
    with open(os.path.join(_FOLDER, LARGE, "manifest.json"), encoding="utf-8") as file:
        programs: dict[str, Any] = json.load(file)["programs"]
    return programs


def large_file(name: str) -> str | None:
    """Returns where a program of the suite large lies; None: nobody has made it here."""
    paths = (os.path.join(folder, name + _SUFFIX) for folder in (_BUNDLED_LARGE, made_folder()))
    return next(filter(os.path.exists, paths), None)


def made_folder() -> str:
    return os.path.expanduser(MADE)


def suite(name: str) -> list[str]:
    """Returns the names of the programs of a suite.

    all: every bundled one. core: known models on tpu_v4i, some also on tpu_v5e and tpu_v6e, and
    with 16 MiB. contended: 20 of core where XLA's own plan leaves 2 % or more to gain, chosen once
    (docs/bounds.md). cloud: others, on chips that can be rented. sharded: programs for several of
    these. Each of all is in one of core, cloud and sharded. large: 24 whole models with
    thousands of accesses, apart from all; those that aren't bundled `mallocgame xla large` makes.
    """
    if name not in SUITES:
        raise InvalidInputError(f"suite: found '{name}', allowed: {', '.join(SUITES)}")
    if name == "all":
        return program_names()
    if name == LARGE:
        return list(large_manifest())
    if name != "contended":
        return [one for one, entry in manifest().items() if entry["suite"] == name]
    with open(os.path.join(_FOLDER, "suites.json"), encoding="utf-8") as file:
        names: list[str] = json.load(file)["suites"][name]
    return names


def load_program(name_or_path: str | os.PathLike[str], prices: str = "compiler") -> Program:
    """Loads a program of a suite by name, else a .mgp file by path.

    prices: "compiler", as the file has them, or "calibrated", as calibrated() makes them.

    InvalidInputError: the name is unknown (the message has the closest), it is one of the suite
    large that has not been made, the file is no program, or it can't have calibrated prices.
    MissingFileError.
    """
    return priced(_load(name_or_path), prices)


def _load(name_or_path: str | os.PathLike[str]) -> Program:
    text = _arguments.path("program", name_or_path, "a bundled name, a .mgp path or a Program")
    if text in program_names():
        return Program.from_bytes(read_file(os.path.join(_FOLDER, text + _SUFFIX)))
    if not os.path.exists(text) and text in large_manifest():
        found = large_file(text)
        if found is None:
            raise InvalidInputError(
                f"program '{text}': of the suite large, and not made here yet; "
                f"`mallocgame xla large {text}` makes it (needs mallocgame[xla])"
            )
        text = found
    if os.path.exists(text) or text.endswith(_SUFFIX) or os.path.dirname(text):
        content = read_file(text)
        return named(text, lambda: Program.from_bytes(content))
    raise InvalidInputError(
        f"program '{text}': neither a bundled program nor a file"
        f"{_close_to(text, [*program_names(), *large_manifest()])}"
    )


def save_program(program: Program, path: str | os.PathLike[str]) -> None:
    """Writes a .mgp file; equal programs give equal bytes. FileAccessError names the path."""
    data = _arguments.instance("program", program, Program).to_bytes()
    write_file(_arguments.path("path", path), data)


def hardware(name_or_path: str | os.PathLike[str]) -> Hardware:
    """Returns a preset by name (tpu_v4i, tpu_v4i_16mib ...), else that of a JSON file by path."""
    text = _arguments.path("hardware", name_or_path, "a preset's name, a JSON path or a Hardware")
    if text.endswith(".json") or os.path.dirname(text):
        content = read_file(text)
        return named(text, lambda: Hardware.from_json(decode(content)))
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
    trips: Mapping[str, int] | None = None,
    schedule: str = SCHEDULES[0],
) -> Program:
    """Makes a Program of an HLO module, best from before memory space assignment.

    A module from after it is brought back to main memory.

    module, assigned, priced, profile: bytes or paths, gzip or not. A module is a protocol buffer
    (HloProto, HloModuleProto, HloModuleProtoWithConfig or HloSnapshot) or HLO text, which needs
    jaxlib.
    assigned: the HloProto after memory space assignment, of which XLA's plan is read.
    priced: modules after code generation, with estimated cycles.
    profile: JSON {instruction: [[operands, outputs, cycles], ...]}. Without priced and profile the
    cost model is a roofline.
    hardware: a Hardware, or the name of a preset.
    name: of the program; empty is the module's.
    default_trips: trips of loops whose trip count can't be read from the module.
    origin: free text kept in the program, such as compiler versions.
    trips: trip counts by the name of the loop's `while`; they come before the module's own.
    schedule: "instructions" takes the order in which the instructions stand in the module where it
    has no schedule; with "module" it must have one.

    The program says what had to be assumed, and what counts as nothing: trips_known of its loops,
    and its counts.

    InvalidInputError says what is wrong with which module. MissingFileError.
    """
    if schedule not in SCHEDULES:
        raise InvalidInputError(f"schedule: found '{schedule}', allowed: {', '.join(SCHEDULES)}")
    if isinstance(hardware, str):
        hardware = Hardware.preset(hardware)
    return import_modules(
        module_bytes(module),
        hardware=hardware,
        assigned=None if assigned is None else _assigned_bytes(assigned),
        priced=[module_bytes(one, f"priced module {i}") for i, one in enumerate(priced)],
        profile=None if profile is None else unpacked(profile, "profile"),
        name=name,
        default_trips=default_trips,
        trips=dict(trips or {}),
        requires_schedule=schedule == "module",
        origin=origin,
    )


def _assigned_bytes(assigned: Module) -> bytes:
    what = "assigned module"
    data = unpacked(assigned, what)
    if is_text(data) and data:
        raise InvalidInputError(
            f"{what}: found text, which lacks the buffer assignment; wanted is an HloProto, which "
            "XLA dumps with --xla_dump_hlo_as_proto"
        )
    return data


def decode(data: bytes) -> str:
    """Returns UTF-8 text. InvalidInputError."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"not UTF-8 text: byte {error.start} is {data[error.start]:#04x}"
        ) from None


def named(path: str, load: Callable[[], T]) -> T:
    """Calls load(), and puts the path before what it says of wrong content."""
    try:
        return load()
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error}") from None


def _close_to(text: str, names: list[str]) -> str:
    import difflib

    close = difflib.get_close_matches(text, names, n=3, cutoff=0.4)
    return (
        f"; close: {', '.join(close)}"
        if close
        else "; `mallocgame programs` lists the bundled ones"
    )
