"""Pictures of results, with matplotlib and in one style.

They show solvers on many programs, latency over time, how an agent learns, speed-up over
evaluations, how far XLA's plans are from the bound, and where a placement map puts each tensor.
"""

import contextlib
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np

from mallocgame._core import Placement, write_file
from mallocgame.errors import MallocGameError, MissingExtraError
from mallocgame.plots import style
from mallocgame.reports.what_if import WhatIf

# Points in order: seconds, games or the like, and the latency in picoseconds.
Curve = Sequence[tuple[float, int]]


def check() -> None:
    """Checks before long work that a picture can be drawn. MallocGameError: it can't."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtraError("a plot needs matplotlib", "plot") from None


def save_comparison(
    path: str | os.PathLike[str], rows: Sequence[Mapping[str, Any]], solvers: Sequence[str]
) -> None:
    """Draws latency over the bound as PNG: a line for each program, a mark for each solver.

    rows: as `mallocgame compare --json` gives them under `results`.
    """
    programs = list(dict.fromkeys(row["program"] for row in rows))
    with _picture(path, 9, 1.7 + 0.28 * len(programs)) as figure:
        axes = figure.add_subplot()
        for index, solver in enumerate(solvers):
            shown = [
                row
                for row in rows
                if row["solver"] == solver and row["latency_ps"] and row["bound_ps"]
            ]
            axes.scatter(
                [row["latency_ps"] / row["bound_ps"] for row in shown],
                # Each solver has a height of its own, so that no mark hides another.
                [programs.index(row["program"]) + _offset(index, solvers) for row in shown],
                marker=style.MARKERS[index % len(style.MARKERS)],
                color=style.CYCLE[index % len(style.CYCLE)],
                label=solver,
                zorder=3,
            )
        axes.axvline(1.0, color=style.BOUND, linestyle="--", linewidth=1)
        axes.set_yticks(range(len(programs)), programs)
        axes.set_ylim(len(programs) - 0.4, -0.6)
        axes.set_xlabel("latency / proven bound (static estimates)")
        axes.set_title("Latency above a proven bound")
        figure.legend(loc="outside lower center", ncols=min(6, max(1, len(solvers))))


def _offset(index: int, solvers: Sequence[str]) -> float:
    return 0.4 * ((index + 0.5) / len(solvers) - 0.5)


def save_curves(
    path: str | os.PathLike[str],
    curves: Mapping[str, Curve],
    title: str,
    xlabel: str = "seconds",
    xla_ps: int | None = None,
    bound_ps: int | None = None,
    end: float | None = None,
) -> None:
    """Draws the best latency so far as PNG: of solvers over seconds, of training over games.

    curves: the improvements of each name; they are the first two columns of a SolveResult's curve.
    xla_ps, bound_ps: drawn as level lines.
    end: where the lines end; None is at the last improvement of any.

    MallocGameError: matplotlib is missing, or there is nothing to draw.
    """
    if not any(len(curve) for curve in curves.values()):
        raise MallocGameError("a plot of curves: found no improvement to draw")
    last = max([end or 0.0] + [float(x) for curve in curves.values() for x, _ in curve])
    with _picture(path, 7, 3.6) as figure:
        axes = figure.add_subplot()
        for name, curve in curves.items():
            if not len(curve):
                continue
            xs, latencies = [float(x) for x, _ in curve], [ps / 1e6 for _, ps in curve]
            axes.step([*xs, last], latencies + latencies[-1:], where="post", label=name)
        for name, ps, colour in (
            ("XLA's own plan", xla_ps, style.XLA),
            ("bound", bound_ps, style.BOUND),
        ):
            if ps is not None:
                axes.axhline(ps / 1e6, color=colour, linestyle="--", linewidth=1.2, label=name)
        axes.set_xlabel(xlabel)
        axes.set_ylabel("latency in µs (static estimate)")
        axes.set_title(title)
        figure.legend(loc="outside lower center", ncols=min(5, len(axes.lines)))


def save_learning(
    path: str | os.PathLike[str],
    panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]],
    xlabel: str,
    ylabel: str,
) -> None:
    """Draws how agents learn as PNG: a panel for each program.

    panels: by title and curve, points in order. Of many points the means of 60 pieces are drawn,
    because single steps differ by chance.

    MallocGameError: matplotlib is missing, or there is nothing to draw.
    """
    if not any(curve for curves in panels.values() for curve in curves.values()):
        raise MallocGameError("a plot of learning: found no step to draw")
    with _picture(path, max(5.0, 3.6 * len(panels)), 3.8) as figure:
        all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for (title, curves), axes in zip(panels.items(), all_axes, strict=True):
            for (name, curve), dashes in zip(curves.items(), cycle(("-", "--", ":")), strict=False):
                pieces = np.array_split(np.array(curve, float), min(60, len(curve)))
                means = np.array([piece.mean(axis=0) for piece in pieces])
                axes.plot(means[:, 0], means[:, 1], dashes, linewidth=1.4, label=name)
            axes.set_title(title)
            axes.set_xlabel(xlabel)
        all_axes[0].set_ylabel(ylabel)
        figure.legend(*all_axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)


def save_bars(
    path: str | os.PathLike[str], bars: Mapping[str, Mapping[str, float]], xlabel: str
) -> None:
    """Draws speed-ups as PNG: a group of bars for each program, from 1 to the left or right.

    bars: by program and name; a name has the same colour everywhere.
    """
    names = list(dict.fromkeys(name for values in bars.values() for name in values))
    height = 0.8 / max(1, len(names))
    with _picture(path, 7, 1.2 + 0.16 * len(bars) * (1 + len(names))) as figure:
        axes = figure.add_subplot()
        for index, name in enumerate(names):
            shown = [(place, bars[program].get(name)) for place, program in enumerate(bars)]
            known = [(place + index * height, value) for place, value in shown if value is not None]
            axes.barh(
                [at for at, _ in known],
                [value - 1 for _, value in known],
                height,
                left=1,
                color=style.CYCLE[index % len(style.CYCLE)],
                label=name,
            )
        axes.axvline(1.0, color=style.BOUND, linewidth=1)
        axes.set_yticks([place + 0.4 - height / 2 for place in range(len(bars))], list(bars))
        axes.invert_yaxis()
        axes.set_xlabel(xlabel)
        figure.legend(loc="outside lower center", ncols=min(6, max(1, len(names))))


def save_speed_ups(
    path: str | os.PathLike[str], panels: Mapping[str, Mapping[str, np.ndarray]], ylabel: str
) -> None:
    """Draws the best speed-up so far over evaluations as PNG: a panel for each problem.

    panels: by title and method, [seeds, evaluations]. Lines are means, bands a standard deviation
    to each side. A method has the same colour and line in all panels. A row that is shorter than
    the others stays at its end.
    """
    methods = list(dict.fromkeys(method for curves in panels.values() for method in curves))
    with _picture(path, max(5.0, 3.6 * len(panels)), 3.8) as figure:
        all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for (title, curves), axes in zip(panels.items(), all_axes, strict=True):
            end = max(speed_ups.shape[1] for speed_ups in curves.values())
            for method, speed_ups in curves.items():
                index = methods.index(method)
                # A few hundred places are enough, because a line has no more pixels.
                at = np.unique(np.linspace(0, end - 1, 400).round().astype(int))
                seen = speed_ups[:, np.minimum(at, speed_ups.shape[1] - 1)]
                mean, spread = seen.mean(axis=0), seen.std(axis=0)
                colour = style.CYCLE[index % len(style.CYCLE)]
                dashes = ("-", "--", ":")[index // len(style.CYCLE) % 3]
                axes.plot(at + 1, mean, dashes, color=colour, linewidth=1.4, label=method)
                axes.fill_between(
                    at + 1, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0
                )
            axes.axhline(1.0, color=style.BOUND, linestyle="--", linewidth=1)
            axes.set_title(title)
            axes.set_xlabel("evaluations")
        all_axes[0].set_ylabel(ylabel)
        handles = {line.get_label(): line for axes in all_axes for line in axes.get_lines()}
        figure.legend(
            [handles[method] for method in methods],
            methods,
            loc="outside lower center",
            ncols=min(6, len(methods)),
        )


def save_what_if(path: str | os.PathLike[str], told: WhatIf) -> None:
    """Draws latency over fast memory, and over bandwidth, as PNG: a line for each method."""
    panels = [(told.fast, "fast memory, MiB"), (told.bandwidth, "bandwidth of main memory, times")]
    panels = [(points, label) for points, label in panels if points]
    with _picture(path, 4.4 * len(panels), 3.8) as figure:
        all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for (points, label), axes in zip(panels, all_axes, strict=True):
            fast = points is told.fast
            xs = [one.fast_bytes / 2**20 if fast else one.bandwidth for one in points]
            for index, name in enumerate(points[0].latency_ps):
                axes.plot(
                    xs,
                    [one.latency_ps[name] / 1e6 for one in points],
                    "--" if name == "bound" else "-",
                    marker=style.MARKERS[index],
                    markersize=4,
                    color={"bound": style.BOUND, "xla-heuristic": style.XLA}.get(
                        name, style.CYCLE[0]
                    ),
                    label={"xla-heuristic": "XLA's allocator"}.get(name, name),
                )
            axes.axvline(told.fast_bytes / 2**20 if fast else 1.0, color=style.QUIET, linewidth=0.8)
            highest = max(ps for one in points for ps in one.latency_ps.values())
            axes.set_ylim(0, highest / 1e6 * 1.08)
            axes.set_xlabel(label)
            axes.set_title("compiler's prices" if fast else "calibrated prices")
        all_axes[0].set_ylabel("latency in µs (static estimate)")
        handles, labels = all_axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        figure.suptitle(f"{told.program} on {told.hardware}", fontsize=10)


def save_frontiers(
    path: str | os.PathLike[str], frontiers: Mapping[str, Sequence[tuple[float, float]]]
) -> None:
    """Draws what plans gain over XLA's by both sets of prices as PNG: a line for each program.

    frontiers: by program, for each plan the speed-ups by the compiler's and by calibrated prices.
    """
    with _picture(path, 5.6, 4.6) as figure:
        axes = figure.add_subplot()
        for index, (name, points) in enumerate(frontiers.items()):
            axes.plot(
                *zip(*points, strict=True),
                marker=style.MARKERS[index % len(style.MARKERS)],
                color=style.CYCLE[index % len(style.CYCLE)],
                label=name,
            )
        for line in (axes.axhline, axes.axvline):
            line(1.0, color=style.XLA, linestyle="--", linewidth=1, zorder=0)
        axes.set_xlabel("speed-up over XLA's plan by the compiler's prices (static)")
        axes.set_ylabel("by calibrated prices")
        axes.set_title("Plans at five leans, by both sets of prices")
        figure.legend(loc="outside lower center", ncols=2)


def save_gaps(path: str | os.PathLike[str], gaps: Mapping[str, Sequence[float]]) -> None:
    """Draws as PNG which share of the programs is at most so far above its bound.

    gaps: by title, the latency over the bound of each program.
    """
    with _picture(path, 7, 3.6) as figure:
        axes = figure.add_subplot()
        # Lines differ by their dashes too, for readers and printers without colours.
        for (title, ratios), dashes in zip(gaps.items(), cycle(("-", "--", ":")), strict=False):
            above = np.sort(100 * (np.asarray(ratios, float) - 1))
            share = np.arange(1, len(above) + 1) / max(1, len(above))
            label = f"{title}, {len(above)} programs"
            axes.step(above, 100 * share, dashes, where="post", label=label)
        # Most are near the bound and a few far above.
        axes.set_xscale("symlog", linthresh=1.0)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_xlim(0, None)
        axes.set_ylim(0, 100)
        axes.set_xlabel("XLA's plan above the bound by at most, % (linear below 1)")
        axes.set_ylabel("share of the programs, %")
        figure.legend(loc="outside lower center", ncols=max(1, len(gaps)))


def save_maps(
    path: str | os.PathLike[str], problem: Placement, maps: Mapping[str, np.ndarray]
) -> None:
    """Draws where the bytes lie as PNG: a panel for each map, a bar for each tensor.

    Tensors stand in schedule order, weights upwards and activations downwards; on a priority game
    the decided segments that were not split, by their first accesses. maps: by title, uint8
    [num_nodes, 2]; they are drawn as they are carried out.
    """
    colours = style.level_colours(len(problem.level_names))
    mebibytes = problem.tensor_bytes / 2**20
    of_runs = problem.parents.size > 0
    order = np.argsort(problem.node_ticks, kind="stable")
    most = 0
    with _picture(path, 9, 0.7 + 1.9 * len(maps)) as figure:
        from matplotlib.patches import Patch

        all_axes = figure.subplots(len(maps), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        for (title, chosen), axes in zip(maps.items(), all_axes, strict=True):
            latency_ps, moved, _ = problem.evaluate(chosen)
            levels = problem.rectify(chosen)
            counts = open_nodes(problem, levels)
            if of_runs:
                counts &= levels[:, 0] != problem.level_names.index("Split")
            drawn = order[counts[order]]
            most = max(most, len(drawn))
            for level, colour in enumerate(colours):
                for kind, sign in enumerate((1, -1)):
                    places = np.flatnonzero(levels[drawn, kind] == level)
                    axes.bar(places, sign * mebibytes[drawn[places], kind], width=1.0, color=colour)
            axes.axhline(0, color=style.TEXT, linewidth=0.8)
            # The axis is linear up to 1 MiB and logarithmic above, because sizes differ by a factor
            # of thousands, and small tensors are decisions, too.
            axes.set_yscale("symlog", linthresh=1.0, linscale=1.0)
            axes.yaxis.set_major_formatter(lambda size, _: f"{abs(size):g}")
            axes.set_xlim(-0.5, most - 0.5)
            axes.set_ylabel("MiB" if of_runs else "MiB\nactivations | weights")
            forced = f", {100 * moved:.1f} % of the bytes lie elsewhere than asked" if moved else ""
            axes.set_title(f"{title}: {latency_ps / 1e6:,.1f} µs{forced}")
        label = "run of {}, by its first use" if of_runs else "node of {}, in schedule order"
        all_axes[-1].set_xlabel(label.format(problem.program.name))
        shown = [
            (Patch(color=colour), name)
            for colour, name in zip(colours, problem.level_names, strict=True)
            if not (of_runs and name == "Split")
        ]
        figure.legend(*zip(*shown, strict=True), loc="outside lower center", ncols=len(shown))


def open_nodes(problem: Placement, map: np.ndarray) -> np.ndarray:
    """Returns bool [num_nodes]: which nodes count, as the levels of their parents are."""
    counts = np.ones(problem.num_nodes, bool)
    if problem.parents.size:
        split = problem.level_names.index("Split")
        splits = map[:, 0] == split
        for node, parent in enumerate(problem.parents):
            if parent >= 0:  # which comes before
                counts[node] = counts[parent] and splits[parent]
    return counts


@contextlib.contextmanager
def _picture(path: str | os.PathLike[str], width: float, height: float) -> Iterator[Any]:
    """Gives a figure that needs no screen, and writes it as PNG, whole or not at all.

    MallocGameError: matplotlib is missing, or the file can't be written.
    """
    check()
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    png = io.BytesIO()
    with matplotlib.rc_context(style.matplotlib_style()):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        yield figure
        figure.savefig(png, format="png")
    write_file(path, png.getvalue())
