"""The benchmark: scores, players over levels, submissions, and the best known plans."""

import json
import math
import shutil
import sys
import zipfile
from statistics import geometric_mean

import numpy as np
import pytest
from conftest import SMALL

import mallocgame as mg
from mallocgame._cli import main as cli
from mallocgame.errors import how_to_install
from mallocgame.experiments import (
    Budget,
    Player,
    Result,
    Run,
    interquartile_mean,
    judge_submission,
    play,
    results_of,
    running,
    score,
    summarize,
)
from mallocgame.experiments.judging import NO_PLAN, improve
from mallocgame.level_sets import LEAST_GAIN, levels
from mallocgame.level_sets.describing import peak_bytes
from mallocgame.level_sets.level_set import FORMAT, INDEX, PROGRAMS, load_level_set, write_archive

pytest.importorskip("rliable", reason="rliable isn't installed: pip install mallocgame[benchmark]")

pytestmark = pytest.mark.full

LEVELS = {  # name: split and family
    "resnet50_b1.tpu_v4i@c20b50": ("test", "convolution"),
    "wavernn_64steps_b8.tpu_v5e@c20b50": ("test", "recurrent"),
    f"{SMALL}@c10": ("validation", "perceptron"),
}
CONVOLUTION, RECURRENT, _ = LEVELS


@pytest.fixture
def folder(tmp_path, made):
    """A set of levels whose best known plans are those of rent."""
    return shutil.copytree(made, tmp_path / "set")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("made")
    index, files = {}, {}
    for level, (split, family) in LEVELS.items():
        name = level.partition("@")[0]
        program = mg.load_program(name)
        files[f"{name}.mgp"] = program.to_bytes()
        index[name] = {
            "split": split,
            "family": family,
            "hardware": name.rpartition(".")[2],
            "peak_bytes": peak_bytes(program),
            "level": level,
            "fingerprint": program.fingerprint,
        }

    def write():
        (path / INDEX).write_text(json.dumps({"format": FORMAT, "programs": index, "left_out": {}}))

    write_archive(path / PROGRAMS, files, zipfile.ZIP_STORED)
    write()
    better = {}
    for level in both(path):
        index[level.name.partition("@")[0]]["greedy_ps"] = solved(level, "greedy").report.latency_ps
        rent = solved(level, "rent")
        plan = rent.plan.to_json(level.load_program()).encode()
        better[level.name] = rent.report.latency_ps, "rent", plan
    write()
    assert load_level_set(path).improve(better) == list(better)
    return path


def both(folder):
    return levels("test", folder) + levels("validation", folder)


def solved(level, solver):
    return mg.solve(level.game(), solver, seconds=0)


@pytest.fixture
def test_levels(folder):
    return levels("test", folder)


@pytest.fixture
def benchmark(folder, capsys):
    """benchmark(argument...) -> status, standard output and standard error of the command."""

    def call(*arguments: object):
        command = ["benchmark", "--levels", folder, *arguments]
        status = cli.main(list(map(str, command)))
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


def save(plan_folder, level, solver):
    plan_folder.mkdir(exist_ok=True)
    mg.save_plan(
        solved(level, solver).plan, level.load_program(), plan_folder / f"{level.name}.json"
    )


# --- scores


class Known:
    """What a score asks of a level."""

    def __init__(self, greedy_ps, best_known_ps):
        self.greedy_ps, self.best_known_ps = greedy_ps, best_known_ps


def test_a_score_is_the_share_of_the_gain_over_greedy():
    level = Known(1600, 100)
    assert score(level, 1600) == 0
    assert score(level, 100) == 1
    assert score(level, 400) == pytest.approx(0.5)
    assert score(level, 6400) == pytest.approx(-0.5)
    assert score(level, 50) == pytest.approx(1.25)


def test_a_level_without_anything_to_gain_has_no_score():
    assert LEAST_GAIN == 1.005
    assert score(Known(1004, 1000), 1000) is None
    assert score(Known(1005, 1000), 1000) == 1
    assert score(Known(1000, None), 1000) is None
    assert score(Known(None, 1000), 1000) is None


def test_the_interquartile_mean_leaves_out_both_ends_and_has_the_same_interval_each_time():
    scores = np.array([[-100.0, 0.2, 0.4, 1.0], [0.3, 0.5, 0.6, 100.0]])
    first = interquartile_mean(scores)
    assert first.mean == pytest.approx((0.3 + 0.4 + 0.5 + 0.6) / 4)
    assert first.low < first.mean < first.high
    np.random.seed(7)
    expected = np.random.RandomState(7).random()
    assert interquartile_mean(scores) == first
    assert np.random.random() == expected  # others' random numbers are as they were


