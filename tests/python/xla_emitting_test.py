"""What is emitted of a plan: it is read back, broken on purpose, and priced wrongly on purpose.

Skipped, with the reason, where JAX or libtpu is missing.
"""

import time
from collections.abc import Callable

import numpy as np
import pytest
from xla_programs import LOOP, loop

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame._core import check_phase_module
from mallocgame.xla.mending import mended
from mallocgame.xla.modules import hlo_proto, wire_fields

pytestmark = pytest.mark.full


@pytest.fixture(
    scope="module", params=[pytest.param("captured", marks=pytest.mark.weekly), "captured_loop"]
)
def emitter(request, compiler):
    with mgx.emitting.Emitter(request.getfixturevalue(request.param), compiler) as shared:
        yield shared


def solved(program: mg.Program) -> mg.Plan:
    return mg.solve(program, "greedy", seconds=0).plan


@pytest.fixture(scope="module")
def written(emitter) -> mgx.emitting.Written:
    """A plan with copies, with the prices of all that it has moved."""
    return emitter.write(solved(emitter.capture.program))


# What is emitted, read back.


def placed(plan: mg.Plan) -> list[tuple[int, ...]]:
    """The residences of a plan in no order of its own."""
    names = ["buffer", "begin", "end", "offset"]
    residences = plan.residences.copy()
    # A copy in place of an instruction begins at that instruction, or just behind it.
    residences["begin"][plan.copies["residence"][plan.copies["replaces"] >= 0]] = 0
    return sorted(tuple(int(one[name]) for name in names) for one in residences)


def copied(plan: mg.Plan) -> list[tuple[int, ...]]:
    """Its copies, each with the buffer that it is of."""
    names = ["part_begin", "part_end", "begin", "end", "replaces", "kind", "preload"]
    copies = plan.copies.copy()
    replacing = copies["replaces"] >= 0
    copies["begin"][replacing] = copies["end"][replacing] = 0
    buffers = plan.residences["buffer"][copies["residence"]]
    return sorted(
        (int(buffer), *(int(copy[name]) for name in names))
        for buffer, copy in zip(buffers, copies, strict=True)
    )


@pytest.mark.parametrize("made", ["XLA's own", "solved", "in main memory"])
def test_the_plan_is_read_from_what_is_emitted(emitter, made):
    program = emitter.capture.program
    plan = {
        "XLA's own": lambda: program.xla_plan,
        "solved": lambda: solved(program),
        "in main memory": lambda: mg.all_main_plan(program),
    }[made]()
    scheduled = emitter.write(plan).scheduled
    read = mg.import_hlo(
        emitter.capture.before,
        assigned=hlo_proto(scheduled.module, scheduled.assignment),
        hardware=program.hardware,
        name=program.name,
    )
    assert read.instruction_names == program.instruction_names
    found = read.xla_plan
    assert (found.served_by >= 0).tolist() == (plan.served_by >= 0).tolist()
    assert placed(found) == placed(plan)
    assert copied(found) == copied(plan)
    assert mg.validate(read, found).ok


def test_a_plan_is_written_the_same_again(emitter, written):
    again = emitter.write(written.plan.rebased_on(emitter.capture.program))
    assert again.scheduled.module == written.scheduled.module
    assert again.scheduled.assignment == written.scheduled.assignment


# What the compiler would link without a word.

Change = Callable[[int, int], int]  # of the offset of a value, given its place in the list


def varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def message(fields: list[tuple[int, int | bytes]]) -> bytes:
    """Serializes what wire_fields() gives, for messages without floating-point numbers."""
    return b"".join(
        varint(number << 3) + varint(value)
        if isinstance(value, int)
        else varint(number << 3 | 2) + varint(len(value)) + value
        for number, value in fields
    )


