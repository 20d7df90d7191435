"""Other orders of instructions: as data, against HLO, in files, and found by search."""

import random

import numpy as np
import pytest
from conftest import OTHER, SMALL
from corpus_test import corpus

import mallocgame as mg
from mallocgame._core import reorder_module
from mallocgame.programs import suite

RULES = ("depth-first", "breadth-first", "least-memory", "latency-hiding")
FREE = "mlp_train_adam_b512.tpu_v6e"
# Without loops, with plain copies, and with a loop.
IMPORTED = (
    "mlp_train_adam_b512.tpu_v6e",
    "muzero_unroll_b32.tpu_v4i",
    "wavernn_64steps_b8.tpu_v4i",
)


def random_order(program: mg.Program, generator: random.Random) -> np.ndarray:
    """Returns a legal order of a program without loops: any ready instruction comes next."""
    waits = np.zeros(program.ticks, int)
    after: list[list[int]] = [[] for _ in range(program.ticks)]
    for first, second in program.dependences.tolist():
        waits[second] += 1
        after[first].append(second)
    ready = np.flatnonzero(waits == 0).tolist()
    order = []
    while ready:
        tick = ready.pop(generator.randrange(len(ready)))
        order.append(tick)
        for one in after[tick]:
            waits[one] -= 1
            if waits[one] == 0:
                ready.append(one)
    return np.array(order, np.int32)


def test_bundled_programs_know_what_depends_on_what():
    for name in suite("all"):
        assert mg.load_program(name).has_dependences, name
    assert mg.load_program(FREE).free_pairs > 0


def test_an_order_and_the_way_back():
    program = mg.load_program(FREE)
    order = random_order(program, random.Random(1))
    other = program.reordered(order)
    assert other.fingerprint != program.fingerprint
    assert other.xla_plan is None
    assert [other.instruction_names[i] for i in np.argsort(order)] == program.instruction_names
    assert other.reordered(np.argsort(order)).fingerprint == program.fingerprint
    assert other.free_pairs == program.free_pairs
    assert mg.bounds.bound(other).bound_ps == mg.bounds.bound(program).bound_ps
    all_main = mg.simulate(program, mg.all_main_plan(program)).latency_ps
    assert mg.simulate(other, mg.all_main_plan(other)).latency_ps == all_main


def test_broken_dependences_are_all_refused():
    """Each dependence of a program without loops, broken by the nearest order that breaks it."""
    program = mg.load_program(FREE)
    assert len(program.loops) == 0
    generator = random.Random(2)
    for first, second in generator.sample(program.dependences.tolist(), 50):
        order = list(range(program.ticks))
        order.insert(order.index(first), order.pop(order.index(second)))
        with pytest.raises(mg.InvalidInputError, match="it must stand before"):
            program.reordered(order)


@pytest.mark.parametrize("order", [[0], [0, 0], np.zeros((2, 2), int)])
def test_what_is_no_order_is_refused(order):
    with pytest.raises(mg.InvalidInputError, match="order of instructions"):
        mg.load_program(FREE).reordered(order)


@pytest.mark.parametrize("name", IMPORTED)
def test_a_reordered_program_is_what_is_imported_of_the_reordered_module(name):
    source, suite_name, target, assigned = corpus.entries(corpus.CAPTURED)[name]
    files = corpus.modules(source)
    program, _ = corpus.make(source, suite_name, target, assigned)
    assert program.fingerprint == mg.load_program(name).fingerprint
    for rule in RULES:
        other = program.reordered(program.list_order(rule))
        read = mg.import_hlo(
            reorder_module(other, files["pre_msa.hlo.pb"]),
            priced=[files[part] for part in sorted(files) if part.startswith("codegen_")],
            profile=files.get("prices.json", files.get("profile.json")),
            hardware=program.hardware,
            name=program.name,
        )
        assert read.instruction_names == other.instruction_names, rule
        assert read.buffer_names == other.buffer_names, rule
        np.testing.assert_array_equal(read.accesses, other.accesses)
        np.testing.assert_array_equal(read.loops, other.loops)
        np.testing.assert_array_equal(read.dependences, other.dependences)
        # Structures are numbered as they come, so fingerprints may differ; what plans cost doesn't.
        plan = mg.solve(other, "greedy").plan
        same = mg.Plan.of(read, read.hardware, plan.residences, plan.copies, plan.served_by)
        assert mg.simulate(read, same) == mg.simulate(other, plan), rule