def test_a_summary_of_hand_made_results():
    def result(level, seed, latency_ps, score, family="a", problem=""):
        return Result(level, family, "p", seed, Budget(1), latency_ps, 1600, 100, score, problem)

    summary, other = summarize(
        [
            result("x", 0, 400, 0.5),
            result("x", 1, 100, 1.0),
            result("y", 0, 50, 1.25, "b"),
            result("y", 1, 1600, 0.0, "b"),
            result("z", 0, 1600, None, "c", NO_PLAN),
            result("z", 1, 1600, None, "c", NO_PLAN),
            Result("x", "a", "q", 0, None, 1600, 1600, 1600, None),
        ]
    )
    assert (summary.player, summary.budget, summary.seeds, summary.levels) == ("p", Budget(1), 2, 3)
    assert (summary.scored, summary.beaten, summary.problems) == (2, 1, 1)
    assert summary.score.mean == pytest.approx((0.5 + 1.0) / 2)
    assert summary.speedup == pytest.approx((4 * 16 * 32) ** (1 / 6))
    assert summary.families == {"a": 0.75, "b": 0.625, "c": None}
    assert (other.player, other.scored, other.score, other.speedup) == ("q", 0, None, 1)


def test_without_rliable_it_says_what_to_install(monkeypatch, benchmark):
    monkeypatch.setitem(sys.modules, "rliable", None)
    status, _, err = benchmark("--split", "test", "--players", "greedy")
    assert status == 2
    assert err == f"mallocgame benchmark: scores need rliable: {how_to_install('benchmark')}\n"


# --- players


def test_what_is_found_too_late_does_not_count(test_levels, tmp_path):
    level = test_levels[0]
    run = Run(level.name, "p", 0, Budget(0.05), tmp_path, latency_ps=400, in_time_ps=900)
    (found,) = results_of([run], test_levels)
    assert (found.latency_ps, found.budget) == (900, Budget(0.05))
    expected = math.log(level.greedy_ps / 900) / math.log(level.greedy_ps / level.best_known_ps)
    assert found.score == pytest.approx(expected)
    (slow,) = play([Player.named("packing")], test_levels[:1], tmp_path / "out", [Budget(1e-6)])
    assert slow.in_time_ps == level.game().all_main_ps > slow.latency_ps


def test_greedy_in_the_fine_game_is_a_player(test_levels, tmp_path):
    (fine,) = play([Player.named("greedy:fine")], test_levels[:1], tmp_path / "out", [Budget(1)])
    greedy = mg.solve(test_levels[0].game(mg.FINE_GAME), "greedy", 0.0)
    assert fine.player == "greedy:fine" and fine.in_time_ps == greedy.report.latency_ps


def test_players_run_once_and_go_on_where_they_were(test_levels, tmp_path, monkeypatch):
    output = tmp_path / "out"
    players = [Player.named("greedy"), Player.named("packing:priority")]
    runs = play(players, test_levels, output, [Budget(0.05), Budget(0.2)], seeds=2)
    assert [(run.level, run.seed, run.player, run.budget) for run in runs] == [
        (level.name, seed, player, budget)
        for level in test_levels
        for seed in (0, 1)
        for player in ("greedy", "packing:priority")
        for budget in (Budget(0.05), Budget(0.2))
    ]
    for run in runs:
        level = next(one for one in test_levels if one.name == run.level)
        program, hardware = level.load_program(), level.hardware()
        plan = mg.load_plan(run.plan, program)
        assert mg.validate(program, plan, hardware)
        assert mg.simulate(program, plan, hardware).latency_ps == run.latency_ps
        if run.player == "greedy":
            assert run.in_time_ps == run.latency_ps == level.greedy_ps
    # What is there is its own submission, and is not run again.
    (submitted, _) = judge_submission(output / "greedy" / "1" / "0.2s", test_levels)
    assert (submitted.latency_ps, submitted.problem) == (test_levels[0].greedy_ps, "")

    ran = []
    own = running.run_jobs
    monkeypatch.setattr(
        running,
        "run_jobs",
        lambda work, jobs, *rest, **kwargs: ran.extend(jobs) or own(work, jobs, *rest, **kwargs),
    )
    assert play(players, test_levels, output, [Budget(0.05), Budget(0.2)], seeds=2) == runs
    assert not ran
    runs[0].plan.unlink()
    assert play(players[:1], test_levels, output, [Budget(0.05)])[0].plan.exists()
    assert [(cell["level"].name, cell["player"].name) for cell in ran] == [(CONVOLUTION, "greedy")]
    record = output / "greedy" / "0" / "0.05s" / "runs" / f"{CONVOLUTION}.json"
    text = record.read_text()
    record.write_text(text.replace('"rules": ', '"rules": 1'))
    with pytest.raises(mg.InvalidInputError, match=r"rules 1\d+, allowed: \d+; give another"):
        play(players, test_levels, output, [Budget(0.05)])
    record.write_text("[]")
    with pytest.raises(mg.InvalidInputError, match="no result of an experiment"):
        play(players, test_levels, output, [Budget(0.05)])