def with_offsets(assignment: bytes, color: int, change: Change) -> bytes:
    """Returns a BufferAssignmentProto with other offsets in one memory, which is large enough."""
    count = 0

    def moved(values: bytes) -> bytes:
        nonlocal count
        fields = dict(wire_fields(values))  # logical_buffer_id, offset, size
        fields[2] = change(count, fields.get(2, 0))
        count += 1
        return message(sorted(fields.items()))

    def of_allocation(allocation: bytes) -> bytes:
        fields = list(wire_fields(allocation))  # size, color, assigned
        if dict(fields).get(8, 0) != color:
            return allocation
        changed = {2: lambda _: 1 << 40, 9: moved}
        return message([(number, changed.get(number, lambda it: it)(it)) for number, it in fields])

    return message(
        [
            (number, of_allocation(it) if number == 3 else it)
            for number, it in wire_fields(assignment)
        ]
    )


@pytest.fixture(scope="module")
def check(emitter, compiler):
    """check(module, assignment[, hardware]) judges against what the first phase gives.

    It returns the refusal; None: there is none.
    """
    hardware = emitter.capture.target.hardware
    phases = mgx.phases.Phases(compiler, {"xla_msa_enable": "DISABLED"})
    original = phases.schedule(emitter.capture.module)

    def judge(module: bytes, assignment: bytes, has: mg.Hardware = hardware):
        try:
            check_phase_module(original.module, original.assignment, module, assignment, has)
        except mg.InvalidInputError as refused:
            return refused

    return judge


def test_what_is_emitted_may_be_linked(check, written):
    scheduled = written.scheduled
    assert check(scheduled.module, scheduled.assignment) is None
    color = written.program.hardware.fast_memory_space
    same = with_offsets(scheduled.assignment, color, lambda _, offset: offset)
    assert check(scheduled.module, same) is None


@pytest.mark.parametrize(
    ("rules", "change"),
    [
        ({"alignment"}, lambda _, offset: offset + 512),
        ({"capacity"}, lambda _, offset: offset + (1 << 30)),
        ({"overlap", "slice-place"}, lambda *_: 0),
        ({"preload"}, lambda at, offset: offset + (at << 22)),
    ],
)
def test_other_offsets(check, written, rules, change):
    color = written.program.hardware.fast_memory_space
    moved = with_offsets(written.scheduled.assignment, color, change)
    refused = check(written.scheduled.module, moved)
    assert refused.rule in rules
    assert all(name.encode() in written.scheduled.module for name in refused.instructions)


def test_less_fast_memory_than_is_used(check, written):
    less = written.program.hardware.replace(fast_bytes=4096)
    refused = check(written.scheduled.module, written.scheduled.assignment, less)
    assert refused.rule == "capacity" and len(refused.instructions) == 1
    sizes = written.program.buffers["size_bytes"][written.plan.residences["buffer"]]
    ends = written.plan.residences["offset"] + sizes
    assert 0 < refused.exceeded_bytes <= ends.max() - 4096


def test_the_buffers_of_another_plan(check, emitter, written):
    main = emitter.write(mg.all_main_plan(emitter.capture.program)).scheduled
    for module, assignment in (
        (main.module, written.scheduled.assignment),
        (written.scheduled.module, main.assignment),
    ):
        assert check(module, assignment).rule in ("buffer", "color", "memory-space")


def test_another_computation(check, written):
    """As many bytes, and another function of the same operands."""
    before, after = (b"tanh", b"sine") if written.program.name == "loop" else (b"max", b"min")
    other = written.scheduled.module.replace(
        message([(2, {b"max": b"maximum", b"tanh": b"tanh"}[before])]),
        message([(2, {b"min": b"minimum", b"sine": b"sine"}[after])]),
    )
    assert other != written.scheduled.module
    assert check(other, written.scheduled.assignment).rule == "computation"


def test_what_is_no_module(check, written):
    assert check(b"\xff", written.scheduled.assignment).rule == "readable"


# What the compiler makes of single instructions.


