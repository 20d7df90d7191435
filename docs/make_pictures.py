"""Makes the pictures of the documentation again.

python docs/make_pictures.py needs matplotlib, playwright and Chromium.
"""

import pathlib
import shutil
import sys
import tempfile

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image
from playwright.sync_api import Page, sync_playwright

import mallocgame as mg
from mallocgame import plots, viewer
from mallocgame.plots import style
from mallocgame.plots.style import residence_kinds

IMAGES = pathlib.Path(__file__).resolve().parent / "images"
PROGRAM = "resnet50_b1.tpu_v4i_16mib"
FILMED = "mlp_train_adam_b512.tpu_v6e"
NAMES = {mg.DROP: "Drop", mg.COPY: "Copy", mg.NOCOPY: "NoCopy", mg.COPY_EARLY: "CopyEarly"}


def draw_plan(axes, program: mg.Program, plan: mg.Plan, ticks: range, buffer: int) -> None:
    """Residences that overlap `ticks` by address, copies below; `buffer`'s are outlined."""

    def box(begin: int, end: float, low: float, high: float, colour: str, ours: bool) -> None:
        edge = style.TEXT if ours else style.PANEL
        axes.add_patch(
            Rectangle(
                (begin, low),
                end - begin,
                high - low,
                facecolor=colour,
                edgecolor=edge,
                linewidth=2 if ours else 1,
                alpha=1 if ours else 0.45,
                zorder=3 if ours else 2,
            )
        )

    buffers = plan.residences["buffer"]
    low = plan.residences["offset"] / 2**20
    high = low + program.buffers["size_bytes"][buffers] / 2**20
    colours = list(style.KINDS.values())
    for i, kind in enumerate(residence_kinds(plan)):
        begin, end = (plan.residences[name][i] for name in ("begin", "end"))
        box(begin, end, low[i], high[i], colours[kind], buffers[i] == buffer)
    for copy in plan.copies[~plan.copies["preload"]]:
        colour = style.KINDS["prefetched" if copy["kind"] == 0 else "evicted"]
        box(
            copy["begin"],
            max(copy["end"], copy["begin"] + 0.2),
            -0.47,
            -0.23,
            colour,
            buffers[copy["residence"]] == buffer,
        )
    axes.set_xlim(ticks.start, ticks.stop)
    axes.set_xticks(ticks[::2])
    axes.set_ylim(-0.6, 3)


def diagram(
    path: pathlib.Path,
    size: tuple[float, float],
    boxes: dict[str, tuple[float, float, float, float, str]],
    arrows: list[tuple[str, str, str]],
) -> None:
    """Boxes (x, y, width, height and a colour, all in inches) with their names, and arrows.

    An arrow goes from one box to another, and has a text at its middle.
    """
    with matplotlib.rc_context(style.matplotlib_style()):
        figure = Figure(figsize=size)
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(0, size[0])
        axes.set_ylim(0, size[1])
        axes.axis("off")
        for name, (x, y, width, height, colour) in boxes.items():
            axes.add_patch(Rectangle((x, y), width, height, facecolor=colour, edgecolor=style.TEXT))
            white = colour not in (style.PANEL, style.GRID)
            axes.text(
                x + width / 2,
                y + height / 2,
                name,
                ha="center",
                va="center",
                color=style.PANEL if white else style.TEXT,
            )
        for begin, end, text in arrows:
            (ax, ay), (bx, by) = nearest(boxes[begin][:4], boxes[end][:4])
            axes.annotate(
                "", (bx, by), (ax, ay), arrowprops={"arrowstyle": "->", "color": style.TEXT}
            )
            flat = abs(bx - ax) > abs(by - ay)
            axes.text(
                (ax + bx) / 2 + (0 if flat else 0.08),
                (ay + by) / 2 + (0.06 if flat else 0),
                text,
                ha="center" if flat else "left",
                va="bottom" if flat else "center",
                fontsize="small",
            )
        figure.savefig(path, dpi=100)


_Box = tuple[float, float, float, float]


