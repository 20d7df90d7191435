"""Plots and rendered environments: what they draw, and that they and the page have one style."""

import importlib.resources
import re

import numpy as np
import pytest
from conftest import SMALL

import mallocgame as mg
from mallocgame.plots import style

PAGE_NAMES = {
    "preloaded": "preloaded",
    "prefetched": "prefetched",
    "evicted": "evicted",
    "only in fast memory": "only-fast",
}


def test_the_page_has_the_same_colours():
    sheet = (importlib.resources.files("mallocgame.viewer") / "page.css").read_text()
    light = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", sheet[: sheet.index("}")]))
    for kind, colour in style.KINDS.items():
        assert light[PAGE_NAMES[kind]] == colour
    assert (light["panel"], light["page"], light["grid"], light["text"]) == (
        style.PANEL,
        style.PAGE,
        style.GRID,
        style.TEXT,
    )
    assert light["xla"] == style.XLA


def test_rendering_uses_them():
    pytest.importorskip(
        "gymnasium", reason="Gymnasium isn't installed: pip install 'mallocgame[gym]'"
    )
    env = mg.MallocGameEnv(SMALL, render_mode="rgb_array")
    env.reset(seed=0)
    greedy = mg.solve(env.game, solver="greedy")
    assert (env.render() == style.rgb(style.GRID)).all(axis=2).any()  # what isn't decided yet
    for action in greedy.actions:
        env.step(int(action))
    image = env.render()
    seen = {tuple(colour) for colour in np.unique(image.reshape(-1, 3), axis=0).tolist()}
    assert (
        seen <= {style.rgb(colour) for colour in (*style.KINDS.values(), style.PANEL)}
        and len(seen) >= 3
    )


@pytest.fixture
def plots():
    pytest.importorskip(
        "matplotlib", reason="matplotlib isn't installed: pip install 'mallocgame[plot]'"
    )
    from mallocgame import plots

    return plots


def picture(path) -> np.ndarray:
    from matplotlib.image import imread

    return np.round(imread(path)[..., :3] * 255).astype(int)


def has(image: np.ndarray, colour: str) -> bool:
    return (np.abs(image - style.rgb(colour)).max(axis=2) <= 2).any()


def test_curves(plots, tmp_path):
    plots.save_curves(tmp_path / "plain.png", {"a": [(0.0, 2_000_000), (1.0, 1_500_000)]}, "title")
    plots.save_curves(
        tmp_path / "two.png",
        {"a": [(0.0, 2_000_000), (1.0, 1_500_000)], "b": [(0.5, 1_800_000)]},
        "title",
        xla_ps=1_700_000,
        bound_ps=1_400_000,
        end=2.0,
    )
    plain, two = picture(tmp_path / "plain.png"), picture(tmp_path / "two.png")
    assert (
        has(plain, style.CYCLE[0]) and not has(plain, style.CYCLE[1]) and not has(plain, style.XLA)
    )
    assert (
        has(two, style.CYCLE[1])
        and has(two, style.XLA)
        and has(two, style.BOUND)
        and has(two, style.PAGE)
    )
    with pytest.raises(mg.MallocGameError, match=r"nothing|no improvement"):
        plots.save_curves(tmp_path / "none.png", {"a": []}, "title")


def test_same_numbers_same_bytes(plots, tmp_path):
    rows = [
        {"program": "p", "solver": solver, "latency_ps": ps, "bound_ps": 100}
        for solver, ps in (("a", 150), ("b", None))
    ]
    for name in ("one.png", "two.png"):
        plots.save_comparison(tmp_path / name, rows, ["a", "b"])
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    assert has(picture(tmp_path / "one.png"), style.CYCLE[0])


def test_solve_draws_its_curve(plots, run, tmp_path):
    done = run("solve", SMALL, "--solver", "anneal", "--seconds", "0.5", "--plot", "curve.png")
    assert done.returncode == 0, done.stderr
    assert has(picture(tmp_path / "curve.png"), style.CYCLE[0])
    assert run("solve", SMALL, "--solver", "xla-assigned", "--plot", "level.png").returncode == 0
    assert run("solve", SMALL, "--plot", "nowhere/curve.png").returncode == 2


def test_learning_of_two_programs(plots, tmp_path):
    rising = [(float(x), x / 1000) for x in range(1000)]
    panels = {"p": {"a": rising, "b": rising[:1]}, "q": {"a": rising[5:]}}
    plots.save_learning(tmp_path / "two.png", panels, "seconds", "return")
    plots.save_learning(tmp_path / "one.png", {"p": {"a": rising}}, "seconds", "return")
    one, two = picture(tmp_path / "one.png"), picture(tmp_path / "two.png")
    assert has(one, style.CYCLE[0]) and not has(one, style.CYCLE[1])
    assert two.shape[1] > one.shape[1]
    with pytest.raises(mg.errors.MallocGameError, match="no step to draw"):
        plots.save_learning(tmp_path / "none.png", {"p": {"a": []}}, "seconds", "return")


def test_bars_of_two_programs(plots, tmp_path):
    bars = {"p": {"a": 1.2, "b": 0.9}, "q": {"a": 1.1}}
    plots.save_bars(tmp_path / "two.png", bars, "speed-up")
    plots.save_bars(tmp_path / "one.png", {"p": {"a": 1.2}}, "speed-up")
    one, two = picture(tmp_path / "one.png"), picture(tmp_path / "two.png")
    assert has(one, style.CYCLE[0]) and not has(one, style.CYCLE[1])
    assert has(two, style.CYCLE[1]) and two.shape[0] > one.shape[0]


def test_speed_ups_with_their_spread(plots, tmp_path):
    rising = np.linspace(0.5, 1.5, 1000) + np.array([[0.0], [0.2]])
    plots.save_speed_ups(tmp_path / "one.png", {"p": {"a": rising}}, "speed-up")
    plots.save_speed_ups(
        tmp_path / "two.png",
        {"p": {"a": rising}, "q": {"a": rising, "b": np.ones((1, 1))}},
        "speed-up",
    )
    one, two = picture(tmp_path / "one.png"), picture(tmp_path / "two.png")
    assert has(one, style.CYCLE[0]) and has(one, style.BOUND) and not has(one, style.CYCLE[1])
    assert has(two, style.CYCLE[0]) and has(two, style.CYCLE[1]) and two.shape[1] > one.shape[1]


def test_maps(plots, tmp_path):
    problem = mg.placement.Placement(mg.load_program(SMALL), mg.placement.Hierarchy.preset("nnp_i"))
    fast, middle, slow = style.level_colours(3)
    everything_slow = np.full((problem.num_nodes, 2), 2, np.uint8)
    plots.save_maps(tmp_path / "slow.png", problem, {"slow": everything_slow})
    plots.save_maps(
        tmp_path / "both.png", problem, {"compiler": problem.baseline_map, "slow": everything_slow}
    )

    def bars(image: np.ndarray) -> set[str]:  # those that are more than a patch of the legend
        return {
            c
            for c in (fast, middle, slow)
            if (np.abs(image - style.rgb(c)).max(axis=2) <= 2).sum() > 1000
        }

    assert bars(picture(tmp_path / "slow.png")) == {slow}
    assert bars(picture(tmp_path / "both.png")) == {fast, middle, slow}
    assert len(set(style.level_colours(8))) == 8 and style.level_colours(2) == [fast, slow]
