"""Draws fast memory over the program as XLA plans it, and as other plans do, one above the other.

    python benchmarks/quality/memory_map.py PROGRAM PNG NAME=PLAN ...

A PROGRAM is a name or a file, and a PLAN a file that `solve -o` or `train` wrote for it. Each stay
in fast memory is a rectangle, or several where copies fill it in pieces: instructions from left to
right, addresses from bottom to top, coloured by how the bytes come and go. Prints a table in
Markdown of XLA's plan and the others: the latency at both sets of prices, the accesses that fast
memory serves, the bytes prefetched and evicted, and the stalls. Needs mallocgame[benchmark].
"""

import itertools
from collections.abc import Iterator

import mallocgame as mg
from mallocgame import experiments as ex
from mallocgame.calibration import calibrated_if_possible
from mallocgame.plots import style

PREFETCH = 0  # of the kinds of copies; the other one is an eviction
WIDTH, HEIGHT = 8.0, 2.4  # of a panel, in inches
BORDER = 0.3  # between stays


def pieces(program: mg.Program, plan: mg.Plan) -> Iterator[tuple[int, int, int, int, int]]:
    """The stays, each in the pieces that its copies fill and empty one after the other.

    Each has the stay's index, its first and last tick, and its lowest and highest address.
    """
    sizes, copies = program.buffers["size_bytes"], plan.copies
    for index, stay in enumerate(plan.residences):
        own = copies[(copies["residence"] == index) & ~copies["preload"]]
        cuts = {0, int(sizes[stay["buffer"]]), *own["part_begin"], *own["part_end"]}
        for low, high in itertools.pairwise(sorted(int(cut) for cut in cuts)):
            begin, end, offset = int(stay["begin"]), int(stay["end"]), int(stay["offset"])
            for copy in own[(own["part_begin"] <= low) & (own["part_end"] >= high)]:
                if copy["kind"] == PREFETCH:
                    begin = int(copy["begin"])
                else:
                    end = int(copy["end"])
            yield index, begin, end, offset + low, offset + high


def draw(png: str, program: mg.Program, plans: dict[str, mg.Plan]) -> None:
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch, Rectangle

    colours = list(style.KINDS.values())
    with mpl.rc_context(style.matplotlib_style()):
        figure = Figure(figsize=(WIDTH, HEIGHT * len(plans) + 0.5), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(len(plans), sharex=True, sharey=True, squeeze=False)[:, 0]
        for panel, (name, plan) in zip(panels, plans.items(), strict=True):
            kinds = style.residence_kinds(plan)
            for stay, begin, end, low, high in pieces(program, plan):
                panel.add_patch(
                    Rectangle(
                        (begin, low / 2**20),
                        end - begin,
                        (high - low) / 2**20,
                        facecolor=colours[kinds[stay]],
                        edgecolor=style.PANEL,
                        linewidth=BORDER,
                    )
                )
            panel.set_xlim(0, len(program.instructions))
            panel.set_ylim(0, program.hardware.fast_bytes / 2**20)
            latency = mg.simulate(program, plan).latency_ps / 1e6
            panel.set_title(f"{name}: {latency:,.0f} µs")
            panel.set_ylabel("address, MiB")
        panels[-1].set_xlabel("instruction")
        legend = [Patch(color=colour, label=kind) for kind, colour in style.KINDS.items()]
        figure.legend(handles=legend, loc="outside lower center", ncols=len(legend))
        figure.savefig(png)


def main(program: str, png: str, *plans: str) -> None:
    loaded = mg.load_program(program)
    assert loaded.xla_plan is not None, "the program has no plan of XLA"
    shown = {"XLA": loaded.xla_plan}
    for plan in plans:
        name, _, path = plan.partition("=")
        shown[name] = mg.load_plan(path, loaded)
    calibrated = calibrated_if_possible(loaded)
    table = ex.Table(["", *shown])
    reports = [mg.simulate(loaded, plan) for plan in shown.values()]
    table.add("latency, µs", *(f"{report.latency_ps / 1e6:,.1f}" for report in reports))
    if calibrated is not None:
        others = [mg.simulate(calibrated, one.rebased_on(calibrated)) for one in shown.values()]
        table.add("at calibrated prices", *(f"{one.latency_ps / 1e6:,.1f}" for one in others))
    served = [(plan.served_by >= 0).sum() for plan in shown.values()]
    table.add(f"accesses served, of {len(loaded.accesses)}", *(f"{one}" for one in served))
    for name in ("prefetched", "written_back"):
        moved = [getattr(report, f"{name}_bytes") / 2**20 for report in reports]
        table.add(f"{name.replace('_', ' ')}, MiB", *(f"{one:,.1f}" for one in moved))
    table.add("stalls, µs", *(f"{report.stall_ps / 1e6:,.1f}" for report in reports))
    print(table)
    draw(png, loaded, shown)


if __name__ == "__main__":
    ex.main(main)
