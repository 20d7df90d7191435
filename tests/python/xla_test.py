"""The bridge to XLA:TPU: programs are captured, and plans are carried out.

They are skipped, with the reason, where JAX or libtpu is missing.
"""

import dataclasses

import numpy as np
import pytest
from xla_programs import LAYERS, SHAPE, jax, layers

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame.xla.captures import shared
from mallocgame.xla.lowering import compiler_options
from mallocgame.xla.sources import find_source, workloads
from mallocgame.xla.tuned_folders import Key, TunedFolder

pytestmark = pytest.mark.full


def test_capture(captured):
    program = captured.program
    assert program.name == "layers" and program.cost_model == "profile"
    assert program.hardware.name == "tpu_v4i"
    assert program.argument_bytes == 2 * (6 * 1024 * 1024 + 256 * 1024)
    assert [name for name in program.buffer_names if name.startswith("weights_")]
    assert "jaxlib" in program.origin and "v4 lite:1x1" in program.origin
    assert captured.xla_verdict.ok
    own = mg.simulate(program, captured.xla_plan)
    main = mg.simulate(program, mg.all_main_plan(program))
    assert own.latency_ps < main.latency_ps
    assert own.predicted_ps == main.predicted_ps == 0  # the compiler has priced both


def test_workload_is_the_corpus_program(compiler):
    """The phases schedule, place and price as the whole compiles that the corpus was made by."""
    name, function, args = find_source("wavernn_64steps_b8")
    program = mgx.capture(function, *args, name=name, compiler=compiler).program
    bundled = mg.load_program("wavernn_64steps_b8.tpu_v4i")
    assert program.instruction_names == bundled.instruction_names
    assert program.buffer_names == bundled.buffer_names
    assert np.array_equal(program.buffers, bundled.buffers)
    assert np.array_equal(program.accesses, bundled.accesses)
    assert program.xla_plan.served_by.tolist() == bundled.xla_plan.served_by.tolist()
    assert (
        mg.simulate(program, program.xla_plan).latency_ps
        == mg.simulate(bundled, bundled.xla_plan).latency_ps
    )


def test_workloads_can_be_traced():
    found = workloads()
    assert len(found) >= 25
    for name in (
        "llama_1b_decode_8l_b4_kv1024",
        "efficientnet_b0_b8",
        "whisper_tiny_b1",
        "gnn_meshgraph_4k",
        "llama_draft_12l_b8_4words",
        "griffin_2b_prefill_26l_s1024",
        "moe_decode_24l_b32_kv1024_ep4",
    ):
        _, function, args = find_source(name)
        leaves = jax.tree.leaves(jax.eval_shape(function, *args))
        assert leaves and all(leaf.size > 0 for leaf in leaves)


def test_saved_and_loaded(captured_loop, tmp_path):
    captured_loop.save(tmp_path / "folder")
    assert mgx.load_capture(tmp_path / "folder") == captured_loop
    program = mg.load_program(tmp_path / "folder" / "program.mgp")
    assert program.fingerprint == captured_loop.program.fingerprint
    (tmp_path / "folder" / "meta.json").write_text("{}")
    with pytest.raises(mg.InvalidInputError, match=r"meta.json: not the description of a capture"):
        mgx.load_capture(tmp_path / "folder")


def test_more_prices(captured):
    assert captured.with_prices(captured.prices) is captured
    name = "convolution_maximum_fusion"
    known, more = captured.prices[name], {("111", "1"): 7}
    richer = captured.with_prices({name: more})
    assert richer.prices == {**captured.prices, name: {**known, **more}}
    assert richer.program.fingerprint != captured.program.fingerprint


def test_same_function_same_module(captured):
    assert mgx.lower(layers, *LAYERS) == captured.module
    assert __file__ not in captured.module


def test_function_that_can_t_be_lowered():
    with pytest.raises(mg.InvalidInputError, match="layers: JAX can't lower it: TypeError"):
        mgx.lower(layers, [SHAPE((3, 4), "bfloat16")], SHAPE((5, 6), "bfloat16"))


