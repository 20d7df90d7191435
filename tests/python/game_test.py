"""Game and State as Python sees them."""

import copy
import random

import numpy as np
import pytest

import mallocgame as mg
from mallocgame import games


def play(state: mg.State, seed: int) -> float:
    chance = random.Random(seed)
    total = 0.0
    while not state.is_terminal():
        total += state.apply(chance.choice(state.legal_actions()))
    return total


def test_block_of_the_documentation(program):
    state = mg.Game(program).initial_state()
    while not state.is_terminal():
        state.apply(state.legal_actions()[0])
    plan = state.plan()
    verdict = mg.validate(program, plan)
    report = mg.simulate(program, plan)
    result = mg.solve(program, solver="greedy", seconds=5, seed=0)
    assert verdict.ok and verdict.rule == "none" and verdict.message == ""
    assert report.latency_ps == state.latency_ps
    assert result.report.latency_ps <= result.report.all_main_ps


@pytest.mark.parametrize("kind", ["time", "priority"])
@pytest.mark.parametrize("seed", range(5))
def test_rewards_add_up_to_what_the_simulator_says(program, seed, kind):
    game = mg.Game(program, game=kind)
    assert game.kind == kind
    state = game.initial_state()
    saved, chance = 0, random.Random(seed)
    total = 0.0
    while not state.is_terminal():
        total += state.apply(chance.choice(state.legal_actions()))
        saved += state.last_saved_ps
    report = mg.simulate(program, state.plan())
    assert mg.validate(program, state.plan()).ok
    assert game.all_main_ps - saved == report.latency_ps == state.latency_ps
    assert total == pytest.approx(1 - report.latency_ps / report.all_main_ps, abs=1e-9)


@pytest.mark.parametrize("kind", ["time", "priority"])
def test_actions_are_the_masks(program, kind):
    game = mg.Game(program, game=kind)
    state = game.initial_state()
    chance = random.Random(0)
    while not state.is_terminal():
        mask = state.legal_mask()
        assert mask.dtype == np.bool_ and mask.shape == (game.num_actions,)
        legal = state.legal_actions()
        assert legal == list(np.flatnonzero(mask))
        for action in set(range(game.num_actions)) - set(legal):
            before = state.latency_ps, state.num_decisions
            with pytest.raises(mg.errors.InvalidActionError):
                state.apply(action)
            assert (state.latency_ps, state.num_decisions) == before
        state.apply(chance.choice(legal))
    assert (
        state.legal_actions() == []
        and not state.legal_mask().any()
        and state.current_access() is None
    )
    assert state.num_decisions == len(state.actions) <= game.max_decisions


@pytest.mark.parametrize("kind", ["time", "priority"])
def test_clone_and_undo(program, kind):
    state = mg.Game(program, game=kind).initial_state()
    for _ in range(10):
        state.apply(state.legal_actions()[-1])
    before = state.to_string(), state.latency_ps, state.plan()
    clones = [state.clone(), copy.copy(state), copy.deepcopy(state)]
    for clone in clones:
        play(clone, 1)
    assert (state.to_string(), state.latency_ps, state.plan()) == before
    assert clones[0].plan() == clones[1].plan() == clones[2].plan()
    for action in state.legal_actions():
        state.apply(action)
        state.undo()
        assert (state.to_string(), state.latency_ps, state.plan()) == before


@pytest.mark.parametrize("kind", ["time", "priority"])
def test_errors_are_also_the_built_in_ones(program, kind):
    state = mg.Game(program, game=kind).initial_state()
    with pytest.raises(mg.errors.InvalidActionError):
        state.undo()
    for action in (-1, state.game.num_actions, 2**40):
        with pytest.raises(ValueError, match="allowed"):
            state.apply(action)
    play(state, 0)
    with pytest.raises(mg.errors.GameOverError):
        state.apply(mg.Action.DROP)
    with pytest.raises(RuntimeError):
        state.apply(mg.Action.DROP)
    with pytest.raises(mg.MallocGameError):
        state.apply(mg.Action.DROP)


@pytest.mark.parametrize(
    "options",
    [
        {"actions": "some"},
        {"min_buffer_bytes": -1},
        {"keep_free": 1.0},
        {"keep_free": float("nan")},
        {"forbidden": [10**6]},
        {"game": "space"},
        {"game": "priority", "candidates": 0},
        {"game": "priority", "candidates": 52},
        {"game": "priority", "actions": "paper"},
        {"game": "priority", "bytes_weight": -1.0},
        {"game": "priority", "exact_stalls": 1},
        {"game": "priority", "main_bytes": 5},
        {"game": mg.PriorityGame(), "candidates": 2},
        {"candidates": 2},
        {"game": "priority", "time_weight": 3.0},
    ],
)
def test_bad_options(program, options):
    with pytest.raises(mg.InvalidInputError):
        mg.Game(program, **options)


