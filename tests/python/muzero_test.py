"""The MuZero agent from Python.

It is trained, saved, refused, solves and acts.
"""

import importlib.metadata
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from small_agents import MUZERO as SMALL

import mallocgame as mg
from mallocgame import agents
from mallocgame.calibration import calibrated

pytestmark = pytest.mark.full

PROGRAM, OTHER = "mlp_train_adam_b512.tpu_v4i", "gcn_dense_2048.tpu_v4i"
WEIGHTY = "llama_1b_decode_8l_b4_kv1024.tpu_v4i"  # where weights of importance matter


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> pathlib.Path:
    """After three steps in the time game."""
    trainer = agents.MuZero(PROGRAM, SMALL, seed=3, game="time", prices="compiler")
    for _ in range(3):
        trainer.step()
    path = tmp_path_factory.mktemp("muzero") / "agent.muzero"
    trainer.save(path)
    return path


@pytest.fixture(scope="module")
def priority_checkpoint(tmp_path_factory) -> pathlib.Path:
    """After three steps in the priority game."""
    trainer = agents.MuZero(PROGRAM, SMALL, seed=3, game="priority", prices="compiler")
    for _ in range(3):
        trainer.step()
    path = tmp_path_factory.mktemp("muzero") / "order.muzero"
    trainer.save(path)
    return path


@pytest.fixture
def trainer(checkpoint) -> agents.MuZero:
    return agents.MuZero.load(checkpoint, prices="compiler")


def test_training_improves_on_greedy_and_says_how_it_goes(trainer, program):
    best, game = trainer.best(), trainer.best_game()
    assert mg.validate(program, best.plan).ok and mg.validate(program, game.plan).ok
    assert (
        best.report.latency_ps
        <= game.report.latency_ps
        <= mg.solve(program, "greedy").report.latency_ps
    )
    assert mg.replay(mg.record(game), program).same
    progress = trainer.step()
    assert progress["iteration"] == 3 and trainer.iterations == 4
    assert progress["best_ps"] == [trainer.best().report.latency_ps]
    assert progress["updates"] == 3 * SMALL["updates"] and progress["searches"] > 0
    assert all(
        np.isfinite(progress[name])
        for name in ("policy_loss", "value_loss", "gradient_norm", "depth", "entropy")
    )
    polished = trainer.polish(seconds=0.2)
    assert mg.validate(program, polished.plan).ok
    assert polished.report.latency_ps <= best.report.latency_ps
    assert trainer.best().plan == polished.plan


def test_settings_are_named_and_checked():
    settings = {setting.name: setting for setting in agents.muzero_settings()}
    assert settings["preset"].allowed == "strong, paper"
    trainer = agents.MuZero(PROGRAM, {"batch": 9, "preset": "paper"})
    assert trainer.settings["batch"] == "9" and trainer.settings["game"] == "time"
    with pytest.raises(mg.InvalidInputError, match="setting width: found '0', allowed: 12 to 8192"):
        agents.MuZero(PROGRAM, {"width": 0})
    with pytest.raises(mg.InvalidInputError, match="found the setting 'widht'"):
        agents.MuZero(PROGRAM, {"widht": 8})
    with pytest.raises(mg.InvalidInputError, match="found no program"):
        agents.MuZero([])


def test_one_agent_over_several_programs(program):
    trainer = agents.MuZero([program, OTHER], SMALL, prices="compiler")
    trainer.step()
    progress = trainer.step()
    assert len(progress["best_ps"]) == 2
    assert trainer.best(1).report.latency_ps == progress["best_ps"][1]
    with pytest.raises(IndexError):
        trainer.best(2)


def test_plans_are_compared_by_both_sets_of_prices_where_there_are_both(program):
    trainer = agents.MuZero(program, SMALL, seed=1)
    progress = trainer.step()
    best = trainer.best()
    made = calibrated(program)
    own, other = (mg.simulate(at, best.plan.rebased_on(at)).latency_ps for at in (program, made))
    xla = mg.simulate(program, program.xla_plan).latency_ps
    xla_other = mg.simulate(made, program.xla_plan.rebased_on(made)).latency_ps
    less, more = sorted((own, other * xla / xla_other))
    assert progress["best_ps"] == [pytest.approx(0.9 * more + 0.1 * less, abs=2)]
    only_one = agents.MuZero(made, SMALL)
    assert only_one.step()["best_ps"] == [only_one.best().report.latency_ps]
    with pytest.raises(mg.InvalidInputError, match="can't have calibrated prices"):
        agents.MuZero(made, SMALL, prices="both")
    with pytest.raises(
        mg.InvalidInputError, match="found two sets of prices, allowed in the sched"
    ):
        agents.MuZero(program, SMALL, game="schedule", prices="both")
    with pytest.raises(mg.InvalidInputError, match="found 'dear', allowed: 'both', 'compiler'"):
        agents.MuZero(program, SMALL, prices="dear")


