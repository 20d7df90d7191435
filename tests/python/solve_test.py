"""solve, record and replay."""

import _thread
import os
import signal
import threading

import numpy as np
import pytest

import mallocgame as mg
from mallocgame._core import plan_like_xla


@pytest.mark.parametrize("solver", mg.solver_names())
def test_every_solver_gives_a_valid_plan(program, solver):
    result = mg.solve(program, solver, seconds=2, evaluations=20, seed=1)
    assert mg.validate(program, result.plan).ok
    assert result.report == mg.simulate(program, result.plan)
    assert result.status in ("heuristic", "optimal", "stopped")
    assert result.bound_ps is None or result.bound_ps <= result.report.latency_ps


@pytest.mark.parametrize("solver", ["greedy", "random"])
def test_same_seed_same_plan(program, solver):
    first, second = (mg.solve(program, solver, seconds=0, evaluations=10, seed=7) for _ in range(2))
    assert first.plan == second.plan and first.report == second.report


def test_progress_and_its_exceptions(program):
    calls = []
    mg.solve(
        program, "random", seconds=0, evaluations=30, progress=lambda *call: calls.append(call)
    )
    assert calls and all(seconds >= 0 and latency_ps > 0 for seconds, latency_ps in calls)
    assert [latency_ps for _, latency_ps in calls] == sorted((ps for _, ps in calls), reverse=True)

    def fail(seconds, latency_ps):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        mg.solve(program, "random", seconds=60, progress=fail)


