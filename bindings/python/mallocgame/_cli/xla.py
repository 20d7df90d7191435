"""`mallocgame xla targets|capture|profile|apply`; xla_tune.py has `tune`."""

import argparse
import statistics

from mallocgame._cli import console, parser, xla_tune
from mallocgame._cli.rows import (
    Row,
    assumed_row,
    assumed_sentences,
    plan_row,
    print_json,
    reference,
)
from mallocgame._cli.xla_shared import (
    SOURCE,
    add_compiler,
    add_options_output,
    add_target,
    add_time,
    capture_source,
    invalid_sentence,
    modelled_row,
    modelled_sentence,
    note_sentence,
    open_compiler,
    outcome_row,
    print_latencies,
    save_outcome,
)
from mallocgame._core import simulate, validate
from mallocgame.files import load_plan, save_plan
from mallocgame.programs import save_program
from mallocgame.xla.captures import Capture, load_capture
from mallocgame.xla.negotiate import NOTE
from mallocgame.xla.profiling import profile
from mallocgame.xla.targets import TARGETS, fast_mib_range, find_target
from mallocgame.xla.tuning import apply

_OWN_PLAN = "xla-assigned"


def register(commands: parser.Commands) -> None:
    """Adds `xla`, with commands of its own."""
    actions = commands.add_group(
        "xla",
        "action",
        "have the real TPU compiler carry plans out (needs mallocgame[xla])",
        f". Latencies are {NOTE}.",
    )
    actions.add("targets", _targets, "list the chips that the compiler compiles for")

    command = actions.add(
        "capture", _capture, "compile a JAX program for a TPU that needn't be there"
    )
    command.add_argument("source", metavar="SOURCE", help=SOURCE)
    add_target(command)
    command.add_argument(
        "-o", "--output", metavar="FOLDER", required=True, help="to write, with program.mgp"
    )
    add_compiler(command)

    command = actions.add("profile", _profile, "have more placements of a captured program priced")
    command.add_argument("capture", metavar="FOLDER", help="as `xla capture -o` writes it")
    command.add_argument(
        "--compiles", type=parser.count, default=6, metavar="N", help="placements to price (6)"
    )
    parser.add_seed(command)
    command.add_argument("-o", "--output", metavar="FOLDER", help="to write (the same folder)")
    add_compiler(command)

    command = actions.add("apply", _apply, "have a plan carried out, and see what becomes of it")
    command.add_argument("capture", metavar="FOLDER", help="as `xla capture -o` writes it")
    command.add_argument(
        "plan",
        metavar="PLAN",
        help=f"JSON, as `solve FOLDER/program.mgp -o` writes it, or {_OWN_PLAN}",
    )
    command.add_argument(
        "--rounds",
        type=parser.positive,
        default=4,
        metavar="N",
        help="plans to try at most, each without what was refused before (4)",
    )
    add_time(command, 10.0, "for a solver, each further round")
    add_options_output(command)
    command.add_argument(
        "--plan-output",
        type=parser.output_file,
        metavar="PLAN",
        help="write what the compiler did as a plan, and its program beside it (.mgp)",
    )
    add_compiler(command)
    xla_tune.register(actions)


def _targets(options: argparse.Namespace) -> int:
    rows = [_target_row(name) for name in TARGETS]
    if options.json:
        return print_json({"targets": rows})
    console.print_table(
        [
            ("target", "left"),
            ("topology", "left"),
            ("fast bytes", "right"),
            ("main GB/s", "right"),
            ("clock GHz", "right"),
            ("--fast-mib", "left"),
        ],
        [
            [
                row["target"],
                f"{row['topology']} {row['config'] or ''}".strip(),
                f"{row['fast_bytes']:,}",
                f"{row['main_bytes_per_second'] / 1e9:,.0f}",
                f"{row['clock_hz'] / 1e9:g}",
                _fast_mib_text(row),
            ]
            for row in rows
        ],
    )
    console.print_line("*: what a plan doesn't get is scratch for kernels, so their prices change.")
    console.print_line("Several chips have their shape behind the name, as in tpu_v5e:2x2.")
    return parser.OK


def _capture(options: argparse.Namespace) -> int:
    with console.working(f"capturing {options.source}") as work, open_compiler(options) as compiler:
        captured = capture_source(options, compiler, work.tell)
        captured.save(options.output)
        missing = compiler.abilities.sentence(compiler.versions)
    program = captured.program
    note = captured.target.note
    row = _program_row(captured) | {
        "folder": options.output,
        "versions": captured.versions,
        "note": note,
        "missing": missing,
        **assumed_row(program),
    }
    if options.json:
        return print_json(row)
    console.print_line(
        f"{program.name} for {captured.target.title}: {program.counts['accesses']} accesses, "
        f"all in main {console.microseconds(row['all_main_ps'])} µs, "
        f"XLA {console.microseconds(row['default_ps'])} µs"
    )
    said = (invalid_sentence(row), *assumed_sentences(row), modelled_sentence(row), note, missing)
    for sentence in said:
        if sentence is not None:
            console.print_line(sentence)
    console.print_line(f"Written to {options.output}. {note_sentence()}")
    return parser.OK


