"""Predicts published measurements: captures each function for its chip and adds up its prices.

    python benchmarks/measured/predict.py FOLDER [ID...] [--known] [--held] [--chips A,B]
        [--points PATH]

Keeps each capture in FOLDER, so that it can be interrupted and goes on where it stopped, and the
compiler's answers in FOLDER/answers. Prints the Markdown of docs/results/measured.md: predicted
over measured at the compiler's prices and at calibrated ones, overall and by chip, kind, dtype and
source. --known: of what is captured already. --held: only points that are held out of all fits.
--points: of a folder that mgx.measure() wrote, in place of the published ones. Needs JAX and libtpu
(.ci/setup xla) and no TPU. Exits 1 if a function can't be captured.
"""

import dataclasses
import operator
import pathlib
import sys
from collections.abc import Callable, Mapping, Sequence

from figures import figures, heading, line
from points import Point, Source, load, load_measured

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame import experiments as ex
from mallocgame.xla.captures import is_capture

_CMEM = 3  # the memory space


@dataclasses.dataclass(frozen=True)
class Row:
    """A point, and the program that was captured of it."""

    point: Point
    program: mg.Program
    fresh: bool  # preloads count as copies, because no run before can have made them

    def _us(self, report: mg.Report) -> float:
        return (report.latency_cold_ps if self.fresh else report.latency_ps) / 1e6

    @property
    def predicted_us(self) -> float:
        """The time at the compiler's prices, under XLA's own plan."""
        return self._us(mg.simulate(self.program, _xla_plan(self.program)))

    def calibrated_us(self, law: mg.calibration.PriceLaw | None = None) -> float:
        """The same at calibrated prices. law: None is the library's."""
        made = mg.calibration.calibrated(self.program, law=law)
        return self._us(mg.simulate(made, _xla_plan(made)))


def _xla_plan(program: mg.Program) -> mg.Plan:
    assert program.xla_plan is not None, "the module after assignment has a plan"
    return program.xla_plan


def main(
    folder: pathlib.Path,
    *ids: str,
    chips: tuple[str, ...] = (),
    points: pathlib.Path | None = None,
    known: bool = False,
    held: bool = False,
) -> int:
    """Captures what is missing and prints the tables."""
    sources, every = load() if points is None else load_measured(points)
    if unknown := set(ids) - {point.id for point in every}:
        found = ", ".join(sorted(unknown))
        raise mg.InvalidInputError(f"points: found {found}, allowed: those that there are")
    wanted = [
        point
        for point in every
        if (not ids or point.id in ids)
        and (not chips or point.chip in chips)
        and (point.held or not held)
    ]
    failed = [] if known else captured(folder, wanted, sources)
    rows = rows_of(folder, wanted, sources)
    if not rows:
        print("found no point that is captured", file=sys.stderr)
        return 1
    _print(rows)
    return int(bool(failed))


def _print(rows: Sequence[Row]) -> None:
    print("\n".join(tables(rows, lambda row: row.predicted_us, "the compiler's prices")))
    print()
    print("\n".join(tables(rows, lambda row: row.calibrated_us(), "calibrated prices")))


def captured(
    folder: pathlib.Path, points: Sequence[Point], sources: Mapping[str, Source]
) -> list[str]:
    """Captures the points that are missing. Returns the ids of those that can't be captured."""
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


def rows_of(
    folder: pathlib.Path, points: Sequence[Point], sources: Mapping[str, Source]
) -> list[Row]:
    """Returns the rows of the points that are captured, without those that are left out."""
    counted = [one for one in points if one.left_out is None and is_capture(folder / one.id)]
    return [_row(folder, point, sources[point.source].fresh) for point in counted]


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


def _row(folder: pathlib.Path, point: Point, fresh: bool) -> Row:
    file = folder / point.id / "program.mgp"
    program = mg.load_program(file)
    if any(work == "unknown" for work, *_ in program.pools):  # An older version has written it.
        program = mgx.load_capture(folder / point.id).program
        mg.save_program(program, file)
    return Row(point, program, fresh)


def _capture(point: Point, compiler: mgx.Compiler) -> mgx.Capture:
    """Returns a point's capture.

    One compile does where the compiler prices fast memory as such. Where it prices CMEM as main
    memory, only prices of both say what work is (mallocgame/program/calibrate.h).
    """
    module = point.lowered()
    if compiler.target.hardware.fast_memory_space == _CMEM:
        return mgx.capture_module(module, compiler.target, point.id, compiler)
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
    ex.main(main)