@pytest.fixture
def ctrl_c():
    """Ctrl-C raises KeyboardInterrupt.

    It does so too where the test run was started with it ignored (in the background).
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_interrupt_ends_a_solver(program):
    """It comes while the solver is at work, which would not end by itself."""
    timer = threading.Timer(0.3, _thread.interrupt_main)

    def begun(*_: object) -> None:
        if timer.ident is None:  # it has not begun
            timer.start()

    with pytest.raises(KeyboardInterrupt):
        mg.solve(program, "random", seconds=0, evaluations=1 << 30, progress=begun)
    timer.join()


def test_record_and_replay(program, tmp_path):
    result = mg.solve(program, "greedy", seconds=0, seed=3)
    log = mg.record(result)
    assert (log.solver, log.seed, log.program_fingerprint) == ("greedy", 3, program.fingerprint)
    assert log.report.latency_ps == result.report.latency_ps and log.plan == result.plan
    assert log.report.all_main_ps - log.saved_ps.sum() == log.report.latency_ps
    path = tmp_path / "game.mgr"
    mg.save_log(log, path)
    again = mg.load_log(path)
    assert again.to_bytes() == log.to_bytes() == path.read_bytes()
    assert mg.replay(again).same and mg.replay(again, program).same
    with pytest.raises(mg.InvalidInputError):
        mg.replay(again, mg.load_program("gcn_dense_2048.tpu_v4i"))
    with pytest.raises(mg.errors.MissingFileError):
        mg.load_log(tmp_path / "none.mgr")
    with pytest.raises(mg.InvalidInputError):
        mg.files.GameLog.from_bytes(log.to_bytes()[:-5])


@pytest.mark.parametrize("kind", ["time", "priority"])
def test_a_game_in_which_nothing_is_decided_is_logged(program, kind):
    game = mg.Game(program, program.hardware.replace(fast_bytes=4096), game=kind)
    result = mg.solve(game, "greedy", seconds=0)
    assert game.initial_state().is_terminal() and len(result.actions) == 0
    log = mg.record(result)
    assert log.plan == result.plan and len(log.actions) == 0
    assert mg.replay(mg.files.GameLog.from_bytes(log.to_bytes()), program).same
    # This one uses buffers that the game doesn't ask about.
    better = mg.solve(game, "xla-heuristic", seconds=0)
    assert better.plan != result.plan
    with pytest.raises(mg.InvalidInputError, match="'xla-heuristic' was not made by playing"):
        mg.record(better)


def test_record_refuses_half_a_game(program):
    game = mg.Game(program, seed=5)
    state = game.initial_state()
    with pytest.raises(mg.InvalidInputError):
        mg.record(state)
    with pytest.raises(mg.InvalidInputError, match="allowed"):
        mg.record(game, [9])
    with pytest.raises(mg.InvalidInputError):
        mg.record(game)
    while not state.is_terminal():
        state.apply(state.legal_actions()[0])
    assert mg.record(state).seed == 5


def test_a_solver_that_asks_about_smaller_buffers_is_logged_in_its_own_game(tmp_path):
    program = mg.load_program("wavernn_64steps_b8.tpu_v5e")
    game = mg.Game(program, min_buffer_bytes=16 << 10)
    result = mg.solve(game, solver="rent", seconds=0)
    assert result.game.min_buffer_bytes < game.min_buffer_bytes
    log = mg.record(result)
    assert log.plan == result.plan
    assert mg.replay(log, program).same


def test_portfolio_says_who_found_it_and_when():
    program = mg.load_program("gcn_dense_2048.tpu_v4i")
    result = mg.solve(program, solver="portfolio", seconds=1)
    assert result.found_by.split(",")[0] in mg.solver_names()
    latencies = [latency_ps for _, latency_ps, _ in result.curve]
    assert latencies == sorted(latencies, reverse=True)
    assert latencies[-1] == result.report.latency_ps
    xla = mg.solve(program, solver="portfolio-xla", seconds=1)
    assert xla.report.latency_ps <= mg.simulate(program, program.xla_plan).latency_ps


def test_priority_tries_to_do_without_what_fills_fast_memory():
    """Here a buffer of 125 of 128 MiB is read last. Plans without it are better in the end."""
    program = mg.load_program("llama_1b_decode_8l_b4_kv1024.tpu_v4i")
    result = mg.solve(program, "packing", seconds=0, evaluations=2000)
    assert mg.validate(program, result.plan).ok
    assert result.report.latency_ps < 1.75e9  # with it, 2.03e9
    assert 2000 <= result.evaluations < 2100


def test_portfolio_has_the_plan_of_rent_at_once():
    program = mg.load_program("mlp_train_adam_b512.tpu_v4i")
    rent = mg.solve(program, solver="rent")
    usable = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(usable)})  # On another core another solver may be first.
    try:
        result = mg.solve(program, solver="portfolio", seconds=0.5)
    finally:
        os.sched_setaffinity(0, usable)
    by_rent = [latency_ps for _, latency_ps, solver in result.curve if solver == "rent"]
    assert result.curve[0][2] == "rent" and by_rent[-1] == rent.report.latency_ps
    assert result.report.latency_ps < rent.report.latency_ps


def threads_of_portfolio():
    """How many threads portfolio starts, seen from within its calls of `progress`."""
    before = set(os.listdir("/proc/self/task"))
    started = set()
    mg.solve(
        mg.load_program("mlp_train_adam_b512.tpu_v4i"),
        solver="portfolio",
        seconds=0.5,
        progress=lambda *_: started.update(set(os.listdir("/proc/self/task")) - before),
    )
    return len(started)


def test_portfolio_keeps_to_the_cores_it_may_use():
    usable = os.sched_getaffinity(0)
    on_all = threads_of_portfolio()
    os.sched_setaffinity(0, {min(usable)})
    try:
        on_one = threads_of_portfolio()
    finally:
        os.sched_setaffinity(0, usable)
    assert on_all - on_one == len(usable) - 1


def test_the_kind_of_game_is_chosen_once():
    program = mg.load_program("moe_transformer_2l_b4_s128.tpu_v4i")
    result = mg.solve(program, "greedy", game="priority")
    assert result.game.kind == "priority" and mg.replay(mg.record(result), program)
    assert mg.solve(program, "greedy").game.kind == "time"
    game = mg.Game(program, game="priority")
    assert mg.solve(game, "greedy").report.latency_ps == result.report.latency_ps
    with pytest.raises(mg.InvalidInputError, match="has its game already"):
        mg.solve(game, "greedy", game="priority")
    with pytest.raises(mg.InvalidInputError, match="time game only"):
        mg.solve(program, "exact", game="priority")


def test_the_heuristic_tells_its_order():
    program = mg.load_program("mlp_train_adam_b512.tpu_v5e")
    plan, order = plan_like_xla(mg.Game(program))
    assert plan == mg.solve(program, "xla-heuristic", seconds=0).plan
    assert len(set(order)) == len(order)
    assert set(program.accesses["buffer"][plan.served_by >= 0]) <= set(order)


def test_stopped_solvers_have_a_plan(program):
    asked = []

    def stop():
        asked.append(len(asked))
        return len(asked) > 2

    result = mg.solve(program, "anneal", seconds=0, stop=stop)
    assert result.status == "stopped" and mg.validate(program, result.plan).ok
    with pytest.raises(ZeroDivisionError):
        mg.solve(program, "anneal", seconds=0, stop=lambda: bool(1 / 0))


def test_plans_are_made_of_arrays(program):
    plan = mg.solve(program, "greedy").plan
    arrays = plan.residences, plan.copies, plan.served_by
    assert mg.Plan.of(program, program.hardware, *arrays) == plan
    served_by = np.full_like(plan.served_by, len(plan.residences))
    with pytest.raises(mg.InvalidInputError, match="is served by residence"):
        mg.Plan.of(program, program.hardware, plan.residences, plan.copies, served_by)


@pytest.mark.parametrize(
    ("solver", "game"),
    [
        ("greedy", "time"),
        ("random", "priority"),
        ("rent", "time"),
        ("styles", "time"),
        ("anneal", "priority"),
        ("mcts", "time"),
        ("mcts", "priority"),
    ],
)
@pytest.mark.parametrize("games", [1, 8, 64])
def test_warm_starts_count_as_games(solver, game, games):
    program = mg.load_program("mlp_train_adam_b512.tpu_v6e")
    result = mg.solve(program, solver, seconds=0, evaluations=games, game=game)
    assert 1 <= result.evaluations <= games
