"""A folder of tuned executables, which are found again by the program that they are for.

A file is a ZIP archive of an executable, as the compiler serializes it, and of a JSON document that
says what it is for, its hash, and what it promises.
"""

import dataclasses
import hashlib
import io
import json
import os
import pathlib
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

from mallocgame._core import write_file
from mallocgame.errors import InvalidInputError
from mallocgame.xla.captures import Capture
from mallocgame.xla.compiler import inherited_flags
from mallocgame.xla.lowering import fingerprint
from mallocgame.xla.signatures import Signature, signature_of_text

FORMAT = "mallocgame tuned executable"
VERSION = 1
_ABOUT, _EXECUTABLE = "about.json", "executable"
_SUFFIX = ".mgx"
_DATE = (1980, 1, 1, 0, 0, 0)  # the same bytes for the same contents


@dataclasses.dataclass(frozen=True)
class Key:
    """All that must be the same for an executable to fit. For anything else XLA compiles."""

    module: str  # fingerprint() of what JAX lowered
    signature: Signature  # of the same
    target: str  # Target.title
    versions: Mapping[str, str]  # of jax, jaxlib and libtpu
    flags: Mapping[str, str]  # inherited_flags()

    @classmethod
    def of(cls, capture: Capture) -> "Key":
        """Returns what an executable of a captured program is found by.

        InvalidInputError: it was captured without its StableHLO module.
        """
        return cls.of_module(capture.check_can_compile(), capture.target.title, capture.versions)

    @classmethod
    def of_module(cls, module: str, target: str, versions: Mapping[str, str]) -> "Key":
        """Returns the key of StableHLO text in this environment. InvalidInputError: it is none."""
        return cls(
            fingerprint(module), signature_of_text(module), target, versions, inherited_flags()
        )

    @property
    def digest(self) -> str:
        """A short text that hardly any other key has."""
        text = json.dumps(dataclasses.asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def unlike(self, other: "Key") -> str:
        """Says in what the other is another; empty: in nothing."""
        return "; ".join(
            _unlike(field.name, mine, its)
            for field in dataclasses.fields(self)
            if (mine := getattr(self, field.name)) != (its := getattr(other, field.name))
        )


@dataclasses.dataclass(frozen=True)
class TunedProgram:
    """A tuned executable in a folder."""

    path: pathlib.Path
    key: Key
    sha256: str  # of the executable
    about: Mapping[str, Any]  # what it promises, as given to TunedFolder.keep()

    @property
    def cost_ps(self) -> float:
        """What searches make small."""
        return float(self.about["cost_ps"])

    def executable(self) -> bytes:
        """Reads the executable. InvalidInputError: the file is damaged."""
        found = _read(self.path, _EXECUTABLE)
        if hashlib.sha256(found).hexdigest() != self.sha256:
            raise InvalidInputError(f"{self.path}: the executable has another SHA-256 than it says")
        return found


class TunedFolder:
    """Files of tuned executables. What they are called, and who put them there, doesn't matter.

    Executables are programs: whoever can write into the folder decides what the device runs.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = pathlib.Path(path)

    def find(self, key: Key) -> TunedProgram | None:
        """Returns the one that fits and costs least; None: none fits. Damaged files don't fit."""
        fitting = (it for it in self._files() if isinstance(it, TunedProgram) and it.key == key)
        return min(fitting, key=lambda tuned: tuned.cost_ps, default=None)

    def why_not(self, key: Key) -> str:
        """Says why none fits."""
        if not self.path.is_dir():
            return f"there is no folder {self.path}"
        files = list(self._files())
        for it in files:
            if isinstance(it, TunedProgram) and it.key.module == key.module:
                return f"{it.path} is for {it.key.unlike(key)}"
        damaged = "".join(f"; {it}" for it in files if isinstance(it, str))
        return f"{self.path} has none for this code with arguments of these shapes{damaged}"

    def keep(self, key: Key, executable: bytes, about: Mapping[str, Any]) -> pathlib.Path:
        """Writes an executable, unless one that costs less is there for the same key.

        about: what it promises, as JSON: `cost_ps`, the number that a search has made small, and
        for people `program`, `latency_ps`, `cold_ps`, `xla_latency_ps`, `xla_cold_ps`, `estimate`
        or whatever else there is to say.

        Returns the file. InvalidInputError: there is no `cost_ps`. FileAccessError.
        """
        if not isinstance(about.get("cost_ps"), int | float):
            raise InvalidInputError(
                f"about: found cost_ps {about.get('cost_ps')}, allowed: a number"
            )
        before = self.find(key)
        if before is not None and before.cost_ps < about["cost_ps"] and _is_whole(before):
            return before.path
        document = {
            "format": FORMAT,
            "version": VERSION,
            "sha256": hashlib.sha256(executable).hexdigest(),
            "key": dataclasses.asdict(key),
            "about": dict(about),
        }
        self.path.mkdir(parents=True, exist_ok=True)
        name = f"{about.get('program', 'program')}.{key.target.replace(':', '_')}.{key.digest}"
        path = self.path / (name.replace(os.sep, "_") + _SUFFIX)
        write_file(
            os.fsencode(path),
            _archive({_ABOUT: json.dumps(document, indent=1).encode(), _EXECUTABLE: executable}),
        )
        return path

    def _files(self) -> Iterator[TunedProgram | str]:
        """Yields what each file holds, or why it can't be used."""
        for path in sorted(self.path.glob("*" + _SUFFIX)):
            try:
                yield _tuned(path)
            except InvalidInputError as error:
                yield str(error)


def _tuned(path: pathlib.Path) -> TunedProgram:
    """Reads what a file says. InvalidInputError: it is damaged, or of another version."""
    try:
        document = json.loads(_read(path, _ABOUT))
        made = document["format"], document["version"]
        if made != (FORMAT, VERSION):
            raise InvalidInputError(f"{path}: found format {made}, allowed: {(FORMAT, VERSION)}")
        key = dict(document["key"])
        signature = Signature.from_json(key.pop("signature"))
        about = dict(document["about"])
        float(about["cost_ps"])
        return TunedProgram(path, Key(signature=signature, **key), str(document["sha256"]), about)
    except InvalidInputError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInputError(f"{path}: damaged: {type(error).__name__} {error}") from None


def _read(path: pathlib.Path, name: str) -> bytes:
    """Reads an entry of a file. InvalidInputError: it is missing or damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.read(name)
    except Exception as error:  # A damaged archive may raise anything.
        raise InvalidInputError(f"{path}: damaged: {type(error).__name__} {error}") from None


def _archive(entries: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(zipfile.ZipInfo(name, _DATE), data, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def _is_whole(tuned: TunedProgram) -> bool:
    try:
        tuned.executable()
    except InvalidInputError:
        return False
    return True


def _unlike(name: str, mine: Any, its: Any) -> str:
    """Says what one value is and the other isn't; of several only what differs."""
    if isinstance(mine, Signature):
        return f"another signature; {its.unlike(mine)}"
    if not isinstance(mine, Mapping):
        return f"{name} {mine}, not {its}"
    names = sorted(one for one in {*mine, *its} if mine.get(one) != its.get(one))
    of_mine, of_its = (
        ", ".join(f"{one} {values.get(one, 'unset')}" for one in names) for values in (mine, its)
    )
    return f"{name} {of_mine}, not {of_its}"
