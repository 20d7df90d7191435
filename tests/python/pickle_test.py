"""What goes from process to process: programs, games, positions, plans and reports."""

import pickle

import numpy as np
import pytest

import mallocgame as mg

PROGRAM = "wavernn_64steps_b8.tpu_v4i"


def again(value):
    return pickle.loads(pickle.dumps(value))


@pytest.fixture(params=["time", "order"])
def game(request):
    program = mg.load_program(PROGRAM)
    hardware = program.hardware.replace(fast_bytes=4 << 20, max_preloads=2)
    return mg.Game(program, hardware, min_buffer_bytes=1024, seed=7, game=request.param)


def half_played(game):
    state = game.initial_state()
    choose = np.random.default_rng(1)
    for _ in range(10):
        state.apply(int(choose.choice(state.legal_actions())))
    return state


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
    game = mg.Game(program, None, "paper", 2048, 0.25, [3, 5], [8], 11)
    other = again(game)
    assert (other.num_actions, other.min_buffer_bytes, other.seed) == (3, 2048, 11)
    assert other.program.fingerprint == program.fingerprint
    kept = again((game, game.initial_state()))
    assert kept[1].game is kept[0]
    plans = [mg.solve(one, "greedy", seconds=0).plan for one in (game, other)]
    assert plans[0] == plans[1]
    assert plans[0] != mg.solve(program, "greedy", seconds=0).plan
    order = again(mg.Game(program, game="order", candidates=2, bytes_weight=0.5, time_weight=2))
    first = mg.Game(program, game="order", candidates=2, bytes_weight=0.5, time_weight=2)
    assert order.num_actions == first.num_actions == 10
    asked = [one.initial_state().asked_about() for one in (order, first)]
    assert asked[0] == asked[1] != mg.Game(program, game="order").initial_state().asked_about()


@pytest.mark.parametrize("solver", ["all-main", "priority", "xla-assigned"])
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
