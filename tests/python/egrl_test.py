"""The EGRL agent from Python and from the command line.

It is trained, killed, resumed, refused, places and solves.
"""

import csv
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import HEEDING, SOURCE_ROOT
from small_agents import EGRL as SMALL
from small_agents import texts

import mallocgame as mg
from mallocgame import agents

pytestmark = pytest.mark.full

PROGRAM, OTHER = "resnet50_b1.tpu_v4i", "mlp_train_adam_b512.tpu_v4i"
GAME = "mlp_train_adam_b512.tpu_v4i_16mib"
SETTINGS = texts(SMALL)
SLOWEST = 2


@pytest.fixture(scope="module")
def problem() -> mg.placement.Placement:
    return mg.placement.problem(PROGRAM, "nnp_i")


@pytest.fixture(scope="module")
def checkpoint(problem, tmp_path_factory) -> pathlib.Path:
    """After ten generations."""
    trainer = agents.Egrl(problem, SMALL, seed=3)
    for _ in range(10):
        trainer.step()
    path = tmp_path_factory.mktemp("egrl") / "agent.egrl"
    trainer.save(path)
    return path


def test_training_finds_better_maps_and_says_how_it_goes(problem, checkpoint):
    trainer = agents.Egrl.load(checkpoint, problem)
    before = trainer.best()
    assert trainer.generations == 10 and trainer.seed == 3 and trainer.parameters > 0
    seen = []
    trainer.train(trainer.evaluations + 60, on_step=seen.append)
    best = trainer.best()
    assert problem.evaluate(best.map) == (best.latency_ps, 0.0, best.reward)
    assert len(best.best_ps) == trainer.evaluations == seen[-1]["evaluations"]
    assert best.latency_ps == best.best_ps[-1] == seen[-1]["best_ps"] <= before.latency_ps
    assert (best.best_ps[: len(before.best_ps)] == before.best_ps).all()
    slow_ps = problem.evaluate(np.full((problem.num_nodes, 2), SLOWEST, np.uint8))[0]
    assert best.latency_ps < slow_ps
    last = seen[-1]
    assert [progress["generation"] for progress in seen] == list(range(10, trainer.generations))
    assert last["problem"] == 0 and last["updates"] > 0
    assert last["gnn_members"] + last["boltzmann_members"] == SMALL["population"]
    assert (
        last["migrants_elite"] + last["migrants_selected"] <= last["migrants"]
        and last["migrants"] > 0
    )
    assert all(
        np.isfinite(last[name]) for name in ("critic_loss", "value", "entropy", "best_reward")
    )


def test_settings_are_named_and_checked(problem):
    settings = {setting.name: setting for setting in agents.egrl_settings()}
    assert settings["refined"].allowed == "0 to 0.9" and settings["population"].default == "20"
    assert agents.Egrl(problem, SMALL | {"gradient": False}).settings["gradient"] == "0"
    for config, sentence in (
        ({"population": -1}, "setting population: found '-1', allowed: 0 to"),
        ({"populaton": 8}, "found the setting 'populaton'"),
        ({"population": 0, "gradient": 0}, "population and gradient"),
    ):
        with pytest.raises(mg.InvalidInputError, match=sentence):
            agents.Egrl(problem, config)


@pytest.mark.parametrize("config", [{"gradient": False}, {"population": 0}, {"boltzmann_share": 0}])
def test_without_a_part(problem, config):
    trainer = agents.Egrl(problem, SMALL | config)
    progress = [trainer.step() for _ in range(8)][-1]
    assert trainer.best().latency_ps == progress["best_ps"] > 0
    if "gradient" in config:
        assert (
            progress["updates"] == 0
            and progress["migrants"] == 0
            and np.isnan(progress["gradient_mean"])
        )
    elif "population" in config:
        assert (
            progress["updates"] > 0
            and progress["gnn_members"] == progress["boltzmann_members"] == 0
        )
    else:
        assert progress["gnn_members"] > 0 and progress["best_by_boltzmann"] == 0


@pytest.mark.parametrize("config", [{}, {"gradient": False}, {"population": 0}])
def test_it_is_never_worse_than_the_compiler(problem, config):
    trainer = agents.Egrl(problem, SMALL | config)
    first = trainer.step()
    assert 0 < trainer.best().latency_ps <= problem.baseline_ps
    assert first["best_by_refining"] >= 1 and first["refined_max"] >= 1
    assert first["replay"] == first["evaluations"]