def test_levels_are_trained_on_with_their_own_hardware(tmp_path):
    level = next(
        one
        for one in mg.levels("train")
        if one.name.endswith("@c20b50") and one.features["accesses"] > 40
    )
    trainer = agents.MuZero([level, PROGRAM, level.name], SMALL)
    assert trainer.names == [level.name, PROGRAM, level.name]
    own, other, same = trainer.hardware
    assert own == same == level.hardware() != mg.load_program(PROGRAM).hardware == other
    trainer.step()
    best = trainer.best(0)
    assert mg.simulate(level.load_program(), best.plan, own).latency_ps == best.report.latency_ps
    trainer.save(tmp_path / "levels.muzero")
    again = agents.MuZero.load(tmp_path / "levels.muzero")
    assert again.names == trainer.names and again.hardware == trainer.hardware
    with pytest.raises(mg.InvalidInputError, match="neither a bundled program nor a file"):
        agents.MuZero("perceptron_000.tpu_v4i@c15", SMALL)
    with pytest.raises(mg.InvalidInputError, match="found the hardware tpu_v5e, allowed: none"):
        agents.MuZero(level, SMALL, hardware=mg.Hardware.preset("tpu_v5e"))


def test_games_are_trained_on_as_they_are(tmp_path):
    level = next(one for one in mg.levels("train", scored=True) if one.features["accesses"] > 60)
    game = level.game(mg.FINE_GAME)
    config = SMALL | {"game": "priority", "candidates": 3, "baseline": "greedy"}
    trainer = agents.MuZero([game, level], config)
    assert trainer.names == [game.program.name, level.name]
    assert trainer.hardware == [level.hardware()] * 2
    for _ in range(2):
        trainer.step()
    trainer.save(tmp_path / "games.muzero")
    again = agents.MuZero.load(tmp_path / "games.muzero", [game, level])
    again.step()
    best = again.best_game(0)
    assert best.game.options.exact_stalls
    assert best.game.options.candidates == 3  # the agent's
    # What is seen beside a position is greedy's game.
    agent = trainer.agent()
    greedy = mg.solve(game, "greedy").report.latency_ps
    assert agent.baseline(game).report.latency_ps == greedy
    played = agent.play(game, simulations=1)
    assert mg.validate(game.program, played.plan, game.hardware)
    with pytest.raises(mg.InvalidInputError, match="is a time game with 4 actions, allowed: prior"):
        agents.MuZero(level.game(), config)
    with pytest.raises(mg.InvalidInputError, match="found the hardware tpu_v5e, allowed: none"):
        agents.MuZero(game, SMALL, hardware=mg.Hardware.preset("tpu_v5e"))
    with pytest.raises(mg.InvalidInputError, match=r"found the options .* because a Game has its"):
        agents.MuZero(game, SMALL, game="fine")


def test_saved_and_loaded_it_goes_on_the_same(checkpoint, tmp_path):
    copies = [agents.MuZero.load(checkpoint, threads=threads) for threads in (1, 2)]
    for number, copy in enumerate(copies):
        assert copy.names == [PROGRAM] and copy.seed == 3
        copy.step()
        copy.save(tmp_path / str(number))
    assert (tmp_path / "0").read_bytes() == (tmp_path / "1").read_bytes()


def test_what_is_refused(checkpoint, tmp_path):
    with pytest.raises(
        mg.InvalidInputError, match=r"agent.muzero: the checkpoint is of other programs"
    ):
        agents.MuZero.load(checkpoint, OTHER)
    damaged = tmp_path / "damaged"
    damaged.write_bytes(checkpoint.read_bytes()[:-20])
    with pytest.raises(
        mg.InvalidInputError, match="damaged: the checkpoint is cut short or damaged"
    ):
        agents.MuZeroAgent.load(damaged)
    with pytest.raises(mg.InvalidInputError, match="not a checkpoint of the muzero agent"):
        agents.MuZeroAgent.load(__file__)
    with pytest.raises(mg.errors.MissingFileError):
        agents.MuZeroAgent.load(tmp_path / "none")
    with pytest.raises(mg.InvalidInputError, match="needs checkpoint="):
        mg.solve(mg.load_program(PROGRAM), "muzero")


