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
    weights = training.UNTRAINED.copy()
    with pytest.raises(mg.InvalidInputError, match=r"found 3 numbers, allowed: 12"):
        games.games[0].latency_ps(weights[:3])
    weights[5] = np.nan
    with pytest.raises(mg.InvalidInputError, match="as number 5, allowed: finite ones"):
        games.games[0].latency_ps(weights)


def test_it_learns_and_without_generations_nothing_is_learned(training, games):
    learned = training.learn(games.gain, 4, 0)
    assert games.gain(learned) > 0.02
    assert np.array_equal(learned, training.learn(games.gain, 4, 0))
    assert games.gain(training.learn(games.gain, 0, 0)) == 0


def test_weights_are_written_as_the_library_reads_them(training, tmp_path):
    written = tmp_path / "weights.inc"
    training.write_weights(_core._policy_weights(), written)
    assert written.read_text() == training.WEIGHTS.read_text()
    lines = written.read_text().splitlines()[1:]
    read = [float(line.removesuffix("F,")) for line in lines]
    assert np.array_equal(np.array(read, np.float32), _core._policy_weights())
