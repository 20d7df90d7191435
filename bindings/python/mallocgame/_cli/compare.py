"""`mallocgame compare`: solvers against each other and XLA, as a table, JSON, CSV or a picture."""

import argparse
import collections
import contextlib
import dataclasses
import functools
import shutil
from collections.abc import Callable, Sequence
from typing import Any

import mallocgame as mg
from mallocgame import experiments, plots
from mallocgame._cli import console, parser
from mallocgame._cli.folders import writing
from mallocgame._cli.rows import csv_text, print_json
from mallocgame._cli.solve import add_limits, known_solvers, run_solver
from mallocgame._core import write_file
from mallocgame._jobs import HERE, Workers, run_jobs
from mallocgame.errors import InvalidInputError
from mallocgame.experiments.plan_rows import Reference, Row, plan_row, reference, summarize
from mallocgame.experiments.running import Kept
from mallocgame.programs import SUITES, suite

PART = ".part"  # the folder beside the file of --csv that has the rows as they come

# Those of the table, which fits into 80 columns, and how it calls them.
_SHOWN = {"speedup_cold_vs_xla": "vs XLA", "speedup_calibrated_cold_vs_xla": "calibrated"}

_SOLVERS = "greedy,anneal,xla-assigned"


def register(commands: parser.Commands) -> None:
    """Adds the command of this module."""
    command = commands.add("compare", _compare, "solvers against each other and XLA, as a table")
    command.takes("programs PROGRAM", parser.PROGRAM, nargs="*")
    command.takes(
        "--suite",
        "of programs; contended are 20 where XLA's own plan leaves 2 %% to gain, and large "
        "are 24 whole models (`mallocgame xla large`)",
        choices=SUITES,
    )
    command.takes(
        "--solvers A,B",
        f"of {', '.join(mg.solver_names())} ({_SOLVERS})",
        _solver_list,
        default=_SOLVERS,
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
    command.takes(
        "--csv FILE",
        "write the results as CSV; FILE.part has them as they come, and the same command goes "
        "on from there",
        parser.output_file,
    )
    command.takes("--plot FILE", "draw the results as PNG (needs matplotlib)", parser.output_file)


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
    grid = experiments.Grid(program=_problems(options, names), solver=solvers)
    part = None if options.csv is None else options.csv + PART
    failed = None
    with (
        writing(options.csv),
        parser.workers(options, here=True) as workers,
        console.stopping() as stop,
        console.working("comparing", len(grid)) as work,
    ):

        def done(cell: experiments.Cell) -> None:
            work.tell(experiments.cell_name(cell))
            work.advance()

        # Other processes can't be handed these. They tell nothing while they work.
        own: dict[str, Any] = {"work": work, "stop": stop} if workers == HERE else {}
        inputs = functools.partial(_inputs, options)
        if workers != HERE:
            _find_bounds(options, Kept(part, grid, inputs=inputs), workers, stop)
        try:
            rows = experiments.run(
                functools.partial(_measured, options, **own),
                grid,
                part,
                inputs=inputs,
                workers=workers,
                pinned=True,
                done=done,
                fail=work.tell,
                stop=stop,
            )
        except experiments.FailedCellsError as error:
            if not error.rows:
                raise
            failed, rows = error, error.rows
        if not rows:
            raise KeyboardInterrupt
        rows = [row | {"program": row["program"].program.name} for row in rows]
        if options.csv is not None:
            write_file(options.csv, csv_text(list(rows[0]), rows))
        if options.plot is not None:
            plots.save_comparison(options.plot, rows, solvers)
        if part is not None and len(rows) == len(grid):
            shutil.rmtree(part)
    summary = summarize(rows, solvers)
    if options.json:
        print_json({"results": rows, "summary": summary})
    else:
        _print_results(rows, summary)
        if stop():
            console.print_line(f"Interrupted: these are {len(rows)} results of {len(grid)}.")
    if failed is not None:
        raise failed
    if any(row["valid"] is False for row in rows):
        return parser.CHECK_FAILED
    return parser.INTERRUPTED if stop() else parser.OK


@dataclasses.dataclass(eq=False)
class _Problem:
    """A program on the hardware of the options, and what all solvers on it share."""

    program: mg.Program
    hardware: mg.Hardware
    name: str
    bound: mg.bounds.Bound | None = None  # once it is asked for


def _problems(options: argparse.Namespace, names: Sequence[str]) -> list[_Problem]:
    """Loads each program once."""
    loaded = {one.fingerprint: one for one in map(mg.load_program, dict.fromkeys(names))}
    several = collections.Counter(one.name for one in loaded.values())
    return [
        _Problem(
            one,
            parser.hardware_of(options, one.hardware),
            one.name if several[one.name] == 1 else f"{one.name} {fingerprint}",
        )
        for fingerprint, one in loaded.items()
    ]


def _inputs(options: argparse.Namespace, program: _Problem, solver: str) -> dict[str, Any]:
    """What a row depends on."""
    names = ("seconds", "seed", "evaluations", "game", "bound", "checkpoint")
    own = {name: getattr(options, name) for name in (*names, "hardware", "preloads")}
    return own | {"fingerprint": program.program.fingerprint}


def _find_bounds(
    options: argparse.Namespace, kept: Kept, workers: Workers, stop: Callable[[], bool]
) -> None:
    """Finds the bounds of programs that lack a row, side by side."""
    missing = dict.fromkeys(cell["program"] for cell in kept.missing())
    bounded = functools.partial(_bounded, options)
    name = f"{{}} {options.bound}"
    with contextlib.closing(
        run_jobs(
            bounded,
            missing,
            workers,
            pinned=True,
            name=lambda one: name.format(one.name),
            stop=stop,
        )
    ) as finished:
        for problem, bound in finished:
            problem.bound = bound


def _bounded(options: argparse.Namespace, problem: _Problem) -> mg.bounds.Bound:
    return mg.bounds.bound(problem.program, options.bound, problem.hardware)


def _measured(
    options: argparse.Namespace,
    program: _Problem,
    solver: str,
    work: console.Work | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Row:
    """Runs one solver on one problem and returns its row."""
    problem, loaded, hardware = program, program.program, program.hardware
    name = f"{problem.name} {solver}"
    if work is None:
        work = console.Work(name, None)
    if problem.bound is None:
        work.tell(f"{problem.name} bound")
        problem.bound = _bounded(options, problem)
    least = problem.bound
    xla = reference(loaded, hardware)
    if solver == "xla-assigned" and xla.report is None:
        # This is no error: XLA made no plan of this program for this hardware, or no valid one.
        row = plan_row(loaded, hardware, None, None, xla, None, least)
        return row | {"solver": solver, "status": "unavailable"}
    work.tell(name)
    result = run_solver(loaded, hardware, solver, options, work, stop, f"{name}: ")
    verdict = mg.validate(loaded, result.plan, hardware)
    return plan_row(loaded, hardware, result.report, verdict, xla, result, least, result.plan)


def _print_results(rows: Sequence[Row], means: dict[str, Row]) -> None:
    heads = ("program and solver", "cold µs", "bound µs", *_SHOWN.values(), "gap", "s")
    table, last = experiments.Table(heads), None
    for row in rows:
        if row["program"] != last:
            last = row["program"]
            table.add(last, "", console.microseconds(row["bound_ps"]))
        seconds = "-" if row["seconds"] is None else f"{row['seconds']:.1f}"
        over = (
            row["latency_ps"] / row["bound_ps"] if row["bound_ps"] and row["latency_ps"] else None
        )
        table.add(
            f"  {row['solver']}",
            console.microseconds(row["latency_cold_ps"]),
            "",
            *(console.times(row[key]) for key in _SHOWN),
            _percent_over(over),
            seconds,
        )
    table.add("geometric means")
    for solver, figures in means.items():
        speedups = (console.times(figures[f"geomean_{key}"]) for key in _SHOWN)
        gap = _percent_over(figures["geomean_latency_over_bound"])
        table.add(f"  {solver}, of {figures['programs']}", "", "", *speedups, gap)
    console.print_table(table)
    names = sorted(
        {f"{row['bound_name']}, {row['bound_status']}" for row in rows if row["bound_name"]}
    )
    console.print_line("Speed-ups are over XLA's own plan, cold; --json has those of warm, too.")
    console.print_line(f"gap: warm, above the proven bound ({'; '.join(names)}).")
    for program, invalid in sorted({(row["program"], row["xla_invalid"]) for row in rows}, key=str):
        if invalid is not None:
            console.print_line(f"{program}: {Reference(None, invalid).sentence}")
    console.print_line("Static estimates, not measurements on a chip.")


def _percent_over(ratio: float | None) -> str:
    return "-" if ratio is None else f"{100 * (ratio - 1):.1f}%"
