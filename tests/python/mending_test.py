"""Refused plans are mended around what was at fault, without a new search."""

import numpy as np
import pytest

import mallocgame as mg
from mallocgame._core import PREFETCH, READ
from mallocgame.xla.compiler_errors import CompilerError
from mallocgame.xla.mending import at_fault, mended


@pytest.fixture(scope="module")
def program():
    return mg.load_program("mlp_train_adam_b512.tpu_v6e")


@pytest.fixture(scope="module")
def plan(program):
    return mg.solve(program, "portfolio", seconds=0, evaluations=200).plan


def test_reads_go_to_main_memory_alone(program, plan):
    """Other instructions have the placements that they had, where the value is in both memories."""
    fetched = set(plan.copies["residence"][plan.copies["kind"] == PREFETCH].tolist())
    kinds = program.accesses["kind"]
    of_ticks = program.accesses["tick"]
    found = 0
    for tick in np.unique(of_ticks[plan.served_by >= 0]):
        here = np.flatnonzero((of_ticks == tick) & (plan.served_by >= 0))
        if any(kinds[a] != READ or plan.served_by[a] not in fetched for a in here):
            continue
        error = CompilerError("late").about("late", [program.instruction_names[tick]])
        made = mended(error, program, plan, program.hardware)
        changed = np.flatnonzero((made.served_by >= 0) != (plan.served_by >= 0))
        assert changed.tolist() == here.tolist()
        assert mg.validate(program, made).ok
        found += 1
    assert found >= 3


def test_main_memory_serves_what_an_instruction_can_not_have(program, plan):
    tick = int(program.accesses["tick"][np.flatnonzero(plan.served_by >= 0)[0]])
    error = CompilerError("refused").about("code", [program.instruction_names[tick]])
    assert len(at_fault(error, program, plan)) > 0
    made = mended(error, program, plan, program.hardware)
    assert mg.validate(program, made).ok
    assert len(at_fault(error, program, made)) == 0
    assert (made.served_by >= 0).any()
    assert mended(CompilerError("of nothing"), program, plan, program.hardware) is None
