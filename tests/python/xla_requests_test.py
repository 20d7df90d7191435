"""What the compiler is asked for, as it reads it, and what follows from its refusals."""

import numpy as np
import pytest
from conftest import SOURCE_ROOT

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame._core import INSTRUCTION, UPDATE, WRITE
from mallocgame.xla.negotiate import PATIENCE, _Negotiation
from mallocgame.xla.overrides import KEEP, PIN, PREFETCH, Override, Request, request, request_of
from mallocgame.xla.settings import (
    EAGERNESS,
    PRELOADS,
    SETTINGS,
    WHOLE_COPIES,
    read_eagerness,
    read_settings,
)


@pytest.mark.parametrize(
    ("override", "text"),
    [
        (
            Override(KEEP, 0, (), "fusion.7", None, ()),
            r'overrides { hlo_position_matcher { instruction_name_regex: "fusion\\.7" } '
            "keep_in_default_memory {} }",
        ),
        (
            Override(PIN, 0, (), "a-b", None, (0, 1)),
            'overrides { hlo_position_matcher { instruction_name_regex: "a-b" '
            "tuple_index { index: 0 index: 1 } } pin_in_alternate_memory {} }",
        ),
        (
            Override(PREFETCH, 0, (), "while", 0, (3,), time=5),
            'overrides { hlo_operand_filter { instruction_name_regex: "while" operand_number: 0 '
            "tuple_index { index: 3 } } prefetch { logical_time: 5 strict_timing: true } }",
        ),
        (
            Override(KEEP, 0, (), "f", 1, (), size=64),
            'overrides { hlo_operand_filter { instruction_name_regex: "f" operand_number: 1 '
            "size_gte: 64 size_lte: 64 } keep_in_default_memory {} }",
        ),
    ],
)
def test_override_text(override, text):
    assert override.text() == text


def negotiation(program, *overrides, patience=PATIENCE):
    return _Negotiation(Request(overrides, ()), program, patience)


def test_what_has_to_be_in_fast_memory_is_not_kept_in_main_memory(program):
    """The compiler doesn't refuse that but ends, with the words of a failed check."""
    names = program.buffer_names
    first, second = names.index("params_1_.1"), names.index("m_0_.1")
    asked = (
        Override(KEEP, first, (3,), "params_1_.1", None, ()),
        Override(KEEP, second, (4,), "fusion.2", 1, ()),
        Override(KEEP, first, (7,), "fusion.9", 0, ()),
    )
    said = (
        "Check failed: memory_space != MemorySpace::kDefault Conflicting required assignment for : "
        "{} required assignment: RequiredMemoryAssignment(memory_space=def, time=87, offset=null, "
        "message=Use not allowed in alternate memory.)"
    )
    talk = negotiation(program, *asked)
    assert not talk.required_in_fast("Check failed: a == b")
    assert not talk.required_in_fast(said.format("params_1_.12"))
    assert talk.request.overrides == asked and not talk.refusals
    assert talk.required_in_fast(said.format("params_1_.1"))
    assert talk.request.overrides == asked[1:2]
    (refusal,) = talk.refusals
    assert (refusal.buffer, refusal.accesses) == ("params_1_.1", (3, 7))
    assert not talk.required_in_fast(said.format("params_1_.1"))


def test_refusals(program):
    names = program.buffer_names
    first, second = names.index("params_1_.1"), names.index("m_0_.1")
    pin = Override(PIN, first, (3,), "params_1_.1", None, ())
    fetch = Override(PREFETCH, second, (4,), "fusion.2", 1, (), time=20)
    talk = negotiation(program, pin, fetch)
    talk.refused(
        "MSA strict override failed for instruction 'fusion.9' operand 0, shape (s32[], "
        "/*index=1*/bf16[8]), defining instruction 'params_1_.1': Out of alternate memory "
        "(requested schedule time: n/a)"
    )
    assert talk.request.overrides == (fetch,)
    assert (
        talk.refusals[0].buffer == "params_1_.1"
        and talk.refusals[0].reason == "Out of alternate memory"
    )

    talk.refused(
        "MSA strict timing override unsatisfied for instruction 'fusion.2' operand 1, shape "
        "f32[8]: scheduled prefetch time (12) does not match requested prefetch time (20)"
    )
    assert [o.time for o in talk.request.overrides] == [12] and talk.request.overrides[0].strict
    short = (
        "MSA strict override failed for instruction 'fusion.2' operand 1, shape f32[8], "
        "defining instruction 'm_0_.1': "
    )
    for time in (10, 6, 0):
        talk.refused(
            short + "Live range too short / dependency ordering (requested schedule time: 1)"
        )
        assert [o.time for o in talk.request.overrides] == [time]
    talk.refused(short + "Live range too short / dependency ordering (requested schedule time: 1)")
    assert [o.strict for o in talk.request.overrides] == [False]
    talk.refused(short + "Live range too short / dependency ordering (requested schedule time: 1)")
    assert talk.request.overrides == () and [one.accesses for one in talk.refusals] == [(3,), (4,)]


