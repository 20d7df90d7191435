"""The learned policy as a solver, and the command that learns its weights, on two small levels."""

import importlib.util
import sys

import numpy as np
import pytest
from conftest import SOURCE_ROOT

import mallocgame as mg
from mallocgame import _core

SCRIPT = SOURCE_ROOT / "benchmarks/quality/train_policy.py"
LEVELS = ("ranker_068.tpu_v6e@c40b50", "convolution_010.tpu_v5e@c20")


@pytest.fixture(scope="module")
def training():
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("train_policy", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def games(training):
    by_name = {level.name: level for level in mg.levels("train")}
    return training.Games([by_name[name] for name in LEVELS])


def test_the_solver_plays_one_game_of_any_program():
    for name in ("mlp_train_adam_b512.tpu_v4i", "wavernn_64steps_b8.tpu_v5e"):
        program = mg.load_program(name)
        result = mg.solve(program, "policy")
        assert mg.validate(program, result.plan)
        assert (result.evaluations, result.found_by) == (1, "policy")
        assert mg.solve(program, "policy", seed=5).plan == result.plan
        assert result.report.latency_ps < result.report.all_main_ps


def test_its_plan_is_that_of_the_weights_of_the_library(games):
    level = games.levels[0]
    weights = _core._policy_weights()
    assert games.games[0].plan(weights) == mg.solve(level.game("priority"), "policy").plan
    assert mg.validate(level.load_program(), games.games[0].plan(weights), level.hardware())


def test_weights_are_checked(training, games):
    weights = training.untrained()
    with pytest.raises(mg.InvalidInputError, match=r"found 3 numbers, allowed: 984"):
        games.games[0].latency_ps(weights[:3])
    weights[5] = np.nan
    with pytest.raises(mg.InvalidInputError, match="as number 5, allowed: finite ones"):
        games.games[0].latency_ps(weights)


def test_the_script_knows_the_network(training, games):
    """Its own arithmetic says of runs what the network does: with a worth below 0 all are left."""
    weights = training.untrained()
    training.LAYOUT.of(weights, "last")[training.PLACE] = -100
    told = training.outputs_of(weights, games.games[0].features)
    assert (told[:, training.PLACE] == -100).all()
    level = games.levels[0]
    left = mg.all_main_plan(level.load_program(), level.hardware())
    all_main = mg.simulate(level.load_program(), left, level.hardware()).latency_ps
    assert games.games[0].latency_ps(weights) == all_main


def test_slopes_are_those_of_the_loss(training, games, tmp_path):
    plans = [training.teach(level, tmp_path, 200) for level in games.levels]
    lessons = training.Lessons(games, plans)
    rng = np.random.default_rng(0)
    weights = rng.normal(0, 0.3, training.LAYOUT.size)
    _, slope = lessons.gradient(weights)
    for number in rng.choice(training.LAYOUT.size - 1, 40, replace=False):
        moved = [weights.copy(), weights.copy()]
        moved[0][number] -= 1e-5
        moved[1][number] += 1e-5
        low, high = (lessons.gradient(one)[0] for one in moved)
        assert slope[number] == pytest.approx((high - low) / 2e-5, rel=1e-2, abs=1e-5)


def test_both_designs_learn_and_without_generations_nothing_is_learned(training, games, tmp_path):
    plans = [training.teach(level, tmp_path, 2000) for level in games.levels]
    lessons = training.Lessons(games, plans)
    assert games.gain(training.learn_by_imitation(games, lessons, 1, 2)) > 0.02
    assert games.gain(training.learn_a_rule(games, 0, 4)) > 0.02
    assert games.gain(training.learn_by_imitation(games, lessons, 1, 0)) == 0
    assert games.gain(training.learn_a_rule(games, 0, 0)) == 0


def test_imitation_fits_what_plans_do(training, games, tmp_path):
    plans = [training.teach(level, tmp_path, 2000) for level in games.levels]
    lessons = training.Lessons(games, plans)
    nothing = np.zeros(training.LAYOUT.size, np.float32)
    fitted = training.imitate(lessons, 0, steps=100)
    assert lessons.gradient(fitted)[0] < 0.7 * lessons.gradient(nothing)[0]
    served = [game.modes(plan) for game, plan in zip(games.games, plans, strict=True)]
    assert {0, 1, 4, 7} <= set(np.concatenate(served).tolist())


def test_weights_are_written_as_the_library_reads_them(training, tmp_path):
    weights = training.untrained()
    weights[3] = 0.1
    training.write_weights(weights, tmp_path / "weights.inc")
    lines = (tmp_path / "weights.inc").read_text().splitlines()[1:]
    read = [float(line.rstrip(",").removesuffix("F")) for line in lines]
    assert np.array_equal(np.array(read, np.float32), weights)
