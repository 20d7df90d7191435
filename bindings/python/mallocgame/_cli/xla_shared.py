"""What the commands of `mallocgame xla` share."""

import argparse
import dataclasses
import math
import os

from mallocgame._cli import console, parser
from mallocgame._cli.rows import assumed_sentences
from mallocgame._core import Plan, Program, Report
from mallocgame.calibration import error_sentence
from mallocgame.errors import InvalidInputError
from mallocgame.experiments import Table
from mallocgame.experiments.plan_rows import Reference, Row, assumed_row, plan_row, reference
from mallocgame.xla.captures import Capture, capture, capture_dump, is_capture, load_capture
from mallocgame.xla.claims import WHOLE, Calibrated, calibrated_numbers, claimed_part, speedup
from mallocgame.xla.compiler import DEFAULT_CACHE, Compiler
from mallocgame.xla.emitting import Tell
from mallocgame.xla.sources import find_source
from mallocgame.xla.targets import TARGETS, find_target
from mallocgame.xla.tuning import NOTE, Left

SOURCE = (
    "a workload, module:function (a function that returns (function, arguments)), "
    "or a folder that XLA dumped"
)


def add_target(command: parser.Parser) -> None:
    """Adds the options that say which chip it is for."""
    known = (
        f"{', '.join(TARGETS)}, or a topology; with a shape it is several chips, as in "
        "tpu_v5e:2x2; `xla targets` says more"
    )
    command.takes("--target NAME", known, default="tpu_v4i")
    command.takes(
        "--fast-mib N",
        "MiB of fast memory, on some chips at other prices (all that the chip has)",
        parser.positive,
    )
    parser.add_preloads(command)
    parser.add_trips(command)
    command.takes(
        "--compiler-option NAME=VALUE",
        "of XLA:TPU, for every compile of the program; may be given several times",
        parser.compiler_option,
        action="append",
        default=[],
    )


def add_time(command: parser.Parser, seconds: float, text: str) -> None:
    """Adds --seconds and --seed."""
    command.takes("--seconds S", f"{text} ({seconds:g})", parser.seconds_to_spend, default=seconds)
    parser.add_seed(command)


def add_folder(command: parser.Parser) -> None:
    """Adds where tuned programs are written."""
    command.takes(
        "-o --output FOLDER", "of executables, which mallocgame.xla.jit loads", former="--options"
    )


def add_limits(command: parser.Parser) -> None:
    """Adds the limits of the compiler."""
    command.takes(
        "--compile-seconds S",
        "that a compile may take (600); 0: no limit",
        parser.seconds,
        default=600.0,
    )
    command.takes(
        "--memory-gib N",
        "that the compiler may take (16); 0: no limit",
        parser.gibibytes,
        default=16.0,
    )


def add_compiler(command: parser.Parser) -> None:
    """Adds the limits and the cache of the compiler."""
    add_limits(command)
    command.takes("--cache FOLDER", f"of answers ({DEFAULT_CACHE})", default=str(DEFAULT_CACHE))
    command.takes("--no-cache", "compile everything anew")


def capture_source(
    options: argparse.Namespace, compiler: Compiler, tell: Tell, seconds: float = math.inf
) -> Capture:
    """Returns the program that the command line names. seconds: for prices. MallocGameError."""
    source, trips = options.source, dict(options.trips)
    given = dict(options.compiler_option)
    if os.path.isdir(source):
        if is_capture(source):
            loaded = load_capture(source)
            # A capture keeps its own options, so they needn't be given again.
            own = loaded.target if given else dataclasses.replace(loaded.target, given_options=())
            if own != compiler.target:
                raise InvalidInputError(
                    f"{source}: captured for {loaded.target}, the target is {compiler.target}"
                )
            return dataclasses.replace(loaded, trips={**loaded.trips, **trips})
        return capture_dump(
            source,
            options.target,
            options.fast_mib,
            preloads=options.preloads,
            trips=trips,
            options=given,
        )
    # This process only traces, so it leaves a TPU that is there to others.
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    name, function, arguments = find_source(source)
    tell("tracing the function")
    return capture(
        function,
        *arguments,
        target=options.target,
        fast_mib=options.fast_mib,
        name=name,
        compiler=compiler,
        preloads=options.preloads,
        trips=trips,
        options=given,
        seconds=seconds,
        tell=tell,
    )


def open_compiler(options: argparse.Namespace, captured: Capture | None = None) -> Compiler:
    """Returns the compiler that the command line asks for."""
    if captured is None:
        given = dict(options.compiler_option)
        target = find_target(options.target, options.fast_mib, options.preloads, given)
    else:
        target = captured.target
    cache = None if options.no_cache else options.cache
    return Compiler(target, options.compile_seconds, int(options.memory_gib * 2**30), cache)


def emitted_row(
    captured: Capture,
    xla: Report,
    report: Report,
    plan: Plan,
    program: Program,
    calibrated: Calibrated | None,
) -> Row:
    """Returns what a program that the compiler has emitted costs, for --json.

    xla: what XLA's default costs, at the same prices.
    """
    own = reference(captured.program, captured.target.hardware)
    known = own.report is not None
    own = Reference(xla if known else None, own.invalid)
    part = claimed_part(xla)
    return plan_row(program, program.hardware, report, None, own) | {
        "speedup_cold": speedup(xla, report, cold=True) if known else None,
        "speedup": speedup(xla, report) if known else None,
        **calibrated_numbers(calibrated if known else None),
        "speedup_of": part,
        "exact": report.exact_ps / report.compute_ps if report.compute_ps else 1.0,
        "copies": len(plan.copies),
        "unpriced": captured.unpriced,
        **modelled_row(program, xla),
        "versions": captured.versions,
        "estimate": NOTE,
    }