NO_SPACE = (
    "MSA strict override failed for instruction '{}' operand 1, shape f32[8], "
    "defining instruction '{}': Out of alternate memory (requested schedule time: n/a)"
)


def test_a_pinned_buffer_that_overstays_goes_first(program):
    """It is pinned until its last use, though the plan has it leave before."""
    ticks, buffers = program.accesses["tick"], program.accesses["buffer"]
    made = next(
        buffer
        for buffer in range(program.counts["buffers"])
        if program.buffers[buffer]["origin"] == INSTRUCTION and np.ptp(ticks[buffers == buffer]) > 4
    )
    first, *_, last = np.flatnonzero(buffers == made)
    pin = Override(PIN, made, (int(first),), program.buffer_names[made], None, ())
    other = next(
        access
        for access in range(program.counts["accesses"])
        if ticks[first] < ticks[access] <= ticks[last] and buffers[access] != made
    )
    fetched = int(buffers[other])
    fetch = Override(PREFETCH, fetched, (other,), "use", 1, (), time=20)
    refusal = NO_SPACE.format("use", program.buffer_names[fetched].partition("{")[0])
    talk = negotiation(program, pin, fetch)
    talk.refused(refusal)
    assert talk.request.overrides == (fetch,)
    assert [one.buffer for one in talk.refusals] == [program.buffer_names[made]]
    talk.refused(refusal)
    assert talk.request.overrides == ()


@pytest.mark.parametrize(
    ("patience", "first"),
    [(PATIENCE, [1, 1, 1, 1, 2, 2, 2, 2]), (2, [1, 2, 0, 4]), (0, [0, 1, 2, 4])],
)
def test_groups_are_taken_back_where_space_is_short(program, patience, first):
    """One by one it would take as many compiles as there are buffers too many."""
    asked = [
        Override(PREFETCH, buffer, (0,), "use", buffer, (), time=20)
        for buffer in range(program.counts["buffers"])
    ]
    talk = negotiation(program, *asked, patience=patience)
    taken = []
    while talk.request.overrides:
        before = len(talk.request.overrides)
        one = talk.request.overrides[-1]
        defined = program.buffer_names[one.buffer].partition("{")[0]
        message = NO_SPACE.format(one.instruction, defined)
        talk.refused(message.replace("operand 1,", f"operand {one.operand},"))
        taken.append(before - len(talk.request.overrides))
    assert taken[: len(first)] == first and len(taken) < 25
    assert len(talk.refusals) == len(asked) == sum(taken) > 50


@pytest.mark.parametrize("patience", [PATIENCE, 1, 0])
def test_strict_times_are_given_up_at_once(program, patience):
    """After some copies were asked for at another time all others lose theirs."""
    asked = [
        Override(PREFETCH, 0, (0,), f"fusion.{number}", 1, (), time=20) for number in range(20)
    ]
    talk = negotiation(program, *asked, patience=patience)
    for number in range(patience + 1):
        assert talk.request.overrides[-1].strict
        talk.refused(
            f"MSA strict timing override unsatisfied for instruction 'fusion.{number}' operand 1, "
            "shape f32[8]: scheduled prefetch time (12) does not match requested prefetch time (20)"
        )
    assert not any(one.strict for one in talk.request.overrides)
    times = [one.time for one in talk.request.overrides]
    assert times == [12] * patience + [20] * (20 - patience)
    assert not talk.refusals


def test_other_errors_are_no_refusals(program):
    with pytest.raises(mgx.CompilerRefusedError, match="RESOURCE_EXHAUSTED"):
        negotiation(program).refused("RESOURCE_EXHAUSTED: out of HBM")


def test_request_options():
    keep = Override(KEEP, 0, (), "a", None, ())
    options = Request((keep,), ("p.1",), WHOLE_COPIES).options()
    assert (
        options["xla_max_cross_program_prefetches"] == "1"
        and r"p\\.1" in options["xla_tpu_msa_sort_order_overrides"]
    )
    assert (
        options["xla_tpu_sliced_prefetch_max_slices"] == "0"
        and options["xla_tpu_msa_tensor_overrides"] == keep.text()
    )
    assert Request((), ()).options() == {"xla_max_cross_program_prefetches": "0"}


def test_settings_of_a_request():
    name, other = "xla_msa_max_repacks", "xla_msa_min_overlap_to_async_copy_ratio"
    two = Request((), ("p.1",)).having(name, "0").having(other, "2")
    assert two.settings == {name: "0", other: "2"} and two.preloads == ("p.1",)
    assert two.options().items() >= {(PRELOADS, "1"), (name, "0"), (other, "2")}
    assert two.having(name, None).settings == {other: "2"}
    assert read_settings({name: "8", "another": "1"}) == {name: "8"}
    for wrong in (lambda: two.having(name, "3"), lambda: read_settings({name: "3"})):
        with pytest.raises(mg.InvalidInputError, match=f"{name}: found '3', allowed: 0, 8"):
            wrong()
    with pytest.raises(mg.InvalidInputError, match=f"setting: found 'x', allowed: .*, {name}, "):
        two.having("x", "1")


