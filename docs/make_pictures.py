"""Makes the pictures of the documentation again.

python docs/make_pictures.py needs matplotlib, playwright and Chromium.
"""

import csv
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

ROOT = pathlib.Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
PROGRAM = "mlp_train_adam_b512.tpu_v6e"
# Kinds of residences differ by their hatching too, for readers and printers without colours.
HATCHES = dict(zip(style.KINDS, ("xx", "", "--", "//"), strict=True))
NAMES = {
    mg.Action.DROP: "Drop",
    mg.Action.COPY: "Copy",
    mg.Action.NOCOPY: "NoCopy",
    mg.Action.COPY_EARLY: "CopyEarly",
}


def draw_plan(axes, program: mg.Program, plan: mg.Plan, ticks: range, buffer: int) -> None:
    """Residences that overlap `ticks` by address, copies below; `buffer`'s are outlined."""

    def box(begin: int, end: float, low: float, high: float, kind: str, ours: bool) -> None:
        patch = kind_patch((begin, low), end - begin, high - low, kind, 1)
        patch.set(alpha=1 if ours else 0.45, zorder=3 if ours else 2)
        axes.add_patch(patch)
        if ours:
            axes.add_patch(
                Rectangle((begin, low), end - begin, high - low, fill=False, linewidth=2, zorder=4)
            )

    buffers = plan.residences["buffer"]
    low = plan.residences["offset"] / 2**20
    high = low + program.buffers["size_bytes"][buffers] / 2**20
    kinds = list(style.KINDS)
    for i, kind in enumerate(residence_kinds(plan)):
        begin, end = (plan.residences[name][i] for name in ("begin", "end"))
        box(begin, end, low[i], high[i], kinds[kind], buffers[i] == buffer)
    for copy in plan.copies[~plan.copies["preload"]]:
        box(
            copy["begin"],
            max(copy["end"], copy["begin"] + 0.2),
            -0.47,
            -0.23,
            "prefetched" if copy["kind"] == 0 else "evicted",
            buffers[copy["residence"]] == buffer,
        )
    axes.set_xlim(ticks.start, ticks.stop)
    axes.set_xticks(ticks[::2])
    axes.set_ylim(-0.6, 3)


def kind_patch(
    corner: tuple[float, float], width: float, height: float, kind: str, linewidth: float
) -> Rectangle:
    """A rectangle in the colour and the hatching of a kind of residence."""
    return Rectangle(
        corner,
        width,
        height,
        facecolor=style.KINDS[kind],
        edgecolor=style.PANEL,
        hatch=HATCHES[kind],
        linewidth=linewidth,
    )


def kinds_legend(figure, *more, kinds: tuple[str, ...] = tuple(style.KINDS)) -> None:
    """A legend below the panels: kinds of residences, and more handles with labels."""
    patches = [kind_patch((0, 0), 1, 1, kind, 0) for kind in kinds]
    figure.legend(
        handles=[*patches, *more],
        labels=[*kinds, *(handle.get_label() for handle in more)],
        loc="outside lower center",
        ncols=len(kinds) + len(more),
    )


