"""The schedule game from Python: states, environments, solvers, logs."""

import json
import pickle

import numpy as np
import pytest

import mallocgame as mg
from mallocgame import observation

NAME = "mlp_train_adam_b512.tpu_v6e"


@pytest.fixture(scope="module")
def program():
    return mg.load_program(NAME)


def played(game, seed):
    rng = np.random.default_rng(seed)
    state = game.initial_state()
    while not state.is_terminal():
        state.apply(int(rng.choice(state.legal_actions())))
    return state


def test_a_game_decides_the_order_and_then_places(program):
    game = mg.Game(program, game="schedule")
    assert (game.kind, game.num_actions) == ("schedule", 17 + 5 * 4)
    assert game.options.main_bytes is None
    assert game.action_names[:2] == ["Take 0", "Take 1"]
    assert game.action_names[16:18] == ["Next", "Skip 0"]
    other = 0
    for seed in range(20):
        state = played(game, seed)
        other += not np.array_equal(state.order, np.arange(program.ticks))
        assert state.program.fingerprint == program.reordered(state.order).fingerprint
        assert mg.validate(state.program, state.plan()).ok
        assert mg.simulate(state.program, state.plan()).latency_ps == state.latency_ps
        needed = state.program.main_memory["total_bytes"]
        assert needed <= program.main_memory["total_bytes"]
    assert other > 10


def test_the_own_order_comes_first_and_undo_crosses_the_seam(program):
    game = mg.Game(program, game="schedule", min_buffer_bytes=1 << 20)
    state = game.initial_state()
    assert state.asked_about() == [] and state.current_access() is None
    taken = 0
    while not state.asked_about():
        state.apply(0)
        taken += 1
    assert np.array_equal(state.order, np.arange(program.ticks))
    assert state.program is game.program or state.program.fingerprint == program.fingerprint
    assert state.latency_ps == game.all_main_ps
    before = state.to_string()
    state.apply(int(state.legal_actions()[0]))
    state.undo()
    assert state.to_string() == before
    state.undo()
    assert state.asked_about() == [] and state.num_decisions == taken - 1
    assert pickle.loads(pickle.dumps(state)).to_string() == state.to_string()


def test_main_memory_is_an_option(program):
    with pytest.raises(mg.InvalidInputError, match="needs 458439168 in its own order"):
        mg.Game(program, game="schedule", main_bytes=1000)
    with pytest.raises(mg.InvalidInputError, match=r"main_bytes: found .* for the time game"):
        mg.Game(program, main_bytes=1 << 40)
    with pytest.raises(mg.InvalidInputError, match="allowed: 1 to 47"):
        mg.Game(program, game="schedule", candidates=48)
    game = mg.Game(program, game="schedule", main_bytes=1 << 40)
    assert pickle.loads(pickle.dumps(game)).options.main_bytes == 1 << 40


def test_logs_have_the_order(program, tmp_path):
    state = played(mg.Game(program, game="schedule", main_bytes=1 << 40), 3)
    log = mg.record(state)
    mg.save_log(log, tmp_path / "game.mgr")
    read = mg.load_log(tmp_path / "game.mgr")
    assert np.array_equal(read.order, state.order)
    assert mg.replay(read, program).same
    assert mg.validate(program.reordered(read.order), read.plan).ok
    assert mg.record(mg.Game(program), [0] * 0 + greedy_actions(program)).order is None


def greedy_actions(program):
    return mg.solve(program, "greedy").actions.tolist()


@pytest.mark.parametrize("solver", ["greedy", "random", "mcts"])
def test_solvers_play_it(program, solver, tmp_path):
    result = mg.solve(program, solver, seconds=0, evaluations=200, game="schedule")
    assert result.game.kind == "schedule"
    assert mg.validate(result.program, result.plan).ok
    assert mg.simulate(result.program, result.plan).latency_ps == result.report.latency_ps
    again = pickle.loads(pickle.dumps(result))
    assert again.program.fingerprint == result.program.fingerprint
    assert mg.replay(mg.record(result), program).same
    mg.save_plan(result.plan, program, tmp_path / "plan.json", order=result.order)
    ordered, plan, order = mg.files.load_ordered_plan(tmp_path / "plan.json", program)
    assert plan == result.plan and ordered.fingerprint == result.program.fingerprint
    assert np.array_equal(order, result.order) or solver == "greedy"


def test_what_does_not_play_it_says_so(program):
    with pytest.raises(
        mg.InvalidInputError, match="'portfolio' plays the time game or the priority game only"
    ):
        mg.solve(program, "portfolio", game="schedule")
    with pytest.raises(mg.InvalidInputError, match="whose players decide the order themselves"):
        mg.solve(program, "greedy", game="schedule", order=True)
    game = mg.Game(program, game="schedule")
    with pytest.raises(mg.InvalidInputError, match="found prices with a schedule game"):
        mg.observation.Observer(game, {}, mg.bounds.Prices(np.zeros(program.ticks)))


def test_environments_play_it():
    gymnasium = pytest.importorskip("gymnasium")
    from gymnasium.utils.env_checker import check_env

    settings = {"program": [NAME, "muzero_unroll_b32.tpu_v4i"], "observation": "dict"}
    env = gymnasium.make("mallocgame/ScheduleGame-v0", render_mode="rgb_array", **settings)
    check_env(env.unwrapped, skip_render_check=True)
    assert env.observation_space["units"].shape == (16, len(observation.unit_features()))
    env.reset(seed=0)
    env.action_space.seed(0)
    total, over = 0.0, False
    while not over:
        seen, reward, over, _, info = env.step(env.action_space.sample())
        assert env.observation_space.contains(seen)
        total += reward
    assert total == pytest.approx(1 - info["latency_ps"] / env.unwrapped.game.all_main_ps)
    assert env.render().shape == (256, 512, 3)

    batch = gymnasium.make_vec("mallocgame/ScheduleGame-v0", num_envs=8, **settings)
    batch.reset(seed=0)
    batch.action_space.seed(0)
    ends = 0
    for _ in range(400):
        _, _, ended, _, _ = batch.step(batch.action_space.sample())
        ends += int(ended.sum())
    assert ends > 8


def test_the_command_line_plays_and_shows_it(program, tmp_path, capsys):
    from mallocgame._cli.main import main

    plan, log, page = (str(tmp_path / name) for name in ("plan.json", "game.mgr", "page.html"))
    options = ["--game", "schedule", "--seconds", "0", "--evaluations", "50", "--json"]
    assert main(["solve", NAME, "--solver", "random", *options, "-o", plan, "--log", log]) == 0
    solved = json.loads(capsys.readouterr().out)
    assert solved["valid"]
    assert main(["validate", NAME, plan, "--json"]) == 0
    capsys.readouterr()
    assert main(["replay", log, "--json"]) == 0
    replayed = json.loads(capsys.readouterr().out)
    assert replayed["same"] and replayed["valid"]
    assert replayed["latency_ps"] == solved["latency_ps"]
    assert main(["view", log, "-o", page]) == 0


def test_openspiel_plays_it():
    pyspiel = pytest.importorskip("pyspiel")
    import mallocgame.envs.openspiel  # noqa: F401

    game = pyspiel.load_game("mallocgame", {"program": NAME, "game": "schedule"})
    state = game.new_initial_state()
    rng = np.random.default_rng(0)
    while not state.is_terminal():
        assert len(state.observation_tensor()) == game.observation_tensor_size()
        state.apply_action(int(rng.choice(state.legal_actions())))
    assert -100 < state.returns()[0] < 1
    assert len(state.history()) <= game.max_game_length()