def test_settings_about_preloads_let_xla_choose():
    """They would do nothing where the request names what is preloaded."""
    named = Request((), ("p.1", "p.2"))
    chosen = named.having("xla_msa_cross_program_prefetch_permissive_mode", "true")
    assert chosen.preloads == () and chosen.options()[PRELOADS] == "2"
    assert "xla_tpu_msa_sort_order_overrides" not in chosen.options()
    assert named.having(PRELOADS, "0").options() == {PRELOADS: "0"}


def test_copies_for_single_uses():
    """They come before what holds for all others, and are read back."""
    others = SETTINGS[EAGERNESS][1]
    wanted = Request((), ()).having(EAGERNESS, others).hurrying(("fusion.3", 1), "0.5")
    wanted = wanted.hurrying(("copy-done.1", 0), "0").hurrying(("add", 0), "1")
    wanted = wanted.hurrying(("add", 0), None)
    text = wanted.options()[EAGERNESS]
    assert r'instruction_name_regex: "fusion\\.3" operand_number: 1 }' in text
    assert text.endswith(others) and text.count("overrides { ") == 3
    assert read_eagerness(text) == (wanted.eagerness, others)
    assert read_eagerness("") == ({}, None) and read_eagerness(others) == ({}, others)
    with pytest.raises(mg.InvalidInputError, match=f"{EAGERNESS}: found 'other', allowed"):
        read_eagerness("other")


@pytest.mark.parametrize(
    ("model", "folder", "hardware"),
    [
        ("lstm_lm_train_b32_t16", "tpu_v4i", "tpu_v4i_16mib"),
        ("transformer_train_4l_b8_s256", "tpu_v5e", "tpu_v5e"),
    ],
)
def test_a_use_kept_in_main_memory_spares_the_results(model, folder, hardware):
    """Without a size it would keep them there too, also where they are fetched later."""
    program = mg.load_program(f"{model}.{hardware}")
    before = SOURCE_ROOT / "benchmarks/programs/hlo/core" / folder / model / "pre_msa.hlo.pb.gz"
    asked = request(program, program.xla_plan, mg._core.read_file(bytes(before)))
    accesses, tick_of = program.accesses, {n: t for t, n in enumerate(program.instruction_names)}
    fast = set(accesses["buffer"][program.xla_plan.served_by >= 0].tolist())
    sizes = program.buffers["size_bytes"]
    kept = [one for one in asked.overrides if one.action == KEEP and one.operand is not None]
    assert kept
    for one in kept:
        assert one.size == sizes[one.buffer]
        made = accesses[accesses["tick"] == tick_of[one.instruction]]
        results = made["buffer"][(made["kind"] == UPDATE) | (made["kind"] == WRITE)]
        alike = {int(b) for b in results if sizes[b] == one.size} - {one.buffer}
        assert fast.isdisjoint(alike)


def asked_to_keep(name, folder, buffer):
    """Returns the program, and what a request says that keeps a buffer in main memory."""
    program = mg.load_program(name)
    model = name.split(".")[0]
    before = SOURCE_ROOT / "benchmarks/programs/hlo/core" / folder / model / "pre_msa.hlo.pb.gz"
    accesses = np.flatnonzero(program.accesses["buffer"] == buffer(program)).tolist()
    asked = request_of(
        program,
        mg._core.read_file(bytes(before)),
        kept={buffer(program): accesses},
        pinned=(),
        prefetches=(),
        order=(),
        preloads=(),
        settings={},
    )
    return program, accesses, asked.overrides


def test_what_is_kept_in_main_memory_is_kept_in_loops_too():
    """To the compiler it is another value there, which it would fetch inside of the loop."""
    program, accesses, asked = asked_to_keep(
        "wavernn_64steps_b8.tpu_v4i", "tpu_v4i", lambda p: p.buffer_names.index("params_3_.1")
    )
    loop = program.loops[0]
    inside = [
        access
        for access in accesses
        if loop["entry"] < program.accesses["tick"][access] < loop["exit"]
    ]
    assert inside and len(accesses) > len(inside)
    assert asked[0].operand is None and asked[0].accesses == tuple(accesses)
    assert [one.accesses for one in asked[1:]] == [(access,) for access in inside]
    assert {one.action for one in asked} == {KEEP}


def test_what_a_plain_copy_makes_is_kept_at_each_use():
    """The compiler would put a prefetch of the copy's operand in its place."""

    def copied(program):
        copies = program.instructions[program.instructions["plain_copy"]]
        return int(program.accesses["buffer"][copies["first_access"][0] + 1])

    _, accesses, asked = asked_to_keep("llama_1b_decode_8l_b4_kv1024.tpu_v5e", "tpu_v5e", copied)
    assert len(accesses) > 1
    assert {one.accesses for one in asked[1:]} == {(access,) for access in accesses[1:]}


def test_option_files(tmp_path):
    path = tmp_path / "options.json"
    mgx.save_options({"a": "1"}, path, program="p")
    assert mgx.load_options(path) == {"a": "1"}
    path.write_text("[]")
    with pytest.raises(mg.InvalidInputError, match=r"options.json: no object compiler_options"):
        mgx.load_options(path)
