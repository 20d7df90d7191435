"""Written plans compute the same: assigned modules are run in bytes (placed_values.py).

It is a second source of what may share bytes. The writer has one rule for updates in place
(mallocgame/hlo/in_place.h). A pair that this rule invents gives wrong values, and the judge, which
looks at what the compiler's own assignment shares, refuses it.
"""

import dataclasses
import functools

import numpy as np
import pytest
from hlo_text import Module
from hlo_values import Numbers
from order_values_test import PROGRAMS, Orders, arguments_of, same
from placed_values import Assigned, Place, PlacedRun
from xla_emitting_test import message
from xla_programs import SHAPE

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame._core import check_phase_module, write_plan
from mallocgame.xla.captures import ALL_MAIN
from mallocgame.xla.modules import hlo_proto, wire_fields

pytestmark = pytest.mark.full

CHIPS = ("tpu_v4i", "tpu_v5e", "tpu_v6e")


class Case:
    """A program whose plans are written, judged and run."""

    def __init__(self, name: str, compiler: mgx.Compiler) -> None:
        function, arguments = PROGRAMS[name]
        text = mgx.lower(function, *(SHAPE(*argument) for argument in arguments))
        self.hardware = compiler.target.hardware
        self.unassigned = mgx.phases.Phases(compiler, ALL_MAIN).schedule(text)
        self.xla = mgx.phases.Phases(compiler).schedule(text)
        self.program = self.imported(self.unassigned.module)
        self.numbers = arguments_of(name)
        module = Module(self.unassigned.module)
        orders = Orders(self.program, module)
        self.own = orders.run(orders.own, Numbers(module, self.numbers))

    def imported(self, unassigned: bytes, assigned: bytes | None = None) -> mg.Program:
        return mg.import_hlo(unassigned, hardware=self.hardware, assigned=assigned)

    def assigned(self, module: bytes, assignment: bytes) -> Assigned:
        return Assigned(module, assignment, self.hardware.fast_memory_space)

    def write(self, plan: mg.Plan, program: mg.Program, unassigned: bytes) -> tuple[bytes, bytes]:
        """Writes a plan of a program into a module of phase 1."""
        return write_plan(program, plan, unassigned, self.unassigned.assignment, self.hardware)[:2]

    def judge(self, unassigned: bytes, module: bytes, assignment: bytes) -> None:
        """Raises an InvalidInputError where the judge refuses."""
        own = self.unassigned.assignment
        check_phase_module(unassigned, own, module, assignment, self.hardware)

    def run(self, assigned: Assigned, seed: int = 0) -> tuple[bool, set[str]]:
        """Returns whether it computes the same, and what has written over an operand."""
        run = PlacedRun(assigned, Numbers(assigned.module, self.numbers), seed)
        return same(run.results(), self.own), run.over


def random_plan(program: mg.Program, seed: int) -> mg.Plan:
    rng = np.random.default_rng(seed)
    state = mg.Game(program).initial_state()
    odds = rng.exponential(size=state.game.num_actions)
    while not state.is_terminal():
        legal = state.legal_actions()
        state.apply(int(rng.choice(legal, p=odds[legal] / odds[legal].sum())))
    return state.plan()


def check_plans(case: Case, count: int) -> set[str]:
    """Returns what has written over an operand in all of the plans."""
    program = case.imported(case.unassigned.module, hlo_proto(case.xla.module, case.xla.assignment))
    found = set()
    for plan in [program.xla_plan, *(random_plan(program, seed) for seed in range(count))]:
        written = case.write(plan, program, case.unassigned.module)
        case.judge(case.unassigned.module, *written)
        equal, over = case.run(case.assigned(*written))
        assert equal
        found |= over
    return found


def with_alias(module: bytes, levels: tuple[int, ...], name: str, operand: int) -> bytes:
    """Has an instruction declare that its result is an operand, at the field path `levels`."""
    if not levels:
        own = dict(wire_fields(module))[1] == name.encode()
        return module + message([(74, message([(2, operand)]))]) if own else module
    return message(
        [
            (number, with_alias(body, levels[1:], name, operand) if number == levels[0] else body)
            for number, body in wire_fields(module)
        ]
    )


@pytest.fixture(scope="module")
def case(compiler):
    """case(name) is a program of v4i."""
    return functools.cache(lambda name: Case(name, compiler))


@pytest.mark.parametrize("name", ["cache", "conditional", "gru", "square_layers"])
def test_plans_compute_the_same(case, name):
    """Plans have tuples for the branches of `conditional` that differ in where their arrays lie."""
    over = check_plans(case(name), 4)
    assert over or name in ("conditional", "square_layers")


@pytest.mark.weekly
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_plans_of_chips_compute_the_same(name, chip):
    with mgx.Compiler(mgx.find_target(chip)) as compiler:
        case = Case(name, compiler)
        for made in (case.unassigned, case.xla):  # what the compiler itself assigns
            assert case.run(case.assigned(made.module, made.assignment))[0]
        check_plans(case, 10)


# Faults that give other values.


def test_a_pair_that_the_rule_for_updates_in_place_invents(case):
    """A product over its left operand. The program and its writer take it for right."""
    own, (fusion, operand) = case("square_layers"), ("convolution_tanh_fusion.2", 1)
    right = Module(own.unassigned.module)
    attributes = right.computations[right.entry].instructions[fusion].attributes
    assert "alias" not in attributes
    path = (1, 3, 2)  # the module, its computations, their instructions
    unassigned = with_alias(own.unassigned.module, path, fusion, operand)
    program = own.imported(unassigned)
    assert len(program.buffers) == len(own.program.buffers) - 1
    rules = set()
    for seed in range(10):
        written = own.write(random_plan(program, seed), program, unassigned)
        with pytest.raises(mg.InvalidInputError) as refused:
            own.judge(unassigned, *written)
        assert fusion in refused.value.instructions
        assigned = own.assigned(*written)
        module = assigned.module  # It is run without the invention.
        module.computations[module.entry].instructions[fusion].attributes = attributes
        equal, over = own.run(assigned)
        # In main memory the two lie apart. In fast memory they don't, as nowhere in XLA's own.
        assert refused.value.rule == ("overlap" if fusion in over else "in-place")
        assert equal == (fusion not in over)
        rules.add(refused.value.rule)
    assert rules == {"overlap", "in-place"}


def test_an_update_apart_from_what_it_updates(case):
    own = case("cache")
    assigned = own.assigned(own.xla.module, own.xla.assignment)
    module = assigned.module
    update = next(
        one for one in module.computations[module.entry].instructions.values()
        if module.in_place(one) and (one.name, ()) in assigned.places
    )  # fmt: skip
    place = assigned.places[update.name, ()]
    assigned.places[update.name, ()] = Place(1 << 20, 0, place.size)
    assert not own.run(assigned)[0]


def test_a_value_over_one_that_is_read_later(case):
    own = case("square_layers")
    unassigned = own.unassigned
    assigned = own.assigned(unassigned.module, unassigned.assignment)
    assert own.run(assigned)[0]
    taken = assigned.places["weights_4_.1", ()]
    made = assigned.places["convolution_tanh_fusion.4", ()]
    assigned.places["convolution_tanh_fusion.4", ()] = dataclasses.replace(taken, size=made.size)
    assert not own.run(assigned)[0]
