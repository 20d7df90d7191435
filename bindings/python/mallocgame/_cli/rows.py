"""How the commands answer: JSON and CSV, and the table that people read."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import mallocgame as mg
from mallocgame._cli import console
from mallocgame.experiments import Table
from mallocgame.experiments.plan_rows import NOT_COUNTED, Reference, Row, speedup

_MOST_NAMES = 10  # that a sentence lists


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


def assumed_sentences(row: Row) -> list[str]:
    """Says what is in an assumed_row()."""
    sentences = []
    loops = row["unknown_trips"]
    if loops:
        shown = ", ".join(f"{loop['loop']} ({loop['trips']:,})" for loop in loops[:_MOST_NAMES])
        more = f" and {len(loops) - _MOST_NAMES} more" if len(loops) > _MOST_NAMES else ""
        sentences.append(
            "How often these loops run can't be read from the module, or is more than is counted; "
            f"assumed are the trips in parentheses: {shown}{more}. --trips NAME=COUNT says it."
        )
    if row["unscheduled_computations"]:
        sentences.append(
            f"{row['unscheduled_computations']} computations have no schedule, so their "
            "instructions run in the order in which they stand in the module (--schedule)."
        )
    if row["unassigned_arrays"] or row["unassigned_copies"] or row["kept_copies"]:
        kept = row["kept_copies"]
        stay = f"; copies and slices that stay, within main memory: {kept}" if kept else ""
        sentences.append(
            "The module is from after memory space assignment. Results brought back to main "
            f"memory: {row['unassigned_arrays']}; copies between the memories taken out: "
            f"{row['unassigned_copies']}{stay}. XLA "
            "dumps the module from before as *.after_optimizations_before_buffer_assignment.hlo.pb."
        )
    sentences += [f"{what}: {row[name]}." for name, what in NOT_COUNTED.items() if row[name]]
    return sentences


def print_comparison(
    program: mg.Program,
    hardware: mg.Hardware,
    label: str,
    report: mg.Report,
    xla: Reference,
    row: Row,
) -> None:
    """Prints a plan beside XLA's own, everything in main memory, and the bound of its row.

    The plan and XLA's own come once more, at the calibrated prices that are in the row.
    """
    own = xla.report
    heads = ("cold µs", "vs XLA", "warm µs", "vs XLA", "vs all-main")
    table = Table(("", *heads, "stall µs", "in MiB", "out MiB"))

    def add(name: str, one: mg.Report) -> None:
        table.add(
            name,
            console.microseconds(one.latency_cold_ps),
            console.times(speedup(own, one, cold=True)),
            console.microseconds(one.latency_ps),
            console.times(speedup(own, one)),
            console.times(one.all_main_ps / one.latency_ps if one.latency_ps else None),
            console.microseconds(one.stall_ps),
            console.mebibytes(one.prefetched_bytes),
            console.mebibytes(one.written_back_bytes),
        )

    add(label, report)
    if own is not None:
        add("XLA's own", own)
    all_main = mg.simulate(program, mg.all_main_plan(program, hardware), hardware)
    add("all in main", all_main)
    if row["bound_ps"] is not None:
        table.add("bound", "", "", console.microseconds(row["bound_ps"]))
    if row["calibrated_ps"] is not None:
        table.add("calibrated")
        table.add(
            f"  {label}",
            console.microseconds(row["calibrated_cold_ps"]),
            console.times(row["speedup_calibrated_cold_vs_xla"]),
            console.microseconds(row["calibrated_ps"]),
            console.times(row["speedup_calibrated_vs_xla"]),
        )
    if row["xla_calibrated_ps"] is not None:
        times = (row["xla_calibrated_cold_ps"], row["xla_calibrated_ps"])
        cold, warm = (console.microseconds(one) for one in times)
        table.add("  XLA's own", cold, console.times(1.0), warm, console.times(1.0))
    console.print_line(f"{program.name} on {hardware.name}")
    console.print_table(table)
    if xla.sentence is not None:
        console.print_line(xla.sentence)
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
