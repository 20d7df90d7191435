"""Predicts published measurements: captures each function for its chip and adds up its prices.

    python benchmarks/measured/predict.py FOLDER [--calibrated] [--chip NAME]... [ID...]

Keeps each capture in FOLDER, so that it can be interrupted and goes on where it stopped, and the
compiler's answers in FOLDER/answers. Prints the Markdown of docs/results/measured.md: predicted
over measured, overall and by chip, kind, dtype and source. --calibrated: by the law of
coefficients.json. --known: of what is captured already. Needs JAX and libtpu (.ci/setup xla) and no
TPU. Exits 1 if a function can't be captured.
"""

import argparse
import dataclasses
import functools
import json
import operator
import pathlib
import sys
from collections.abc import Callable, Sequence

import law
import prices
import terms
from classes import works
from figures import figures, heading, line
from points import Point, load

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame.xla.captures import is_capture
from mallocgame.xla.lowering import lower


@dataclasses.dataclass(frozen=True)
class Row:
    """A point, and what was predicted of it under XLA's own plan."""

    point: Point
    latency_ps: int  # at the compiler's prices, with preloads done before the start
    cold_ps: int  # the same with preloads as copies at the start
    terms: terms.Terms
    fresh: bool  # preloads count as copies, because no run before can have made them

    @property
    def predicted_us(self) -> float:
        """The time at the compiler's prices."""
        return (self.cold_ps if self.fresh else self.latency_ps) / 1e6

    def calibrated_us(self, one: law.Law) -> float:
        """Returns the time by a law, term by term."""
        slower = self.terms.spec_bytes_per_second / one.achieved_bytes_per_second
        preloads = (self.cold_ps - self.latency_ps) * slower + one.copy_latency_ps
        extra = preloads if self.fresh and self.cold_ps > self.latency_ps else 0.0
        return (self.terms.calibrated_ps(one) + extra) / 1e6


def main() -> int:
    """Captures what is missing and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("ids", nargs="*", metavar="ID", help="of points (all)")
    parser.add_argument("--chip", action="append", metavar="NAME", help="only its points")
    parser.add_argument("--calibrated", action="store_true", help="at calibrated prices, too")
    parser.add_argument("--known", action="store_true", help="compile nothing")
    options = parser.parse_args()
    _, points = load()
    unknown = set(options.ids) - {point.id for point in points}
    if unknown:
        parser.error(f"points: found {', '.join(sorted(unknown))}, allowed: those of points.json")
    wanted = [
        point
        for point in points
        if (not options.ids or point.id in options.ids)
        and (not options.chip or point.chip in options.chip)
    ]
    failed = [] if options.known else captured(options.folder, wanted)
    rows = rows_of(options.folder, wanted)
    print("\n".join(tables(rows, lambda row: row.predicted_us, "the compiler's prices")))
    print("\n".join(tables(rows, lambda row: row.cold_ps / 1e6, "with preloads as copies")[:3]))
    if options.calibrated:
        laws = law.load()
        times = {row.point.id: calibrated_us(options.folder, row, laws) for row in rows}
        print()
        print("\n".join(tables(rows, lambda row: times[row.point.id], "calibrated prices")))
    return int(bool(failed))


def captured(folder: pathlib.Path, points: Sequence[Point]) -> list[str]:
    """Captures the points that are missing. Returns the ids of those that can't be captured."""
    sources, _ = load()
    failed = []
    for chip in dict.fromkeys(point.chip for point in points):
        for flags in dict.fromkeys(_flags(sources[point.source].flags) for point in points):
            target = mgx.find_target(chip, options=dict(flags))
            missing = [
                point
                for point in points
                if point.chip == chip
                and _flags(sources[point.source].flags) == flags
                and not is_capture(folder / point.id)
            ]
            with mgx.Compiler(target, cache=folder / "answers") as compiler:
                for point in missing:
                    try:
                        _capture(point, compiler).save(folder / point.id)
                        print(f"{point.id} {chip} {point.kind}", file=sys.stderr)
                    except mg.MallocGameError as error:
                        print(f"{point.id}: {error}", file=sys.stderr)
                        failed.append(point.id)
    return failed