def test_without_the_compilers_map(problem):
    trainer = agents.Egrl(problem, SMALL | {"refined": 0})
    first = trainer.step()
    assert first["evaluations"] == first["replay"] == SMALL["population"] + 1
    assert np.isnan(first["refined_mean"]) and first["best_by_refining"] == 0
    assert trainer.best().latency_ps > problem.baseline_ps


def test_saved_and_loaded_it_goes_on_the_same(problem, checkpoint, tmp_path):
    straight = agents.Egrl(problem, SMALL, seed=3)
    for _ in range(12):
        straight.step()
    straight.save(tmp_path / "straight")
    for threads in (1, 2):
        copy = agents.Egrl.load(checkpoint, problem, threads=threads)
        copy.step()
        copy.step()
        copy.save(tmp_path / "copy")
        assert (tmp_path / "copy").read_bytes() == (tmp_path / "straight").read_bytes()


def test_processes_make_the_generations_that_are_made_here(problem, tmp_path):
    problems = [
        problem,
        mg.placement.problem(OTHER, "nnp_i"),
        mg.placement.problem(PROGRAM, "nnp_i_48mib"),
    ]
    here = agents.Egrl(problems, SMALL, seed=3, threads=1)
    here.step()
    here.save(tmp_path / "begun")
    there = agents.Egrl.load(tmp_path / "begun", problems)
    before = [here.step() for _ in range(7)]
    with there.actors(2):
        progress = [there.step() for _ in range(7)]
    assert [(one["problem"], one["evaluations"], one["best_ps"]) for one in progress] == [
        (one["problem"], one["evaluations"], one["best_ps"]) for one in before
    ]
    for trainer, name in ((here, "here"), (there, "there")):
        trainer.step()
        trainer.save(tmp_path / name)
    assert (tmp_path / "here").read_bytes() == (tmp_path / "there").read_bytes()
    with pytest.raises(mg.InvalidInputError, match="found 0 actors"), there.actors(0):
        pass


def test_what_is_refused(problem, checkpoint, tmp_path):
    with pytest.raises(mg.InvalidInputError, match=r"agent.egrl: "):
        agents.Egrl.load(checkpoint, mg.placement.problem(OTHER, "nnp_i"))
    with pytest.raises(mg.InvalidInputError, match=r"agent.egrl: "):
        agents.Egrl.load(checkpoint, mg.placement.problem(PROGRAM, "nnp_i_48mib"))
    damaged = tmp_path / "damaged"
    damaged.write_bytes(checkpoint.read_bytes()[:-20])
    with pytest.raises(
        mg.InvalidInputError, match="damaged: the checkpoint is cut short or damaged"
    ):
        agents.EgrlAgent.load(damaged)
    with pytest.raises(mg.InvalidInputError, match="not a checkpoint of the egrl agent"):
        agents.EgrlAgent.load(__file__)
    with pytest.raises(
        mg.InvalidInputError, match=r"not a checkpoint of an agent \(muzero, egrl\)"
    ):
        mg.solve(mg.load_program(OTHER), "egrl", checkpoint=__file__)


def test_an_agent_places_what_it_has_not_seen(checkpoint):
    agent = agents.EgrlAgent.load(checkpoint)
    assert (agent.program, agent.levels, agent.generations, agent.settings["population"]) == (
        PROGRAM,
        3,
        10,
        "6",
    )
    unseen = mg.placement.problem(OTHER, "nnp_i_48mib")
    few, many = agent.place(unseen, samples=0), agent.place(unseen, samples=40, seed=1)
    assert len(few.best_ps) == 2 and len(many.best_ps) == 82 and many.latency_ps <= few.latency_ps
    assert unseen.evaluate(many.map) == (many.latency_ps, 0.0, many.reward)
    again = agent.place(unseen, samples=40, seed=1)
    assert (again.map == many.map).all() and (again.best_ps == many.best_ps).all()
    with pytest.raises(mg.InvalidInputError, match="levels"):
        agent.place(mg.placement.problem(GAME))
    with pytest.raises(mg.InvalidInputError, match="samples"):
        agent.place(unseen, samples=-1)


