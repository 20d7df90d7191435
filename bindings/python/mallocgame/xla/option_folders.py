"""A folder of options, which are found again by the program that they are for."""

import dataclasses
import hashlib
import json
import os
import pathlib
import time
from collections.abc import Mapping
from typing import Any

from mallocgame._core import simulate
from mallocgame.xla.captures import Capture
from mallocgame.xla.claims import claimed_part, speedup, unpriced_ps
from mallocgame.xla.compiler import inherited_flags
from mallocgame.xla.lowering import fingerprint
from mallocgame.xla.negotiate import NOTE, Outcome
from mallocgame.xla.option_files import FORMAT, load_options, read_document, save_options

_REST = ("format", "compiler_options")


@dataclasses.dataclass(frozen=True)
class Key:
    """All that must be the same for options to fit. With anything else they aren't applied."""

    module: str  # fingerprint() of what JAX lowered
    target: str  # Target.title
    fast_mib: int | None  # as of a Target; a chip at hand has all of it
    versions: Mapping[str, str]  # of jax, jaxlib and libtpu
    flags: Mapping[str, str]  # inherited_flags()

    @classmethod
    def of(cls, capture: Capture) -> "Key":
        """Returns what options for a captured program are found by.

        InvalidInputError: it was captured without its StableHLO module.
        """
        module, target = fingerprint(capture.check_can_compile()), capture.target
        return cls(module, target.title, target.fast_mib, capture.versions, inherited_flags())

    @property
    def digest(self) -> str:
        """A short text that hardly any other key has."""
        text = json.dumps(dataclasses.asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def unlike(self, other: "Key") -> str:
        """Says in what the other is another; empty: in nothing."""
        return "; ".join(
            f"{field.name} {_text(mine, its)}, not {_text(its, mine)}"
            for field in dataclasses.fields(self)
            if (mine := getattr(self, field.name)) != (its := getattr(other, field.name))
        )


@dataclasses.dataclass(frozen=True)
class Kept:
    """Options in a folder."""

    path: pathlib.Path
    key: Key
    about: Mapping[str, Any]  # what the file says beside its options

    @property
    def options(self) -> dict[str, str]:
        """The compiler options; empty is XLA's default. InvalidInputError."""
        return load_options(self.path)

    @property
    def cost_ps(self) -> float:
        """What searches make small, with them."""
        return float(self.about.get("cost_ps", self.about["verified_ps"]))

    @property
    def seconds(self) -> float:
        """The seconds spent on finding them."""
        return float(self.about.get("seconds", 0.0))


class OptionFolder:
    """Files of options. What they are called, and who put them there, doesn't matter."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = pathlib.Path(path)

    def find(self, key: Key) -> Kept | None:
        """Returns the options that fit and cost least; None: none fit. InvalidInputError."""
        fitting = (kept for kept in self._kept() if kept.key == key)
        return min(fitting, key=lambda kept: kept.cost_ps, default=None)

    def why_not(self, key: Key) -> str:
        """Says why no options fit."""
        if not self.path.is_dir():
            return f"there is no folder {self.path}"
        for kept in self._kept():
            if kept.key.module == key.module:
                return f"{kept.path} is for {kept.key.unlike(key)}"
        return f"{self.path} has none for this code with arguments of these shapes"

    def keep(self, capture: Capture, outcome: Outcome, seconds: float = 0.0) -> pathlib.Path:
        """Writes options, in place of slower ones that are there for the same key.

        seconds: spent on finding them, since the beginning.
        Returns the file; faster options stay in it.
        """
        key = Key.of(capture)
        before = self.find(key)
        path = self.path / f"{capture.name}.{capture.target.name}.{key.digest}.json"
        about = describe(capture, outcome)
        options = outcome.options
        if before is not None and before.cost_ps < outcome.cost_ps:
            path, options, about = before.path, before.options, dict(before.about)
        self.path.mkdir(parents=True, exist_ok=True)
        save_options(options, path, **about | {"seconds": round(seconds, 3)})
        return path

    def _kept(self) -> list[Kept]:
        found = (_kept(path) for path in sorted(self.path.glob("*.json")))
        return [kept for kept in found if kept is not None]


class Shelf:
    """The place of one program in a folder of options. Without a folder nothing is kept.

    The seconds since it was made count as spent on finding the options.
    """

    def __init__(self, capture: Capture, folder: str | os.PathLike[str] | None) -> None:
        self._begin = time.monotonic()
        self._capture = capture
        self._folder = None if folder is None else OptionFolder(folder)
        kept = None if self._folder is None else self._folder.find(Key.of(capture))
        self.start = None if kept is None else kept.options  # what was found before
        self._spent = 0.0 if kept is None else kept.seconds

    def keep(self, outcome: Outcome) -> None:
        """Writes options, unless faster ones are there."""
        if self._folder is not None:
            spent = self._spent + time.monotonic() - self._begin
            self._folder.keep(self._capture, outcome, spent)


def describe(capture: Capture, outcome: Outcome) -> dict[str, Any]:
    """Returns what a file of options says of itself, with the fields of its Key."""
    xla = simulate(capture.program, capture.xla_plan)
    modelled = {
        "speedup_of": claimed_part(xla),
        "modelled_ps": xla.modelled_ps,
        "kernel_ps": xla.kernel_ps,
    }
    return {
        "program": capture.name,
        "hardware": outcome.program.hardware.name,
        "verified_ps": outcome.verified_ps,
        "verified_cold_ps": outcome.verified_cold_ps,
        "cost_ps": outcome.cost_ps,
        "verified_speedup": speedup(xla, outcome.report),
        **(modelled if unpriced_ps(xla) else {}),
        "estimate": NOTE,
        **dataclasses.asdict(Key.of(capture)),
    }


def _kept(path: pathlib.Path) -> Kept | None:
    """Reads a file; None: it holds no options, or does not say what they are for."""
    document = read_document(path)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        return None
    names = [field.name for field in dataclasses.fields(Key)]
    if not {*names, "verified_ps"} <= document.keys():
        return None
    # Before there was a cost it was the latency.
    if not isinstance(document.get("cost_ps", document["verified_ps"]), int | float):
        return None
    about = {name: it for name, it in document.items() if name not in _REST}
    return Kept(path, Key(**{name: document[name] for name in names}), about)


def _text(value: object, other: object) -> str:
    """Returns a value; of a mapping only what another one has otherwise."""
    if not isinstance(value, Mapping) or not isinstance(other, Mapping):
        return str(value)
    names = sorted(name for name in {*value, *other} if value.get(name) != other.get(name))
    return ", ".join(f"{name} {value.get(name, 'unset')}" for name in names)
