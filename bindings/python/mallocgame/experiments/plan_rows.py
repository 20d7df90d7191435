"""What is known of plans and programs, as rows: for commands, and for tables of benchmarks."""

import dataclasses
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mallocgame._core import (
    Hardware,
    Plan,
    Program,
    Report,
    SolveResult,
    Verdict,
    all_main_plan,
    simulate,
    validate,
)
from mallocgame.bounds import Bound
from mallocgame.calibration import calibrated_if_possible

Row = dict[str, Any]  # one JSON object

# Cold first, at the compiler's prices and at calibrated ones.
SPEEDUPS = (
    "speedup_cold_vs_xla",
    "speedup_vs_xla",
    "speedup_calibrated_cold_vs_xla",
    "speedup_calibrated_vs_xla",
)


@dataclasses.dataclass(frozen=True)
class Reference:
    """XLA's own plan of a program, which other plans are compared with."""

    report: Report | None  # None: there is no plan for this hardware, or it is invalid
    invalid: str | None  # the rule that the plan breaks, and where

    @property
    def sentence(self) -> str | None:
        """Says why there is nothing to compare with; None: there is."""
        if self.invalid is not None:
            return f"XLA's own plan is no valid plan here, so it is no reference: {self.invalid}"
        return "XLA's own plan is not known on this hardware." if self.report is None else None


def reference(program: Program, hardware: Hardware) -> Reference:
    """Judges and simulates XLA's own plan."""
    plan = program.xla_plan_for(hardware)
    if plan is None:
        return Reference(None, None)
    verdict = validate(program, plan, hardware)
    if not verdict.ok:
        return Reference(None, f"{verdict.rule}: {verdict.message}")
    return Reference(simulate(program, plan, hardware), None)


def plan_row(
    program: Program,
    hardware: Hardware,
    report: Report | None,
    verdict: Verdict | None,
    xla: Reference,
    result: SolveResult | None = None,
    least: Bound | None = None,
    plan: Plan | None = None,
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
        "speedup_cold_vs_xla": speedup(own, report, cold=True),
        "speedup_vs_xla": speedup(own, report),
        "calibrated_cold_ps": now and now.latency_cold_ps,
        "calibrated_ps": now and now.latency_ps,
        "xla_calibrated_cold_ps": its and its.latency_cold_ps,
        "xla_calibrated_ps": its and its.latency_ps,
        "speedup_calibrated_cold_vs_xla": speedup(its, now, cold=True),
        "speedup_calibrated_vs_xla": speedup(its, now),
        "seconds": result and round(result.seconds, 6),
        "seed": result and result.seed,
    }


def calibrated_reports(
    program: Program,
    hardware: Hardware,
    plan: Plan | None,
    xla: Reference,
    order: NDArray[np.int32] | None = None,
) -> tuple[Report | None, Report | None]:
    """A plan and XLA's own at calibrated prices; None: there are none, or no such plan."""
    made = calibrated_if_possible(program, hardware)
    if made is None or plan is None:
        return None, None
    own = None if xla.report is None else program.xla_plan_for(hardware)
    ordered = made if order is None or not len(order) else made.reordered(order)
    now = simulate(ordered, plan.rebased_on(ordered))
    return now, None if own is None else simulate(made, own.rebased_on(made))


def speedup(before: Report | None, after: Report | None, cold: bool = False) -> float | None:
    """How many times as long `before` takes; None: one of them is unknown, or takes no time."""
    if before is None or after is None or not after.latency_ps:
        return None
    return (
        before.latency_cold_ps / after.latency_cold_ps
        if cold
        else before.latency_ps / after.latency_ps
    )


def report_row(report: Report) -> Row:
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


def program_row(program: Program, name: str) -> Row:
    """What there is to know of a program."""
    counts, own = program.counts, reference(program, program.hardware)
    xla = own.report
    all_main = simulate(program, all_main_plan(program))
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
NOT_COUNTED = {
    "host_computations": "Parts that the host computes, of which only the transfers count",
    "opaque_calls": "Custom calls that nothing is known of, so that only their arrays count",
    "linkless_collectives": "Collectives over links that nothing is known of, so that only their "
    "arrays count",
}


def assumed_row(program: Program) -> Row:
    """What the import had to assume or to leave out, as the module doesn't say it."""
    names, loops = program.instruction_names, program.loops
    return {
        "unknown_trips": [
            {"loop": names[loop["entry"]], "trips": int(loop["trips"])}
            for loop in loops[~loops["trips_known"]]
        ],
        **{name: program.counts[name] for name in (*_ASSUMED, *NOT_COUNTED)},
    }


def geometric_mean(values: Iterable[float]) -> float | None:
    """The geometric mean of positive numbers; None if there are none."""
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else None


def summarize(rows: Sequence[Row], solvers: Sequence[str]) -> dict[str, Row]:
    """Geometric means by solver, over the programs where the figure is known."""

    def mean(solver: str, figure: Callable[[Row], float | None]) -> float | None:
        return geometric_mean(
            value for row in rows if row["solver"] == solver and (value := figure(row))
        )

    def ratio(above: str, below: str) -> Callable[[Row], float | None]:
        return lambda row: row[above] / row[below] if row[above] and row[below] else None

    return {
        solver: {
            "programs": sum(
                row["solver"] == solver and row["latency_ps"] is not None for row in rows
            ),
            **{f"geomean_{key}": mean(solver, operator.itemgetter(key)) for key in SPEEDUPS},
            "geomean_speedup_vs_all_main": mean(solver, ratio("all_main_ps", "latency_ps")),
            "geomean_latency_over_bound": mean(solver, ratio("latency_ps", "bound_ps")),
        }
        for solver in solvers
    }