def test_the_solver_plays_its_map(tmp_path):
    program = mg.load_program(GAME)
    for game in ("priority", "time"):
        first, second = (
            mg.solve(program, "egrl", seconds=0, evaluations=100, seed=5, game=game)
            for _ in range(2)
        )
        assert first.plan == second.plan and first.game.kind == game
    first = mg.solve(program, "egrl", seconds=0, evaluations=100, seed=5)
    assert first.game.kind == "priority"
    assert 0 < first.evaluations <= 100 and first.found_by == "egrl"
    assert (
        mg.validate(program, first.plan).ok and first.report.latency_ps <= first.report.all_main_ps
    )
    assert mg.replay(mg.record(first), program).same
    trainer = agents.Egrl(mg.placement.problem(GAME), SMALL)
    trainer.step()
    trainer.save(tmp_path / "game.egrl")
    state = mg.placement.play_map(trainer.problems[0], trainer.best().map)
    assert state.is_terminal() and state.latency_ps == trainer.best().latency_ps
    trained = mg.solve(
        program, "egrl", seconds=0, evaluations=50, checkpoint=tmp_path / "game.egrl"
    )
    assert mg.validate(program, trained.plan).ok


def train(*arguments: object) -> list[str]:
    return ["train", "egrl", *map(str, arguments), "--config", *SETTINGS]


def process(*arguments: object) -> list[str]:
    """The training as a process of its own, which may be killed."""
    return [sys.executable, "-m", "mallocgame", *train(*arguments)]


