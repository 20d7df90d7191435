"""What came from another process goes on where it was: games, plans, problems, environments."""

import pickle

import numpy as np
import pytest
from conftest import again, half_played

import mallocgame as mg

PROGRAM = "wavernn_64steps_b8.tpu_v4i"


@pytest.fixture(params=["time", "priority"])
def game(request):
    program = mg.load_program(PROGRAM)
    hardware = program.hardware.replace(fast_bytes=4 << 20, max_preloads=2)
    return mg.Game(program, hardware, min_buffer_bytes=1024, seed=7, game=request.param)


def test_positions_go_on_where_they_were(game):
    state = half_played(game)
    other = again(state)
    assert other.actions.tolist() == state.actions.tolist()
    assert (other.latency_ps, other.last_saved_ps) == (state.latency_ps, state.last_saved_ps)
    assert other.game.hardware == game.hardware and other.game.kind == game.kind
    while not state.is_terminal():
        action = state.legal_actions()[-1]
        assert other.apply(action) == state.apply(action)
    assert other.is_terminal() and other.plan() == state.plan()
    other.undo()
    assert state.num_decisions == other.num_decisions + 1


def test_a_game_keeps_its_options():
    program = mg.load_program(PROGRAM)
    options = mg.TimeGame(
        paper_actions=True, min_buffer_bytes=2048, keep_free=0.25, forbidden=[3, 5]
    )
    game = mg.Game(program, None, options, 11)
    other = again(game)
    assert (other.num_actions, other.options, other.seed) == (3, options, 11)
    assert other.program.fingerprint == program.fingerprint
    kept = again((game, game.initial_state()))
    assert kept[1].game is kept[0]
    plans = [mg.solve(one, "greedy", seconds=0).plan for one in (game, other)]
    assert plans[0] == plans[1]
    assert plans[0] != mg.solve(program, "greedy", seconds=0).plan
    order = again(mg.Game(program, game="priority", candidates=2, bytes_weight=0.5, time_weight=2))
    first = mg.Game(program, game="priority", candidates=2, bytes_weight=0.5, time_weight=2)
    assert order.num_actions == first.num_actions == 10
    assert again(mg.Game(program, game="priority", exact_stalls=True)).options.exact_stalls
    asked = [one.initial_state().asked_about() for one in (order, first)]
    assert asked[0] == asked[1] != mg.Game(program, game="priority").initial_state().asked_about()


@pytest.mark.parametrize("solver", ["all-main", "packing", "xla-assigned"])
def test_plans_and_reports_are_equal(solver):
    program = mg.load_program(PROGRAM)
    result = mg.solve(program, solver, seconds=0.1)
    plan, report = again(result.plan), again(result.report)
    assert plan == result.plan and report == result.report
    assert plan.to_json(program) == result.plan.to_json(program)
    assert mg.simulate(program, plan) == report
    assert np.array_equal(report.stall_at_ps, result.report.stall_at_ps)
    names = [name for name in dir(report) if name.endswith(("_ps", "_bytes"))]
    assert len(names) >= 14
    for name in names:
        if not name.startswith("_"):
            assert getattr(report, name) == pytest.approx(getattr(result.report, name))


def test_a_pickled_game_is_small():
    game = mg.Game(mg.load_program(PROGRAM))
    states = [half_played(game) for _ in range(100)]
    one, all_of_them = len(pickle.dumps(states[0])), len(pickle.dumps(states))
    assert one < len(game.program.to_bytes()) + 2000
    assert all_of_them < one + 100 * 200


def test_placement_problems_are_equal():
    program = mg.load_program(PROGRAM)
    levels = [("near", 1 << 20, 10**11), ("far", 1 << 34, 10**10)]
    own = mg.placement.Hierarchy("own", levels, 10**13, engines=3, staging_bytes=1 << 15)
    for problem in (
        mg.placement.problem(program, "nnp_i"),
        mg.placement.problem(program, own),
        mg.placement.problem(program),
        mg.placement.Placement.of_game(mg.Game(program, keep_free=0.25)),
    ):
        other = again(problem)
        maps = np.random.default_rng(0).integers(
            0, len(problem.level_names), (20, problem.num_nodes, 2), dtype=np.uint8
        )
        assert other.baseline_ps == problem.baseline_ps
        assert other.level_names == problem.level_names
        assert (other.game is None) == (problem.game is None)
        for mine, its in zip(problem.evaluate_many(maps), other.evaluate_many(maps), strict=True):
            assert mine.tolist() == its.tolist()
    assert again(own).levels == own.levels and again(own).name == "own"
    assert (again(own).engines, again(own).staging_bytes) == (3, 1 << 15)


