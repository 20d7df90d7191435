"""What the commands answer: JSON rows, and the table that people read."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import mallocgame as mg
from mallocgame._cli import console

Row = dict[str, Any]  # one JSON object


def csv_text(
    columns: Sequence[str], rows: Iterable[Mapping[str, Any]], header: bool = True
) -> bytes:
    """Returns the lines of rows, with those of their keys that are columns."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    if header:
        writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def xla_report(program: mg.Program, hardware: mg.Hardware) -> mg.Report | None:
    """Simulates XLA's own plan; None where there is none for this hardware."""
    plan = program.xla_plan_for(hardware)
    return None if plan is None else mg.simulate(program, plan, hardware)


def plan_row(
    program: mg.Program,
    hardware: mg.Hardware,
    report: mg.Report | None,
    verdict: mg.Verdict | None,
    xla: mg.Report | None,
    result: mg.SolveResult | None = None,
    least: mg.Bound | None = None,
) -> Row:
    """The keys that every command has which reports a plan; null stands for what is unknown.

    `xla` is the report of XLA's own plan, `result` the solver's answer, `least` the bound.
    """
    latency_ps = report and report.latency_ps
    return {
        "program": program.name,
        "hardware": hardware.name,
        "solver": result and result.solver,
        "status": result and result.status,
        "valid": None if verdict is None else verdict.ok,
        "latency_ps": latency_ps,
        "latency_cold_ps": report and report.latency_cold_ps,
        "all_main_ps": report and report.all_main_ps,
        "xla_ps": xla and xla.latency_ps,
        "xla_cold_ps": xla and xla.latency_cold_ps,
        "bound_ps": least and least.bound_ps,
        "bound_name": least and least.name,
        "bound_status": least and least.status,
        "speedup_vs_xla": xla.latency_ps / latency_ps if xla and latency_ps else None,
        "seconds": result and round(result.seconds, 6),
        "seed": result and result.seed,
    }


def report_row(report: mg.Report) -> Row:
    """The parts of a report."""
    names = (
        "compute_ps",
        "stall_ps",
        "prefetched_bytes",
        "written_back_bytes",
        "preloaded_bytes",
        "peak_fast_bytes",
        "exact_ps",
        "predicted_ps",
        "unpriced_ps",
        "kernel_ps",
        "modelled_ps",
    )
    return {name: getattr(report, name) for name in names}


def program_row(program: mg.Program, name: str) -> Row:
    """What there is to know of a program."""
    counts, xla_plan = program.counts, program.xla_plan
    xla = xla_report(program, program.hardware)
    all_main = mg.simulate(program, mg.all_main_plan(program))
    return {
        "program": name,
        "hardware": program.hardware.name,
        "instructions": counts["instructions"],
        "buffers": counts["buffers"],
        "eligible_buffers": counts["eligible_buffers"],
        "accesses": counts["accesses"],
        "argument_bytes": program.argument_bytes,
        "all_main_ps": all_main.latency_ps,
        "xla_ps": xla and xla.latency_ps,
        "xla_cold_ps": xla and xla.latency_cold_ps,
        "xla_valid": None if xla_plan is None else mg.validate(program, xla_plan).ok,
        "cost_model": program.cost_model,
    }


def print_comparison(
    program: mg.Program,
    hardware: mg.Hardware,
    label: str,
    report: mg.Report,
    xla: mg.Report | None,
    row: Row,
) -> None:
    """Prints a plan beside XLA's own, everything in main memory, and the bound of its row."""
    columns: list[console.Column] = [
        ("", "left"),
        ("latency µs", "right"),
        ("vs XLA", "right"),
        ("vs all-main", "right"),
        ("stall µs", "right"),
        ("in MiB", "right"),
        ("out MiB", "right"),
    ]

    def line(name: str, one: mg.Report) -> list[str]:
        return [
            name,
            console.microseconds(one.latency_ps),
            console.times(xla.latency_ps / one.latency_ps if xla and one.latency_ps else None),
            console.times(one.all_main_ps / one.latency_ps if one.latency_ps else None),
            console.microseconds(one.stall_ps),
            console.mebibytes(one.prefetched_bytes),
            console.mebibytes(one.written_back_bytes),
        ]

    rows = [line(label, report)]
    if xla is not None:
        rows.append(line("XLA's own", xla))
    all_main = mg.simulate(program, mg.all_main_plan(program, hardware), hardware)
    rows.append(line("all in main", all_main))
    if row["bound_ps"] is not None:
        rows.append(["bound", console.microseconds(row["bound_ps"]), *[""] * 5])
    console.print_line(f"{program.name} on {hardware.name}")
    console.print_table(columns, rows)
    if xla is None:
        console.print_line("XLA's own plan is not known on this hardware.")
    console.print_line("A static estimate from the compiler's prices, not a measurement on a chip.")


def cell(value: Any) -> str:
    """A value of a row as people read it."""
    if value is None:
        return "-"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


def print_json(document: Row) -> int:
    """Prints the one document of a command, and returns the exit status of success."""
    print(json.dumps(document, indent=2))
    return 0
