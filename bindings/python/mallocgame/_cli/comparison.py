"""What `mallocgame compare` makes of its results: geometric means, a table of 80 columns, CSV.
plots.py draws them.
"""

import csv
import math

from mallocgame._cli import console


def summary(rows: list[dict], solvers: list[str]) -> dict:
    """Geometric means by solver, over the programs where the figure is known."""

    def mean(solver: str, figure) -> float | None:
        known = [value for row in rows if row["solver"] == solver and (value := figure(row))]
        return math.exp(sum(map(math.log, known)) / len(known)) if known else None

    def ratio(above: str, below: str):
        return lambda row: row[above] / row[below] if row[above] and row[below] else None

    return {
        solver: {
            "programs": sum(
                row["solver"] == solver and row["latency_ps"] is not None for row in rows
            ),
            "geomean_speedup_vs_xla": mean(solver, lambda row: row["speedup_vs_xla"]),
            "geomean_speedup_vs_all_main": mean(solver, ratio("all_main_ps", "latency_ps")),
            "geomean_latency_over_bound": mean(solver, ratio("latency_ps", "bound_ps")),
        }
        for solver in solvers
    }


def print_results(rows: list[dict], means: dict) -> None:
    columns = [
        ("program and solver", "left"),
        ("latency µs", "right"),
        ("bound µs", "right"),
        ("vs XLA", "right"),
        ("gap", "right"),
        ("s", "right"),
    ]
    cells, last = [], None
    for row in rows:
        if row["program"] != last:
            last = row["program"]
            cells.append([last, "", console.microseconds(row["bound_ps"]), "", "", ""])
        seconds = "-" if row["seconds"] is None else f"{row['seconds']:.1f}"
        over = (
            row["latency_ps"] / row["bound_ps"] if row["bound_ps"] and row["latency_ps"] else None
        )
        cells.append(
            [
                f"  {row['solver']}",
                console.microseconds(row["latency_ps"]),
                "",
                console.times(row["speedup_vs_xla"]),
                _percent_over(over),
                seconds,
            ]
        )
    cells.append(["geometric means"] + [""] * 5)
    for solver, figures in means.items():
        cells.append(
            [
                f"  {solver}, of {figures['programs']}",
                "",
                "",
                console.times(figures["geomean_speedup_vs_xla"]),
                _percent_over(figures["geomean_latency_over_bound"]),
                "",
            ]
        )
    console.print_table(columns, cells, gap=1)
    names = sorted(
        {f"{row['bound_name']}, {row['bound_status']}" for row in rows if row["bound_name"]}
    )
    console.print_line(f"gap: above the proven bound ({'; '.join(names)}).")
    console.print_line("Static estimates, not measurements on a chip.")


def write_csv(path: str, rows: list[dict]) -> None:
    """One line a program and solver, with the keys of the JSON rows as columns."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _percent_over(ratio: float | None) -> str:
    return "-" if ratio is None else f"{100 * (ratio - 1):.1f}%"
