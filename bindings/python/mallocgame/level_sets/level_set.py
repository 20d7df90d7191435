"""A set of levels as files: an index, the programs, and the best known plans.

FOLDER/index.json       what is known of each program, and which levels are scored
FOLDER/programs.zip     NAME.mgp of each program
FOLDER/best_known.zip   LEVEL.json, the plan, of each scored level, and latencies.json
"""

import functools
import io
import json
import os
import pathlib
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

from mallocgame._core import Plan, Program, read_file, write_file
from mallocgame.errors import InvalidInputError, MissingFileError
from mallocgame.level_sets.splits import KNOWN, SCHEDULE, WHOLE_BUNDLED, WHOLE_SPLITS
from mallocgame.programs import decode, load_program

BUNDLED = pathlib.Path(__file__).parent / "bundled"
BUNDLED_SCHEDULE = BUNDLED.with_name("schedule")  # the split schedule
BUNDLED_WHOLE = BUNDLED.with_name("whole")  # the splits of whole models
FORMAT = 2
INDEX, PROGRAMS, BEST_KNOWN = "index.json", "programs.zip", "best_known.zip"
_LATENCIES = "latencies.json"


def bundled_folder(split: str) -> pathlib.Path:
    """Returns the folder of the package that has a split."""
    if split in WHOLE_SPLITS:
        return BUNDLED_WHOLE
    return BUNDLED_SCHEDULE if split == SCHEDULE else BUNDLED


class LevelSet:
    """A finished set of levels. Programs are read when they are asked for."""

    def __init__(self, folder: pathlib.Path, index: dict[str, Any]) -> None:
        self.folder = folder
        self.index = index
        self.programs: dict[str, dict[str, Any]] = index["programs"]
        self._programs = _Archive(folder / PROGRAMS)
        self._best = _Archive(folder / BEST_KNOWN)

    def names(self, split: str) -> list[str]:
        """Returns the names of the levels of a split."""
        found = []
        for name, entry in self.programs.items():
            if entry["split"] != split:
                continue
            if "variants" in entry:
                found += [f"{name}@{text}" if text else name for text in entry["variants"]]
            else:
                found.append(entry["level"])
        return found

    def with_free_order(self) -> "LevelSet":
        """Returns those of the programs whose instructions may stand in another order."""
        programs = {n: one for n, one in self.programs.items() if one.get("free_pairs", 0) > 0}
        return LevelSet(self.folder, self.index | {"programs": programs})

    def load_program(self, name: str) -> Program:
        if self.programs[name]["family"] == KNOWN or name in WHOLE_BUNDLED:
            return load_program(name)
        return Program.from_bytes(self._programs.read(f"{name}.mgp"))

    def greedy_ps(self, level: str) -> int | None:
        greedy_ps: int | None = self.figures(level).get("greedy_ps")
        return greedy_ps

    def figures(self, level: str) -> dict[str, Any]:
        """Returns what is known of a level: of train and schedule it is said of each variant."""
        name, _, text = level.partition("@")
        entry = self.programs[name]
        figures: dict[str, Any] = entry["variants"][text] if "variants" in entry else entry
        return figures

    @functools.cached_property
    def best_known(self) -> dict[str, dict[str, Any]]:
        """Level -> latency_ps, and the player that found_by names."""
        if not self._best.path.exists():
            return {}
        known: dict[str, dict[str, Any]] = json.loads(self._best.read(_LATENCIES))
        return known

    def best_ps(self, level: str) -> int | None:
        entry = self.best_known.get(level)
        best_ps: int | None = self.figures(level).get("best_known_ps")
        return best_ps if entry is None else int(entry["latency_ps"])

    def best_plan(self, level: str, program: Callable[[], Program]) -> Plan | None:
        if level not in self.best_known:
            return None
        planned = program()
        order = self.best_order(level)
        if order is not None:
            planned = planned.reordered(order)
        return Plan.from_json(decode(self._best.read(f"{level}.json")), planned)

    def best_order(self, level: str) -> list[int] | None:
        """Returns the order of instructions of the best known plan; None: the program's own."""
        if level not in self.best_known:
            return None
        order: list[int] | None = json.loads(self._best.read(f"{level}.json")).get("order")
        return order

    def improve(self, better: Mapping[str, tuple[int, str, bytes]]) -> list[str]:
        """Keeps plans that are better than those known. Returns the levels that it did so for.

        better: level -> latency_ps, player, the plan as JSON. FileAccessError.
        """
        known = dict(self.best_known)
        plans = {level: self._best.read(f"{level}.json") for level in known}
        improved = []
        for level, (latency_ps, player, plan) in better.items():
            if level in known and known[level]["latency_ps"] <= latency_ps:
                continue
            known[level] = {"latency_ps": latency_ps, "found_by": player}
            plans[level] = plan
            improved.append(level)
        if improved:
            files = {f"{level}.json": plans[level] for level in sorted(plans)}
            latencies = json.dumps(dict(sorted(known.items())), indent=1) + "\n"
            write_archive(
                self.folder / BEST_KNOWN,
                {_LATENCIES: latencies.encode()} | files,
                zipfile.ZIP_LZMA,  # Plans of whole models are large.
            )
            self._best = _Archive(self.folder / BEST_KNOWN)
            self.__dict__.pop("best_known", None)
        return improved


class _Archive:
    """A zip file that stays open from its first use."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    @functools.cached_property
    def _file(self) -> zipfile.ZipFile:
        # Read whole: it is small, and so nothing is left open.
        try:
            return zipfile.ZipFile(io.BytesIO(read_file(self.path)))
        except zipfile.BadZipFile as error:
            raise InvalidInputError(f"{self.path}: damaged ({error})") from None

    def read(self, name: str) -> bytes:
        try:
            return self._file.read(name)
        except (KeyError, zipfile.BadZipFile, ValueError) as error:
            raise InvalidInputError(f"{self.path}: {name}: damaged or missing ({error})") from None


def write_archive(path: pathlib.Path, files: Mapping[str, bytes], compression: int) -> None:
    """Writes a zip file; the same files give the same bytes. FileAccessError."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, compression)
    write_file(path, packed.getvalue())


def load_level_set(folder: str | os.PathLike[str]) -> LevelSet:
    """Reads the index of a set. InvalidInputError, MissingFileError."""
    path = pathlib.Path(folder) / INDEX
    try:
        text = decode(read_file(path))
    except MissingFileError:
        raise MissingFileError(
            f"{path}: there is no finished set of levels; `mallocgame levels make` writes one"
        ) from None
    try:
        index = json.loads(text)
        if index["format"] != FORMAT:
            raise InvalidInputError(f"{path}: found format {index['format']}, allowed: {FORMAT}")
        if not all(
            {"split", "family", "hardware"} <= set(one) for one in index["programs"].values()
        ):
            raise KeyError("split, family or hardware of a program")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(f"{path}: no index of levels ({error!r})") from None
    return LevelSet(path.parent, index)
