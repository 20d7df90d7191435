"""`mallocgame compare`: solvers against each other and XLA, as a table, JSON, CSV or a picture."""

import argparse
import contextlib
import dataclasses
import functools
import math
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import mallocgame as mg
from mallocgame import plots
from mallocgame._cli import console, parser
from mallocgame._cli.folders import writing
from mallocgame._cli.kept_rows import KeptRows
from mallocgame._cli.rows import Reference, Row, csv_text, plan_row, print_json, reference
from mallocgame._cli.solve import add_limits, known_solvers, prices_of, run_solver
from mallocgame._core import write_file
from mallocgame._jobs import HERE, FailedJobsError, Workers, run_jobs
from mallocgame.errors import InvalidInputError
from mallocgame.programs import SUITES, suite

# Cold first, at the compiler's prices and at calibrated ones.
_SPEEDUPS = (
    "speedup_cold_vs_xla",
    "speedup_vs_xla",
    "speedup_calibrated_cold_vs_xla",
    "speedup_calibrated_vs_xla",
)
# Those of the table, which fits into 80 columns, and how it calls them.
_SHOWN = {"speedup_cold_vs_xla": "vs XLA", "speedup_calibrated_cold_vs_xla": "calibrated"}

_SOLVERS = "greedy,anneal,xla-assigned"

Job = TypeVar("Job")
Result = TypeVar("Result")


def register(commands: parser.Commands) -> None:
    """Adds the command of this module."""
    command = commands.add("compare", _compare, "solvers against each other and XLA, as a table")
    command.add_argument("programs", metavar="PROGRAM", nargs="*", help=parser.PROGRAM)
    command.add_argument(
        "--suite",
        choices=SUITES,
        help="bundled programs; contended are 20 where XLA's own plan leaves 2 %% to gain",
    )
    command.add_argument(
        "--solvers",
        type=_solver_list,
        default=_SOLVERS,
        metavar="A,B",
        help=f"of {', '.join(mg.solver_names())} ({_SOLVERS})",
    )
    parser.add_hardware(command)
    add_limits(command)
    parser.add_bound(command)
    parser.add_workers(
        command,
        1,
        "solvers that work side by side, each on a core of its own (1: one after the other, each "
        "on all cores)",
    )
    command.add_argument(
        "--csv",
        type=parser.output_file,
        metavar="FILE",
        help="write the results as CSV; FILE.part has them as they come, and the same command goes "
        "on from there",
    )
    command.add_argument(
        "--plot",
        type=parser.output_file,
        metavar="FILE",
        help="draw the results as PNG (needs matplotlib)",
    )


def _solver_list(text: str) -> list[str]:
    known = known_solvers()
    solvers = [name.strip() for name in text.split(",") if name.strip()]
    for name in solvers:
        if name not in known:
            raise argparse.ArgumentTypeError(f"found '{name}', allowed: {', '.join(known)}")
    if not solvers:
        raise argparse.ArgumentTypeError(f"found none, allowed: {', '.join(known)}")
    return list(dict.fromkeys(solvers))


def _compare(options: argparse.Namespace) -> int:
    solvers = options.solvers
    names = list(options.programs) + ([] if options.suite is None else suite(options.suite))
    if not names:
        raise InvalidInputError("found no program to compare; give names or --suite")
    if options.plot is not None:
        plots.check()
    loaded = [mg.load_program(name) for name in dict.fromkeys(names)]
    problems = [_Problem(one, parser.hardware_of(options, one.hardware)) for one in loaded]
    total = len(problems) * len(solvers)
    with (
        writing(options.csv),
        parser.workers(options, here=True) as workers,
        console.stopping() as stop,
        console.working("comparing", total) as work,
    ):
        kept = KeptRows(options.csv, _settings(options))
        failed = None
        try:
            _Comparison(options, kept, workers, work, stop).run(problems)
        except FailedJobsError as error:
            failed = error
        found = [kept.find(one.program, solver) for one in problems for solver in solvers]
        rows = [row for row in found if row is not None]
        if failed and not rows:
            raise failed
        if not rows:
            raise KeyboardInterrupt
        if options.csv is not None:
            write_csv(options.csv, rows)
        if options.plot is not None:
            plots.save_comparison(options.plot, rows, solvers)
        if len(rows) == total:
            kept.forget()
    summary = summarize(rows, solvers)
    if options.json:
        print_json({"results": rows, "summary": summary})
    else:
        _print_results(rows, summary)
        if stop():
            console.print_line(f"Interrupted: these are {len(rows)} results of {total}.")
    if failed:
        raise failed
    if any(row["valid"] is False for row in rows):
        return parser.CHECK_FAILED
    return parser.INTERRUPTED if stop() else parser.OK


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """What rows of one comparison have in common, beside their programs and solvers."""
    names = ("seconds", "seed", "evaluations", "game", "prices", "bound", "checkpoint")
    own = {name: getattr(options, name) for name in names}
    return own | {name: getattr(options, name) for name in ("hardware", "preloads")}