def curve_of(out: pathlib.Path) -> list[dict[str, str]]:
    with open(out / "curve.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_the_command_writes_maps(tmp_path, run, run_json):
    out = tmp_path / "run"
    arguments = (PROGRAM, OTHER, "--hierarchy", "nnp_i", "--out", out)
    document = run_json(*train(*arguments, "--evaluations", 50, "--seed", 1))
    assert [row["program"] for row in document["results"]] == [PROGRAM, OTHER]
    for row in document["results"]:
        problem = mg.placement.problem(row["program"], "nnp_i")
        saved = json.loads((out / f"{row['program']}.map.json").read_text())
        latency_ps, moved, reward = problem.evaluate(np.array(saved["map"], np.uint8))
        assert (latency_ps, moved, reward) == (row["latency_ps"], 0.0, row["reward"]) and row[
            "valid"
        ]
        assert row["speedup_vs_compiler"] == problem.baseline_ps / latency_ps
        assert (
            row["first_come_ps"] == problem.search("first-come", 1)[1] and row["evaluations"] >= 50
        )
        assert [node["weights"] is None for node in saved["nodes"]] == (
            problem.tensor_bytes[:, 0] == 0
        ).tolist()
        assert (
            json.loads((out / f"{row['program']}.report.json").read_text())["settings"]["hidden"]
            == "8"
        )
        best = [
            int(line["best_ps"])
            for line in curve_of(out)
            if line["program"] == row["program"] and line["best_ps"] != "0"
        ]
        assert best == sorted(best, reverse=True) and best[-1] == latency_ps
    assert len(curve_of(out)) == document["generations"]
    assert os.listdir(out / "tensorboard")
    more = run_json(*train(*arguments, "--evaluations", 80, "--resume"))
    assert all(row["evaluations"] >= 80 for row in more["results"])
    for added, sentence in (
        ((), "--resume goes on with it"),
        (("--resume", "--seed", 2), "--seed: found 2"),
        (("--resume", "--config", "hidden=32"), "--config: found hidden=32"),
        (("--resume", "--hierarchy", "nnp_i_48mib"), "checkpoint.egrl"),
        (("--resume", "--actors", 2), "--actors: egrl needs --one-agent"),
    ):
        done = run("train", "egrl", *arguments, *added)
        # Progress may stand above it.
        assert done.returncode == 2 and sentence in done.stderr.splitlines()[-1], done.stderr
    for added in (("--hierarchy", "nnp_i"), ("--evaluations", 5)):
        done = run("train", "muzero", PROGRAM, "--out", tmp_path / "muzero", *added)
        assert done.returncode == 2 and f"{added[0]}: is egrl's" in done.stderr, done.stderr


def test_resumed_settings_need_not_go_together_with_the_defaults(tmp_path, run):
    """By itself a population of 4 doesn't: 4 elites are the default."""
    out = tmp_path / "run"
    command = ["train", "egrl", PROGRAM, "--hierarchy", "nnp_i", "--out", out, "--evaluations", 5]
    assert run(*command, "--config", *SETTINGS, "population=4").returncode == 0
    done = run(*command, "--resume", "--config", "population=4")
    assert done.returncode == 0, done.stderr
    done = run(*command, "--resume", "--config", "population=5")
    assert done.returncode == 2
    assert "--config: found population=5, but" in done.stderr.splitlines()[-1], done.stderr


@pytest.mark.parametrize("game", ["priority", "time"])
def test_the_command_plays_the_game(tmp_path, run, run_json, game):
    out = tmp_path / "run"
    chosen = () if game == "priority" else ("--game", game)
    command = train(GAME, "--out", out, "--evaluations", 30, *chosen)
    (row,) = run_json(*command)["results"]
    program = mg.load_program(GAME)
    plan = mg.load_plan(out / f"{GAME}.plan.json", program)
    assert (
        mg.simulate(program, plan).latency_ps == row["latency_ps"]
        and mg.validate(program, plan).ok
        and row["valid"]
    )
    log = mg.load_log(out / f"{GAME}.mgr")
    assert mg.replay(log).same and log.solver == "egrl"
    problem = mg.placement.problem(GAME, game=game)
    document = json.loads((out / f"{GAME}.map.json").read_text())
    saved = np.array(document["map"], np.uint8)
    assert problem.evaluate(saved)[0] == row["latency_ps"] == row["game_latency_ps"]
    assert document["levels"] == problem.level_names and os.path.exists(out / f"{GAME}.png")
    served = [node.get("mode", node.get("weights")) for node in document["nodes"]]
    assert set(served) - {None} <= set(problem.level_names) and any(served)
    assert ("mode" in document["nodes"][0]) == (game == "priority")
    other = "time" if game == "priority" else "priority"
    done = run("train", "egrl", GAME, "--out", out, "--resume", "--game", other)
    assert done.returncode == 2 and "of another problem" in done.stderr, done.stderr
    done = run("train", "egrl", GAME, "--out", out, "--hierarchy", "nnp_i", "--game", game)
    assert done.returncode == 2 and f"found {game} and --hierarchy" in done.stderr, done.stderr


def test_killed_and_resumed_nothing_is_lost(tmp_path, run):
    killed, straight = tmp_path / "killed", tmp_path / "straight"
    arguments = (PROGRAM, "--hierarchy", "nnp_i", "--evaluations", 400)
    for _ in range(2):
        have = len(curve_of(killed)) if (killed / "curve.csv").exists() else 0
        with subprocess.Popen(
            process(*arguments, "--out", killed, "--resume"), stderr=subprocess.DEVNULL
        ) as running:
            deadline = time.monotonic() + 600
            while time.monotonic() < deadline and not (
                (killed / "curve.csv").exists() and len(curve_of(killed)) >= have + 5
            ):
                time.sleep(0.01)
            running.kill()
    assert run(*train(*arguments, "--out", killed, "--resume")).returncode == 0
    assert run(*train(*arguments, "--out", straight)).returncode == 0
    one, other = ([{**row, "seconds": ""} for row in curve_of(out)] for out in (killed, straight))
    assert one == other and len(one) > 20
    name = f"{PROGRAM}.checkpoint.egrl"
    assert (killed / name).read_bytes() == (straight / name).read_bytes()


def test_ctrl_c_leaves_results(tmp_path, problem):
    out = tmp_path / "run"
    command = process(PROGRAM, "--hierarchy", "nnp_i", "--evaluations", 10**9, "--out", out)
    with subprocess.Popen(
        [*HEEDING, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as running:
        deadline = time.monotonic() + 600
        while time.monotonic() < deadline and not (out / f"{PROGRAM}.checkpoint.egrl").exists():
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        try:
            assert running.wait(60) == 130
        finally:
            running.kill()
    saved = json.loads((out / f"{PROGRAM}.map.json").read_text())
    assert problem.evaluate(np.array(saved["map"], np.uint8))[:2] == (saved["latency_ps"], 0.0)


def test_the_example_runs(tmp_path):
    example = SOURCE_ROOT / "examples" / "train_egrl.py"
    command = [sys.executable, "-W", "error", example, PROGRAM, "100"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (
        "times as fast as the compiler" in done.stdout
        and "MiB of weights" in done.stdout
        and "unseen" in done.stdout
    )