def nearest(one: _Box, other: _Box) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where the straight line between two boxes leaves the one and meets the other."""
    points = []
    for axis in (0, 1):
        low, high = one[axis], one[axis] + one[axis + 2]
        from_low, from_high = other[axis], other[axis] + other[axis + 2]
        if high < from_low:
            points.append((high, from_low))
        elif from_high < low:
            points.append((low, from_high))
        else:
            middle = (max(low, from_low) + min(high, from_high)) / 2
            points.append((middle, middle))
    (ax, bx), (ay, by) = points
    return (ax, ay), (bx, by)


def memories_picture(path: pathlib.Path) -> None:
    """The memories of a TPU v6e, and what goes between them."""
    hardware = mg.Hardware.preset("tpu_v6e")
    slow, fast = list(style.KINDS.values())[:2]
    main = f"main memory (HBM)\n32 GB\n{hardware.main_bytes_per_second / 1e9:,.0f} GB/s"
    small = f"fast memory (VMEM)\n{hardware.fast_bytes / 2**20:,.0f} MiB"
    diagram(
        path,
        (8, 2.2),
        {
            main: (0.1, 0.2, 1.9, 1.8, slow),
            "copies share\none channel": (2.9, 1.3, 1.1, 0.6, style.PANEL),
            small: (4.5, 1.2, 1.7, 0.8, fast),
            "instruction": (6.9, 0.2, 1.0, 1.25, style.GRID),
        },
        [
            (main, "copies share\none channel", "prefetch"),
            (small, "copies share\none channel", ""),
            ("copies share\none channel", small, "evict"),
            (small, "instruction", ""),
            (main, "instruction", "served from main memory, at its bandwidth"),
        ],
    )


def tune_picture(path: pathlib.Path) -> None:
    """What tune hands to the compiler's phases, and gets from them."""
    theirs, ours = list(style.KINDS.values())[:2]
    diagram(
        path,
        (7.2, 3.2),
        {
            "phase 1": (0.1, 2.3, 1.2, 0.7, theirs),
            "program\nand prices": (2.8, 2.3, 1.3, 0.7, style.GRID),
            "search": (5.6, 2.3, 1.2, 0.7, ours),
            "write and check": (5.3, 0.3, 1.8, 0.7, ours),
            "phases 2a, 2b": (2.7, 0.3, 1.5, 0.7, theirs),
            "phase 3": (0.1, 0.3, 1.2, 0.7, theirs),
        },
        [
            ("phase 1", "program\nand prices", "module, assignment"),
            ("program\nand prices", "search", "game"),
            ("search", "write and check", "plan"),
            ("write and check", "phases 2a, 2b", "placed module"),
            ("phases 2a, 2b", "program\nand prices", "new prices"),
            ("phases 2a, 2b", "phase 3", "code"),
        ],
    )


def actions_picture(path: pathlib.Path) -> None:
    """One read decided in each of the four ways."""
    program = mg.load_program("muzero_unroll_b32.tpu_v4i_16mib")
    state = mg.Game(program).initial_state()
    for action in mg.solve(program, solver="greedy").actions[:4]:
        state.apply(int(action))
    access = program.accesses[state.current_access()]
    tick, buffer = int(access["tick"]), int(access["buffer"])
    assert state.legal_actions() == list(NAMES)
    with matplotlib.rc_context(style.matplotlib_style()):
        figure = Figure(figsize=(10, 2.9), layout="constrained")
        FigureCanvasAgg(figure)
        for axes, (action, name) in zip(
            figure.subplots(1, 4, sharey=True), NAMES.items(), strict=True
        ):
            state.apply(action)
            draw_plan(axes, program, state.plan(), range(44, 55), buffer)
            axes.axvspan(tick, tick + 1, color=style.LINE, zorder=1)
            axes.set_title(f"{name}: saves {state.last_saved_ps / 1e3:,.0f} ns")
            axes.set_xlabel("tick")
            state.undo()
        figure.axes[0].set_ylabel("address in MiB; copies below 0")
        figure.savefig(path)


def pieces(program: mg.Program, plan: mg.Plan):
    """Yields (begin, end, low, high, kind) of what residences take, slice by slice."""
    sizes = program.buffers["size_bytes"]
    fills = plan.copies[plan.copies["kind"] == 0]
    for i, (residence, kind) in enumerate(zip(plan.residences, residence_kinds(plan), strict=True)):
        low, end = residence["offset"], residence["end"]
        slices = fills[fills["residence"] == i]
        for piece in slices:
            part = (low + piece["part_begin"], low + piece["part_end"])
            yield (piece["begin"], end, *part, kind)
        if len(slices) == 0:
            yield residence["begin"], end, low, low + sizes[residence["buffer"]], kind


def draw_pieces(axes, state: mg.State) -> None:
    """Draws what the plan so far has in fast memory, in axes of the whole of it."""
    program, colours = state.game.program, list(style.KINDS.values())
    for begin, end, low, high, kind in pieces(program, state.plan()):
        axes.add_patch(
            Rectangle(
                (begin, low / 2**20),
                end - begin,
                (high - low) / 2**20,
                facecolor=colours[kind],
                edgecolor=style.PANEL,
                linewidth=0.5,
            )
        )
    axes.set_xlim(0, program.ticks)
    axes.set_ylim(0, state.game.hardware.fast_bytes / 2**20)


def priority_game_picture(path: pathlib.Path) -> None:
    """Greedy's priority game after some decisions and at its end."""
    program = mg.load_program("muzero_unroll_b32.tpu_v4i_16mib")
    game = mg.Game(program, game="priority")
    actions = mg.solve(game, solver="greedy").actions
    with matplotlib.rc_context(style.matplotlib_style()):
        figure = Figure(figsize=(10, 2.9), layout="constrained")
        FigureCanvasAgg(figure)
        state = game.initial_state()
        for axes, until in zip(
            figure.subplots(1, 4, sharey=True), (10, 40, 120, len(actions)), strict=True
        ):
            for action in actions[state.num_decisions : until]:
                state.apply(int(action))
            draw_pieces(axes, state)
            axes.set_title(f"{until} decisions: {state.latency_ps / 1e6:,.0f} µs")
            axes.set_xlabel("tick")
        figure.axes[0].set_ylabel("address in MiB")
        figure.savefig(path)