def test_a_player_that_cannot_play_is_an_error(test_levels, tmp_path):
    with pytest.raises(mg.InvalidInputError, match="'rent' plays the time game only"):
        play([Player("rent", "priority")], test_levels, tmp_path, [Budget(0.05)])
    with pytest.raises(mg.InvalidInputError, match="jobs: found 100000, allowed: 1 to"):
        play([Player("greedy")], test_levels, tmp_path, [Budget(1)], workers=100_000)


def test_a_player_with_games_has_no_more_of_them(test_levels, tmp_path):
    players = [Player.named(name) for name in ("greedy", "styles", "anneal:priority", "portfolio")]
    budgets = [Budget(games=1), Budget(games=8)]
    runs = play(players, test_levels[:1], tmp_path / "a", budgets)
    game = test_levels[0].game()
    for run in runs:
        record = json.loads((run.plan.parent / "runs" / run.plan.name).read_text())
        assert run.plan.parent.name == f"{run.budget.games}games"
        within = record["games"] <= run.budget.games
        assert within == (run.player != "portfolio")
        assert run.in_time_ps == (run.latency_ps if within else game.all_main_ps)
    again = play(players, test_levels[:1], tmp_path / "b", budgets)
    assert [run.latency_ps for run in again] == [run.latency_ps for run in runs]
    assert str(Budget(games=1)) == "1 game" and str(Budget(0.05)) == "50 ms"


# --- submissions


def tamper(path):
    """Moves all blocks of a plan beyond the end of fast memory."""
    plan = json.loads(path.read_text())
    for residence in plan["residences"]:
        residence["offset"] = 2**40
    path.write_text(json.dumps(plan))


def test_a_submission_is_judged_plan_by_plan(test_levels, tmp_path, benchmark):
    convolution, recurrent = test_levels
    claim = tmp_path / "claim"
    save(claim, convolution, "rent")
    first, second = judge_submission(claim, test_levels)
    assert (first.latency_ps, first.problem) == (convolution.best_known_ps, "")
    assert (second.latency_ps, second.problem) == (recurrent.game().all_main_ps, NO_PLAN)
    status, out, _ = benchmark("--split", "test", "--submission", claim)
    assert status == 0
    assert f"{claim}: no plan of {RECURRENT}" in out

    save(claim, recurrent, "rent")
    tamper(claim / f"{recurrent.name}.json")
    second = judge_submission(claim, test_levels)[1]
    assert second.latency_ps == recurrent.game().all_main_ps
    status, out, _ = benchmark("--split", "test", "--submission", claim)
    assert status == 1
    assert f"{claim}: not valid: {RECURRENT}: {second.problem}" in out
    shutil.copy(claim / f"{CONVOLUTION}.json", claim / f"{RECURRENT}.json")  # of another program
    assert RECURRENT in judge_submission(claim, test_levels)[1].problem


def test_a_folder_without_plans_is_no_submission(test_levels, tmp_path):
    with pytest.raises(mg.InvalidInputError, match=f"found no plan .* such as {CONVOLUTION}.json"):
        judge_submission(tmp_path, test_levels)


# --- the best known plans


def test_better_plans_are_kept(folder, tmp_path, benchmark):
    level = levels("validation", folder)[0]
    save(tmp_path / "known", level, "greedy")
    (folder / "best_known.zip").unlink()
    claim = tmp_path / "claim"
    save(claim, level, "rent")
    save(tmp_path / "worse", level, "greedy")
    both = ["--submission", claim, "--submission", tmp_path / "worse"]
    status, out, _ = benchmark("--split", "validation", *both, "--improve", "--json")
    assert status == 0 and json.loads(out)["improved"] == [level.name]
    kept = levels("validation", folder)[0]
    assert kept.best_known_ps == solved(level, "rent").report.latency_ps
    program = level.load_program()
    assert kept.best_known_plan().to_json(program) == solved(level, "rent").plan.to_json(program)
    status, out, _ = benchmark("--split", "validation", *both, "--improve", "--json")
    assert status == 0 and json.loads(out)["improved"] == []