def diagram(
    path: pathlib.Path,
    size: tuple[float, float],
    boxes: dict[str, tuple[float, float, float, float, str]],
    arrows: list[tuple[str, str, str]],
    gap: float = 0,
) -> None:
    """Boxes (x, y, width, height and a colour, all in inches) with their names, and arrows.

    An arrow goes from one box to another, and has a text at its middle. Of two arrows between the
    same boxes one is `gap` inches above the middle and the other one as far below.
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
            if (end, begin) in {arrow[:2] for arrow in arrows}:
                shift = gap if ax < bx else -gap
                ay, by = ay + shift, by + shift
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
                fontsize="medium",
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
    channel = "channel:\nthe copies,\none by one"
    main = f"main memory (HBM)\n32 GB\n{hardware.main_bytes_per_second / 1e9:,.0f} GB/s"
    small = f"fast memory (VMEM)\n{hardware.fast_bytes / 2**20:,.0f} MiB granted"
    diagram(
        path,
        (8, 2.6),
        {
            main: (0.1, 0.2, 1.9, 2.2, slow),
            channel: (2.9, 1.65, 1.0, 0.8, style.PANEL),
            small: (4.6, 1.65, 1.7, 0.8, fast),
            "instruction": (6.9, 0.2, 1.0, 1.9, style.GRID),
        },
        [
            (main, channel, "prefetch"),
            (channel, main, "eviction"),
            (channel, small, ""),
            (small, channel, ""),
            (small, "instruction", ""),
            (main, "instruction", "reads from main memory, at its bandwidth"),
            ("instruction", main, "results"),
            ("instruction", small, ""),
        ],
        gap=0.2,
    )


def loop_picture(path: pathlib.Path) -> None:
    """The loop of an agent and an environment."""
    slow, fast = list(style.KINDS.values())[:2]
    diagram(
        path,
        (7.2, 2.9),
        {
            "program,\nhardware": (0.1, 1.6, 1.1, 0.9, style.GRID),
            "environment": (2.1, 1.4, 1.4, 1.3, slow),
            "policy": (5.7, 1.4, 1.4, 1.3, fast),
            "plan and latency": (1.9, 0.1, 1.8, 0.6, style.GRID),
        },
        [
            ("program,\nhardware", "environment", "reset"),
            ("environment", "plan and latency", "at the end"),
            ("environment", "policy", "observation, mask, reward"),
            ("policy", "environment", "action"),
        ],
        gap=0.35,
    )


def tune_picture(path: pathlib.Path) -> None:
    """What tune hands to the compiler's phases, and gets from them."""
    theirs, ours = list(style.KINDS.values())[:2]
    diagram(
        path,
        (9.4, 3.2),
        {
            "JAX function": (0.1, 2.3, 1.2, 0.7, style.GRID),
            "phase 1\nof libtpu": (2.1, 2.3, 1.2, 0.7, theirs),
            "program\nand prices": (4.9, 2.3, 1.3, 0.7, style.GRID),
            "search": (7.8, 2.3, 1.2, 0.7, ours),
            "write and check": (7.5, 0.3, 1.8, 0.7, ours),
            "phases 2a, 2b\nof libtpu": (4.8, 0.3, 1.5, 0.7, theirs),
            "phase 3\nof libtpu": (2.1, 0.3, 1.2, 0.7, theirs),
            "executable": (0.1, 0.3, 1.2, 0.7, style.GRID),
        },
        [
            ("JAX function", "phase 1\nof libtpu", ""),
            ("phase 1\nof libtpu", "program\nand prices", "module, assignment"),
            ("program\nand prices", "search", "game"),
            ("search", "write and check", "plan"),
            ("write and check", "phases 2a, 2b\nof libtpu", "module"),
            ("phases 2a, 2b\nof libtpu", "program\nand prices", "new prices"),
            ("phases 2a, 2b\nof libtpu", "phase 3\nof libtpu", "code"),
            ("phase 3\nof libtpu", "executable", ""),
        ],
    )


