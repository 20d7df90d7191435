"""`mallocgame xla targets|capture|profile|apply|tune`."""

import argparse
import os
import statistics

from mallocgame._cli import console, parser
from mallocgame._cli.rows import Row, plan_row, print_json
from mallocgame._core import Report, simulate, validate
from mallocgame.errors import InvalidInputError
from mallocgame.files import load_plan, save_plan
from mallocgame.xla.captures import Capture, capture, capture_dump, load_capture
from mallocgame.xla.claims import WHOLE, claimed_part, speedup
from mallocgame.xla.compiler import DEFAULT_CACHE, Compiler
from mallocgame.xla.negotiate import NOTE, CarriedOut, Outcome, Tell
from mallocgame.xla.option_files import load_options, save_options
from mallocgame.xla.profiling import profile
from mallocgame.xla.sources import find_source
from mallocgame.xla.targets import TARGETS, fast_mib_range, find_target
from mallocgame.xla.tuning import Tuned, apply, tune_capture

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

    source = (
        "a workload, module:function (a function that returns (function, arguments)), "
        "or a folder that XLA dumped"
    )
    command = actions.add(
        "capture", _capture, "compile a JAX program for a TPU that needn't be there"
    )
    command.add_argument("source", metavar="SOURCE", help=source)
    _add_target(command)
    command.add_argument(
        "-o", "--output", metavar="FOLDER", required=True, help="to write, with program.mgp"
    )
    _add_compiler(command)

    command = actions.add("profile", _profile, "have more placements of a captured program priced")
    command.add_argument("capture", metavar="FOLDER", help="as `xla capture -o` writes it")
    command.add_argument(
        "--compiles", type=parser.count, default=6, metavar="N", help="placements to price (6)"
    )
    parser.add_seed(command)
    command.add_argument("-o", "--output", metavar="FOLDER", help="to write (the same folder)")
    _add_compiler(command)

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
    _add_time(command, 10.0, "for a solver, each further round")
    _add_options_output(command)
    command.add_argument(
        "--plan-output",
        type=parser.output_file,
        metavar="PLAN",
        help="write what the compiler did as a plan, and its program beside it (.mgp)",
    )
    _add_compiler(command)

    command = actions.add(
        "tune", _tune, "compiler options that make a JAX program faster, never slower"
    )
    command.add_argument(
        "source", metavar="SOURCE", help=f"{source}, or one that `xla capture -o` wrote"
    )
    _add_target(command)
    command.add_argument(
        "--compiles",
        type=parser.count,
        metavar="N",
        help="placements to price after the first round (what fits into a sixth of the time, "
        "6 at most)",
    )
    _add_time(command, 600.0, "wall time of all")
    _add_options_output(command)
    command.add_argument(
        "--start", metavar="OPTIONS", help="go on from what `xla tune -o` has written before"
    )
    _add_compiler(command)


def _add_target(command: argparse.ArgumentParser) -> None:
    known = (
        f"{', '.join(TARGETS)}, or a topology; with a shape it is several chips, as in "
        "tpu_v5e:2x2; `xla targets` says more"
    )
    command.add_argument("--target", metavar="NAME", default="tpu_v4i", help=known)
    command.add_argument(
        "--fast-mib",
        type=parser.positive,
        metavar="N",
        help="MiB of fast memory, on some chips at other prices (all that the chip has)",
    )
    parser.add_preloads(command)


def _add_time(command: argparse.ArgumentParser, seconds: float, text: str) -> None:
    command.add_argument(
        "--seconds",
        type=parser.seconds_to_spend,
        default=seconds,
        metavar="S",
        help=f"{text} ({seconds:g})",
    )
    parser.add_seed(command)


def _add_options_output(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-o",
        "--output",
        type=parser.output_file,
        metavar="OPTIONS",
        help="write the compiler options as JSON",
    )