def test_a_plan_that_is_not_what_its_run_says_is_not_kept(folder, tmp_path):
    (level, _) = chosen = levels("test", folder)
    save(tmp_path / "claim", level, "greedy")
    run = Run(level.name, "p", 0, Budget(1), tmp_path / "claim" / f"{level.name}.json", 1, 1)
    with pytest.raises(mg.InvalidInputError, match=f"found {level.greedy_ps} ps"):
        improve(chosen, [run])


# --- the command


def test_levels_with_headroom_and_budgets_of_games(benchmark, folder):
    chosen = [level for level in levels("test", folder) if level.gain >= 1.02]
    arguments = [
        "--split",
        "test",
        "--players",
        "greedy,anneal",
        "--games",
        "8,1",
        "--min-headroom",
        "2",
    ]
    status, out, _ = benchmark(*arguments)
    rows = [line.split() for line in out.splitlines()]
    assert status == 0 and [row[1:3] for row in rows[1:3]] == [["1", "game"], ["8", "games"]]
    assert int(rows[1][rows[0].index("scored") + 2]) <= len(chosen)
    status, _, error = benchmark("--split", "test", "--players", "greedy", "--min-headroom", "900")
    assert status == 2 and "900 % of headroom" in error


def test_the_table_the_page_and_the_document(benchmark, tmp_path, folder):
    output, page = tmp_path / "out", tmp_path / "page.md"
    arguments = ["--split", "test", "--players", "rent,greedy", "--seconds", "0.4,0.1"]
    arguments += ["-o", output, "--seeds", 2]
    status, out, _ = benchmark(*arguments, "--page", page)
    assert status == 0
    rows = [line.split() for line in out.splitlines()]
    assert rows[1][:7] == ["rent", "100", "ms", "1.000", "1.000", "to", "1.000"]
    assert rows[4][:4] == ["greedy", "400", "ms", "0.000"]
    assert ["recurrent", "rent", "1.000", "1.000"] in rows
    assert all(len(line) <= 80 for line in out.splitlines()[:12])
    text = page.read_text()
    assert "# Scores on the split test\n" in text and "2 levels, 2 seeds." in text
    over_best = geometric_mean([level.gain for level in levels("test", folder)])
    row = f"| greedy | 100 ms | 0.000 | 0.000 to 0.000 | 1.000x | {over_best:.3f} | 2 | 0 | 0 |\n"
    assert row in text

    status, out, _ = benchmark(*arguments, "--submission", output / "rent" / "0" / "0.4s", "--json")
    document = json.loads(out)
    assert (status, document["split"], document["improved"]) == (0, "test", [])
    assert len(document["results"]) == 2 * 2 * 2 * 2 + 2
    seconds = [one["budget"] and one["budget"]["seconds"] for one in document["summary"]]
    assert seconds == [0.1, 0.4, 0.1, 0.4, None]
    assert document["summary"][-1]["player"] == str(output / "rent" / "0" / "0.4s")
    assert document["summary"][-1]["score"]["mean"] == 1
    latencies = {
        (one["level"], one["player"], one["budget"]["seconds"]): one["latency_ps"]
        for one in document["results"]
        if one["budget"]
    }
    for level in levels("test", folder):
        assert latencies[level.name, "greedy", 0.4] == level.greedy_ps
        assert latencies[level.name, "rent", 0.4] == level.best_known_ps


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--split", "train", "--players", "greedy"], "argument --split: invalid choice: 'train'"),
        (["--players", "greedy"], "the following arguments are required: --split"),
        (["--split", "test", "--players", "nobody"], "found 'nobody', allowed: all-main, "),
        (
            ["--split", "test", "--players", "greedy:chess"],
            "greedy:chess: found game 'chess', allowed",
        ),
        (["--split", "test", "--players", "greedy", "--seconds", "1,x"], "found x, allowed: more"),
        (["--split", "test"], "found nobody to judge; give --players or --submission"),
        (["--split", "test", "--submission", "."], "found no plan of these levels"),
        (["--split", "test", "--players", "greedy", "-o", __file__], "is no folder"),
    ],
)
def test_bad_input_is_one_line(arguments, message, benchmark, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        status, _, err = benchmark(*arguments)
    except SystemExit as end:
        status, err = end.code, capsys.readouterr().err
    assert status == 2
    assert message in err and err.count("\n") == 1
