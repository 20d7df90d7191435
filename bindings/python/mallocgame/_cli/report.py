"""`mallocgame report`: where the time of a large program goes, XLA's plan beside another."""

import argparse
import os
from collections.abc import Sequence

import mallocgame as mg
from mallocgame import plots, reports
from mallocgame._cli import console, parser
from mallocgame._cli.rows import print_json
from mallocgame._cli.solve import add_limits, known_solvers, run_solver
from mallocgame.errors import InvalidInputError
from mallocgame.experiments import Table

_MICROSECOND, _MEBIBYTE = 10**6, 2**20


def register(commands: parser.Commands) -> None:
    """Adds the command of this module."""
    command = commands.add(
        "report", _report, "where the time of a program goes, XLA's plan beside another"
    )
    command.takes("program PROGRAM", parser.PROGRAM)
    other = command.add_mutually_exclusive_group()
    other.add_argument("--plan", metavar="PLAN", help="another plan than XLA's (JSON)")
    other.add_argument(
        "--solver", choices=known_solvers(), metavar="NAME", help="have it find one (see `solve`)"
    )
    command.takes(
        "--by",
        "layer, named scope or opcode; layers and scopes that repeat under another number are "
        "grouped (the first of the three that the program has)",
        choices=reports.GROUPINGS,
    )
    command.takes("--depth N", "how many names of a scope count (2)", parser.positive, default=2)
    command.takes("--rows N", "of the table, at most (20)", parser.positive, default=20)
    command.takes(
        "--what-if",
        "latency over fast memory and over the bandwidth of main memory instead, of XLA's "
        "allocator, a solver (portfolio) and the bound; a dozen machines, --seconds for each",
    )
    command.takes(
        "--plot FILE", "with --what-if, draw it as PNG (needs matplotlib)", parser.output_file
    )
    parser.add_hardware(command)
    add_limits(command)
    parser.add_bound(command)


def _report(options: argparse.Namespace) -> int:
    program, hardware = parser.problem_of(options)
    if options.what_if:
        return _what_if(options, program, hardware)
    if options.plot is not None:
        raise InvalidInputError("--plot: draws what --what-if finds")
    subjects = _subjects(options, program, hardware)
    told = reports.breakdown(subjects, options.by, options.depth, hardware)
    if options.json:
        return print_json(told.document())
    _print_breakdown(told, options.rows)
    return parser.OK


def _subjects(
    options: argparse.Namespace, program: mg.Program, hardware: mg.Hardware
) -> list[reports.Subject]:
    """Returns XLA's own plan, if there is one for the hardware, and the other one."""
    subjects = []
    xla = program.xla_plan_for(hardware)
    if xla is not None:
        subjects.append(reports.Subject("XLA", program, xla))
    if options.plan is not None:
        ordered, plan, _ = mg.files.load_ordered_plan(options.plan, program)
        subjects.append(reports.Subject(os.path.basename(options.plan), ordered, plan))
    if options.solver is not None:
        label = f"{options.solver} on {program.name}"
        with console.stopping() as stop, console.working(label) as work:
            result = run_solver(program, hardware, options.solver, options, work, stop)
        subjects.append(reports.Subject(options.solver, result.program, result.plan))
    if not subjects:
        raise InvalidInputError(
            f"{program.name}: it has no plan of XLA's for {hardware.name}; --plan or --solver "
            "names another one"
        )
    return subjects


def _print_breakdown(told: reports.Breakdown, rows: int) -> None:
    both = len(told.plans) > 1
    heads = [f"{one.removesuffix('.json')} µs" for one in told.plans]
    heads += [what for what in ("stall", "MiB") for _ in told.plans]
    table = Table((told.by, "instr", *heads, *(["faster"] if both else [])))

    def add(part: reports.Part, indent: str = "") -> None:
        count = f" × {len(part.parts)}" if part.parts else ""
        cells = [f"{spent.latency_ps / _MICROSECOND:,.1f}" for spent in part.spent]
        cells += [f"{spent.stall_ps / _MICROSECOND:,.1f}" for spent in part.spent]
        cells += [
            f"{(spent.main_bytes + spent.copied_bytes) / _MEBIBYTE:,.1f}" for spent in part.spent
        ]
        if both:
            first, second = (spent.latency_ps for spent in part.spent[:2])
            cells.append(console.times(first / second) if second else "-")
        table.add(f"{indent}{part.name}{count}", f"{part.instructions:,}", *cells)

    shown = _shown(told, rows)
    for part, indent in shown:
        add(part, indent)
    add(told.total)
    console.print_line(f"{told.program} on {told.hardware}")
    console.print_table(table)
    console.print_line(
        "stall: the part of µs that waits for copies. MiB: over the channel of main memory, by "
        "instructions and copies." + (" Of both plans in the same order." if both else "")
    )
    console.print_line("Static estimates, not measurements on a chip; --json has picoseconds.")


def _shown(told: reports.Breakdown, rows: int) -> Sequence[tuple[reports.Part, str]]:
    """Returns the rows of the table, at most so many: what is left out comes last, together.

    By layers each of those that are told together comes below them.
    """
    each = told.by == "layer"
    parts = list(told.parts)
    if len(parts) > rows:
        rest = parts[rows - 1 :]
        parts = [*parts[: rows - 1], reports.tell_together(f"({len(rest)} others)", rest)]
    left = rows - len(parts)
    shown = []
    for part in parts:
        shown.append((part, ""))
        if each and 0 < len(part.parts) <= left:
            shown += [(one, "  ") for one in part.parts]
            left -= len(part.parts)
    return shown


def _what_if(options: argparse.Namespace, program: mg.Program, hardware: mg.Hardware) -> int:
    if options.plan is not None:
        raise InvalidInputError("--plan: a plan is of one machine; --what-if takes a --solver")
    if options.plot is not None:
        plots.check()
    with console.stopping() as stop, console.working(f"what if, {program.name}") as work:
        told = reports.what_if(
            program,
            hardware,
            solver=options.solver or "portfolio",
            seconds=options.seconds,
            seed=options.seed,
            bound_name=options.bound,
            tell=work.tell,
            stop=stop,
        )
    if options.plot is not None:
        plots.save_what_if(options.plot, told)
    if options.json:
        print_json(told.document())
    else:
        _print_what_if(told)
    return parser.INTERRUPTED if stop() else parser.OK


def _print_what_if(told: reports.WhatIf) -> None:
    console.print_line(f"{told.program} on {told.hardware}")
    for points, head in ((told.fast, "fast MiB"), (told.bandwidth, "bandwidth")):
        if not points:
            continue
        names = list(points[0].latency_ps)
        table = Table((head, *(cell for name in names for cell in (f"{name} µs", ""))))
        now = next((one for one in points if one.is_of(told)), points[0]).latency_ps
        for point in points:
            at = point.fast_bytes / _MEBIBYTE if points is told.fast else point.bandwidth
            mark = " now" if point.is_of(told) else ""
            cells = (
                cell
                for name, ps in point.latency_ps.items()
                for cell in (console.microseconds(ps), console.times(now[name] / ps))
            )
            table.add(f"{at:g}{mark}", *cells)
        console.print_table(table)
    if told.no_bandwidth:
        console.print_line(f"No bandwidths: {told.no_bandwidth}")
    console.print_line(
        "Fast memory at the program's own prices, bandwidth at calibrated ones. The compiler would "
        "choose other tiles and fusions too, which is not in it."
    )
    console.print_line("Static estimates, not measurements on a chip.")