def test_prices_are_equal():
    prices = mg.bounds.Prices([0.5, 0.25], [1.0, 0.0])
    other = again(prices)
    assert other.space_ps_per_byte.tolist() == [0.5, 0.25]
    assert other.channel_ps_per_ps.tolist() == [1.0, 0.0]


# --- environments

SEVERAL = (PROGRAM, "mlp_train_adam_b512.tpu_v4i", "gcn_dense_2048.tpu_v4i")


def same(mine, its):
    """Whether two answers of an environment are the same, arrays number by number."""
    if isinstance(mine, dict):
        return mine.keys() == its.keys() and all(same(mine[key], its[key]) for key in mine)
    if isinstance(mine, tuple):
        return len(mine) == len(its) and all(map(same, mine, its))
    if isinstance(mine, np.ndarray):
        if mine.dtype == object:
            return all(map(same, mine, its))
        return np.array_equal(mine, its) and mine.dtype == its.dtype
    return mine == its


@pytest.mark.parametrize("kind", ["time", "priority"])
def test_environments_go_on_where_they_were(kind):
    pytest.importorskip("gymnasium")
    env = mg.MallocGameEnv(list(SEVERAL), observation="dict", game=kind)
    env.reset(seed=3)
    env.action_space.seed(5)
    for _ in range(4):  # of several, so that what is drawn next depends on how many there were
        env.reset()
    for _ in range(6):
        env.step(env.action_space.sample())
    data = pickle.dumps(env)
    other = pickle.loads(data)
    assert len(data) < sum(len(game.program.to_bytes()) for game in env.games) + 8000
    assert other.state.actions.tolist() == env.state.actions.tolist()
    assert same(other.action_masks(), env.action_masks())
    for _ in range(400):
        action = env.action_space.sample()
        assert other.action_space.sample() == action
        mine, its = env.step(action), other.step(action)
        assert same(mine, its)
        if mine[2]:
            assert same(env.reset(), other.reset())
    assert other.game.program.fingerprint == env.game.program.fingerprint


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
@pytest.mark.parametrize("assign", ["drawn", "fixed"])
def test_many_environments_go_on_where_they_were(mode, assign):
    pytest.importorskip("gymnasium")
    envs = mg.VectorEnv(8, list(SEVERAL), observation="compact", assign=assign, autoreset_mode=mode)
    chance = np.random.default_rng(0)

    def actions():
        masks = envs.action_masks()
        return np.array([chance.choice(np.flatnonzero(one)) if one.any() else 0 for one in masks])

    envs.reset(seed=7)
    ends = 0
    for step in range(300):
        if step % 60 == 37:
            data = pickle.dumps(envs)
            other = pickle.loads(data)
            assert len(data) < sum(len(game.program.to_bytes()) for game in envs.games) + 8000
            assert same(other.action_masks(), envs.action_masks())
        chosen = actions()
        mine = envs.step(chosen)
        if step % 60 >= 37:
            assert same(mine, other.step(chosen))
        if mode == "Disabled" and mine[2].any():
            asked = {"options": {"reset_mask": mine[2]}}
            first = envs.reset(**asked)
            assert step % 60 < 37 or same(first, other.reset(**asked))
        ends += mine[2].sum()
    assert ends > 8


def test_other_environments_go_on_where_they_were():
    gymnasium = pytest.importorskip("gymnasium")
    dm_env = pytest.importorskip("mallocgame.envs.dm_env")
    made = gymnasium.make("mallocgame/PriorityGame-v0", program=PROGRAM)
    made.reset(seed=0)
    made.step(0)
    assert same(again(made).step(0), made.step(0))
    timed = dm_env.Environment(PROGRAM, seed=1)
    timed.reset()
    timed.step(0)
    assert same(tuple(again(timed).step(0)), tuple(timed.step(0)))
    placed = gymnasium.make("mallocgame/Placement-v0", program=PROGRAM)
    placed.reset(seed=0)
    other = again(placed)
    placed.action_space.seed(1)
    action = placed.action_space.sample()
    assert same(other.step(action), placed.step(action))
    with pytest.raises(mg.errors.GameOverError):
        other.unwrapped.step(action)