@pytest.mark.parametrize("rule", RULES)
def test_list_schedulers_give_legal_orders(rule):
    for name in (FREE, SMALL, OTHER):
        program = mg.load_program(name)
        program.reordered(program.list_order(rule))


def test_the_least_memory_is_the_least_of_the_rules():
    program = mg.load_program(FREE)
    live = {
        rule: program.reordered(program.list_order(rule)).main_memory["live_bytes"]
        for rule in RULES
    }
    assert live["least-memory"] == min(live.values())
    with pytest.raises(mg.InvalidInputError, match="allowed: depth-first"):
        program.list_order("by name")


def test_main_memory_adds_up():
    memory = mg.load_program(FREE).main_memory
    assert memory["total_bytes"] == memory["fixed_bytes"] + memory["packed_bytes"]
    assert memory["packed_bytes"] >= memory["live_bytes"] > 0


@pytest.fixture(scope="module")
def found() -> mg.SolveResult:
    return mg.solve(mg.load_program(FREE), "greedy", seconds=0, evaluations=400, order=True)


def test_search_finds_an_order_and_a_valid_plan_of_it(found):
    program = mg.load_program(FREE)
    ordered = program.reordered(found.order)
    assert ordered.fingerprint == found.game.program.fingerprint
    assert mg.validate(ordered, found.plan).ok
    assert mg.simulate(ordered, found.plan).latency_ps == found.report.latency_ps
    assert found.report.latency_ps < found.schedule["own_order_ps"]
    assert found.schedule["has_freedom"]
    assert found.schedule["orders"] > 0
    assert ordered.main_memory["total_bytes"] <= program.main_memory["total_bytes"]


def test_the_bound_for_any_order_holds_at_other_orders(found):
    program = mg.load_program(FREE)
    least = mg.bounds.bound(program, "any-order")
    assert mg.bounds.bound(program).bound_ps <= least.bound_ps <= found.report.latency_ps
    assert mg.bounds.bound(found.game.program, "any-order").bound_ps == pytest.approx(
        least.bound_ps, rel=1e-6
    )


def test_plans_keep_their_order(found, tmp_path):
    program, path = mg.load_program(FREE), tmp_path / "plan.json"
    mg.save_plan(found.plan, program, path, found.order)
    ordered, plan, order = mg.files.load_ordered_plan(path, program)
    assert plan == found.plan
    assert ordered.fingerprint == found.game.program.fingerprint
    assert order.tolist() == found.order.tolist()
    assert mg.load_plan(path, ordered) == plan
    with pytest.raises(mg.InvalidInputError, match="an order of instructions of its own"):
        mg.load_plan(path, program)
    with pytest.raises(mg.InvalidInputError, match='"ordered_from"'):
        mg.files.load_ordered_plan(path, mg.load_program(SMALL))
    # A plan at the program's own order is read by both.
    own = mg.solve(program, "greedy").plan
    mg.save_plan(own, program, path)
    assert mg.files.load_ordered_plan(path, program)[1] == own == mg.load_plan(path, program)


def test_the_commands_take_plans_with_an_order(run_json, tmp_path):
    path = str(tmp_path / "plan.json")
    limits = ["--seconds", "0", "--evaluations", "200"]
    row = run_json("solve", FREE, "--solver", "greedy", *limits, "--order", "-o", path)
    assert row["has_freedom"]
    assert row["latency_ps"] <= row["own_order_ps"]
    assert row["main_bytes"] <= row["own_order_main_bytes"]
    assert run_json("validate", FREE, path)["valid"]
    assert run_json("simulate", FREE, path)["latency_ps"] == row["latency_ps"]
    page = run_json("view", path, "--program", FREE, "-o", str(tmp_path / "page.html"))
    assert page["bytes"] > 0


def test_limits_of_main_memory_need_an_order():
    with pytest.raises(mg.InvalidInputError, match="order=True"):
        mg.solve(mg.load_program(FREE), "greedy", main_bytes=1)
    with pytest.raises(mg.InvalidInputError, match="main_bytes: found 1"):
        mg.solve(mg.load_program(FREE), "greedy", seconds=1, order=True, main_bytes=1)