class OfAnother(mgx.Compiler):
    """A compiler that answers about isolated modules with what it has answered about the first."""

    first = None

    def run_phase(self, phase, programs, options=None, kept=False):
        outputs = super().run_phase(phase, programs, options)
        if phase != "phase2b_deduped_lowering":
            return outputs
        self.first = self.first or outputs
        return self.first


@pytest.mark.weekly
def test_code_that_is_not_the_wanted_one_is_refused(captured):
    """The hash in it proves whose it is."""
    with (
        OfAnother(captured.target, cache=None) as wrong,
        mgx.emitting.Emitter(captured, wrong, jobs=1) as emitter,
    ):
        emitter.write(mg.all_main_plan(captured.program))  # the first, which is right
        refusal = r"^layers: the isolated module of '\S+' has hash \w+, the compiler wants \w+$"
        with pytest.raises(mgx.emitting.PlanRefusedError, match=refusal):
            emitter.write(captured.xla_plan.rebased_on(emitter.capture.program))


def test_explored_prices_are_those_of_plans(emitter):
    emitter.explore(time.monotonic() + 600)
    known = emitter.capture.prices
    assert emitter.explore(time.monotonic() + 600) == 0  # nothing is left to be priced
    emitter.write(solved(emitter.capture.program))
    for instruction, prices in known.items():
        assert prices.items() <= emitter.capture.prices[instruction].items()


def test_what_is_late_stays_in_main_memory(captured_loop):
    """With no time for code, plans are mended until they need none that isn't there."""
    with (
        mgx.Compiler(captured_loop.target, cache=None) as fresh,
        mgx.emitting.Emitter(captured_loop, fresh) as emitter,
    ):
        emitter.write(mg.all_main_plan(captured_loop.program))  # the code that is there
        plan, lateness = solved(captured_loop.program), []
        while len(lateness) < 9:
            program = emitter.capture.program
            plan = plan.rebased_on(program)
            try:
                written = emitter.write(plan, until=0.0)
                break
            except mgx.emitting.PlanRefusedError as error:
                lateness.append(set(error.instructions))
                assert error.rule == mgx.emitting.LATE
                assert lateness[-1] <= set(program.instruction_names)
                plan = mended(error, program, plan, program.hardware)
                assert plan is not None
        assert lateness and written.report.latency_ps > 0
        assert emitter.link(written).executable
        later = emitter.write(solved(captured_loop.program).rebased_on(emitter.capture.program))
        assert later.report.latency_ps <= written.report.latency_ps


@pytest.mark.weekly
def test_fast_memory_for_plans():
    """More than memory space assignment has, and what is placed at its end is linked."""
    target = mgx.find_target("tpu_v5e")
    with mgx.Compiler(target, cache=None) as compiler:
        captured = mgx.capture(loop, *LOOP, target="tpu_v5e", compiler=compiler)
        with mgx.emitting.Emitter(captured, compiler) as emitter:
            most = emitter.fast_bytes()
            assert target.hardware.fast_bytes < most < 128 << 20
            hardware = target.hardware.replace(fast_bytes=most)
            plan, program = captured.xla_plan.rebased_on(emitter.capture.program), captured.program
            residences = plan.residences.copy()
            sizes = program.buffers["size_bytes"][residences["buffer"]]
            residences["offset"] += (most - np.max(residences["offset"] + sizes)) // 4096 * 4096
            at_the_end = mg.Plan.of(
                emitter.capture.program, hardware, residences, plan.copies, plan.served_by
            )
            assert emitter.link(emitter.write(at_the_end, hardware)).executable
            with pytest.raises(mgx.emitting.PlanRefusedError) as refused:
                emitter.write(at_the_end)  # for the target's own hardware
            assert refused.value.rule == "space"


def test_what_a_capture_has_compiled_is_not_compiled_again(captured_loop, compiler):
    before = compiler.phases.total()
    with mgx.emitting.Emitter(captured_loop, compiler):
        assert compiler.phases.total() == before
