"""`mallocgame programs` and `mallocgame import`: the bundled programs, and new ones."""

import argparse
import os
import sys

import mallocgame as mg
from mallocgame._cli import console, parser
from mallocgame._cli.rows import assumed_sentences, cell, print_json
from mallocgame.experiments import Table
from mallocgame.experiments.plan_rows import assumed_row, program_row
from mallocgame.programs import LARGE, SCHEDULES, SUITES, large_file, suite


def register(commands: parser.Commands) -> None:
    """Adds the commands of this module."""
    command = commands.add("programs", _programs, "list the bundled programs")
    command.takes("--suite", "only those of a suite", choices=SUITES, default="all")

    command = commands.add("import", _import, "make a program file of an HLO module")
    command.takes(
        "module MODULE",
        "HLO, best from before memory space assignment: protocol buffer or text, gzip or not",
    )
    command.takes("--assigned FILE", "HloProto after memory space assignment: XLA's own plan")
    command.takes(
        "--priced FILE",
        "modules after code generation, with estimated cycles",
        nargs="+",
        action="extend",
        default=[],
    )
    command.takes("--profile FILE", "JSON table of cycles by placement")
    command.takes(
        "--schedule",
        "in what order a module without a schedule runs: that of its instructions (the "
        "default); module: refuse it",
        choices=SCHEDULES,
        default=SCHEDULES[0],
    )
    parser.add_trips(command)
    command.takes(
        "--default-trips N",
        "trips of loops whose trip count can't be read from the module (5)",
        parser.positive,
        default=5,
    )
    parser.add_hardware(command, required=True)
    command.takes("--name NAME", "of the program (that of the output file)", default="")
    command.takes("--origin TEXT", "kept in the file, such as compiler versions", default="")
    command.takes("-o --output FILE", "the .mgp file to write", parser.output_file, required=True)


def _programs(options: argparse.Namespace) -> int:
    rows = []
    names = suite(options.suite)
    unmade = []
    if options.suite == LARGE:
        unmade = [name for name in names if large_file(name) is None]
        names = [name for name in names if name not in unmade]
    with console.working("reading programs", len(names)) as work:
        for name in names:
            work.tell(name)
            rows.append(program_row(mg.load_program(name), name))
            work.advance()
    if options.json:
        return print_json({"programs": rows} | ({"unmade": unmade} if unmade else {}))
    table = Table(("program", "instr", "bufs", "accs", "main µs", "XLA µs"))
    for row in rows:
        counts = (row[key] for key in ("program", "instructions", "eligible_buffers", "accesses"))
        table.add(*counts, *(console.microseconds(row[key]) for key in ("all_main_ps", "xla_ps")))
    console.print_table(table)
    console.print_line(
        "bufs: buffers that may move, accs: their accesses, main: all in main memory."
    )
    if unmade:
        console.print_line(f"Not made here yet, by `mallocgame xla large`: {', '.join(unmade)}.")
    console.print_line("Static estimates from the compiler's prices, not measurements on a chip.")
    return parser.OK


def _import(options: argparse.Namespace) -> int:
    name = options.name or os.path.basename(options.output).removesuffix(".mgp")
    with console.working(f"importing {options.module}"):
        program = mg.import_hlo(
            options.module,
            assigned=options.assigned,
            priced=options.priced,
            profile=options.profile,
            hardware=parser.hardware_of(options, mg.hardware(options.hardware)),
            name=name,
            default_trips=options.default_trips,
            origin=options.origin,
            trips=dict(options.trips),
            schedule=options.schedule,
        )
        mg.save_program(program, options.output)
        row = program_row(program, program.name)
        assumed = assumed_row(program)
    for sentence in assumed_sentences(assumed):
        print(f"mallocgame import: {sentence}", file=sys.stderr)
    if options.json:
        return print_json(row | assumed)
    cells = [(key.replace("_", " "), cell(value)) for key, value in row.items()]
    console.print_table(Table((program.name, ""), cells), gap=2)
    return parser.OK
