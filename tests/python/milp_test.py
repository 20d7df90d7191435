"""The solver `milp`: plans that an integer programme drafts."""

import importlib.util
import threading
import time

import numpy as np
import pytest

import mallocgame as mg
from mallocgame._bounds.draft import draft_plan
from mallocgame._core import drafting_solver
from mallocgame._solve import MILP


def never() -> bool:
    return False


def test_it_finds_what_is_proven_best():
    program = mg.load_program("muzero_unroll_b32.tpu_v4i_16mib")
    bound = mg.bound(program, "milp")
    result = mg.solve(program, MILP, seconds=10)
    assert mg.validate(program, result.plan).ok
    assert result.report == mg.simulate(program, result.plan)
    assert bound.bound_ps <= result.report.latency_ps <= bound.bound_ps * 1.001
    assert result.found_by == MILP
    assert [point[1] for point in result.curve][-1] == result.report.latency_ps


@pytest.mark.parametrize(
    "name", ["wavernn_64steps_b8.tpu_v4i", "lstm_lm_train_b32_t16.tpu_v4i_16mib"]
)
def test_programs_with_loops(name):
    program = mg.load_program(name)
    result = mg.solve(program, MILP, seconds=15)
    assert mg.validate(program, result.plan).ok
    assert result.report.latency_ps < mg.simulate(program, program.xla_plan).latency_ps


def test_a_draft_serves_what_the_programme_serves():
    """Copies may be late by the channel's order, and offsets are none."""
    program = mg.load_program("muzero_unroll_b32.tpu_v4i_16mib")
    draft = draft_plan(program, program.hardware, 60, never)
    assert draft is not None and (draft.residences["offset"] == 0).all()
    assert mg.validate(program, draft).rule in ("none", "space")
    bound_ps = mg.bound(program, "milp").bound_ps
    assert bound_ps <= mg.simulate(program, draft).latency_ps <= bound_ps * 1.003


def test_without_a_limit_of_time_the_result_depends_on_the_seed_only():
    program = mg.load_program("muzero_unroll_b32.tpu_v4i_16mib")
    first, second = (mg.solve(program, MILP, seconds=0, evaluations=100, seed=3) for _ in range(2))
    assert first.plan == second.plan


def test_it_needs_highspy(program, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(mg.MallocGameError, match=r"pip install 'mallocgame\[bounds\]'"):
        mg.solve(program, MILP, seconds=1)
    assert mg.solve(program, "portfolio", seconds=0.1).report.latency_ps > 0


def test_a_portfolio_comes_as_near_without_it():
    program = mg.load_program("muzero_unroll_b32.tpu_v4i_16mib")
    result = mg.solve(program, "portfolio", seconds=20)
    assert result.found_by != MILP
    assert result.report.latency_ps <= mg.bound(program, "milp").bound_ps * 1.001


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_a_drafting_solver_may_take_part_in_a_portfolio(program, share):
    drafts = []
    member = drafting_solver("mine", lambda seconds, stopped: drafts.append(seconds), share)
    result = mg.solve(program, "portfolio", seconds=1, extra_solvers=[member])
    assert len(drafts) == (share > 0)
    assert mg.validate(program, result.plan).ok


def test_it_is_stopped():
    program = mg.load_program("llama_1b_decode_8l_b4_kv1024.tpu_v4i")
    begin, stop = time.monotonic(), threading.Event()
    timer = threading.Timer(2, stop.set)
    timer.start()
    result = mg.solve(program, MILP, seconds=60, stop=stop.is_set)
    assert mg.validate(program, result.plan).ok
    assert time.monotonic() - begin < 40


def test_what_a_callback_raises_ends_it():
    program = mg.load_program("muzero_unroll_b32.tpu_v4i_16mib")

    def fail(seconds, latency_ps):
        raise KeyError("mine")

    begin = time.monotonic()
    with pytest.raises(KeyError, match="mine"):
        mg.solve(program, MILP, seconds=60, progress=fail)
    assert time.monotonic() - begin < 30


def test_drafts_may_be_missing_or_wrong(program):
    none = drafting_solver("mine", lambda seconds, stopped: None, 0)
    assert mg.solve(program, "mine", seconds=0.2, extra_solvers=[none]).report.latency_ps > 0

    def wrong(seconds, stopped):
        raise ValueError("no such draft")

    with pytest.raises(mg.MallocGameError, match="no such draft"):
        mg.solve(program, "mine", seconds=0.2, extra_solvers=[drafting_solver("mine", wrong, 0)])


def test_plans_are_made_of_arrays():
    program = mg.load_program("gcn_dense_2048.tpu_v4i")
    plan = mg.solve(program, "greedy").plan
    arrays = plan.residences, plan.copies, plan.served_by
    assert mg.Plan.of(program, program.hardware, *arrays) == plan
    served_by = np.full_like(plan.served_by, len(plan.residences))
    with pytest.raises(mg.InvalidInputError, match="is served by residence"):
        mg.Plan.of(program, program.hardware, plan.residences, plan.copies, served_by)
