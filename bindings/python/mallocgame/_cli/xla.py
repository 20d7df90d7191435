"""`mallocgame xla targets|capture|check|apply`; xla_tune.py and xla_large.py have the others."""

import argparse

from mallocgame._cli import console, parser, xla_large, xla_tune
from mallocgame._cli.rows import print_json
from mallocgame._cli.xla_shared import (
    SOURCE,
    add_compiler,
    add_folder,
    add_target,
    add_time,
    capture_source,
    emitted_row,
    invalid_sentence,
    modelled_row,
    modelled_sentences,
    note_sentence,
    open_compiler,
    print_latencies,
    unpriced_sentence,
    verdict_sentence,
    waiting_sentence,
)
from mallocgame._core import simulate, validate
from mallocgame.calibration import error_sentence
from mallocgame.experiments import Table
from mallocgame.experiments.plan_rows import Row, plan_row, reference
from mallocgame.files import load_ordered_plan, save_plan
from mallocgame.programs import save_program
from mallocgame.xla.captures import LEAST_PRICING, Capture, load_capture
from mallocgame.xla.targets import TARGETS, fast_mib_range, find_target
from mallocgame.xla.tuning import HEADROOM_NOTE, NOTE, apply, what_is_left

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
    command.takes("source SOURCE", SOURCE)
    add_target(command)
    command.takes("-o --output FOLDER", "to write, with program.mgp", required=True)
    add_compiler(command)

    command = actions.add("check", _check, "estimate within seconds what XLA leaves to be won")
    command.takes("source SOURCE", SOURCE)
    add_target(command)
    add_time(command, 10.0, "wall time of prices and bound, after the capture")
    add_compiler(command)

    command = actions.add("apply", _apply, "have a plan carried out, as it is")
    command.takes("capture CAPTURE", "as `xla capture -o` writes it")
    command.takes("plan PLAN", f"JSON, as `solve CAPTURE/program.mgp -o` writes it, or {_OWN_PLAN}")
    add_folder(command)
    command.takes(
        "--plan-output PLAN",
        "write the plan with its exact prices, and its program next to it (.mgp)",
        parser.output_file,
    )
    add_compiler(command)
    xla_tune.register(actions)
    xla_large.register(actions)


def _targets(options: argparse.Namespace) -> int:
    rows = [_target_row(name) for name in TARGETS]
    if options.json:
        return print_json({"targets": rows})
    heads = ("target", "topology", "fast bytes", "main GB/s", "clock GHz", "--fast-mib")
    table = Table(heads, left=2)
    for row in rows:
        table.add(
            row["target"],
            f"{row['topology']} {row['config'] or ''}".strip(),
            f"{row['fast_bytes']:,}",
            f"{row['main_bytes_per_second'] / 1e9:,.0f}",
            f"{row['clock_hz'] / 1e9:g}",
            _fast_mib_text(row),
        )
    console.print_table(table, gap=2)
    console.print_line("*: what a plan doesn't get is scratch for kernels, so their prices change.")
    console.print_line("Several chips have their shape behind the name, as in tpu_v5e:2x2.")
    return parser.OK


def _capture(options: argparse.Namespace) -> int:
    with console.working(f"capturing {options.source}") as work, open_compiler(options) as compiler:
        captured = capture_source(options, compiler, work.tell)
        captured.save(options.output)
    program = captured.program
    note = captured.target.note
    row = _program_row(captured) | {
        "folder": options.output,
        "versions": captured.versions,
        "note": note,
    }
    if options.json:
        return print_json(row)
    console.print_line(
        f"{program.name} for {captured.target.title}: {program.counts['accesses']} accesses, "
        f"all in main {console.microseconds(row['all_main_ps'])} µs, "
        f"XLA {console.microseconds(row['default_ps'])} µs"
    )
    console.print_sentences(invalid_sentence(row), *modelled_sentences(row), note)
    console.print_line(f"Written to {options.output}. {note_sentence()}")
    return parser.OK


def _check(options: argparse.Namespace) -> int:
    with console.working(f"checking {options.source}") as work, open_compiler(options) as compiler:
        captured = capture_source(options, compiler, work.tell, max(LEAST_PRICING, options.seconds))
        left = what_is_left(captured, options.seconds, compiler, work.tell)
    row = _program_row(left.capture) | {
        "bound_ps": left.bound_ps,
        "left": left.share,
        "calibrated_bound_ps": left.calibrated_bound_ps,
        "left_calibrated": left.share_calibrated,
        "priced": left.priced,
        "waiting": len(left.waiting),
        "headroom": HEADROOM_NOTE,
        "unpriced": left.capture.unpriced,
    }
    if options.json:
        return print_json(row)
    console.print_line(
        f"{captured.name} for {captured.target.title}: "
        f"XLA {console.microseconds(row['default_cold_ps'])} µs cold, "
        f"{console.microseconds(row['default_ps'])} warm, "
        f"about {console.microseconds(left.bound_ps)} µs may be possible at its schedule"
    )
    if left.calibrated_xla is not None:
        console.print_line(
            "At calibrated prices: "
            f"XLA {console.microseconds(left.calibrated_xla.latency_cold_ps)} µs cold, "
            f"{console.microseconds(left.calibrated_xla.latency_ps)} warm, about "
            f"{console.microseconds(left.calibrated_bound_ps)} µs may be possible"
        )
        console.print_line(error_sentence(row["hardware"]))
    console.print_line(verdict_sentence(left))
    placements = f"{left.priced} placement{'s were' if left.priced != 1 else ' was'}"
    console.print_sentences(
        f"This is {HEADROOM_NOTE}. For this one {placements} priced.",
        invalid_sentence(row),
        unpriced_sentence(left.capture),
        waiting_sentence(len(left.waiting)),
        *modelled_sentences(row),
        note_sentence(),
    )
    return parser.OK


def _apply(options: argparse.Namespace) -> int:
    captured = load_capture(options.capture)
    program = captured.program
    ordered, plan, order = program, captured.xla_plan, None
    if options.plan != _OWN_PLAN:
        ordered, plan, found = load_ordered_plan(options.plan, program)
        order = found if len(found) else None
    with (
        console.working(f"applying to {captured.name}") as work,
        open_compiler(options, captured) as compiler,
    ):
        done = apply(captured, plan, compiler, work.tell, options.output, order=order)
    if options.plan_output is not None:
        save_plan(done.plan, done.program, options.plan_output)
        save_program(done.program, f"{options.plan_output.removesuffix('.json')}.mgp")
    figures = (done.xla, done.report, done.plan, done.program, done.calibrated)
    row = emitted_row(captured, *figures) | {
        "predicted_ps": simulate(ordered, plan).latency_ps,
        "executable_bytes": len(done.executable),
    }
    if options.json:
        return print_json(row)
    print_latencies(row, captured)
    return parser.OK


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
    plan = captured.xla_plan
    return plan_row(program, program.hardware, xla, validate(program, plan), own, plan=plan) | {
        "solver": _OWN_PLAN,
        "accesses": program.counts["accesses"],
        **modelled_row(program, xla),
        "estimate": NOTE,
    }