def test_an_agent_plays_acts_and_solves(checkpoint, program):
    agent = agents.MuZeroAgent.load(checkpoint)
    assert agent.programs == [PROGRAM] and agent.iterations == 3
    played = agent.play(program)
    visits, values = played.search
    assert (
        visits.shape == values.shape == (len(played.actions), 4)
        and visits.sum(axis=1).max() == SMALL["simulations"]
    )
    assert (np.abs(values[visits == 0]) == 0).all() and np.isfinite(values).all()
    assert (mg.record(played).search_visits == visits).all()
    state = mg.Game(program).initial_state()
    for action in played.actions[:3]:
        advised, policy, value = agent.act(state)
        assert advised == action and policy.sum() == pytest.approx(1, abs=1e-5) and value < 1
        assert all(policy[a] == 0 for a in range(4) if a not in state.legal_actions())
        state.apply(action)
    unseen = mg.load_program(OTHER)
    for solver in ("muzero", "portfolio"):
        result = mg.solve(unseen, solver, seconds=1, checkpoint=checkpoint)
        assert mg.validate(unseen, result.plan).ok
        assert result.report.latency_ps <= mg.solve(unseen, "greedy").report.latency_ps
    first, second = (
        mg.solve(program, "muzero", seconds=0, evaluations=300, seed=5, checkpoint=checkpoint)
        for _ in range(2)
    )
    assert first.plan == second.plan
    with pytest.raises(mg.errors.GameOverError):
        while True:
            state.apply(agent.act(state)[0])


def test_as_a_solver_it_searches_without_the_policy(program, tmp_path):
    """So what it finds does not depend on what was learned, if nothing is varied."""
    learning = {"varied_decisions": 0, "updates": 20, "learning_rate": 0.03}
    found = []
    for seed in (1, 2):
        trainer = agents.MuZero(PROGRAM, SMALL | learning, seed=seed, game="priority")
        for _ in range(3):
            trainer.step()
        path = tmp_path / f"{seed}.muzero"
        trainer.save(path)
        result = mg.solve(
            program, "muzero", seconds=0, evaluations=200, seed=5, checkpoint=path, game="priority"
        )
        found.append((result.plan, [latency_ps for _, latency_ps, _ in result.curve]))
    assert found[0] == found[1] and len(found[0][1]) > 1


def test_it_learns_the_priority_game(priority_checkpoint, program, tmp_path):
    copies = [
        agents.MuZero.load(priority_checkpoint, threads=threads, prices="compiler")
        for threads in (1, 2)
    ]
    for number, copy in enumerate(copies):
        assert copy.settings["game"] == "priority"
        assert copy.step()["games"] > 0
        copy.save(tmp_path / str(number))
    assert (tmp_path / "0").read_bytes() == (tmp_path / "1").read_bytes()
    best, game = copies[0].best(), copies[0].best_game()
    assert game.game.kind == "priority" and mg.replay(mg.record(game), program).same
    assert mg.validate(program, best.plan).ok
    assert (
        best.report.latency_ps
        <= game.report.latency_ps
        <= mg.solve(program, "greedy", game="priority").report.latency_ps
    )
    again = agents.MuZero(PROGRAM, SMALL | {"game": "priority"}, seed=3, prices="compiler")
    for _ in range(4):
        again.step()
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "0").read_bytes()
    with pytest.raises(mg.InvalidInputError, match="found game='time' and the setting game='pri"):
        agents.MuZero(PROGRAM, {"game": "priority"}, game="time")
    with pytest.raises(mg.InvalidInputError, match="found 'chess', allowed: time, priority"):
        agents.MuZero(PROGRAM, game="chess")