def game_film(path: pathlib.Path) -> None:
    """The game that annealing finds on a training step, decision by decision, as a GIF."""
    program = mg.load_program(FILMED)
    result = mg.solve(program, "anneal", game="priority", seconds=0, evaluations=2000, seed=0)
    xla_ps = mg.simulate(program, program.xla_plan).latency_ps
    state = result.game.initial_state()
    frames = [film_frame(state, xla_ps)]
    for action in result.actions:
        state.apply(int(action))
        frames.append(film_frame(state, xla_ps))
    durations = [120] * (len(frames) - 1) + [3000]
    first, *rest = frames
    first.save(path, save_all=True, append_images=rest, duration=durations, loop=0, optimize=True)


def film_frame(state: mg.State, xla_ps: int) -> Image.Image:
    """Fast memory over the program, with the latency if everything else stayed in main memory."""
    with matplotlib.rc_context(style.matplotlib_style()):
        figure = Figure(figsize=(7.6, 3.2), dpi=100, layout="constrained")
        canvas = FigureCanvasAgg(figure)
        axes = figure.subplots()
        draw_pieces(axes, state)
        axes.set_xlabel("instruction")
        axes.set_ylabel("fast memory, MiB")
        axes.set_title(
            f"{state.num_decisions:3} decisions: {state.latency_ps / 1e6:.0f} µs"
            f"   (XLA: {xla_ps / 1e6:.0f} µs, everything in main memory: "
            f"{state.game.all_main_ps / 1e6:.0f} µs)",
            loc="left",
        )
        axes.legend(
            handles=[Rectangle((0, 0), 1, 1, color=colour) for colour in style.KINDS.values()],
            labels=list(style.KINDS),
            loc="upper right",
            fontsize="small",
        )
        canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("P", palette=1, colors=32)


def compare_picture(path: pathlib.Path) -> None:
    rows, solvers = [], ["greedy", "anneal", "xla-assigned"]
    for name in (
        "resnet50_b1.tpu_v4i_16mib",
        "wavernn_64steps_b8.tpu_v4i",
        "mlp_train_adam_b512.tpu_v5e",
    ):
        program = mg.load_program(name)
        for solver in solvers:
            latency_ps = mg.solve(program, solver=solver, seconds=2).report.latency_ps
            rows.append(
                {
                    "program": name,
                    "solver": solver,
                    "latency_ps": latency_ps,
                    "bound_ps": mg.bounds.bound(program).bound_ps,
                }
            )
    plots.save_comparison(path, rows, solvers)


def levels_picture(path: pathlib.Path) -> None:
    """How far XLA's own plans of all levels' programs are above the bound."""
    gaps = {}
    for split in ("train", "validation", "test"):
        programs = {level.program_name: level.features for level in mg.levels(split)}
        gaps[split] = [one["xla_ps"] / one["bound_ps"] for one in programs.values()]
    plots.save_gaps(path, gaps)


def show_game(page: Page) -> None:
    page.locator("#step").fill("96")
    box = page.locator("figure canvas").bounding_box()
    page.mouse.move(box["x"] + 0.23 * box["width"], box["y"] + 0.22 * box["height"])


def show_comparison(page: Page) -> None:
    page.locator("#differences-list button").first.hover()


def page_pictures(executable: str) -> None:
    program = mg.load_program(PROGRAM)
    log = mg.record(mg.solve(program, solver="greedy"))
    shots = (("game", None, 800, show_game), ("compare", program.xla_plan, 960, show_comparison))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        for name, against, height, prepare in shots:
            path = pathlib.Path(folder) / f"{name}.html"
            viewer.write_page(path, log, program, against=against)
            page = browser.new_page(
                viewport={"width": 1280, "height": height}, color_scheme="light"
            )
            page.goto(path.as_uri())
            prepare(page)
            page.wait_for_timeout(300)
            page.screenshot(path=IMAGES / f"view-{name}.png")
        browser.close()


def main() -> None:
    executable = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if executable is None:
        sys.exit("make_pictures.py: Chromium isn't installed: apt-get install chromium")
    IMAGES.mkdir(exist_ok=True)
    memories_picture(IMAGES / "memories.png")
    tune_picture(IMAGES / "tune.png")
    actions_picture(IMAGES / "rules-actions.png")
    priority_game_picture(IMAGES / "priority-game.png")
    game_film(IMAGES / "game.gif")
    compare_picture(IMAGES / "compare.png")
    levels_picture(IMAGES / "levels-gap.png")
    page_pictures(executable)


if __name__ == "__main__":
    main()
