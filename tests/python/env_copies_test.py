"""A deep copy of an environment goes on by itself, and shares what never changes."""

import copy

import numpy as np
import pytest
from pickle_test import same

import mallocgame as mg

gymnasium = pytest.importorskip("gymnasium")

PROGRAM = "wavernn_64steps_b8.tpu_v4i"


@pytest.mark.parametrize("game", ["MallocGame", "PriorityGame", "ScheduleGame"])
def test_a_wrapped_environment(game):
    wrappers = gymnasium.wrappers
    made = gymnasium.make(f"mallocgame/{game}-v0", program="resnet50_b1.tpu_v4i")
    env = wrappers.RecordEpisodeStatistics(wrappers.TimeLimit(made, 60))
    env.reset(seed=1)
    env.action_space.seed(2)
    for _ in range(20):
        env.step(env.action_space.sample())
    before = env.unwrapped.state.actions.tolist()
    fork, other = copy.deepcopy(env), copy.deepcopy(env)
    assert fork.unwrapped.game is env.unwrapped.game
    fork.step(fork.action_space.sample())
    assert env.unwrapped.state.actions.tolist() == before
    fork.close()
    for step in range(21, 61):
        action = env.action_space.sample()
        assert other.action_space.sample() == action
        mine, its = env.step(action), other.step(action)
        statistics = [one[4].pop("episode", {}) for one in (mine, its)]
        assert same(mine, its)
        if mine[2] or mine[3]:
            assert statistics[0]["l"] == statistics[1]["l"] == step
            assert statistics[0]["r"] == statistics[1]["r"]
            break


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
@pytest.mark.parametrize("writes_new_arrays", [True, False])
def test_many_environments(mode, writes_new_arrays):
    programs = [PROGRAM, "gcn_dense_2048.tpu_v4i"]
    envs = mg.VectorEnv(6, programs, autoreset_mode=mode, copy=writes_new_arrays)

    def actions():
        return envs.action_space.sample() if mode != "Disabled" else envs.action_masks().argmax(1)

    def begin_again(these, ended):
        return these.reset(options={"reset_mask": ended}) if mode == "Disabled" else None

    envs.reset(seed=3)
    for _ in range(30):
        ended = envs.step(actions())[2]
        if ended.any():
            begin_again(envs, ended)
    fork = copy.deepcopy(envs)
    assert all(mine is its for mine, its in zip(envs.games, fork.games, strict=True))
    at = envs.state(0).actions.tolist()
    aside = copy.deepcopy(envs)
    aside.step(aside.action_space.sample() if mode != "Disabled" else actions())
    assert envs.state(0).actions.tolist() == at
    ends = 0
    for _ in range(40):
        chosen = actions()
        if mode != "Disabled":
            assert np.array_equal(fork.action_space.sample(), chosen)
        mine, its = envs.step(chosen), fork.step(chosen)
        assert same(mine, its)
        if mine[2].any():
            ended = mine[2].copy()
            ends += ended.sum()
            assert same((begin_again(envs, ended),), (begin_again(fork, ended),))
    assert ends > 0


def test_what_never_changes_is_its_own_copy():
    program = mg.load_program(PROGRAM)
    problem = mg.placement.problem(program, "nnp_i")
    hierarchy = mg.placement.Hierarchy.preset("nnp_i")
    for one in (program, program.hardware, mg.Game(program), problem, hierarchy):
        assert copy.deepcopy(one) is one and copy.copy(one) is one


def test_a_placement():
    env = gymnasium.make("mallocgame/Placement-v0", program=PROGRAM)
    env.reset(seed=0)
    fork = copy.deepcopy(env)
    assert fork.unwrapped.placement is env.unwrapped.placement
    action = env.action_space.sample()
    _, begun = env.reset()
    mine, its = env.step(action), fork.step(action)
    assert same(mine, its) and mine[4].keys() == begun.keys()