def test_a_game_is_an_object_that_is_taken_whole(program):
    for chosen, named in (
        (mg.TimeGame(paper_actions=True, min_buffer_bytes=0), {"actions": "paper"}),
        (mg.PriorityGame(candidates=8, min_buffer_bytes=0), {"game": "priority", "candidates": 8}),
        (mg.ScheduleGame(candidates=2, min_buffer_bytes=0), {"game": "schedule", "candidates": 2}),
    ):
        game = mg.Game(program, game=chosen)
        assert game.options == chosen and game.kind == chosen.name
        assert mg.Game(program, min_buffer_bytes=0, **named).options == chosen
        assert mg.Game(program, game=game.options).options == chosen
    assert mg.Game(program).options.min_buffer_bytes == mg.Game(program).min_buffer_bytes
    with pytest.raises(TypeError, match="no game has the option 'runs'"):
        mg.Game(program, runs=8)
    with pytest.raises(
        mg.InvalidInputError, match="candidates: found 2 for the time game, allowed"
    ):
        mg.Game(program, candidates=2)
    with pytest.raises(mg.InvalidInputError, match="but the priority game given has its own"):
        mg.Game(program, game=mg.PriorityGame(), candidates=2)


def test_the_usual_options_are_those_of_the_core(program):
    for name, usual in games.GAMES.items():
        made = mg.Game(program, game=usual(min_buffer_bytes=16 << 10)).options
        assert made == usual(min_buffer_bytes=16 << 10), name


def test_paper_actions(program):
    game = mg.Game(program, actions="paper")
    assert game.num_actions == 3
    state = game.initial_state()
    while not state.is_terminal():
        assert mg.Action.COPY_EARLY not in state.legal_actions()
        state.apply(state.legal_actions()[-1])


@pytest.mark.parametrize("solver", ["greedy", "rent"])
def test_a_penalty_that_nobody_pays_changes_no_game(solver):
    wavernn = mg.load_program("wavernn_64steps_b8.tpu_v6e")
    latencies = {
        mg.solve(
            wavernn, solver, game=mg.TimeGame(illegal_penalty=penalty), evaluations=20, seconds=0
        ).report.latency_ps
        for penalty in (0.0, 0.1)
    }
    assert len(latencies) == 1


def test_dead_ends_and_penalties_go_into_logs(program):
    game = mg.Game(program, drop_backup=True, illegal_penalty=0.1)
    rng, state = random.Random(1), game.initial_state()
    while not state.is_terminal():
        assert len(state.legal_actions()) == 4
        state.apply(rng.choice(state.legal_actions()))
    assert mg.replay(mg.record(state), program).same


def test_actions_of_the_priority_game(program):
    assert mg.Game(program).action_names == ["Drop", "Copy", "NoCopy", "CopyEarly"]
    game = mg.Game(program, game="priority", candidates=2)
    assert game.options.candidates == 2 and game.num_actions == 10
    assert game.action_names == [
        f"{mode} {candidate}"
        for candidate in (0, 1)
        for mode in ("Skip", "Late", "Early", "Preload", "Split")
    ]
    state = game.initial_state()
    weighted = mg.Game(program, game="priority", candidates=2, bytes_weight=0.0, time_weight=0.0)
    assert weighted.initial_state().to_string() != state.to_string()
    assert state.current_access() is None
    late = game.action_names.index("Late 0")
    while late not in state.legal_actions():
        state.apply(game.action_names.index("Split 0"))
    assert "Late" in state.to_string() and len(state.plan().residences) == 0
    state.apply(late)
    assert len(state.plan().residences) == 1


def test_forbidden_and_keep_free(program):
    free = mg.solve(mg.Game(program), "greedy", seconds=0)
    fast = np.flatnonzero(free.plan.served_by >= 0)
    assert len(fast) > 0
    game = mg.Game(program, forbidden=[int(fast[0])], keep_free=0.5)
    result = mg.solve(game, "greedy", seconds=0)
    assert result.plan.served_by[fast[0]] == -1
    assert result.report.peak_fast_bytes <= game.hardware.fast_bytes // 2


def test_a_game_outlives_the_names_of_its_parts(program):
    state = mg.Game(mg.Program.from_bytes(program.to_bytes())).initial_state()
    play(state, 0)
    assert mg.validate(state.game.program, state.plan()).ok
