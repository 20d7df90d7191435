"""`mallocgame train muzero`: what it writes, refuses and resumes, and how long it demonstrates."""

import csv
import functools
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import timeit

import pytest
from conftest import HEEDING
from small_agents import MUZERO as SMALL
from small_agents import texts

import mallocgame as mg
from mallocgame import agents
from mallocgame._cli import main, train_muzero
from mallocgame.agents import timing

pytestmark = pytest.mark.full

PROGRAM, OTHER = "mlp_train_adam_b512.tpu_v4i", "gcn_dense_2048.tpu_v4i"
SETTINGS = texts(SMALL)
DECISIONS = "demonstration_decisions"


def train(*arguments: object) -> list[str]:
    return ["train", "muzero", *map(str, arguments), "--config", *SETTINGS]


def process(*arguments: object) -> list[str]:
    """The training as a process of its own, which may be killed."""
    return [sys.executable, "-m", "mallocgame", *train(*arguments)]


def test_the_command_writes_everything(tmp_path, run, run_json):
    out = tmp_path / "run"
    options = ("--out", out, "--seconds", 2, "--seed", 1, "--prices", "compiler")
    document = run_json(*train(PROGRAM, OTHER, *options))
    assert [row["program"] for row in document["results"]] == [PROGRAM, OTHER]
    for name, row in zip((PROGRAM, OTHER), document["results"], strict=True):
        program = mg.load_program(name)
        assert row["valid"] and row["solver"] == "muzero"
        assert row["latency_ps"] <= row["game_latency_ps"]
        speedups = row["speedup_vs_xla"], row["speedup_calibrated_vs_xla"]
        assert row["faster_at_both"] == (speedups[0] > 1 and speedups[1] > 1)
        plan = mg.load_plan(out / f"{name}.plan.json", program)
        assert mg.simulate(program, plan).latency_ps == row["latency_ps"]
        report = json.loads((out / f"{name}.report.json").read_text())
        assert report["latency_ps"] == row["latency_ps"] <= report["game_latency_ps"]
        assert mg.replay(mg.load_log(out / f"{name}.mgr")).same
    with open(out / "curve.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * document["iterations"]
    for name in (PROGRAM, OTHER):
        best = [int(row["best_ps"]) for row in rows if row["program"] == name]
        assert best == sorted(best, reverse=True)
    assert os.listdir(out / "tensorboard")

    again = run("train", "muzero", PROGRAM, OTHER, "--out", out)
    assert again.returncode == 2 and "--resume goes on with it" in again.stderr
    for arguments, sentence in (
        ((PROGRAM, "--resume"), "other programs"),
        ((PROGRAM, OTHER, "--resume", "--seed", 2), "--seed: found 2"),
        ((PROGRAM, OTHER, "--resume", "--config", "width=32"), "--config: found width=32"),
        ((PROGRAM, OTHER, "--resume", "--config", "width"), "allowed: key=value"),
    ):
        done = run("train", "muzero", *arguments, "--out", out)
        # Progress may stand above it.
        assert done.returncode == 2 and sentence in done.stderr.splitlines()[-1], done.stderr


def test_plans_are_compared_by_both_sets_of_prices(tmp_path, run, run_json):
    """XLA's plan is demonstrated, so that the best is at least as good by both."""
    name = "moe_transformer_2l_b4_s128.tpu_v4i"
    rows = {}
    for prices in ("both", "compiler"):
        given = () if prices == "both" else ("--prices", prices)
        options = ("--out", tmp_path / prices, "--seconds", 2, *given)
        [rows[prices]] = run_json(*train(name, *options))["results"]
    value = {
        prices: 0.9 * max(slower) + 0.1 * min(slower)
        for prices, row in rows.items()
        for slower in [(1 / row["speedup_vs_xla"], 1 / row["speedup_calibrated_vs_xla"])]
    }
    assert value["both"] < min(1, value["compiler"])
    assert rows["both"]["faster_at_both"]
    with open(tmp_path / "both" / "curve.csv", newline="") as file:
        best = [int(row["best_ps"]) for row in csv.DictReader(file)]
    assert best == sorted(best, reverse=True) and best[-1] <= rows["both"]["xla_ps"]
    refused = run(*train(name, "--out", tmp_path / "a", "--game", "schedule", "--prices", "both"))
    assert refused.returncode == 2 and "in the schedule game: one" in refused.stderr
    refused = run("train", "egrl", name, "--out", tmp_path / "a", "--prices", "both")
    assert "--prices: is muzero's, found the agent egrl" in refused.stderr


def test_the_command_learns_from_nothing_and_draws_it(tmp_path, run_json):
    pytest.importorskip("matplotlib")
    options = ["--out", tmp_path / "run", "--seconds", 4, "--prices", "compiler", "--plot"]
    command = ["train", "muzero", PROGRAM, *options]
    settings = ["preset=paper", "games=2", "groups=1", "width=16", "simulations=4", "batch=8"]
    document = run_json(*map(str, [*command, tmp_path / "a.png", "--config", *settings]))
    [row] = document["results"]
    assert row["valid"] and row["found_by"] in ("muzero", "all-main")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with open(tmp_path / "run" / "curve.csv", newline="") as file:
        first = next(csv.DictReader(file))
    program = mg.load_program(PROGRAM)
    assert int(first["best_ps"]) == mg.solve(program, "all-main").report.latency_ps


def test_the_command_writes_plans_of_other_orders(tmp_path, run):
    name, out = "mlp_train_adam_b512.tpu_v6e", tmp_path / "run"
    done = run(*train(name, "--out", out, "--seconds", 2, "--game", "schedule"), "--json")
    assert done.returncode == 0, done.stderr
    [row] = json.loads(done.stdout)["results"]
    assert row["valid"]
    program, plan, order = mg.files.load_ordered_plan(
        out / f"{name}.plan.json", mg.load_program(name)
    )
    assert mg.validate(program, plan).ok
    assert mg.simulate(program, plan).latency_ps == row["latency_ps"]
    assert order is not None
    log = mg.load_log(out / f"{name}.mgr")
    assert mg.replay(log).same


def test_the_command_learns_the_priority_game(tmp_path, run):
    out = tmp_path / "run"
    begun = run(*train(PROGRAM, "--out", out, "--seconds", 1, "--game", "priority"))
    assert begun.returncode == 0, begun.stderr
    tuned = train(OTHER, "--out", tmp_path / "tuned", "--seconds", 1, "--tuned-from")
    tuned.insert(tuned.index("--tuned-from") + 1, os.fspath(out / "checkpoint.muzero"))
    assert run(*tuned).returncode == 0
    log = mg.load_log(out / f"{PROGRAM}.mgr")
    program = mg.load_program(PROGRAM)
    assert log.game(program).kind == "priority" and mg.replay(log).same
    checkpoint = out / "checkpoint.muzero"
    options = (PROGRAM, "--solver", "muzero", "--checkpoint", checkpoint, "--seconds", 0.5)
    assert run("solve", *options).returncode == 0
    other = run("solve", *options, "--game", "time")
    assert other.returncode == 2 and "plays the priority game only" in other.stderr
    for arguments, sentence in (
        (("muzero", "--resume", "--game", "time"), "--config: found game=time, but"),
        (
            ("muzero", "--game", "time", "--config", "game=priority"),
            "but --config has game=priority",
        ),
        (("egrl", "--tuned-from", "a"), "--tuned-from: is muzero's, found the agent egrl"),
    ):
        agent, *rest = arguments
        done = run("train", agent, PROGRAM, "--out", out, *rest)
        assert done.returncode == 2 and sentence in done.stderr.splitlines()[-1], done.stderr


def test_the_command_learns_the_fine_game(tmp_path, run):
    """The agent's game has five actions and exact rewards, and is what --resume goes on with."""
    out, level = tmp_path / "run", mg.levels("validation")[0]
    names = (PROGRAM, level.name)
    done = run(*train(*names, "--out", out, "--seconds", 1, "--game", "fine"))
    assert done.returncode == 0, done.stderr
    for name, program in zip(names, (mg.load_program(PROGRAM), level.load_program()), strict=True):
        played = mg.load_log(out / f"{name}.mgr").game(program)
        assert played.options == mg.FINE_GAME and played.num_actions == 5
    before = len(steps_in(out))
    for game in ((), ("--game", "fine")):
        resumed = run("train", "muzero", *names, "--out", out, "--resume", "--seconds", 1, *game)
        assert resumed.returncode == 0, resumed.stderr
    assert len(steps_in(out)) > before
    played = mg.load_log(out / f"{PROGRAM}.mgr").game(mg.load_program(PROGRAM))
    assert played.options == mg.FINE_GAME
    for arguments, sentence in (
        (("--resume", "--game", "priority"), "--game: found priority, but"),
        (("--game", "fine", "--config", "candidates=4"), "but --config has candidates=4"),
    ):
        done = run("train", "muzero", *names, "--out", out, *arguments)
        assert done.returncode == 2 and sentence in done.stderr.splitlines()[-1], done.stderr
    done = run("train", "egrl", PROGRAM, "--out", tmp_path / "egrl", "--game", "fine")
    assert done.returncode == 2 and "game: found 'fine', allowed" in done.stderr


def steps_in(out: pathlib.Path) -> list[list[str]]:
    """What every step found: the curve without its times."""
    with open(out / "curve.csv", newline="") as file:
        return [row[1:] for row in csv.reader(file)]


def test_killed_and_resumed_nothing_is_lost(tmp_path, run):
    killed, straight = tmp_path / "killed", tmp_path / "straight"
    for _ in range(2):
        have = len(steps_in(killed)) if (killed / "curve.csv").exists() else 1
        with subprocess.Popen(
            process(PROGRAM, "--out", killed, "--seconds", 0, "--resume"), stderr=subprocess.DEVNULL
        ) as running:
            deadline = time.monotonic() + 600
            while time.monotonic() < deadline and not (
                (killed / "curve.csv").exists() and len(steps_in(killed)) >= have + 3
            ):
                time.sleep(0.01)
            running.kill()
    assert run(*train(PROGRAM, "--out", killed, "--seconds", 1, "--resume")).returncode == 0
    assert run(*train(PROGRAM, "--out", straight, "--seconds", 4)).returncode == 0
    one, other = steps_in(killed), steps_in(straight)
    common = min(len(one), len(other))
    assert common > 6 and one[:common] == other[:common]


def test_ctrl_c_leaves_results(tmp_path):
    out = tmp_path / "run"
    command = [*HEEDING, *process(PROGRAM, "--out", out, "--seconds", 0)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        deadline = time.monotonic() + 600
        while time.monotonic() < deadline and not (out / "checkpoint.muzero").exists():
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        try:
            assert running.wait(60) == 130
        finally:
            running.kill()
    assert mg.validate(
        mg.load_program(PROGRAM),
        mg.load_plan(out / f"{PROGRAM}.plan.json", mg.load_program(PROGRAM)),
    ).ok


def test_a_level_is_trained_on_with_its_own_hardware(tmp_path, run_json):
    level = next(
        one
        for one in mg.levels("train")
        if one.name.endswith("@c20b50") and one.features["accesses"] > 40
    )
    out = tmp_path / "run"
    (row,) = run_json(*train(level.name, "--out", out, "--seconds", 1))["results"]
    assert row["hardware"] == level.hardware().name and row["valid"]


@pytest.fixture
def begin(tmp_path, monkeypatch):
    """begin(program, config, ...) -> the trainer that the command begins or resumes, saved."""
    monkeypatch.setattr("mallocgame._cli.training._board", lambda *_: None)

    def call(program, config, resume=False, hardware=None, seconds=1.0) -> agents.MuZero:
        words = ["train", "muzero", program, "--out", os.fspath(tmp_path), f"--seconds={seconds}"]
        options = main._parser().parse_args([*words, *(["--resume"] if resume else [])])
        texts = {name: str(value) for name, value in config.items()}
        training = train_muzero.MuZeroTraining(options, texts, hardware)
        training.save()
        return training.trainer

    return call


def test_resumed_settings_are_those_of_the_preset(begin):
    begin(PROGRAM, SMALL | {"preset": "paper"})
    resumed = begin(PROGRAM, {"learning_rate": "1e-3"}, resume=True)
    assert resumed.settings["game"] == "time" and resumed.settings["preset"] == "paper"
    with pytest.raises(mg.InvalidInputError, match=r"found preset=strong, but .* with paper"):
        begin(PROGRAM, {"preset": "strong"}, resume=True)


def test_resumed_settings_need_not_go_together_with_the_programs_own_hardware(begin):
    """There no buffer of this size fits, so nothing is to be decided."""
    program, larger = "nerf_mlp_64k.tpu_v4i_16mib", mg.hardware("tpu_v4i")
    config = SMALL | {"min_buffer_bytes": mg.load_program(program).hardware.fast_bytes + 1}
    with pytest.raises(mg.InvalidInputError, match="nothing is to be decided"):
        begin(program, config)
    begin(program, config, hardware=larger)
    assert begin(program, config, resume=True, hardware=larger).iterations == 0


def test_long_trainings_demonstrate_as_much_as_the_setting_allows(begin):
    config = {name: value for name, value in SMALL.items() if name != DECISIONS}
    trainer = begin(PROGRAM, config, seconds=1e10)
    assert float(trainer.settings[DECISIONS]) == 1e12


def test_annealing_demonstrates_for_a_share_of_the_time(begin, monkeypatch, tmp_path):
    """A hundred times as long, it plays a hundred times as much."""
    monkeypatch.setattr(timing, "_seconds_of_a_game", lambda game, measuring: 1e-4)
    config = {name: value for name, value in SMALL.items() if name != DECISIONS}
    decisions = []
    for seconds in (10, 1000):
        decisions.append(float(begin(PROGRAM, config, seconds=seconds).settings[DECISIONS]))
        os.remove(tmp_path / "checkpoint.muzero")
    assert decisions[1] == pytest.approx(100 * decisions[0])
    given = begin(PROGRAM, config | {DECISIONS: 12345}, seconds=1000)
    assert float(given.settings[DECISIONS]) == 12345


@pytest.mark.parametrize("slow", range(14))
def test_a_slow_moment_does_not_shorten_what_is_demonstrated(monkeypatch, slow):
    """Games of 10 us, 0.3 s before many, and 0.2 s of something else in one of the calls."""
    now, calls = 0.0, 0

    def solve(game: mg.Game, solver: str, evaluations: int) -> None:
        nonlocal now, calls
        now += 0.3 * (evaluations > 100) + 1e-5 * evaluations + 0.2 * (calls == slow)
        calls += 1

    clock = functools.partial(timeit.repeat, timer=lambda: now)
    monkeypatch.setattr(timing, "solve_game", solve)
    monkeypatch.setattr(timing.timeit, "repeat", clock)
    measured = timing._seconds_of_a_game(mg.Game(mg.load_program(PROGRAM)), 0.2)
    assert measured == pytest.approx(1e-5, rel=1e-3)
    assert calls == 14
