"""What the commands answer: JSON rows, and the table that people read."""

import csv
import dataclasses
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mallocgame as mg
from mallocgame._cli import console
from mallocgame.calibration import calibrated_if_possible
from mallocgame.experiments import Table

Row = dict[str, Any]  # one JSON object

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


@dataclasses.dataclass(frozen=True)
class Reference:
    """XLA's own plan of a program, which other plans are compared with."""

    report: mg.Report | None  # None: there is no plan for this hardware, or it is invalid
    invalid: str | None  # the rule that the plan breaks, and where

    @property
    def sentence(self) -> str | None:
        """Says why there is nothing to compare with; None: there is."""
        if self.invalid is not None:
            return f"XLA's own plan is no valid plan here, so it is no reference: {self.invalid}"
        return "XLA's own plan is not known on this hardware." if self.report is None else None


def reference(program: mg.Program, hardware: mg.Hardware) -> Reference:
    """Judges and simulates XLA's own plan."""
    plan = program.xla_plan_for(hardware)
    if plan is None:
        return Reference(None, None)
    verdict = mg.validate(program, plan, hardware)
    if not verdict.ok:
        return Reference(None, f"{verdict.rule}: {verdict.message}")
    return Reference(mg.simulate(program, plan, hardware), None)


def plan_row(
    program: mg.Program,
    hardware: mg.Hardware,
    report: mg.Report | None,
    verdict: mg.Verdict | None,
    xla: Reference,
    result: mg.SolveResult | None = None,
    least: mg.bounds.Bound | None = None,
    plan: mg.Plan | None = None,
    order: NDArray[np.int32] | None = None,
) -> Row:
    """The keys that every command has which reports a plan; null stands for what is unknown.

    `result` is the solver's answer, `least` the bound. `plan` is what `report` is of, for the
    figures at calibrated prices; `order` the order of its instructions, None or empty if it is the
    program's own.
    """
    latency_ps, own = report and report.latency_ps, xla.report
    now, its = calibrated_reports(program, hardware, plan, xla, order)
    return {
        "program": program.name,
        "hardware": hardware.name,
        "solver": result and result.solver,
        "status": result and result.status,
        "valid": None if verdict is None else verdict.ok,
        "latency_ps": latency_ps,
        "latency_cold_ps": report and report.latency_cold_ps,
        "all_main_ps": report and report.all_main_ps,
        "xla_ps": own and own.latency_ps,
        "xla_cold_ps": own and own.latency_cold_ps,
        "xla_invalid": xla.invalid,
        "bound_ps": least and least.bound_ps,
        "bound_name": least and least.name,
        "bound_status": least and least.status,
        "speedup_cold_vs_xla": _ratio(own, report, cold=True),
        "speedup_vs_xla": _ratio(own, report),
        "calibrated_cold_ps": now and now.latency_cold_ps,
        "calibrated_ps": now and now.latency_ps,
        "xla_calibrated_cold_ps": its and its.latency_cold_ps,
        "xla_calibrated_ps": its and its.latency_ps,
        "speedup_calibrated_cold_vs_xla": _ratio(its, now, cold=True),
        "speedup_calibrated_vs_xla": _ratio(its, now),
        "seconds": result and round(result.seconds, 6),
        "seed": result and result.seed,
    }


def calibrated_reports(
    program: mg.Program,
    hardware: mg.Hardware,
    plan: mg.Plan | None,
    xla: Reference,
    order: NDArray[np.int32] | None = None,
) -> tuple[mg.Report | None, mg.Report | None]:
    """A plan and XLA's own at calibrated prices; None: there are none, or no such plan."""
    made = calibrated_if_possible(program, hardware)
    if made is None or plan is None:
        return None, None
    own = None if xla.report is None else program.xla_plan_for(hardware)
    ordered = made if order is None or not len(order) else made.reordered(order)
    now = mg.simulate(ordered, plan.rebased_on(ordered))
    return now, None if own is None else mg.simulate(made, own.rebased_on(made))


def _ratio(before: mg.Report | None, after: mg.Report | None, cold: bool = False) -> float | None:
    if before is None or after is None or not after.latency_ps:
        return None
    return (
        before.latency_cold_ps / after.latency_cold_ps
        if cold
        else before.latency_ps / after.latency_ps
    )


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
    counts, own = program.counts, reference(program, program.hardware)
    xla = own.report
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
        "xla_valid": None if program.xla_plan is None else own.invalid is None,
        "xla_invalid": own.invalid,
        "cost_model": program.cost_model,
    }


_ASSUMED = ("unscheduled_computations", "unassigned_arrays", "unassigned_copies", "kept_copies")
# What costs nothing, or less than it takes, because the module doesn't say more.
_NOT_COUNTED = {
    "host_computations": "Parts that the host computes, of which only the transfers count",
    "opaque_calls": "Custom calls that nothing is known of, so that only their arrays count",
    "linkless_collectives": "Collectives over links that nothing is known of, so that only their "
    "arrays count",
}


def assumed_row(program: mg.Program) -> Row:
    """What the import had to assume or to leave out, as the module doesn't say it."""
    names, loops = program.instruction_names, program.loops
    return {
        "unknown_trips": [
            {"loop": names[loop["entry"]], "trips": int(loop["trips"])}
            for loop in loops[~loops["trips_known"]]
        ],
        **{name: program.counts[name] for name in (*_ASSUMED, *_NOT_COUNTED)},
    }


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
    sentences += [f"{what}: {row[name]}." for name, what in _NOT_COUNTED.items() if row[name]]
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
            console.times(_ratio(own, one, cold=True)),
            console.microseconds(one.latency_ps),
            console.times(_ratio(own, one)),
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
    console.print_made(table)
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