def test_an_agent_of_the_priority_game_plays_it_and_no_other(
    priority_checkpoint, checkpoint, program
):
    agent = agents.MuZeroAgent.load(priority_checkpoint)
    played = agent.play(program)
    visits, _ = played.search
    assert visits.shape == (len(played.actions), 255)
    assert visits.sum(axis=1).max() == SMALL["simulations"]
    assert played.game.kind == "priority" and mg.replay(mg.record(played), program).same
    state = agent.game(program).initial_state()
    for action in played.actions[:3]:
        advised, policy, value = agent.act(state)
        assert advised == action and policy.shape == (255,) and value < 1
        state.apply(action)
    unseen = mg.load_program(OTHER)
    result = mg.solve(
        unseen,
        "muzero",
        seconds=0,
        evaluations=300,
        checkpoint=priority_checkpoint,
        game="priority",
    )
    assert result.game.kind == "priority" and mg.validate(unseen, result.plan).ok
    greedy = mg.solve(unseen, "greedy", game="priority")
    assert result.report.latency_ps <= greedy.report.latency_ps
    # A portfolio gives each member the game that it plays.
    result = mg.solve(unseen, "portfolio", seconds=1, checkpoint=priority_checkpoint)
    assert mg.validate(unseen, result.plan).ok

    sentence = "the agent was trained in the game '{}', found the game '{}'"
    assert (
        mg.solve(program, "muzero", seconds=0.3, checkpoint=priority_checkpoint).game.kind
        == "priority"
    )
    with pytest.raises(mg.InvalidInputError, match="'muzero' plays the priority game only"):
        mg.solve(program, "muzero", seconds=1, checkpoint=priority_checkpoint, game="time")
    with pytest.raises(mg.InvalidInputError, match=sentence.format("priority", "time")):
        agent.act(mg.Game(program).initial_state())
    with pytest.raises(mg.InvalidInputError, match="plays the time game only, found a priority"):
        mg.solve(program, "muzero", seconds=1, checkpoint=checkpoint, game="priority")
    with pytest.raises(mg.InvalidInputError, match=sentence.format("time", "priority")):
        agents.MuZeroAgent.load(checkpoint).play(mg.Game(program, game="priority"))
    # It turns to a game with its own number of candidates, but can't act in one with others.
    fewer = mg.Game(program, game="priority", candidates=2)
    assert agent.play(fewer).game.num_actions == agent.game(program).num_actions
    assert list(agent.play(agent.game(fewer)).actions) == list(agent.play(program).actions)
    with pytest.raises(mg.InvalidInputError, match="255 actions, found a game with 10; set candid"):
        agent.act(fewer.initial_state())


def test_the_schedule_game_is_learned_and_played(tmp_path):
    program, path = mg.load_program("mlp_train_adam_b512.tpu_v6e"), tmp_path / "order.muzero"
    trainer = agents.MuZero(program, SMALL, seed=1, game="schedule")
    for _ in range(3):
        trainer.step()
    for result in (trainer.best(), trainer.best_game(), trainer.polish(seconds=0.1)):
        assert mg.validate(result.program, result.plan).ok
        assert result.report.latency_ps >= trainer.polish(seconds=0.01).report.latency_ps
    game = trainer.best_game()
    assert game.game.kind == "schedule"
    assert mg.replay(mg.record(game)).same
    # Of another order than XLA's, and better than greedy's game.
    assert game.program.fingerprint != program.fingerprint
    assert game.report.latency_ps < mg.solve(program, "greedy", game="schedule").report.latency_ps
    trainer.save(path)
    assert agents.MuZero.load(path, program).settings["game"] == "schedule"

    agent = agents.MuZeroAgent.load(path)
    played = agent.play(program)
    assert mg.validate(played.program, played.plan).ok
    assert played.report.latency_ps <= agent.baseline(program).report.latency_ps
    action, policy, _ = agent.act(agent.game(program).initial_state())
    assert policy[action] > 0
    solved = mg.solve(program, "muzero", seconds=0.5, checkpoint=path)
    assert mg.validate(solved.program, solved.plan).ok
    sentence = "the agent was trained in the game 'schedule', found the game '{}'"
    for other in ("time", "priority"):
        with pytest.raises(mg.InvalidInputError, match=sentence.format(other)):
            agent.play(mg.Game(program, game=other))
    with pytest.raises(mg.InvalidInputError, match="'muzero' plays the schedule game only"):
        mg.solve(program, "muzero", seconds=1, checkpoint=path, game="priority")
    with pytest.raises(mg.InvalidInputError, match="play the game 'schedule', allowed: 'priority'"):
        agents.MuZero(program, {"game": "priority"}, tuned_from=path)