def test_compiler_options_of_jit(compiler):
    """The program is compiled with them, or nothing is made of it."""
    given = {"xla_no_such_option": 7, "xla_msa_enable": "DISABLED", "xla_other": True}
    optioned = jax.jit(layers, compiler_options=given)
    assert compiler_options(optioned) == {
        "xla_no_such_option": "7",
        "xla_msa_enable": "DISABLED",
        "xla_other": "true",
    }
    assert compiler_options(layers) == compiler_options(jax.jit(layers)) == {}
    with pytest.raises(mgx.compiler.CompilerRefusedError, match=r"No such compile option.*xla_"):
        mgx.capture(optioned, *LAYERS, compiler=compiler)
    with pytest.raises(mg.InvalidInputError, match=r"JAX can't lower it: .*compiler_options"):
        mgx.capture(lambda *args: optioned(*args), *LAYERS, compiler=compiler)
    with pytest.raises(mg.InvalidInputError, match="compiler_options: found some"):
        mgx.jit(optioned, executables="none")


def test_compiler_with_other_options(tmp_path):
    """A compiler lends another one with the program's own options."""
    options = {"xla_msa_enable": "DISABLED"}
    with mgx.Compiler(mgx.find_target("tpu_v5e"), cache=tmp_path) as compiler:
        wanted = mgx.find_target("tpu_v5e", options=options)
        with shared(compiler, wanted) as lent:
            assert lent.target == wanted
            assert (lent.seconds, lent.memory_bytes) == (compiler.seconds, compiler.memory_bytes)


@pytest.mark.weekly
@pytest.mark.parametrize(("name", "fast_mib"), [("tpu_v4i", 1), ("tpu_v4", 1), ("tpu_v6e", 3)])
def test_less_fast_memory(name, fast_mib):
    """The compiler takes some of it and no more."""
    with mgx.Compiler(mgx.find_target(name, fast_mib), cache=None) as compiler:
        little = mgx.capture(layers, *LAYERS, target=name, fast_mib=fast_mib, compiler=compiler)
    assert little.program.hardware.fast_bytes == fast_mib * 2**20
    plan = little.xla_plan
    sizes = little.program.buffers["size_bytes"][plan.residences["buffer"]]
    assert 0 < np.max(plan.residences["offset"] + sizes) <= fast_mib * 2**20


@pytest.mark.weekly
@pytest.mark.parametrize("name", sorted(set(mgx.TARGETS) - {"tpu_v4i"}))
def test_every_chip(name):
    """XLA's own plan is a valid one there, and is carried out as it is."""
    with mgx.Compiler(mgx.find_target(name), cache=None) as compiler:
        captured = mgx.capture(layers, *LAYERS, target=name, compiler=compiler)
        done = mgx.apply(captured, captured.xla_plan, compiler)
    program, plan = captured.program, captured.xla_plan
    assert program.hardware == mg.Hardware.preset(name)
    assert captured.xla_verdict.ok
    assert len(plan.residences) and not np.any(plan.residences["offset"] % 4096)
    assert done.plan.served_by.tolist() == plan.served_by.tolist()
    assert done.report.latency_ps == mg.simulate(program, plan).latency_ps


def plan_of_a_random_game(program: mg.Program, seed: int) -> mg.Plan:
    state = mg.Game(program).initial_state()
    choose = np.random.default_rng(seed)
    while not state.is_terminal:
        state.apply(int(choose.choice(state.legal_actions())))
    return state.plan()


PLANS = {
    "XLA's own": lambda program: program.xla_plan,
    "all in main memory": mg.all_main_plan,
    "a solver's": lambda program: mg.solve(program, "portfolio", seconds=0, evaluations=500).plan,
    "a random game's": lambda program: plan_of_a_random_game(program, 1),
    "another random game's": lambda program: plan_of_a_random_game(program, 2),
}


@pytest.mark.parametrize(
    ("of", "made"),
    [
        *(("captured_loop", made) for made in PLANS),
        ("captured", "a solver's"),
        *(
            pytest.param("captured", made, marks=pytest.mark.weekly)
            for made in PLANS
            if made != "a solver's"
        ),
    ],
)
def test_a_plan_is_carried_out_as_it_is(request, compiler, of, made):
    captured = request.getfixturevalue(of)
    plan = PLANS[made](captured.program)
    done = mgx.apply(captured, plan, compiler)
    assert done.plan.served_by.tolist() == plan.served_by.tolist()
    assert np.array_equal(done.plan.residences, plan.residences)
    assert done.report.predicted_ps == 0  # all of it has the compiler's prices
    assert done.executable
    expected = mg.simulate(captured.program, plan)
    if expected.predicted_ps == 0:
        assert done.report.latency_ps == expected.latency_ps
        assert done.report.latency_cold_ps == expected.latency_cold_ps


