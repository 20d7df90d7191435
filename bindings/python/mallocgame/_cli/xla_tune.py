"""`mallocgame xla tune`."""

import argparse
import os
import time

from mallocgame._cli import console, parser
from mallocgame._cli.folders import writing
from mallocgame._cli.rows import Row, print_json
from mallocgame._cli.xla_shared import (
    SOURCE,
    add_compiler,
    add_options_output,
    add_target,
    add_time,
    capture_source,
    note_sentence,
    open_compiler,
    outcome_row,
    print_latencies,
    save_outcome,
)
from mallocgame.errors import InvalidInputError
from mallocgame.xla.captures import is_capture
from mallocgame.xla.dumps import TunedModule, tune_dumps
from mallocgame.xla.negotiate import CarriedOut, Outcome
from mallocgame.xla.option_files import load_options
from mallocgame.xla.tuning import Tuned, tune_capture


def register(actions: parser.Commands) -> None:
    """Adds `tune` to the commands of `xla`."""
    command = actions.add(
        "tune", _tune, "compiler options that make a JAX program faster, never slower"
    )
    command.add_argument(
        "source",
        metavar="SOURCE",
        help=f"{SOURCE}, or one that `xla capture -o` wrote; with --options every program that "
        "XLA dumped",
    )
    add_target(command)
    command.add_argument(
        "--compiles",
        type=parser.count,
        metavar="N",
        help="placements to price after the first round (what fits into a sixth of the time, "
        "6 at most)",
    )
    add_time(command, 600.0, "wall time of all")
    add_options_output(command)
    command.add_argument(
        "--start", metavar="OPTIONS", help="go on from what `xla tune -o` has written before"
    )
    add_compiler(command)
    parser.add_workers(
        command,
        None,
        "compilers that look at requests side by side (one for each processor, as far as there is "
        "memory); of a folder: programs that are tuned side by side (1)",
    )


def _tune(options: argparse.Namespace) -> int:
    many = options.options is not None and os.path.isdir(options.source)
    if many and not is_capture(options.source):
        return _tune_dumps(options)
    if options.ray is not None:
        raise InvalidInputError(
            f"{options.source}: --ray tunes every program of a folder that XLA dumped, with "
            "--options; found one program"
        )
    start = None if options.start is None else load_options(options.start)
    begin = time.monotonic()
    with (
        writing(options.output),
        console.working(f"tuning {options.source}") as work,
        open_compiler(options) as compiler,
    ):
        captured = capture_source(options, compiler, work.tell)

        def found(outcome: Outcome) -> None:
            if options.output is not None:
                save_outcome(options.output, captured, outcome)

        tuned = tune_capture(
            captured,
            max(0.0, options.seconds - (time.monotonic() - begin)),
            options.compiles,
            options.seed,
            compiler,
            work.tell,
            found,
            start,
            options.options,
            options.jobs,
        )
        found(tuned.best)
    row = _tuned_row(tuned) | {"seed": options.seed}
    status = parser.INTERRUPTED if tuned.interrupted else parser.OK
    if options.json:
        print_json(row)
        return status
    print_latencies(row)
    if tuned.interrupted:
        console.print_line("Interrupted: this is the best so far.")
    if not tuned.options:
        console.print_line("Nothing better than XLA's default was found.")
    return status


def _tune_dumps(options: argparse.Namespace) -> int:
    """Tunes every program of a run, into a folder of options."""
    if options.output is not None or options.start is not None:
        raise InvalidInputError(
            f"{options.source}: of a whole run --options says where options are read and written; "
            "found -o or --start beside it"
        )
    if options.trips:
        raise InvalidInputError(
            f"{options.source}: --trips is of the loops of one program; found a whole run"
        )
    with console.working(f"tuning {options.source}") as work, open_compiler(options) as compiler:
        modules = tune_dumps(
            options.source,
            options.options,
            options.target,
            options.fast_mib,
            options.preloads,
            options.seconds,
            options.compiles,
            options.seed,
            compiler,
            work.tell,
            jobs=options.jobs or 1,
            ray=options.ray,
        )
    interrupted = any(one.interrupted for one in modules)
    status = parser.INTERRUPTED if interrupted else parser.OK
    if options.json:
        print_json({"modules": [_module_row(one) for one in modules]})
        return status
    tuned = [one for one in modules if one.tuned is not None]
    if tuned:
        console.print_table(
            [("program", "left"), ("XLA µs", "right"), ("speed-up", "right"), ("cold", "right")],
            [_cells(one.name, one.tuned) for one in tuned if one.tuned is not None],
        )
    for one in modules:
        for text in (one.why_not and f"not tuned: {one.why_not}", one.note):
            if text:
                console.print_line(f"{one.name}: {text}")
    if interrupted:
        console.print_line("Interrupted: the same command goes on from here.")
    console.print_line(note_sentence())
    return status


def _cells(name: str, tuned: Tuned) -> list[str]:
    return [
        name,
        console.microseconds(tuned.xla.latency_ps),
        console.times(tuned.speedup),
        console.times(tuned.speedup_cold),
    ]


def _module_row(one: TunedModule) -> Row:
    return {
        "module": one.name,
        "latency_ps": one.latency_ps,
        "why_not": one.why_not,
        "note": one.note,
        "tuned": None if one.tuned is None else _tuned_row(one.tuned),
    }


def _tuned_row(tuned: Tuned) -> Row:
    carried: CarriedOut | None = tuned.carried_out
    return outcome_row(tuned.capture, tuned.best, tuned.xla) | {
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
