"""`mallocgame xla tune`."""

import argparse
import os
import time

from mallocgame._cli import console, parser
from mallocgame._cli.rows import print_json
from mallocgame._cli.xla_shared import (
    SOURCE,
    add_compiler,
    add_folder,
    add_target,
    add_time,
    capture_source,
    emitted_row,
    note_sentence,
    open_compiler,
    print_latencies,
)
from mallocgame.errors import InvalidInputError
from mallocgame.experiments import Table
from mallocgame.experiments.plan_rows import Row
from mallocgame.xla.captures import is_capture
from mallocgame.xla.dumps import TunedModule, tune_dumps
from mallocgame.xla.phases import StageClock
from mallocgame.xla.plan_search import ACCEPT, BOTH
from mallocgame.xla.tuning import CAPTURING, Tuned, last_moment, tune_capture


def register(actions: parser.Commands) -> None:
    """Adds `tune` to the commands of `xla`."""
    what = "make a program of a JAX function that is faster by the compiler's estimates"
    command = actions.add("tune", _tune, what)
    command.takes(
        "source SOURCE",
        f"{SOURCE}, or one that `xla capture -o` wrote; with -o every program that XLA dumped",
    )
    add_target(command)
    add_time(command, 60.0, "wall time of all")
    command.takes(
        "--order", "decide the order of instructions too, within the main memory of XLA's order"
    )
    add_folder(command)
    add_compiler(command)
    command.takes(
        "--accept",
        "prices at which a plan has to be faster: the compiler's and calibrated ones, or the "
        "compiler's alone (both)",
        former="--prices",
        choices=ACCEPT,
        default=BOTH,
    )
    parser.add_workers(
        command,
        None,
        "compilers that price instructions side by side (one for each processor); of a folder: "
        "programs that are tuned side by side (1)",
    )


def _tune(options: argparse.Namespace) -> int:
    many = options.output is not None and os.path.isdir(options.source)
    if many and not is_capture(options.source):
        return _tune_dumps(options)
    if options.ray is not None:
        raise InvalidInputError(
            f"{options.source}: --ray tunes every program of a folder that XLA dumped, with "
            "-o; found one program"
        )
    begin = time.monotonic()
    with (
        console.working(f"tuning {options.source}") as work,
        open_compiler(options) as compiler,
        compiler.keeping_others(),
        compiler.until(last_moment(begin, options.seconds)),
    ):
        tell = StageClock(work.tell)
        captured = capture_source(options, compiler, tell, CAPTURING * options.seconds)
        capture_seconds = time.monotonic() - begin
        tuned = tune_capture(
            captured,
            max(0.0, options.seconds - capture_seconds),
            options.seed,
            compiler,
            tell,
            options.output,
            options.jobs,
            options.accept,
            options.order,
        )
        stage_seconds = tell.seconds()
    row = _tuned_row(tuned) | {
        "seed": options.seed,
        "capture_seconds": round(capture_seconds, 3),
        "stage_seconds": stage_seconds,
    }
    status = parser.INTERRUPTED if tuned.interrupted else parser.OK
    if options.json:
        print_json(row)
        return status
    print_latencies(row, tuned.capture)
    if capture_seconds > options.seconds / 2:
        console.print_line(
            f"The capture took {capture_seconds:.0f} s of {options.seconds:g}: "
            "more --seconds leave more for plans."
        )
    if tuned.waited_for:
        console.print_line(f"Give it more --seconds: {tuned.waited_for}.")
    if tuned.interrupted:
        console.print_line("Interrupted: this is the best so far.")
    if tuned.best is None:
        console.print_line("Nothing better than XLA's default was found.")
    elif options.output is None:
        console.print_line("With -o FOLDER the program is kept, for mallocgame.xla.jit.")
    return status


def _tune_dumps(options: argparse.Namespace) -> int:
    """Tunes every program of a run, into a folder of options."""
    if options.order:
        raise InvalidInputError(f"{options.source}: --order is for one program; found a whole run")
    if options.trips:
        raise InvalidInputError(
            f"{options.source}: --trips is of the loops of one program; found a whole run"
        )
    with console.working(f"tuning {options.source}") as work, open_compiler(options) as compiler:
        modules = tune_dumps(
            options.source,
            options.output,
            options.target,
            options.fast_mib,
            options.preloads,
            options.seconds,
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
    tuned = [(one.name, one.tuned) for one in modules if one.tuned is not None]
    if tuned:
        heads = ("XLA cold µs", "warm µs", "speed-up cold", "warm", "calibrated cold", "warm")
        table = Table(("program", *heads), [_cells(name, one) for name, one in tuned])
        console.print_table(table, gap=2)
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
        console.microseconds(tuned.xla.latency_cold_ps),
        console.microseconds(tuned.xla.latency_ps),
        console.times(tuned.speedup_cold),
        console.times(tuned.speedup),
        console.times(tuned.speedup_calibrated_cold),
        console.times(tuned.speedup_calibrated),
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
    captured = tuned.capture
    program = captured.program if tuned.best is None else tuned.best.program
    plan = captured.xla_plan if tuned.best is None else tuned.best.plan
    figures = (tuned.xla, tuned.report, plan, program, tuned.calibrated)
    return emitted_row(captured, *figures) | {
        "better": tuned.best is not None,
        "plans": tuned.plans,
        "refused": list(tuned.refused),
        "seconds": round(tuned.seconds, 3),
        "interrupted": tuned.interrupted,
        "waited_for": tuned.waited_for,
        "xla_main_bytes": tuned.xla_main_bytes,
        "main_bytes": tuned.main_bytes,
    }
