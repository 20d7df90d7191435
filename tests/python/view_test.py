"""The page of `mallocgame view`: what it says, and what it does in a real browser.

The browser is Chromium, run by Playwright.

The browser's part is skipped where Playwright or Chromium isn't installed.
"""

import json
import re

import numpy as np
import pytest

import mallocgame as mg
from mallocgame import _core, viewer
from mallocgame.plots import style
from mallocgame.reports.scopes import Group, group_instructions
from mallocgame.viewer import data as page_data
from mallocgame.viewer import page as page_module

# This program has prefetches, evictions, preloads, waits, and XLA's own plan.
NAME = "resnet50_b1.tpu_v4i_16mib"


@pytest.fixture(scope="module")
def contended() -> mg.Program:
    return mg.load_program(NAME)


@pytest.fixture(scope="module")
def log(contended) -> mg.files.GameLog:
    return mg.record(mg.solve(contended, solver="greedy"))


@pytest.fixture(scope="module")
def game_page(contended, log, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "game.html"
    viewer.write_page(path, log, contended)
    return path


@pytest.fixture(scope="module")
def compare_page(contended, log, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "compare.html"
    viewer.write_page(path, log, contended, against=contended.xla_plan)
    return path


def document_of(path) -> dict:
    return json.loads(
        re.search(
            r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.DOTALL
        )[1]
    )


# The document.


def test_times_add_up_to_the_report(contended, log, game_page):
    document = document_of(game_page)
    report = mg.simulate(contended, log.plan)
    times = document["plans"][0]["times"]
    assert sum(times["compute_ps"]) == report.compute_ps
    assert times["stall_ps"] == report.stall_at_ps.tolist()
    assert (
        sum(document["least_ps"]) == document["bound"]["ps"] == mg.bounds.bound(contended).bound_ps
    )
    assert sum(document["main_ps"]) == report.all_main_ps
    assert sum(document["xla_ps"]) == mg.simulate(contended, contended.xla_plan).latency_ps
    assert all(
        used <= idle <= run
        for used, idle, run in zip(
            times["copied_ps"], times["idle_ps"], times["compute_ps"], strict=True
        )
    )
    copied = log.plan.copies[~log.plan.copies["preload"]]
    work = sum(contended.hardware.transfer_ps(int(c["part_end"] - c["part_begin"])) for c in copied)
    # Without loops every copy is served once, in idle time or waited for.
    assert sum(times["copied_ps"]) + report.stall_ps == work


def test_loops_count_all_their_trips(program):
    looped = next(one for one in map(mg.load_program, mg.program_names()) if one.counts["loops"])
    plan = mg.solve(looped, solver="greedy").plan
    times, report = _core.timeline(looped, plan), mg.simulate(looped, plan)
    assert (
        times["compute_ps"].sum() == report.compute_ps
        and times["stall_ps"].sum() == report.stall_ps
    )
    assert looped.instructions["trips"].max() > 1
    with pytest.raises(mg.InvalidInputError):
        _core.timeline(program, plan)


@pytest.mark.parametrize("step", [0, 1, 40, 77, -1])
def test_the_film_shows_what_the_game_had(contended, log, game_page, step):
    actions = log.actions.tolist()
    step = len(actions) if step == -1 else step
    state = log.game(contended).initial_state()
    for action in actions[:step]:
        state.apply(action)
    shown = document_of(game_page)["plans"][0]

    def there(table, names):
        alive = [
            (died < 0 or step < died) and born <= step
            for born, died in zip(table["born"], table["died"], strict=True)
        ]
        return sorted(
            row
            for row, keep in zip(
                zip(*(table[name] for name in names), strict=True), alive, strict=True
            )
            if keep
        )

    plan = state.plan()
    names = ["buffer", "offset", "begin", "end"]
    assert there(shown["residences"], names) == sorted(
        tuple(int(r[name]) for name in names) for r in plan.residences
    )
    names = ["begin", "end", "kind"]
    assert there(shown["copies"], names) == sorted(
        tuple(int(c[name]) for name in names) for c in plan.copies
    )


def test_long_games_keep_some_frames_only(contended, log, monkeypatch):
    whole = page_data._film(contended, page_data.Subject("", log.plan, log))
    monkeypatch.setattr(page_data, "_MAX_FRAMES", 10)
    few = page_data._film(contended, page_data.Subject("", log.plan, log))
    assert len(set(few[0]["born"])) <= 10 < len(set(whole[0]["born"]))
    for short, long in zip(few, whole, strict=True):
        last = [
            [row for row in zip(*table.values(), strict=True) if row[-1] < 0]
            for table in (short, long)
        ]
        assert [row[:-2] for row in last[0]] == [row[:-2] for row in last[1]]


def test_kinds_of_residences(contended):
    plan = contended.xla_plan
    residences, _ = page_data._film(contended, page_data.Subject("", plan))
    preloaded = {
        int(plan.residences["buffer"][c["residence"]]) for c in plan.copies if c["preload"]
    }
    shown = {
        buffer
        for buffer, kind in zip(residences["buffer"], residences["kind"], strict=True)
        if kind == list(style.KINDS).index("preloaded")
    }
    assert preloaded and shown == preloaded
    assert set(residences["kind"]) == {0, 1, 2, 3}


def test_names_can_not_break_out_of_the_document():
    hostile = {"name": "</script><script>alert(1)</script><!--{{script}}"}
    page = page_module._fill(hostile, "<b>{{data}}")
    assert page.count("<script") == 2 and "&lt;b&gt;{{data}}" in page
    held = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1]
    assert json.loads(held) == hostile


def test_wrong_subjects_are_refused(contended, program, log):
    with pytest.raises(mg.InvalidInputError):
        viewer.make_page(log, program)
    with pytest.raises(mg.InvalidInputError, match="hardware"):
        viewer.make_page(log, contended, hardware=mg.hardware("tpu_v4i"))
    data = log.to_bytes()
    other = mg.record(mg.solve(program, solver="greedy"))
    with pytest.raises(mg.InvalidInputError):
        viewer.make_page(mg.files.GameLog.from_bytes(data), contended, against=other)


def test_command(run, run_json, tmp_path):
    solved = ["solve", NAME, "--solver", "greedy", "-o", "plan.json", "--log", "game.mgr"]
    assert run(*solved).returncode == 0
    row = run_json("view", "game.mgr", "--against", "xla", "-o", "page.html")
    assert row["bytes"] == (tmp_path / "page.html").stat().st_size
    assert (row["program"], row["shown"], row["against"]) == (NAME, "greedy", "XLA")
    assert run_json("view", "plan.json", "-o", "page.html")["shown"] == "plan.json"
    assert run_json("view", "xla", "--program", NAME, "-o", "page.html")["shown"] == "XLA"
    for arguments, words in (
        (["xla"], "--program"),
        (["nothing.mgr"], "nothing.mgr"),
        (["plan.json", "--program", "gcn_dense_2048.tpu_v4i"], "plan.json"),
        (["plan.json", "--against", "nothing.json"], "nothing.json"),
    ):
        done = run("view", *arguments, "-o", "page.html")
        assert (
            done.returncode == 2 and words in done.stderr and len(done.stderr.splitlines()) == 1
        ), done.stderr
    assert run("view", "plan.json", "-o", "no/page.html").returncode == 2


# The browser.


def hover_a_box(window, canvas):
    """Moves the mouse over the picture until the tip names a buffer; returns its lines."""
    area = canvas.bounding_box()
    for y in np.linspace(0.1, 0.6, 12):
        for x in np.linspace(0.12, 0.95, 14):
            window.mouse.move(area["x"] + x * area["width"], area["y"] + y * area["height"])
            lines = (
                window.locator("#tip").inner_text().splitlines()
                if window.locator("#tip").is_visible()
                else []
            )
            if any("at offset" in line for line in lines):
                return lines
    raise AssertionError("no box found under the mouse")


def test_loads_and_says_what_matters(open_page, contended, log, game_page):
    window = open_page(game_page)
    assert window.title().startswith(NAME)
    assert window.locator("h1").inner_text() == NAME
    report, xla = mg.simulate(contended, log.plan), mg.simulate(contended, contended.xla_plan)
    assert (
        f"{xla.latency_ps / report.latency_ps:.3f}× faster than XLA's own plan"
        in window.locator("#summary").inner_text()
    )
    figures = window.locator("#figures").inner_text()
    assert (
        f"{report.latency_ps / 1e6:.1f} µs" in figures
        and f"{xla.latency_ps / 1e6:.1f} µs" in figures
    )
    assert f"{report.latency_ps:,} ps" in window.locator("#decision").inner_text()


def test_hover_click_and_keys(open_page, contended, game_page):
    window = open_page(game_page)
    canvas = window.locator("figure canvas")
    lines = hover_a_box(window, canvas)
    assert lines[0] in contended.buffer_names
    window.mouse.down()
    window.mouse.up()
    assert window.locator("#selected .name").inner_text() == lines[0]
    canvas.press("Escape")
    assert window.locator("#selected .name").count() == 0
    canvas.press(".")
    first = window.locator("#selected .name").inner_text()
    canvas.press(".")
    second = window.locator("#selected").inner_text()
    canvas.press(",")
    assert (
        window.locator("#selected .name").inner_text() == first
        and window.locator("#selected").inner_text() != second
    )
    window.mouse.move(5, 5)
    assert not window.locator("#tip").is_visible()


def test_zoom_and_pan(open_page, game_page):
    window = open_page(game_page)
    seen, canvas = window.locator("#seen"), window.locator("figure canvas")
    whole = seen.inner_text()
    area = canvas.bounding_box()
    middle = area["x"] + area["width"] / 2, area["y"] + area["height"] / 4

    def changed(before):
        window.wait_for_function(
            "before => document.getElementById('seen').value !== before", arg=before
        )
        return seen.inner_text()

    window.mouse.move(*middle)
    window.mouse.wheel(0, -600)
    closer = changed(whole)
    window.mouse.down()
    window.mouse.move(middle[0] + 120, middle[1], steps=4)
    window.mouse.up()
    moved = changed(closer)
    canvas.press("ArrowRight")
    on = changed(moved)
    canvas.press("]")
    higher = changed(on)
    assert higher.split(", ")[0] == on.split(", ")[0] and higher.split(", ")[1] != on.split(", ")[1]
    canvas.press("0")
    assert changed(higher) == whole
    window.select_option("#axis", "tick")
    assert changed(whole).startswith("ticks 0 to 210,")
    window.click("#zoom-in")
    assert not changed("ticks 0 to 210, 0 B to 16 MiB").startswith("ticks 0 to 210,")


def test_play(open_page, contended, log, game_page):
    window = open_page(game_page)
    count = len(log.actions)
    card, position = window.locator("#decision-body"), window.locator("#position")
    window.click("#first")
    assert position.inner_text() == f"0 of {count}"
    empty = window.screenshot(clip=window.locator("figure").bounding_box())
    actions = ["Drop", "Copy", "NoCopy", "CopyEarly"]
    state = log.game(contended).initial_state()
    for step in range(5):
        legal = state.legal_actions()
        buffer = contended.buffer_names[contended.accesses["buffer"][state.current_access()]]
        state.apply(int(log.actions[step]))
        assert f"{step + 1} of {count}" in card.inner_text() and buffer in card.inner_text()
        assert actions[log.actions[step]] in card.locator(".chosen").inner_text()
        assert f"{abs(int(log.saved_ps[step])):,} ps" in card.locator(".chosen").inner_text()
        assert card.locator("li:not(.illegal)").count() == len(legal)
        assert f"{state.latency_ps:,} ps" in card.inner_text()
        window.keyboard.press("k")
    assert position.inner_text() == f"5 of {count}"
    window.keyboard.press("j")
    assert position.inner_text() == f"4 of {count}"
    window.select_option("#speed", "6")
    window.click("#play")
    assert window.locator("#play").inner_text() == "Stop"
    window.wait_for_function(
        "count => document.getElementById('position').value === `${count} of ${count}`",
        arg=count,
        timeout=600_000,
    )
    window.wait_for_function("document.getElementById('play').textContent === 'Play'")
    assert window.screenshot(clip=window.locator("figure").bounding_box()) != empty
    window.locator("#step").fill("7")
    assert position.inner_text() == f"7 of {count}"


def test_an_priority_game_lists_its_candidates(open_page, contended, tmp_path):
    log = mg.record(mg.solve(contended, solver="greedy", game="priority"))
    viewer.write_page(tmp_path / "page.html", log, contended)
    game = document_of(tmp_path / "page.html")["game"]
    names, modes = log.game(contended).action_names, 5
    assert game["actions"] == names and game["modes"] == modes
    window = open_page(tmp_path / "page.html")
    card = window.locator("#decision-body")
    window.click("#first")
    state = log.game(contended).initial_state()
    for step in range(5):
        asked = state.asked_about()
        assert game["asked"][step] == [list(run) for run in asked]
        legal = state.legal_actions()
        state.apply(int(log.actions[step]))
        text = card.inner_text()
        for first, _ in asked:
            assert contended.buffer_names[contended.accesses["buffer"][first]] in text
        assert card.locator("li").count() == len(legal)
        chosen = card.locator(".chosen").inner_text()
        assert names[log.actions[step]] in chosen
        assert f"{abs(int(log.saved_ps[step])):,} ps" in chosen
        assert f"{state.latency_ps:,} ps" in text
        window.keyboard.press("k")


def test_search_statistics(open_page, contended, log, tmp_path):
    visits = np.arange(len(log.actions) * 4).reshape(-1, 4)
    values = visits / 100 - 1
    searched = mg.record(
        log.game(contended), log.actions, solver="a search", search=(visits, values)
    )
    again = mg.files.GameLog.from_bytes(searched.to_bytes())
    assert (
        (again.search_visits == visits).all()
        and np.allclose(again.search_values, values)
        and mg.replay(again, contended)
    )
    assert log.search_visits.shape == (0, 4)
    viewer.write_page(tmp_path / "page.html", again, contended)
    window = open_page(tmp_path / "page.html")
    window.locator("#step").fill("3")
    chosen = window.locator("#decision-body .chosen").inner_text()
    action = int(log.actions[3])
    assert f"{visits[3, action]} visits, value {values[3, action]:.4f}" in chosen
    with pytest.raises(mg.InvalidInputError, match="shape"):
        mg.record(log.game(contended), log.actions, search=(visits[1:], values))
    with pytest.raises(mg.InvalidInputError, match="visits of 0 and above"):
        mg.record(log.game(contended), log.actions, search=(visits - 5, values))


def test_search(open_page, contended, log, game_page):
    window = open_page(game_page)
    buffer = int(log.plan.residences["buffer"][len(log.plan.residences) // 2])
    name = contended.buffer_names[buffer]
    window.keyboard.press("/")
    window.keyboard.type(name)
    assert name in window.locator("#found li").first.inner_text()
    before = window.locator("#seen").inner_text()
    window.keyboard.press("Enter")
    assert window.locator("#selected .name").inner_text() == name
    assert window.locator("#selected tbody tr").count() == int(
        (contended.accesses["buffer"] == buffer).sum()
    )
    assert not window.locator("#found").is_visible()
    window.wait_for_function(
        "before => document.getElementById('seen').value !== before", arg=before
    )
    window.locator("#search").fill("there is no such name")
    assert "nothing of that name" in window.locator("#found").inner_text()


def test_where_the_time_goes(open_page, contended, log, tmp_path, monkeypatch):
    """The band and the table say which layer takes how long; layers that repeat stand together."""
    names = [min(tick // 60, 3) for tick in range(contended.ticks)]
    groups = [
        Group(f"layer_{one}", "layer_*") if one < 3 else Group("head", "head") for one in names
    ]

    def grouped(program, by, depth):
        return groups if by == "layer" else group_instructions(program, by, depth)

    monkeypatch.setattr(page_data, "default_grouping", lambda _: "layer")
    monkeypatch.setattr(page_data, "group_instructions", grouped)
    viewer.write_page(tmp_path / "page.html", log, contended, against=contended.xla_plan)
    window = open_page(tmp_path / "page.html", height=960)
    table = window.locator("#groups-table")
    times = _core.timeline(contended, log.plan)
    spent = times["compute_ps"] + times["stall_ps"]
    rows = table.locator("tbody tr")
    assert rows.count() == 5 and rows.locator("visible=true").count() == 2
    table.get_by_text("layer_* × 3").click()
    assert rows.locator("visible=true").count() == 5
    of_last = f"{spent[120:180].sum() / 1e6:.4g} µs"
    assert of_last in table.locator("tr", has_text="layer_2").inner_text()
    window.click("#zoom-in")
    window.click("#zoom-in")
    before = window.locator("#seen").inner_text()
    table.get_by_text("layer_2").click()
    window.wait_for_function(
        "before => document.getElementById('seen').value !== before", arg=before
    )
    area = window.locator("figure canvas").first.bounding_box()
    window.mouse.move(area["x"] + area["width"] / 2, area["y"] + 16)
    assert "layer layer_2" in window.locator("#tip").inner_text()
    window.select_option("#groups-by", "opcode")
    assert "fusion" in table.inner_text() and "layer_0" not in table.inner_text()


def test_compare(open_page, contended, log, compare_page):
    window = open_page(compare_page, height=960)
    assert window.locator("figure").count() == 2
    spent = [
        times["compute_ps"] + times["stall_ps"]
        for times in (_core.timeline(contended, plan) for plan in (log.plan, contended.xla_plan))
    ]
    difference = spent[1] - spent[0]
    tick = int(np.abs(difference).argmax())
    total = abs(int(difference.sum()))
    assert f"{total:,} ps" in window.locator("#differences-text").inner_text()
    first = window.locator("#differences-list li").first
    assert (
        f"{abs(int(difference[tick])):,} ps" in first.inner_text()
        and contended.instruction_names[tick] in first.inner_text()
    )
    assert window.locator("#differences-list li").count() == np.count_nonzero(difference)
    # Zooming one picture moves the other.
    pictures = [window.locator("figure canvas").nth(i) for i in (0, 1)]
    before = [picture.screenshot() for picture in pictures]
    pictures[0].press("+")
    window.wait_for_timeout(100)
    assert all(picture.screenshot() != old for picture, old in zip(pictures, before, strict=True))
    window.click("#arrange")
    left, right = (picture.bounding_box() for picture in pictures)
    assert left["y"] == right["y"] and left["x"] + left["width"] <= right["x"]


def test_an_invalid_plan_is_named(open_page, contended, tmp_path):
    text = json.loads(contended.xla_plan.to_json(contended))
    for residence in text["residences"]:
        residence["offset"] = 0
    plan = mg.Plan.from_json(json.dumps(text), contended)
    verdict = mg.validate(contended, plan)
    assert not verdict.ok
    viewer.write_page(tmp_path / "page.html", plan, contended)
    warning = open_page(tmp_path / "page.html").locator("#warning")
    assert warning.is_visible() and verdict.rule in warning.inner_text()


def test_without_xlas_plan(open_page, tmp_path):
    program, machine = mg.load_program("resnet50_b1.tpu_v4i"), mg.hardware("tpu_v4i_16mib")
    result = mg.solve(program, solver="greedy", hardware=machine)
    viewer.write_page(tmp_path / "page.html", mg.record(result), program)
    window = open_page(tmp_path / "page.html")
    assert (
        "XLA"
        not in window.locator("#summary").inner_text()
        + window.locator("#figures").inner_text()
        + window.locator("#legend").inner_text()
    )
    assert "tpu_v4i_16mib" in window.locator("#summary").inner_text()
    window.keyboard.press("j")
    assert (
        window.locator("#position").inner_text()
        == f"{len(result.actions) - 1} of {len(result.actions)}"
    )


def test_addresses_in_use_fill_the_picture(open_page, tmp_path):
    program = mg.load_program("wavernn_64steps_b8.tpu_v4i")  # needs a few of its 128 MiB
    plan = mg.solve(program, solver="greedy").plan
    viewer.write_page(tmp_path / "page.html", plan, program)
    window = open_page(tmp_path / "page.html")
    shown = (
        float(re.search(r"0 B to ([0-9.]+) MiB", window.locator("#seen").inner_text())[1]) * 2**20
    )
    top = max(r["offset"] + program.buffers["size_bytes"][r["buffer"]] for r in plan.residences)
    assert top < shown < 1.2 * top
    canvas = window.locator("figure canvas")
    for _ in range(12):
        canvas.press("[")
    window.wait_for_function("document.getElementById('seen').value.endsWith('0 B to 128 MiB')")


@pytest.mark.parametrize("size", [(1280, 800), (800, 900)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible(open_page, game_page, compare_page, size, scheme):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright",
        reason="axe isn't installed: pip install 'mallocgame[test]'",
    )
    for path in (game_page, compare_page):
        window = open_page(path, *size, scheme)
        window.locator("figure canvas").first.press(".")
        window.keyboard.press("j")
        results = axe.Axe().run(window)
        assert results.violations_count == 0, results.generate_report()
        assert window.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