@dataclasses.dataclass(frozen=True, eq=False)
class _Problem:
    """A program on the hardware of the options."""

    program: mg.Program
    hardware: mg.Hardware


@dataclasses.dataclass(frozen=True, eq=False)
class _Task:
    """A solver that is to be run on a problem, and what all solvers on it share."""

    problem: _Problem
    solver: str
    least: mg.bounds.Bound
    prices: mg.bounds.Prices | None

    @property
    def name(self) -> str:
        return f"{self.problem.program.name} {self.solver}"


class _Comparison:
    """Runs solvers, but those whose rows are kept, until `stop` returns True."""

    def __init__(
        self,
        options: argparse.Namespace,
        kept: KeptRows,
        workers: Workers,
        work: console.Work,
        stop: Callable[[], bool],
    ) -> None:
        self._options = options
        self._kept = kept
        self._workers = workers
        self._work = work
        self._stop = stop
        # Other processes can't be handed these. They tell nothing while they work.
        self._own: dict[str, Any] = {"work": work, "stop": stop} if workers == HERE else {}

    def run(self, problems: Sequence[_Problem]) -> None:
        """Keeps a row for each problem and solver. FailedJobsError: some have none."""
        missing = sum(len(self._missing(problem)) for problem in problems)
        self._work.done = len(self._options.solvers) * len(problems) - missing
        measured = functools.partial(_measured, self._options, **self._own)
        tasks = self._tasks(problems)
        for task, row in self._done(measured, tasks, lambda task: task.name):
            if self._stop():  # A row of less time than the others have would be no comparison.
                break
            self._kept.add(task.problem.program, task.solver, row)
            self._work.tell(task.name)
            self._work.advance()

    def _done(
        self, work: Callable[[Job], Result], jobs: Iterable[Job], name: Callable[[Job], str]
    ) -> Iterator[tuple[Job, Result]]:
        with contextlib.closing(
            run_jobs(work, jobs, self._workers, pinned=True, name=name, stop=self._stop)
        ) as finished:
            yield from finished

    def _missing(self, problem: _Problem) -> list[str]:
        solvers = self._options.solvers
        return [one for one in solvers if self._kept.find(problem.program, one) is None]

    def _tasks(self, problems: Sequence[_Problem]) -> Iterator[_Task]:
        """Yields what is to be run on a problem once its bound is found."""
        bounded = functools.partial(_bounded, self._options, **self._own)
        incomplete = [problem for problem in problems if self._missing(problem)]

        def name(problem: _Problem) -> str:
            return f"{problem.program.name} {self._options.bound}"

        for problem, (least, prices) in self._done(bounded, incomplete, name):
            for solver in self._missing(problem):
                yield _Task(problem, solver, least, prices)


def _never() -> bool:
    return False


def _bounded(
    options: argparse.Namespace,
    problem: _Problem,
    work: console.Work | None = None,
    stop: Callable[[], bool] = _never,
) -> tuple[mg.bounds.Bound, mg.bounds.Prices | None]:
    """Returns the bound of a problem, and the prices that the options ask for."""
    program, hardware = problem.program, problem.hardware
    if work is not None:
        work.tell(f"{program.name} bound")
    return mg.bounds.bound(program, options.bound, hardware), prices_of(program, hardware, options)


