"""`mallocgame compare`: solvers against each other and XLA, as a table, JSON, CSV or a picture."""

import argparse
import math
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import mallocgame as mg
from mallocgame import plots
from mallocgame._cli import console, parser
from mallocgame._cli.folders import writing
from mallocgame._cli.kept_rows import KeptRows
from mallocgame._cli.rows import Row, csv_text, plan_row, print_json, xla_report
from mallocgame._cli.solve import add_limits, known_solvers, prices_of, run_solver
from mallocgame._core import write_file
from mallocgame.errors import InvalidInputError
from mallocgame.programs import SUITES, suite

_SOLVERS = "greedy,beam,xla-assigned"


def register(commands: parser.Commands) -> None:
    """Adds the command of this module."""
    command = commands.add("compare", _compare, "solvers against each other and XLA, as a table")
    command.add_argument("programs", metavar="PROGRAM", nargs="*", help=parser.PROGRAM)
    command.add_argument(
        "--suite",
        choices=SUITES,
        help="bundled programs; contended are those where XLA's own plan leaves 3 %% to gain",
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
    problems = [mg.load_program(name) for name in dict.fromkeys(names)]
    rows = []
    total = len(problems) * len(solvers)
    with (
        writing(options.csv),
        console.stopping() as stop,
        console.working("comparing", total) as work,
    ):
        kept = KeptRows(options.csv, _settings(options))
        for program in problems:
            there = [kept.find(program, solver) for solver in solvers]
            known = [row for row in there if row is not None]
            if len(known) < len(solvers):
                if stop():
                    break
                known = _rows_of(program, options, kept, work, stop)
            else:
                work.done += len(known)
            rows += known
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
    if any(row["valid"] is False for row in rows):
        return parser.CHECK_FAILED
    return parser.INTERRUPTED if stop() else parser.OK


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """What rows of one comparison have in common, beside their programs and solvers."""
    names = ("seconds", "seed", "evaluations", "game", "prices", "bound", "checkpoint", "weights")
    own = {name: getattr(options, name) for name in names}
    return own | {name: getattr(options, name) for name in ("hardware", "preloads", "askable")}


def _rows_of(
    program: mg.Program,
    options: argparse.Namespace,
    kept: KeptRows,
    work: console.Work,
    stop: Callable[[], bool],
) -> list[Row]:
    """Runs the solvers on one program, but those whose rows are kept, until `stop` returns True."""
    hardware = parser.hardware_of(options, program.hardware)
    xla = xla_report(program, hardware)
    work.tell(f"{program.name} bound")
    least = mg.bound(program, options.bound, hardware)
    prices = prices_of(program, hardware, options)
    rows = []
    for solver in options.solvers:
        row = kept.find(program, solver)
        if row is None:
            row = _compared(program, hardware, solver, xla, options, work, least, prices, stop)
            if stop():  # A row of less time than the others have would be no comparison.
                break
            kept.add(program, solver, row)
        rows.append(row)
        work.advance()
    return rows


def _compared(
    program: mg.Program,
    hardware: mg.Hardware,
    solver: str,
    xla: mg.Report | None,
    options: argparse.Namespace,
    work: console.Work,
    least: mg.Bound,
    prices: mg.Prices | None,
    stop: Callable[[], bool],
) -> Row:
    """Runs one solver on one program and returns its row."""
    work.tell(f"{program.name} {solver}")
    if solver == "xla-assigned" and xla is None:
        # This is no error: XLA made no plan of this program for this hardware.
        row = plan_row(program, hardware, None, None, None, None, least)
        return row | {
            "program": program.name,
            "hardware": hardware.name,
            "solver": solver,
            "status": "unavailable",
        }
    subject = f"{program.name} {solver}: "
    result = run_solver(program, hardware, solver, options, work, prices, stop, subject)
    verdict = mg.validate(program, result.plan, hardware)
    return plan_row(program, hardware, result.report, verdict, xla, result, least)


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
            "geomean_speedup_vs_xla": mean(solver, lambda row: row["speedup_vs_xla"]),
            "geomean_speedup_vs_all_main": mean(solver, ratio("all_main_ps", "latency_ps")),
            "geomean_latency_over_bound": mean(solver, ratio("latency_ps", "bound_ps")),
        }
        for solver in solvers
    }


def _print_results(rows: Sequence[Row], means: dict[str, Row]) -> None:
    columns: list[console.Column] = [
        ("program and solver", "left"),
        ("latency µs", "right"),
        ("bound µs", "right"),
        ("vs XLA", "right"),
        ("gap", "right"),
        ("s", "right"),
    ]
    cells, last = [], None
    for row in rows:
        if row["program"] != last:
            last = row["program"]
            cells.append([last, "", console.microseconds(row["bound_ps"]), "", "", ""])
        seconds = "-" if row["seconds"] is None else f"{row['seconds']:.1f}"
        over = (
            row["latency_ps"] / row["bound_ps"] if row["bound_ps"] and row["latency_ps"] else None
        )
        cells.append(
            [
                f"  {row['solver']}",
                console.microseconds(row["latency_ps"]),
                "",
                console.times(row["speedup_vs_xla"]),
                _percent_over(over),
                seconds,
            ]
        )
    cells.append(["geometric means", *[""] * 5])
    for solver, figures in means.items():
        cells.append(
            [
                f"  {solver}, of {figures['programs']}",
                "",
                "",
                console.times(figures["geomean_speedup_vs_xla"]),
                _percent_over(figures["geomean_latency_over_bound"]),
                "",
            ]
        )
    console.print_table(columns, cells, gap=1)
    names = sorted(
        {f"{row['bound_name']}, {row['bound_status']}" for row in rows if row["bound_name"]}
    )
    console.print_line(f"gap: above the proven bound ({'; '.join(names)}).")
    console.print_line("Static estimates, not measurements on a chip.")


def write_csv(path: str, rows: Sequence[Row]) -> None:
    """Writes one line for each program and solver; the columns are the keys of the rows."""
    write_file(os.fsencode(path), csv_text(list(rows[0]), rows))


def _percent_over(ratio: float | None) -> str:
    return "-" if ratio is None else f"{100 * (ratio - 1):.1f}%"
