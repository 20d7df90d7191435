"""Pictures of results, with matplotlib and in one style: solvers on many programs, and latency over time."""

import os
from collections.abc import Mapping, Sequence

from mallocgame import style
from mallocgame.errors import MallocGameError

Curve = Sequence[tuple[float, int]]  # (seconds, games or the like; latency in picoseconds), in order


def check() -> None:
    """Before long work: can a picture be drawn? MallocGameError if not."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MallocGameError("a plot needs matplotlib; install it with: pip install 'mallocgame[plot]'") from None


def save_comparison(path: str | os.PathLike, rows: Sequence[Mapping], solvers: Sequence[str]) -> None:
    """Latency over the bound as PNG: a line a program, a mark a solver.

    rows: as `mallocgame compare --json` gives them under `results`.
    """
    check()
    import matplotlib

    programs = list(dict.fromkeys(row["program"] for row in rows))
    with matplotlib.rc_context(style.matplotlib_style()):
        figure, axes = _figure(9, 1.7 + 0.28 * len(programs))
        for index, solver in enumerate(solvers):
            shown = [row for row in rows if row["solver"] == solver and row["latency_ps"] and row["bound_ps"]]
            axes.scatter(
                [row["latency_ps"] / row["bound_ps"] for row in shown],
                [programs.index(row["program"]) for row in shown],
                marker=style.MARKERS[index % len(style.MARKERS)],
                color=style.CYCLE[index % len(style.CYCLE)],
                label=solver,
                zorder=3,
            )
        axes.axvline(1.0, color=style.BOUND, linestyle="--", linewidth=1)
        axes.set_yticks(range(len(programs)), programs)
        axes.set_ylim(len(programs) - 0.4, -0.6)
        axes.set_xlabel("latency / proven bound (static estimates)")
        axes.set_title("How far from what no plan can beat")
        figure.legend(loc="outside lower center", ncols=min(6, max(1, len(solvers))))
        figure.savefig(path, format="png")


def save_curves(
    path: str | os.PathLike,
    curves: Mapping[str, Curve],
    title: str,
    xlabel: str = "seconds",
    xla_ps: int | None = None,
    bound_ps: int | None = None,
    end: float | None = None,
) -> None:
    """The best latency found so far as PNG, a line a name: of solvers over seconds, of training over games.

    curves: each name's improvements; a SolveResult's `curve` has them as its first two columns.
    xla_ps, bound_ps: drawn as level lines.
    end: where the lines end, of those with the same end; None: at the last improvement of any.

    MallocGameError: matplotlib is missing, or there is nothing to draw.
    """
    check()
    if not any(len(curve) for curve in curves.values()):
        raise MallocGameError("a plot of curves: found no improvement to draw")
    import matplotlib

    last = max([end or 0.0] + [float(x) for curve in curves.values() for x, _ in curve])
    with matplotlib.rc_context(style.matplotlib_style()):
        figure, axes = _figure(7, 3.6)
        for name, curve in curves.items():
            if not len(curve):
                continue
            xs, latencies = [float(x) for x, _ in curve], [ps / 1e6 for _, ps in curve]
            axes.step(xs + [last], latencies + latencies[-1:], where="post", label=name)
        for name, ps, colour in (("XLA's own plan", xla_ps, style.XLA), ("bound", bound_ps, style.BOUND)):
            if ps is not None:
                axes.axhline(ps / 1e6, color=colour, linestyle="--", linewidth=1.2, label=name)
        axes.set_xlabel(xlabel)
        axes.set_ylabel("latency in µs (static estimate)")
        axes.set_title(title)
        figure.legend(loc="outside lower center", ncols=min(5, len(axes.lines)))
        figure.savefig(path, format="png")


def _figure(width: float, height: float):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()