def _measured(
    options: argparse.Namespace,
    task: _Task,
    work: console.Work | None = None,
    stop: Callable[[], bool] = _never,
) -> Row:
    """Runs one solver on one problem and returns its row."""
    program, hardware, solver = task.problem.program, task.problem.hardware, task.solver
    xla = reference(program, hardware)
    if solver == "xla-assigned" and xla.report is None:
        # This is no error: XLA made no plan of this program for this hardware, or no valid one.
        row = plan_row(program, hardware, None, None, xla, None, task.least)
        return row | {
            "program": program.name,
            "hardware": hardware.name,
            "solver": solver,
            "status": "unavailable",
        }
    if work is None:
        work = console.Work(task.name, None)
    work.tell(task.name)
    subject = f"{task.name}: "
    result = run_solver(program, hardware, solver, options, work, task.prices, stop, subject)
    verdict = mg.validate(program, result.plan, hardware)
    return plan_row(program, hardware, result.report, verdict, xla, result, task.least, result.plan)


def geometric_mean(values: Iterable[float]) -> float | None:
    """The geometric mean of positive numbers; None if there are none."""
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else None


def summarize(rows: Sequence[Row], solvers: Sequence[str]) -> dict[str, Row]:
    """Geometric means by solver, over the programs where the figure is known."""

    def mean(solver: str, figure: Callable[[Row], float | None]) -> float | None:
        return geometric_mean(
            value for row in rows if row["solver"] == solver and (value := figure(row))
        )

    def ratio(above: str, below: str) -> Callable[[Row], float | None]:
        return lambda row: row[above] / row[below] if row[above] and row[below] else None

    return {
        solver: {
            "programs": sum(
                row["solver"] == solver and row["latency_ps"] is not None for row in rows
            ),
            **{f"geomean_{key}": mean(solver, operator.itemgetter(key)) for key in _SPEEDUPS},
            "geomean_speedup_vs_all_main": mean(solver, ratio("all_main_ps", "latency_ps")),
            "geomean_latency_over_bound": mean(solver, ratio("latency_ps", "bound_ps")),
        }
        for solver in solvers
    }


def _print_results(rows: Sequence[Row], means: dict[str, Row]) -> None:
    columns: list[console.Column] = [
        ("program and solver", "left"),
        ("cold µs", "right"),
        ("bound µs", "right"),
        *((heading, "right") for heading in _SHOWN.values()),
        ("gap", "right"),
        ("s", "right"),
    ]
    cells, last = [], None
    for row in rows:
        if row["program"] != last:
            last = row["program"]
            cells.append([last, "", console.microseconds(row["bound_ps"]), *[""] * 4])
        seconds = "-" if row["seconds"] is None else f"{row['seconds']:.1f}"
        over = (
            row["latency_ps"] / row["bound_ps"] if row["bound_ps"] and row["latency_ps"] else None
        )
        cells.append(
            [
                f"  {row['solver']}",
                console.microseconds(row["latency_cold_ps"]),
                "",
                *(console.times(row[key]) for key in _SHOWN),
                _percent_over(over),
                seconds,
            ]
        )
    cells.append(["geometric means", *[""] * 6])
    for solver, figures in means.items():
        cells.append(
            [
                f"  {solver}, of {figures['programs']}",
                *[""] * 2,
                *(console.times(figures[f"geomean_{key}"]) for key in _SHOWN),
                _percent_over(figures["geomean_latency_over_bound"]),
                "",
            ]
        )
    console.print_table(columns, cells, gap=1)
    names = sorted(
        {f"{row['bound_name']}, {row['bound_status']}" for row in rows if row["bound_name"]}
    )
    console.print_line("Speed-ups are over XLA's own plan, cold; --json has those of warm, too.")
    console.print_line(f"gap: warm, above the proven bound ({'; '.join(names)}).")
    for program, invalid in sorted({(row["program"], row["xla_invalid"]) for row in rows}, key=str):
        if invalid is not None:
            console.print_line(f"{program}: {Reference(None, invalid).sentence}")
    console.print_line("Static estimates, not measurements on a chip.")


def write_csv(path: str, rows: Sequence[Row]) -> None:
    """Writes one line for each program and solver; the columns are the keys of the rows."""
    write_file(os.fsencode(path), csv_text(list(rows[0]), rows))


def _percent_over(ratio: float | None) -> str:
    return "-" if ratio is None else f"{100 * (ratio - 1):.1f}%"