def print_latencies(row: Row, captured: Capture) -> None:
    """Prints XLA's default, and what was emitted in its place."""
    times = {
        "XLA's default": (
            *("default_cold_ps", "default_ps"),
            *("xla_calibrated_cold_ps", "xla_calibrated_ps"),
        ),
        "emitted": ("latency_cold_ps", "latency_ps", "calibrated_cold_ps", "calibrated_ps"),
    }
    speedups = ("speedup_cold", "speedup", "speedup_calibrated_cold", "speedup_calibrated")
    table = Table(("", "cold µs", "warm µs", "calibrated cold", "warm"))
    for name, keys in times.items():
        table.add(name, *(console.microseconds(row[key]) for key in keys))
    table.add("speed-up", *(console.times(row[key]) for key in speedups))
    console.print_table(table, gap=2)
    if row["calibrated_ps"] is None and row["xla_invalid"] is None:
        console.print_line("This program can't have calibrated prices.")
    elif row["calibrated_ps"] is not None:
        console.print_line(error_sentence(row["hardware"]))
    if row["speedup_of"] != WHOLE:
        console.print_line(f"The speed-up is of {row['speedup_of']}.")
    said = (invalid_sentence(row), unpriced_sentence(captured), *modelled_sentences(row))
    console.print_sentences(*said, note_sentence())


def invalid_sentence(row: Row) -> str | None:
    """Says that XLA's own plan is no reference; None: it is one."""
    return None if row["xla_invalid"] is None else Reference(None, row["xla_invalid"]).sentence


_MODELLED = (
    "unpriced_instructions",
    "host_transfers",
    "async_computations",
    "kernels",
    "kernels_without_estimate",
)


def modelled_row(program: Program, xla: Report) -> Row:
    """What XLA's default takes, and what of it the compiler hasn't priced.

    It is for --json and modelled_sentences().
    """
    return {
        "default_ps": xla.latency_ps,
        "default_cold_ps": xla.latency_cold_ps,
        "modelled_ps": xla.modelled_ps,
        "kernel_ps": xla.kernel_ps,
        "unpriced_ps": xla.unpriced_ps,
        **{name: program.counts[name] for name in _MODELLED},
        **assumed_row(program),
    }


def modelled_sentences(row: Row) -> list[str]:
    """Says how much of XLA's plan the compiler hasn't priced, and what was assumed or left out."""
    whole = f"of {console.microseconds(row['default_ps'])} µs are"
    sentences = assumed_sentences(row)
    if row["modelled_ps"]:
        sentences.append(
            f"{console.microseconds(row['modelled_ps'])} {whole} waits for links between chips, "
            "for the host and for what runs beside the program, which are modelled and not priced "
            "by the compiler."
        )
    if row["host_transfers"]:
        sentences.append(f"Transfers between the host and the chip: {row['host_transfers']}.")
    if row["unpriced_instructions"]:
        sentences.append(
            f"{console.microseconds(row['unpriced_ps'])} {whole} {row['unpriced_instructions']} "
            "instructions that the compiler hasn't priced, which take the time of their bytes."
        )
    if row["kernels"]:
        sentences.append(
            f"{console.microseconds(row['kernel_ps'])} {whole} kernels, which are modelled and "
            "not priced by the compiler."
        )
    if row["kernels_without_estimate"]:
        sentences.append(
            f"{row['kernels_without_estimate']} of {row['kernels']} kernels have no cost_estimate, "
            "so only the bytes of their arrays count; give pallas_call a cost_estimate."
        )
    return sentences


def unpriced_sentence(captured: Capture) -> str | None:
    """Says which instructions took the compiler too long to price; None: there are none."""
    names = [f"'{name}'" for name in captured.unpriced]
    if not names:
        return None
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return (
        f"The compiler took too long to price {', '.join(names[:3])}{more}: their times are "
        "estimates by the bytes they write. With more --seconds they may be priced."
    )


def verdict_sentence(left: Left) -> str:
    """Says what XLA leaves, and whether to tune; while prices are out it never advises against."""
    shares = f"{left.share:.1%}"
    if left.share_calibrated is not None:
        shares += f" ({left.share_calibrated:.1%} at calibrated prices)"
    if left.is_worth_tuning:
        return f"XLA leaves about {shares}: try `xla tune`."
    if left.waiting:
        return f"XLA leaves about {shares} by the prices so far, which are too few to decide."
    return f"Probably not worth tuning: XLA leaves about {shares}."


def waiting_sentence(count: int) -> str | None:
    """Says that an estimate lacks prices; None: no instruction waits for one."""
    if not count:
        return None
    return (
        f"The time was over before all placements of {count} instruction{'s' * (count > 1)} were "
        "priced. Prices are kept: run it again, or with more --seconds, and the figures may move."
    )


def note_sentence() -> str:
    """NOTE as a sentence."""
    return f"{NOTE[0].upper()}{NOTE[1:]}."