def _profile(options: argparse.Namespace) -> int:
    before = load_capture(options.capture)
    with (
        console.working(f"profiling {before.name}") as work,
        open_compiler(options, before) as compiler,
    ):
        after, lessons = profile(before, options.compiles, options.seed, compiler, work.tell)
        after.save(options.output or options.capture)
    rows: list[Row] = [
        {
            "kind": lesson.kind,
            "predicted_ps": lesson.predicted_ps,
            "priced_ps": lesson.priced_ps,
            "error": lesson.error,
        }
        for lesson in lessons
    ]
    median = statistics.median(abs(lesson.error) for lesson in lessons) if lessons else None
    if options.json:
        counts = {
            "rows_before": before.program.counts["rows"],
            "rows": after.program.counts["rows"],
        }
        return print_json(_program_row(after) | counts | {"lessons": rows, "median_error": median})
    console.print_table(
        [
            ("placement", "left"),
            ("predicted µs", "right"),
            ("priced µs", "right"),
            ("error", "right"),
        ],
        [
            [
                row["kind"],
                console.microseconds(row["predicted_ps"]),
                console.microseconds(row["priced_ps"]),
                f"{row['error']:+.2%}",
            ]
            for row in rows
        ],
    )
    known = _program_row(after)
    for sentence in (
        f"Each was predicted before its price was known. {note_sentence()}",
        modelled_sentence(known),
    ):
        if sentence is not None:
            console.print_line(sentence)
    return parser.OK


def _apply(options: argparse.Namespace) -> int:
    captured = load_capture(options.capture)
    program = captured.program
    plan = captured.xla_plan if options.plan == _OWN_PLAN else load_plan(options.plan, program)
    with (
        console.working(f"applying to {captured.name}") as work,
        open_compiler(options, captured) as compiler,
    ):
        done = apply(
            captured,
            plan,
            options.rounds,
            options.seconds,
            options.seed,
            compiler,
            work.tell,
            options.options,
        )
    if options.plan_output is not None:
        save_plan(done.plan, done.program, options.plan_output)
        save_program(done.program, f"{options.plan_output.removesuffix('.json')}.mgp")
    xla = simulate(program, captured.xla_plan)
    row = outcome_row(captured, done, xla) | {
        "honoured": done.honoured,
        "honoured_of_all": done.honoured_of_all,
        "predicted_ps": done.predicted_ps,
        "refusals": [
            {"buffer": one.buffer, "instruction": one.instruction, "reason": one.reason}
            for one in done.refusals
        ],
        "interrupted": done.interrupted,
    }
    status = parser.INTERRUPTED if done.interrupted else parser.OK
    if options.output is not None:
        save_outcome(options.output, captured, done)
    if options.json:
        print_json(row)
        return status
    console.print_line(
        f"{done.honoured:.1%} of the accesses to buffers of 16 KiB or more "
        "are served as the plan says"
    )
    for one in done.refusals:
        console.print_line(f"  refused: {one.buffer} at {one.instruction}: {one.reason}")
    print_latencies(row)
    if options.options is not None and done.verified_ps >= xla.latency_ps:
        console.print_line(
            f"It is no faster than XLA's default, so {options.options} stays as it is."
        )
    if done.interrupted:
        console.print_line("Interrupted: this is the best so far.")
    return status


def _target_row(name: str) -> Row:
    target = find_target(name)
    least, most = fast_mib_range(name)
    return {
        "target": name,
        "topology": target.topology,
        "config": target.config,
        "fast_bytes": target.hardware.fast_bytes,
        "main_bytes_per_second": target.hardware.main_bytes_per_second,
        "clock_hz": target.hardware.clock_hz,
        "fast_mib": [least, most] if most else None,
        "fast_mib_changes_prices": bool(most) and find_target(name, least).note is not None,
    }


def _fast_mib_text(row: Row) -> str:
    if row["fast_mib"] is None:
        return "all only"
    least, most = row["fast_mib"]
    return f"{least} to {most}{'*' if row['fast_mib_changes_prices'] else ''}"


def _program_row(captured: Capture) -> Row:
    program = captured.program
    xla = simulate(program, captured.xla_plan)
    own = reference(program, program.hardware)
    return plan_row(program, program.hardware, xla, validate(program, captured.xla_plan), own) | {
        "solver": _OWN_PLAN,
        "accesses": program.counts["accesses"],
        **modelled_row(program, xla),
        "estimate": NOTE,
    }