def _add_compiler(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--compile-seconds",
        type=parser.seconds,
        default=600.0,
        metavar="S",
        help="that a compile may take (600); 0: no limit",
    )
    command.add_argument(
        "--memory-gib",
        type=parser.gibibytes,
        default=16.0,
        metavar="N",
        help="that the compiler may take (16); 0: no limit",
    )
    command.add_argument(
        "--cache",
        metavar="FOLDER",
        default=str(DEFAULT_CACHE),
        help=f"of answers ({DEFAULT_CACHE})",
    )
    command.add_argument("--no-cache", action="store_true", help="compile everything anew")


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
    with console.working(f"capturing {options.source}") as work, _compiler(options) as compiler:
        captured = _captured(options, compiler, work.tell)
        captured.save(options.output)
        missing = compiler.abilities.sentence(compiler.versions)
    program = captured.program
    note = captured.target.note
    row = _program_row(captured) | {
        "folder": options.output,
        "versions": captured.versions,
        "note": note,
        "missing": missing,
    }
    if options.json:
        return print_json(row)
    console.print_line(
        f"{program.name} for {captured.target.title}: {program.counts['accesses']} accesses, "
        f"all in main {console.microseconds(row['all_main_ps'])} µs, "
        f"XLA {console.microseconds(row['xla_ps'])} µs"
    )
    for sentence in (_modelled_sentence(row), note, missing):
        if sentence is not None:
            console.print_line(sentence)
    console.print_line(f"Written to {options.output}. {_sentence()}")
    return parser.OK


def _profile(options: argparse.Namespace) -> int:
    before = load_capture(options.capture)
    with (
        console.working(f"profiling {before.name}") as work,
        _compiler(options, before) as compiler,
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
        f"Each was predicted before its price was known. {_sentence()}",
        _modelled_sentence(known),
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
        _compiler(options, captured) as compiler,
    ):
        done = apply(
            captured, plan, options.rounds, options.seconds, options.seed, compiler, work.tell
        )
    if options.plan_output is not None:
        save_plan(done.plan, done.program, options.plan_output)
        with open(f"{options.plan_output.removesuffix('.json')}.mgp", "wb") as file:
            file.write(done.program.to_bytes())
    xla = simulate(program, captured.xla_plan)
    row = _outcome_row(captured, done, xla) | {
        "honoured": done.honoured,
        "honoured_of_all": done.honoured_of_all,
        "predicted_ps": done.predicted_ps,
        "refusals": [
            {"buffer": one.buffer, "instruction": one.instruction, "reason": one.reason}
            for one in done.refusals
        ],
    }
    _save(options.output, done.options, row)
    if options.json:
        return print_json(row)
    console.print_line(
        f"{done.honoured:.1%} of the accesses to buffers of 16 KiB or more "
        "are served as the plan says"
    )
    for one in done.refusals:
        console.print_line(f"  refused: {one.buffer} at {one.instruction}: {one.reason}")
    _print_latencies(row)
    return parser.OK


def _tune(options: argparse.Namespace) -> int:
    start = None if options.start is None else load_options(options.start)
    with console.working(f"tuning {options.source}") as work, _compiler(options) as compiler:
        compiler.check_takes_plans()
        captured = _captured(options, compiler, work.tell)
        xla = simulate(captured.program, captured.xla_plan)

        def found(outcome: Outcome) -> None:
            _save(options.output, outcome.options, _outcome_row(captured, outcome, xla))

        tuned = tune_capture(
            captured,
            options.seconds,
            options.compiles,
            options.seed,
            compiler,
            work.tell,
            found,
            start,
        )
    row = _tuned_row(tuned) | {"seed": options.seed}
    _save(options.output, tuned.options, row)
    status = parser.INTERRUPTED if tuned.interrupted else parser.OK
    if options.json:
        print_json(row)
        return status
    _print_latencies(row)
    if tuned.interrupted:
        console.print_line("Interrupted: this is the best so far.")
    if not tuned.options:
        console.print_line("Nothing better than XLA's default was found.")
    return status


# What the commands share.


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


def _captured(options: argparse.Namespace, compiler: Compiler, tell: Tell) -> Capture:
    source = options.source
    if os.path.isdir(source):
        if os.path.exists(os.path.join(source, "meta.json")):
            loaded = load_capture(source)
            if loaded.target != compiler.target:
                raise InvalidInputError(
                    f"{source}: captured for {loaded.target}, the target is {compiler.target}"
                )
            return loaded
        return capture_dump(source, options.target, options.fast_mib, preloads=options.preloads)
    # This process only traces, so it leaves a TPU that is there to others.
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    name, function, arguments = find_source(source)
    tell("two compiles")
    return capture(
        function,
        *arguments,
        target=options.target,
        fast_mib=options.fast_mib,
        name=name,
        compiler=compiler,
        preloads=options.preloads,
    )


