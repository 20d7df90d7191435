"""Measurements of single functions on a chip: published ones, and those of mgx.measure()."""

import dataclasses
import importlib
import json
import pathlib
from typing import Any

from mallocgame.xla.lowering import lower

_FILE = pathlib.Path(__file__).with_name("points.json")


@dataclasses.dataclass(frozen=True)
class Source:
    """Who measured: a repository or a page."""

    title: str
    url: str
    revision: str | None  # of the repository; None: not known
    measured: str  # what was measured, and how
    software: str  # versions, as far as they are known
    flags: dict[str, str] | None  # options of the compiler; None: none are given
    fresh: bool  # each run has new inputs, so that no run before can have preloaded them


@dataclasses.dataclass(frozen=True)
class Point:
    """One function on one chip, and how long it took."""

    id: str
    chip: str  # a target of mallocgame.xla
    kind: str  # of function, such as attention
    dtype: str  # of the first argument
    function: str  # in the package `functions`, as module.name
    arguments: dict[str, Any]  # of that
    measured_us: float
    method: str  # device trace, device ops, cycle counter, slope, host clock
    data: str  # "random", or "zero weights", which take less power
    source: str
    where: str  # in the source
    left_out: str | None = None  # why no law is fitted to it and no figure counts it
    held: bool = False  # no law is fitted to it, so that it can judge them
    note: str | None = None
    module: str | None = None  # a file with its StableHLO, in place of a function

    @property
    def family(self) -> str:
        """The kind without what follows it: a GEMM with an epilogue is of its family."""
        return self.kind.partition("+")[0]

    def lowered(self) -> str:
        """Returns its StableHLO."""
        if self.module is not None:
            return pathlib.Path(self.module).read_text()
        function, arguments = self.make()
        return lower(function, *arguments)

    def make(self) -> tuple[Any, list[Any]]:
        """Returns the JAX function and the shapes of its arguments."""
        module, _, name = self.function.partition(".")
        return getattr(importlib.import_module(f"functions.{module}"), name)(**self.arguments)


def load() -> tuple[dict[str, Source], list[Point]]:
    """Returns all sources by name and all points."""
    data = json.loads(_FILE.read_text())
    sources = {name: Source(**fields) for name, fields in data["sources"].items()}
    return sources, [Point(**fields) for fields in data["points"]]


def load_measured(folder: pathlib.Path) -> tuple[dict[str, Source], list[Point]]:
    """Returns the same of a folder that mgx.measure() wrote. Each device is a source."""
    rows = [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]
    sources = {
        row["device"]: Source(
            title=row["device"],
            url="",
            revision=None,
            measured="mallocgame.xla.measure",
            software=", ".join(f"{name} {one}" for name, one in sorted(row["versions"].items())),
            flags=None,
            fresh=False,
        )
        for row in rows
    }
    points = [
        Point(
            id=row["id"],
            chip=row["chip"],
            kind=row["kind"],
            dtype=row["dtype"],
            function="",
            arguments={},
            measured_us=row["measured_us"],
            method=row["method"],
            data="as given",
            source=row["device"],
            where=str(folder),
            module=str(folder / row["module"]),
        )
        for row in rows
    ]
    return sources, points