def test_executables_are_kept_for_jit(captured, compiler, tmp_path):
    done = mgx.apply(captured, captured.xla_plan, compiler, executables=tmp_path)
    found = TunedFolder(tmp_path).find(Key.of(captured))
    assert found is not None and found.executable() == done.executable
    assert found.about["latency_ps"] == done.report.latency_ps
    assert found.about["speedup"] == 1.0


def test_plan_of_another_program(captured, compiler):
    other = mg.load_program("gcn_dense_2048.tpu_v4i")
    with pytest.raises(mg.InvalidInputError, match="but the capture is of layers"):
        mgx.apply(captured, mg.all_main_plan(other), compiler)


def test_a_plan_that_breaks_a_rule(captured, compiler):
    """What the compiler would link without a word is refused before it is asked."""
    plan, program = captured.xla_plan, captured.program
    residences = plan.residences.copy()
    residences["offset"] = 0
    wrong = mg.Plan.of(program, program.hardware, residences, plan.copies, plan.served_by)
    before = compiler.phases
    with pytest.raises(mgx.emitting.PlanRefusedError, match=r"layers: .*rule 'space'") as refused:
        mgx.apply(captured, wrong, compiler)
    assert refused.value.rule == "space"
    assert compiler.phases["phase3_linking"] == before["phase3_linking"]


def test_compiler_for_another_target(captured):
    with (
        mgx.Compiler(mgx.find_target("tpu_v5e"), cache=None) as other,
        pytest.raises(
            mg.InvalidInputError, match=r"found one for tpu_v5e .*, the program is for tpu_v4i"
        ),
    ):
        mgx.apply(captured, captured.xla_plan, other)
    assert not other.phases


@pytest.fixture(scope="module")
def dump(captured, tmp_path_factory):
    """A user's own compile of the layers, as XLA dumps it."""
    folder = tmp_path_factory.mktemp("dump")
    with mgx.Compiler(captured.target, cache=None) as compiler:
        compiled = compiler.compile(captured.module)
    for field, name in (
        ("before", "after_optimizations_before_buffer_assignment"),
        ("assigned", "after_optimizations"),
        ("priced", "after_codegen"),
    ):
        path = folder / f"module_0000.jit_layers.{name}.hlo.pb"
        path.write_bytes(getattr(compiled, field))
    return folder


@pytest.mark.weekly
def test_a_dump_is_captured(dump, captured, compiler, tmp_path):
    """It is the same program, but without its module it can't be compiled again."""
    dumped = mgx.capture_dump(dump, "tpu_v4i", name="layers")
    assert dumped.program.instruction_names == captured.program.instruction_names
    assert dumped.xla_plan.served_by.tolist() == captured.xla_plan.served_by.tolist()
    latencies = [mg.simulate(one.program, one.xla_plan).latency_ps for one in (dumped, captured)]
    assert latencies[0] == latencies[1]
    dumped.save(tmp_path / "saved")
    assert mgx.load_capture(tmp_path / "saved") == dumped
    with pytest.raises(mg.InvalidInputError, match="captured without its StableHLO module"):
        mgx.apply(dumped, dumped.xla_plan, compiler)
    with pytest.raises(mg.errors.MissingFileError, match="xla_dump_to"):
        mgx.capture_dump(tmp_path / "empty", "tpu_v4i")


def test_what_is_left(captured_loop, compiler):
    """XLA reads the weights in every iteration, and no bound forbids to bring them in once."""
    pytest.importorskip("highspy", reason="needs highspy: pip install 'mallocgame[milp]'")
    left = mgx.what_is_left(captured_loop, 30, compiler)
    assert left.is_worth_tuning and left.share > 1 and left.priced > 0
    assert 0 < left.bound_ps < left.xla.latency_ps
    assert left.capture.program.counts["rows"] > captured_loop.program.counts["rows"]
    assert left.waiting == ()


def test_what_is_left_names_what_waits_for_a_price(captured_loop, compiler):
    """With no time for prices, and where a capture had too little for one of both placements."""
    pytest.importorskip("highspy", reason="needs highspy: pip install 'mallocgame[milp]'")
    names = captured_loop.program.instruction_names
    left = mgx.what_is_left(captured_loop, 0, compiler)
    assert left.priced == 0 and left.waiting and set(left.waiting) <= set(names)
    late = next(iter(captured_loop.prices))
    hurried = dataclasses.replace(captured_loop, late=(late,))
    assert hurried.unpriced == []
    assert mgx.what_is_left(hurried, 30, compiler).waiting == (late,)