def test_a_program_is_played_in_the_priority_game_that_promises_most(
    priority_checkpoint, checkpoint
):
    agent = agents.MuZeroAgent.load(priority_checkpoint)
    program = mg.load_program(WEIGHTY)
    for hardware in (None, mg.hardware("tpu_v4i_16mib")):
        plain = mg.Game(program, hardware, game="priority")
        chosen = agent.game(plain)
        assert chosen.kind == "priority" and chosen.hardware == plain.hardware
        assert agent.baseline(chosen).report.latency_ps < agent.baseline(plain).report.latency_ps
    given = agent.baseline(agent.game(program))
    assert list(agent.baseline(program).actions) == list(given.actions)
    other = agents.MuZeroAgent.load(checkpoint)
    assert other.game(program).kind == "time"
    few = {"preset": "paper", "min_buffer_bytes": 100_000}
    paper = agents.MuZero(PROGRAM, SMALL | few, seed=3).agent()
    asked = mg.Game(program, actions="paper", min_buffer_bytes=100_000)
    assert list(paper.baseline(program).actions) == list(paper.baseline(asked).actions)
    assert paper.game(program).num_actions == 3
    with pytest.raises(mg.InvalidInputError, match="found the game 'time'"):
        agent.game(mg.Game(program))


def test_the_policy_alone_plays_with_one_simulation(priority_checkpoint, program):
    agent = agents.MuZeroAgent.load(priority_checkpoint)
    alone = agent.play(program, simulations=1)
    visits, _ = alone.search
    assert visits.sum(axis=1).max() == 1 and mg.validate(program, alone.plan).ok
    with pytest.raises(mg.InvalidInputError, match="simulations: found '0', allowed: 1 to 4096"):
        agent.play(program, simulations=0)


def test_rollouts_are_no_slower_than_the_game_that_they_follow(priority_checkpoint, program):
    agent = agents.MuZeroAgent.load(priority_checkpoint)
    baseline = agent.baseline(program)
    assert mg.validate(program, baseline.plan).ok and baseline.solver in {
        "greedy",
        "rent",
        "styles",
        "xla-heuristic",
    }
    assert agent.play(program).report.latency_ps <= baseline.report.latency_ps
    alone = agent.play(program, simulations=4, config={"rollout_share": 0})
    assert alone.search[0].sum(axis=1).max() == 4
    with pytest.raises(mg.InvalidInputError, match="rollout_share: found '2', allowed: 0 to 1"):
        agent.play(program, config={"rollout_share": 2})
    with pytest.raises(mg.InvalidInputError, match=r"preset=paper, allowed: .* strong"):
        agent.play(program, config={"preset": "paper"})


def test_training_begins_with_another_agents_networks(priority_checkpoint, checkpoint):
    agent = agents.MuZeroAgent.load(priority_checkpoint)
    for given in (agent, priority_checkpoint):
        tuned = agents.MuZero(OTHER, seed=5, tuned_from=given)
        assert tuned.settings == agent.settings and tuned.iterations == 0
        state = agent.game(mg.load_program(OTHER)).initial_state()
        assert tuned.agent().act(state).value == agent.act(state).value
    tuned.step()
    assert tuned.step()["updates"] > 0
    with pytest.raises(mg.InvalidInputError, match="play the game 'time', allowed: 'priority'"):
        agents.MuZero(OTHER, game="priority", tuned_from=checkpoint)


def test_the_sentences_about_torch(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "1.0.0")
    with pytest.raises(
        agents.TorchMissingError,
        match=r"built with Torch 2.13.0, found 1.0.0: pip install torch==2.13.0",
    ):
        agents.MuZero(PROGRAM)

    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(ImportError, match="the learning agents need Torch"):
        agents.muzero_settings()
    monkeypatch.setitem(sys.modules, "mallocgame._agents_build", None)
    with pytest.raises(mg.MallocGameError, match="installed without its learning agents"):
        agents.muzero_settings()


def test_agents_need_the_libraries_of_torch_but_not_its_python(checkpoint):
    """Importing Torch takes seconds. Who imports it afterwards has the very same libraries."""
    code = f"""
import sys
import mallocgame as mg
from mallocgame import agents
agent = agents.MuZeroAgent.load({os.fspath(checkpoint)!r})
program = mg.load_program({PROGRAM!r})
before = agent.play(program).report.latency_ps
assert "torch" not in sys.modules
import torch
layer = torch.nn.Linear(3, 1)
layer(torch.ones(2, 3)).sum().backward()
assert layer.weight.grad.tolist() == [[2, 2, 2]]
assert agent.play(program).report.latency_ps == before
trainer = agents.MuZero(program, {SMALL!r})
assert trainer.step()["iteration"] == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_mallocgame_needs_no_torch():
    code = "import mallocgame, mallocgame.agents, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_example_runs():
    example = pathlib.Path(__file__).resolve().parents[2] / "examples" / "train_muzero.py"
    done = subprocess.run(
        [sys.executable, example, PROGRAM, "1"], capture_output=True, text=True, check=True
    )
    assert "step 1" in done.stdout and "unseen" in done.stdout
