"""Refusals are data: what programs do with them depends on no word of a message."""

import json
import pathlib
import pickle

import numpy as np
import pytest

import mallocgame as mg

pytestmark = pytest.mark.full

mgx = pytest.importorskip("mallocgame.xla")

from mallocgame.xla.compiler_messages import ROUNDING_BYTES, read_last_words, read_refusal
from mallocgame.xla.mending import at_fault

SAMPLES = json.loads((pathlib.Path(__file__).parent / "compiler_messages.json").read_text())


@pytest.mark.parametrize("sample", SAMPLES["refusals"], ids=lambda sample: sample["how"])
def test_what_the_compiler_has_said(sample):
    said = read_refusal(sample["said"])
    assert said.line == " ".join(sample["said"].split())
    for field in ("rule", "used_bytes", "limit_bytes"):
        assert getattr(said, field) == sample[field]
    assert said.instructions == tuple(sample["instructions"])
    error = mgx.compiler.CompilerRefusedError.saying(said)
    assert (error.rule, error.instructions) == (said.rule, said.instructions)
    over = sample["used_bytes"] - sample["limit_bytes"]
    assert error.exceeded_bytes == (over + ROUNDING_BYTES if sample["used_bytes"] else 0)


@pytest.mark.parametrize("sample", SAMPLES["ended"], ids=lambda sample: sample["how"])
def test_the_compilers_last_words(sample):
    said = read_last_words(sample["said"])
    assert (said.line, said.instructions) == (sample["line"], tuple(sample["instructions"]))


def test_a_trace_of_sources_is_left_out():
    said = read_refusal("INTERNAL: why\n\n=== Source Location Trace: ===\nx.cc:7")
    assert said.line == "INTERNAL: why"


def test_fields_go_to_other_processes():
    refused = mgx.emitting.PlanRefusedError("why").about("overlap", ["a"], [3], 5)
    there = pickle.loads(pickle.dumps(refused))
    assert isinstance(there, mgx.emitting.PlanRefusedError) and str(there) == "why"
    assert (there.rule, there.instructions, there.accesses) == ("overlap", ("a",), (3,))
    assert there.exceeded_bytes == 5


def test_errors_about_no_rule_have_empty_fields():
    with pytest.raises(mg.InvalidInputError) as error:
        mg.load_program("nobody")
    assert (error.value.rule, error.value.instructions, error.value.accesses) == ("", (), ())


@pytest.fixture(scope="module")
def program():
    return mg.load_program("gcn_dense_2048.tpu_v4i")


def test_accesses_at_fault_are_those_of_the_fields(program):
    plan = program.xla_plan
    fast = np.flatnonzero(plan.served_by >= 0)
    last, ticks = int(fast[-1]), program.accesses["tick"]
    name = program.instruction_names[ticks[fast[0]]]
    of_name = [int(a) for a in fast if program.instruction_names[ticks[a]] == name]
    assert of_name and last not in of_name
    refused = mgx.emitting.PlanRefusedError("")
    assert at_fault(refused.about("overlap", [name]), program, plan).tolist() == of_name
    both = at_fault(refused.about("held", [name], [last]), program, plan).tolist()
    assert both == [*of_name, last]


def test_accesses_in_main_memory_are_not_at_fault(program):
    plan = program.xla_plan
    slow = np.flatnonzero(plan.served_by < 0)
    refused = mgx.emitting.PlanRefusedError("").about("held", (), slow.tolist())
    assert at_fault(refused, program, plan).tolist() == []


def test_the_words_of_a_message_forbid_nothing(program):
    quoted = " ".join(f"'{name}'" for name in program.instruction_names)
    refused = mgx.emitting.PlanRefusedError(f"{quoted} Used 20.00M of 16.00M")
    assert at_fault(refused, program, program.xla_plan).tolist() == []