def embed_picture(path: pathlib.Path) -> None:
    """Whose programs reach the game by which way."""
    theirs, ours = list(style.KINDS.values())[:2]
    names = [
        "C++ search,\nlibtorch",
        "JAX",
        "Gymnasium,\nTorchRL, SB3 ...",
        "C, Rust,\nJulia",
        "OpenSpiel\nin C++",
    ]
    boxes = {name: (0.1 + 1.45 * i, 2.2, 1.2, 0.6, theirs) for i, name in enumerate(names)} | {
        "VectorEnv.xla()": (1.5, 1.2, 1.3, 0.4, ours),
        "environments": (3.0, 1.2, 1.2, 0.4, ours),
        "mallocgame.h": (4.5, 1.2, 1.2, 0.4, ours),
        "games, positions, observers, VectorEnv, logs": (0.1, 0.2, 7.0, 0.5, style.GRID),
    }
    core = list(boxes)[-1]
    ways = {
        names[1]: "VectorEnv.xla()",
        names[2]: "environments",
        names[3]: "mallocgame.h",
        names[4]: "mallocgame.h",
    }
    arrows = [(name, way, "") for name, way in ways.items()]
    diagram(
        path,
        (7.2, 3.0),
        boxes,
        [
            (names[0], core, "headers"),
            *arrows,
            *((way, core, "") for way in dict.fromkeys(ways.values())),
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
        figure = Figure(figsize=(10, 3.3), layout="constrained")
        FigureCanvasAgg(figure)
        for axes, (action, name) in zip(
            figure.subplots(1, 4, sharey=True), NAMES.items(), strict=True
        ):
            state.apply(action)
            draw_plan(axes, program, state.plan(), range(40, 55), buffer)
            axes.set_xticks(range(40, 55, 4))
            read = axes.axvspan(tick, tick + 1, color=style.LINE, zorder=1, label="the read")
            axes.set_title(f"{name}: saves {state.last_saved_ps / 1e6:.2f} µs", fontsize="medium")
            axes.set_xlabel("tick")
            state.undo()
        figure.axes[0].set_ylabel("address, MiB; copies below 0")
        kinds_legend(figure, read, kinds=("preloaded", "prefetched", "only in fast memory"))
        figure.savefig(path)


def modes_picture(path: pathlib.Path) -> None:
    """One decision of the priority game, in each of the five modes."""
    program = mg.load_program("muzero_unroll_b32.tpu_v4i_16mib")
    game = mg.Game(program, game="priority")
    state = game.initial_state()
    for action in mg.solve(game, solver="greedy").actions[:100]:
        state.apply(int(action))
    buffer = int(program.accesses["buffer"][state.asked_about()[0][0]])
    ticks = [
        int(access["tick"])
        for access in program.accesses[state.asked_about()[0][0] : state.asked_about()[0][1] + 1]
        if access["buffer"] == buffer
    ]
    names = {
        mg.Mode.SKIP: "Skip",
        mg.Mode.LATE: "Late",
        mg.Mode.EARLY: "Early",
        mg.Mode.PRELOAD: "Preload",
    }
    names[mg.Mode.SPLIT] = "Split"
    assert set(names) <= set(state.legal_actions())  # of the first candidate
    with matplotlib.rc_context(style.matplotlib_style()):
        figure = Figure(figsize=(10, 3.3), layout="constrained")
        FigureCanvasAgg(figure)
        for axes, (action, name) in zip(
            figure.subplots(1, 5, sharey=True), names.items(), strict=True
        ):
            state.apply(action)
            draw_plan(axes, program, state.plan(), range(36, 161), buffer)
            axes.set_xticks(range(40, 161, 40))
            axes.set_ylim(-1.2, 8)
            (accesses,) = axes.plot(
                ticks,
                [-0.8] * len(ticks),
                "^",
                color=style.TEXT,
                label="accesses of the segment to decide",
            )
            runs = [run for run in state.asked_about() if is_run_of(program, run, buffer)]
            for first, last in runs:  # two after a Split
                begin, end = (program.accesses["tick"][access] for access in (first, last))
                (part,) = axes.plot(
                    [begin - 2, end + 2],
                    [-0.35] * 2,
                    color=style.TEXT,
                    label="segments after a Split",
                )
            axes.set_title(f"{name}: saves {state.last_saved_ps / 1e6:.1f} µs", fontsize="medium")
            axes.set_xlabel("tick")
            state.undo()
        figure.axes[0].set_ylabel("address, MiB")
        kinds = ("preloaded", "prefetched", "only in fast memory")
        kinds_legend(figure, accesses, part, kinds=kinds)
        figure.savefig(path)


def is_run_of(program: mg.Program, run: tuple[int, int], buffer: int) -> bool:
    return int(program.accesses["buffer"][run[0]]) == buffer


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
    program, kinds = state.game.program, list(style.KINDS)
    for begin, end, low, high, kind in pieces(program, state.plan()):
        height = (high - low) / 2**20
        axes.add_patch(kind_patch((begin, low / 2**20), end - begin, height, kinds[kind], 0.5))
    axes.set_xlim(0, program.ticks)
    axes.set_ylim(0, state.game.hardware.fast_bytes / 2**20)


def priority_game_picture(path: pathlib.Path) -> None:
    """Greedy's priority game after some decisions and at its end."""
    program = mg.load_program("muzero_unroll_b32.tpu_v4i_16mib")
    game = mg.Game(program, game="priority")
    actions = mg.solve(game, solver="greedy").actions
    with matplotlib.rc_context(style.matplotlib_style()):
        figure = Figure(figsize=(10, 3.3), layout="constrained")
        FigureCanvasAgg(figure)
        state = game.initial_state()
        for axes, until in zip(
            figure.subplots(1, 4, sharey=True), (10, 40, 120, len(actions)), strict=True
        ):
            for action in actions[state.num_decisions : until]:
                state.apply(int(action))
            draw_pieces(axes, state)
            axes.set_title(
                f"{until} decisions: {state.latency_ps / 1e6:,.0f} µs in all", fontsize="medium"
            )
            axes.set_xlabel("tick")
        figure.axes[0].set_ylabel("address, MiB")
        kinds_legend(figure, kinds=("prefetched", "only in fast memory"))
        figure.savefig(path)


def game_film(path: pathlib.Path) -> None:
    """The game that annealing finds on a training step, decision by decision, as a GIF."""
    program = mg.load_program(PROGRAM)
    result = mg.solve(program, "anneal", game="priority", seconds=0, evaluations=2000, seed=0)
    xla_ps = mg.simulate(program, program.xla_plan).latency_ps
    state = result.game.initial_state()
    frames = [film_frame(state, xla_ps)]
    for action in result.actions:
        state.apply(int(action))
        frames.append(film_frame(state, xla_ps))
    # Stills show the first frame, so it is the end of the game.
    first, *rest = [frames[-1], *frames]
    durations = [1500] + [120] * (len(frames) - 1) + [3000]
    first.save(path, save_all=True, append_images=rest, duration=durations, loop=0, optimize=True)


def film_frame(state: mg.State, xla_ps: int) -> Image.Image:
    """Fast memory over the program, with the latency if everything else stayed in main memory."""
    with matplotlib.rc_context(style.matplotlib_style()):
        figure = Figure(figsize=(7.6, 3.2), dpi=100, layout="constrained")
        canvas = FigureCanvasAgg(figure)
        axes = figure.subplots()
        draw_pieces(axes, state)
        axes.set_xlabel("time, as instructions in their order")
        axes.set_ylabel("fast memory, MiB")
        axes.set_title(
            f"{state.num_decisions:3} decisions: {state.latency_ps / 1e6:.0f} µs"
            f"   (XLA: {xla_ps / 1e6:.0f} µs, everything in main memory: "
            f"{state.game.all_main_ps / 1e6:.0f} µs)",
            loc="left",
        )
        axes.legend(
            handles=[kind_patch((0, 0), 1, 1, kind, 0) for kind in style.KINDS],
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
    page.locator("#step").fill("10")


def show_comparison(page: Page) -> None:
    page.locator("#differences-list button").first.hover()


def curves_picture(path: pathlib.Path) -> None:
    """Scores of learners as they learn, from the table of learning_curves.py."""
    with (ROOT / "benchmarks/quality/tables/learning_curves.csv").open() as file:
        rows = list(csv.DictReader(file))
    curves: dict[tuple[str, str], dict[int, list[float]]] = {}
    for row in rows:
        of_level = curves.setdefault((row["learner"], row["level"]), {})
        of_level.setdefault(int(row["steps_epochs_or_rounds"]), []).append(float(row["score"]))
    with matplotlib.rc_context(style.matplotlib_style()):
        figure = Figure(figsize=(10, 3.8), layout="constrained")
        left, middle, right = figure.subplots(1, 3)

        def draw(axes, name: str, learner: str, level: str) -> None:
            own = sorted(curves[learner, level].items())
            (line,) = axes.plot([at for at, _ in own], [np.mean(of) for _, of in own], label=name)
            low, high = ([pick(of) for _, of in own] for pick in (min, max))
            axes.fill_between([at for at, _ in own], low, high, alpha=0.25, color=line.get_color())
            if level != "all":
                greedy = curves["greedy", level][0][0]
                axes.axhline(greedy, linestyle=":", color=line.get_color())

        # Fine-tuning starts from the cloned policy.
        curves["fine-tuned", "all"][0] = curves["cloning", "all"][max(curves["cloning", "all"])]
        for level in sorted(level for learner, level in curves if learner == "PPO"):
            draw(left, level, "PPO", level)
        left.set(title="PPO on one level", xlabel="steps", ylabel="score", ylim=(-1, 1.1))
        for axes, learner, of in ((middle, "cloning", "epochs"), (right, "fine-tuned", "rounds")):
            draw(axes, learner, learner, "all")
            axes.axhline(curves["greedy", "all"][0][0], linestyle=":", label="greedy")
            axes.set(title=learner.capitalize(), xlabel=of, ylim=(0.4, 1))
        for axes in (left, middle, right):
            axes.legend(fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.2))
        figure.savefig(path)


def page_pictures(executable: str) -> None:
    program = mg.load_program(PROGRAM)
    log = mg.record(mg.solve(program, solver="greedy", game="fine"))
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
    loop_picture(IMAGES / "loop.png")
    tune_picture(IMAGES / "tune.png")
    embed_picture(IMAGES / "embed.png")
    actions_picture(IMAGES / "rules-actions.png")
    modes_picture(IMAGES / "priority-modes.png")
    priority_game_picture(IMAGES / "priority-game.png")
    game_film(IMAGES / "game.gif")
    compare_picture(IMAGES / "compare.png")
    levels_picture(IMAGES / "levels-gap.png")
    curves_picture(IMAGES / "learning-curves.png")
    page_pictures(executable)


if __name__ == "__main__":
    main()
