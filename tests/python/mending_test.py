"""Refused plans are mended around what was at fault, without a new search."""

import numpy as np
import pytest

import mallocgame as mg
from mallocgame.xla.compiler_errors import CompilerError
from mallocgame.xla.compiler_messages import CAPACITY
from mallocgame.xla.mending import at_fault, beyond_ends, ends_at, mended


@pytest.fixture(scope="module")
def program():
    return mg.load_program("mlp_train_adam_b512.tpu_v6e")


@pytest.fixture(scope="module")
def plan(program):
    return mg.solve(program, "portfolio", seconds=0, evaluations=200).plan


def test_ends_are_those_of_the_residences(program, plan):
    ends = ends_at(program, plan)
    for residence in plan.residences:
        top = residence["offset"] + program.buffers["size_bytes"][residence["buffer"]]
        assert ends[residence["begin"] : residence["end"]].min() >= top
    assert ends.max() <= program.hardware.fast_bytes


def test_what_lies_too_high_goes_where_an_instruction_takes_bytes_for_itself(program, plan):
    ends = ends_at(program, plan)
    tick = int(ends.argmax())
    name, limit = program.instruction_names[tick], int(ends[tick]) - (1 << 20)
    allowed = {name: limit}
    ticks, beyond = beyond_ends(program, plan, allowed)
    assert ticks.tolist() == [tick] and beyond.tolist() == [1 << 20]
    error = CompilerError("too high").about(CAPACITY, [name], exceeded_bytes=1 << 20)
    made = mended(error, program, plan, program.hardware, allowed)
    assert mg.validate(program, made).ok
    assert not len(beyond_ends(program, made, allowed)[0])
    gone = len(plan.residences) - len(made.residences)
    assert 0 < gone < len(plan.residences) / 2
    assert mended(error, program, made, program.hardware, allowed) is None


def test_main_memory_serves_what_an_instruction_can_not_have(program, plan):
    tick = int(program.accesses["tick"][np.flatnonzero(plan.served_by >= 0)[0]])
    error = CompilerError("refused").about("code", [program.instruction_names[tick]])
    assert len(at_fault(error, program, plan)) > 0
    made = mended(error, program, plan, program.hardware, {})
    assert mg.validate(program, made).ok
    assert len(at_fault(error, program, made)) == 0
    assert (made.served_by >= 0).any()
    assert mended(CompilerError("of nothing"), program, plan, program.hardware, {}) is None