def rows_of(folder: pathlib.Path, points: Sequence[Point]) -> list[Row]:
    """Returns the rows of the points that are captured, without those that are left out."""
    counted = [one for one in points if one.left_out is None and is_capture(folder / one.id)]
    return [_row(folder, point) for point in counted]


def calibrated_us(folder: pathlib.Path, row: Row, laws: dict[str, law.Law]) -> float:
    """Returns the latency at calibrated prices, by the simulator."""
    one = laws[row.point.chip]
    captured = mgx.load_capture(folder / row.point.id)
    program, plan = captured.program, captured.xla_plan
    repriced = calibrated(captured, one)
    moved = prices.moved_plan(plan, program, repriced)
    hardware = one.hardware(program.hardware)
    report = mg.simulate(repriced, moved, hardware)
    time = report.latency_cold_ps if row.fresh else report.latency_ps
    copies = row.terms.stalls + (row.fresh and row.cold_ps > row.latency_ps)
    return (time + copies * one.copy_latency_ps) / 1e6


def calibrated(captured: mgx.Capture, one: law.Law) -> mg.Program:
    """Returns a capture's program with calibrated prices."""
    program = captured.program
    work = works(captured.before)
    price = functools.partial(one.cycles, program.hardware)
    names = program.instruction_names
    return prices.repriced(program, lambda cost, name, row: price(work[name], cost, row), names)


def tables(rows: Sequence[Row], predicted: Callable[[Row], float], title: str) -> list[str]:
    """Returns the lines of a table: overall, and by each property of the points."""
    lines = heading(title)
    lines.append(_line("all", rows, predicted))
    for column in ("chip", "source", "dtype", "method", "data"):
        lines += _groups(rows, predicted, operator.attrgetter(f"point.{column}"))
    lines += _groups(rows, predicted, lambda row: f"{row.point.chip}, {row.point.kind}")
    return lines


def _groups(
    rows: Sequence[Row], predicted: Callable[[Row], float], key: Callable[[Row], str]
) -> list[str]:
    keys = sorted({key(row) for row in rows})
    return [_line(one, [row for row in rows if key(row) == one], predicted) for one in keys]


def _line(name: str, rows: Sequence[Row], predicted: Callable[[Row], float]) -> str:
    found = figures([predicted(row) for row in rows], [row.point.measured_us for row in rows])
    return line(name, found)


def _row(folder: pathlib.Path, point: Point) -> Row:
    """Returns the row of a captured point, kept beside the capture."""
    kept = folder / point.id / "row.json"
    if not kept.exists():
        captured = mgx.load_capture(folder / point.id)
        report = mg.simulate(captured.program, captured.xla_plan)
        values = {
            "latency_ps": report.latency_ps,
            "cold_ps": report.latency_cold_ps,
            "terms": terms.to_json(terms.of(captured)),
        }
        kept.write_text(json.dumps(values))
    values = json.loads(kept.read_text())
    fresh = load()[0][point.source].fresh
    return Row(point, **values | {"terms": terms.from_json(values["terms"]), "fresh": fresh})


def _capture(point: Point, compiler: mgx.Compiler) -> mgx.Capture:
    """Returns a point's capture. One compile does, because no plan but XLA's own is looked at."""
    function, arguments = point.make()
    module = lower(function, *arguments)
    answer = compiler.compile(module)
    return mgx.Capture(
        point.id,
        compiler.target,
        module,
        answer.before,
        answer.assigned,
        compiler.versions,
        (answer.priced,),
    )


def _flags(flags: dict[str, str] | None) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((flags or {}).items()))


if __name__ == "__main__":
    raise SystemExit(main())