def _compiler(options: argparse.Namespace, captured: Capture | None = None) -> Compiler:
    if captured is None:
        target = find_target(options.target, options.fast_mib, options.preloads)
    else:
        target = captured.target
    cache = None if options.no_cache else options.cache
    return Compiler(target, options.compile_seconds, int(options.memory_gib * 2**30), cache)


def _program_row(captured: Capture) -> Row:
    program = captured.program
    xla = simulate(program, captured.xla_plan)
    return plan_row(program, program.hardware, xla, validate(program, captured.xla_plan), xla) | {
        "solver": _OWN_PLAN,
        "accesses": program.counts["accesses"],
        "modelled_ps": xla.modelled_ps,
        "estimate": NOTE,
    }


def _outcome_row(captured: Capture, done: Outcome, xla: Report) -> Row:
    program = done.program
    row = plan_row(program, program.hardware, done.report, validate(program, done.plan), xla)
    return row | {
        "verified_ps": done.verified_ps,
        "verified_cold_ps": done.verified_cold_ps,
        "verified_speedup": speedup(xla, done.report),
        "verified_speedup_cold": speedup(xla, done.report, cold=True),
        "speedup_of": claimed_part(xla),
        "modelled_ps": xla.modelled_ps,
        "versions": captured.versions,
        "estimate": NOTE,
    }


def _tuned_row(tuned: Tuned) -> Row:
    carried: CarriedOut | None = tuned.carried_out
    return _outcome_row(tuned.capture, tuned.best, tuned.xla) | {
        "solver": "tune",
        "status": "heuristic",
        "seconds": round(tuned.seconds, 3),
        "honoured": carried and carried.honoured,
        "predicted_ps": carried and carried.predicted_ps,
        "compiles": tuned.compiles,
        "looks": tuned.looks,
        "interrupted": tuned.interrupted,
        "rounds": [
            {
                "honoured": one.honoured,
                "predicted_ps": one.predicted_ps,
                "verified_ps": one.verified_ps,
            }
            for one in tuned.rounds
        ],
    }


def _save(path: str | None, values: dict[str, str], row: Row) -> None:
    if path is not None:
        kept = ["program", "hardware", "versions", "verified_ps", "verified_speedup", "estimate"]
        if row["modelled_ps"]:
            kept += ["speedup_of", "modelled_ps"]
        save_options(values, path, **{key: row[key] for key in kept})


def _print_latencies(row: Row) -> None:
    console.print_table(
        [("", "left"), ("latency µs", "right"), ("with cold preloads", "right")],
        [
            [
                "XLA's default",
                console.microseconds(row["xla_ps"]),
                console.microseconds(row["xla_cold_ps"]),
            ],
            ["predicted", console.microseconds(row["predicted_ps"]), "-"],
            [
                "verified",
                console.microseconds(row["verified_ps"]),
                console.microseconds(row["verified_cold_ps"]),
            ],
            [
                "speed-up",
                console.times(row["verified_speedup"]),
                console.times(row["verified_speedup_cold"]),
            ],
        ],
    )
    if row["speedup_of"] != WHOLE:
        console.print_line(f"The speed-up is of {row['speedup_of']}.")
    for sentence in (_modelled_sentence(row), _sentence()):
        if sentence is not None:
            console.print_line(sentence)


def _modelled_sentence(row: Row) -> str | None:
    """Says how much of XLA's plan is a model of links; None: nothing is."""
    if not row["modelled_ps"]:
        return None
    return (
        f"{console.microseconds(row['modelled_ps'])} of {console.microseconds(row['xla_ps'])} µs "
        "are waits for links between chips, by a model that no compiler priced."
    )


def _sentence() -> str:
    """NOTE as a sentence."""
    return f"{NOTE[0].upper()}{NOTE[1:]}."
