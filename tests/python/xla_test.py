"""The bridge to XLA:TPU: programs are captured, and plans are carried out.

They are skipped, with the reason, where JAX or libtpu is missing.
"""

import dataclasses
import re
import subprocess
import sys

import numpy as np
import pytest
from conftest import SOURCE_ROOT
from xla_programs import LAYERS, SHAPE, jax, layers

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame.xla import negotiate as negotiating
from mallocgame.xla.option_files import read_request
from mallocgame.xla.overrides import KEEP, PIN, Request, as_xla_does, request, ways_to_ask
from mallocgame.xla.probe import Prober
from mallocgame.xla.settings import PRELOADS, WHOLE_COPIES
from mallocgame.xla.sources import find_source, workloads


def test_more_preloads_than_xlas_default(tmp_path):
    target = mgx.find_target("tpu_v4i", preloads=4)
    with mgx.Compiler(target, seconds=300, cache=None) as compiler:
        captured = mgx.capture(layers, *LAYERS, compiler=compiler, preloads=4)
        program = captured.program
        assert program.hardware.max_preloads == 4
        assert captured.xla_plan.copies["preload"].sum() == 1  # XLA's default stays the reference
        captured.save(tmp_path)
        assert mgx.load_capture(tmp_path).target == target
        # XLA's own choice of several is that of our heuristic.
        own = compiler.compile(captured.module, {"xla_max_cross_program_prefetches": "4"})
        like_xla = mg.solve(program, "xla-heuristic").plan
        assert preloaded(captured.plan_of(own)) == preloaded(like_xla)
        latencies = [
            mg.simulate(program, plan).latency_ps for plan in (captured.plan_of(own), like_xla)
        ]
        assert latencies[0] == latencies[1]
        # The compiler carries out a plan with four.
        plan = mg.solve(program, "priority", seconds=0, evaluations=3000).plan
        done = mgx.apply(captured, plan, rounds=1, compiler=compiler)
    assert done.options["xla_max_cross_program_prefetches"] == "4"
    assert preloaded(done.plan) == preloaded(plan) and len(preloaded(plan)) == 4
    assert done.verified_ps == done.predicted_ps


def preloaded(plan: mg.Plan) -> set[int]:
    """The buffers that a plan preloads."""
    residences = plan.copies["residence"][plan.copies["preload"]]
    return {int(buffer) for buffer in plan.residences["buffer"][residences]}


def test_capture(captured):
    program = captured.program
    assert (
        program.name == "layers"
        and program.cost_model == "profile"
        and program.hardware.name == "tpu_v4i"
    )
    assert program.argument_bytes == 2 * (6 * 1024 * 1024 + 256 * 1024)
    assert [name for name in program.buffer_names if name.startswith("weights_")]
    assert "jaxlib" in program.origin and "v4 lite:1x1" in program.origin
    assert mg.validate(program, captured.xla_plan).ok
    main = mg.simulate(program, mg.all_main_plan(program))
    assert mg.simulate(program, captured.xla_plan).latency_ps < main.latency_ps
    assert main.predicted_ps == 0  # both placements that were compiled have prices of their own


def test_program_that_can_t_be_all_in_main(captured, compiler, monkeypatch):
    """On v6e the compiler ends so for large training steps. What a plan decides about is kept."""
    compile_module = compiler.compile

    def ends(module, options=None):
        if options == {"xla_msa_enable": "DISABLED"}:
            raise mgx.CompilerEndedError("Unimplemented DMA from hbm to hbm")
        return compile_module(module, options)

    monkeypatch.setattr(compiler, "compile", ends)
    other = mgx.capture(layers, *LAYERS, compiler=compiler)
    assert len(other.priced) == 2 and other.priced[1] != captured.priced[1]
    main = mg.simulate(other.program, mg.all_main_plan(other.program))
    same = mg.simulate(captured.program, mg.all_main_plan(captured.program))
    assert main.latency_ps == same.latency_ps and main.predicted_ps == 0


def test_saved_and_loaded(captured, tmp_path):
    captured.save(tmp_path / "folder")
    assert mgx.load_capture(tmp_path / "folder") == captured
    program = mg.load_program(tmp_path / "folder" / "program.mgp")
    assert program.fingerprint == captured.program.fingerprint
    (tmp_path / "folder" / "meta.json").write_text("{}")
    with pytest.raises(mg.InvalidInputError, match=r"meta.json: not the description of a capture"):
        mgx.load_capture(tmp_path / "folder")


def test_same_function_same_module(captured):
    assert mgx.lower(layers, *LAYERS) == captured.module
    assert __file__ not in captured.module


def test_xla_s_own_plan_is_carried_out_exactly(captured, compiler):
    done = mgx.apply(captured, captured.xla_plan, rounds=1, compiler=compiler)
    own = mg.simulate(captured.program, captured.xla_plan)
    assert done.honoured == 1.0 and not done.refusals
    assert done.verified_ps == own.latency_ps and done.predicted_ps == own.latency_ps
    assert done.report.predicted_ps == 0


def test_a_plan_is_asked_for_without_its_order_too(captured, compiler, monkeypatch):
    """Where the compiler refuses much of it in the plan's order."""
    asked = []
    negotiate = negotiating.negotiate

    def refuses(capture, program, wanted, *rest):
        asked.append(bool(wanted.order))
        if wanted.order:
            wanted = request(program, mg.all_main_plan(program), capture.default.before)
        return negotiate(capture, program, wanted, *rest)

    monkeypatch.setattr(negotiating, "negotiate", refuses)
    done = mgx.carry_out(captured, captured.program, captured.xla_plan, compiler)
    assert asked == [True, False]
    assert done.honoured == 1.0 and not done.request.order


def test_everything_in_main_is_carried_out(captured, compiler):
    plan = mg.all_main_plan(captured.program)
    done = mgx.apply(captured, plan, rounds=1, compiler=compiler)
    assert done.honoured == 1.0 and len(done.plan.residences) == 0
    assert done.verified_ps == mg.simulate(captured.program, plan).latency_ps


def test_a_solver_s_plan(captured, compiler):
    result = mg.solve(captured.program, "greedy", seconds=5)
    done = mgx.apply(captured, result.plan, rounds=3, seconds=2, compiler=compiler)
    assert mg.validate(done.program, done.plan).ok
    assert done.honoured >= 0.9
    assert done.verified_ps == pytest.approx(done.predicted_ps, rel=0.05)


def test_plan_of_another_program(captured, compiler):
    other = mg.load_program("gcn_dense_2048.tpu_v4i")
    with pytest.raises(mg.InvalidInputError, match="but the capture is of layers"):
        mgx.apply(captured, mg.all_main_plan(other), compiler=compiler)


def test_options_are_read_back(captured):
    """The same request, whatever it asks for."""
    program, before = captured.program, captured.default.before
    plan = mg.solve(program, "greedy", seconds=5).plan
    for wanted in (
        *ways_to_ask(program, plan, before),
        as_xla_does(program).having(PRELOADS, "1").having("xla_msa_max_repacks", "0"),
        request(program, plan, before).having("xla_msa_min_overlap_to_async_copy_ratio", "0"),
        Request((), (), WHOLE_COPIES),
    ):
        again = read_request(wanted.options(), program, before)
        assert again.options() == wanted.options()
        assert [one.buffer for one in again.overrides] == [one.buffer for one in wanted.overrides]


def test_profile_teaches(captured, compiler):
    richer, lessons = mgx.profile(captured, compiles=2, compiler=compiler)
    assert 1 <= len(lessons) <= 2
    assert richer.program.counts["rows"] >= captured.program.counts["rows"]
    for lesson in lessons:
        assert lesson.error == lesson.predicted_ps / lesson.priced_ps - 1
        exact = mg.simulate(
            richer.program,
            richer.as_plan_of(richer.program, lesson.outcome.plan, lesson.outcome.program),
        )
        assert exact.latency_ps == lesson.priced_ps


@pytest.mark.parametrize(("name", "fast_mib"), [("tpu_v4i", 1), ("tpu_v4", 1), ("tpu_v6e", 3)])
def test_less_fast_memory(name, fast_mib):
    """The compiler takes some of it and no more; one that is told otherwise is found out."""
    target = mgx.find_target(name, fast_mib)
    with mgx.Compiler(target, cache=None) as small:
        little = mgx.capture(layers, *LAYERS, target=name, fast_mib=fast_mib, compiler=small)
    assert little.program.hardware.fast_bytes == fast_mib * 2**20
    plan = little.xla_plan
    sizes = little.program.buffers["size_bytes"][plan.residences["buffer"]]
    assert 0 < np.max(plan.residences["offset"] + sizes) <= fast_mib * 2**20
    with mgx.Compiler(mgx.find_target(name), cache=None) as whole:
        answer = whole.compile(little.module)
    with pytest.raises(
        mg.InvalidInputError, match=f"of fast memory; hardware '{target.hardware.name}' has"
    ):
        little.read(answer)


@pytest.mark.parametrize("name", sorted(set(mgx.TARGETS) - {"tpu_v4i"}))
def test_every_chip(name):
    """XLA's own plan is a valid one there, and is carried out again."""
    with mgx.Compiler(mgx.find_target(name), cache=None) as compiler:
        captured = mgx.capture(layers, *LAYERS, target=name, compiler=compiler)
        program, plan = captured.program, captured.xla_plan
        done = mgx.apply(captured, plan, rounds=1, compiler=compiler)
    assert program.hardware == mg.Hardware.preset(name)
    assert mg.validate(program, plan).ok
    assert len(plan.residences) and not np.any(plan.residences["offset"] % 4096)
    assert done.honoured == 1.0 and done.verified_ps == mg.simulate(program, plan).latency_ps


def test_refused_options(captured, compiler):
    with pytest.raises(mgx.CompilerRefusedError, match="no_such_option"):
        compiler.compile(captured.module, {"no_such_option": "1"})
    assert compiler.compile(captured.module) == captured.default  # the compiler goes on


def test_cache(captured, compiler):
    before = compiler.compiles
    assert compiler.compile(captured.module) == captured.default
    assert compiler.compiles == before
    with mgx.Compiler(compiler.target, cache=None) as other:
        assert other.compile(captured.module).priced == captured.default.priced
        assert other.compiles == 1


def test_function_that_can_t_be_lowered():
    with pytest.raises(mg.InvalidInputError, match="layers: JAX can't lower it: TypeError"):
        mgx.lower(layers, [SHAPE((3, 4), "bfloat16")], SHAPE((5, 6), "bfloat16"))


def test_captured_dump(captured, compiler, tmp_path):
    """A capture of what a user's own compile dumped, without its module.

    It is priced, but can't be compiled again.
    """
    for field, name in (
        ("before", "after_optimizations_before_buffer_assignment"),
        ("assigned", "after_optimizations"),
        ("priced", "after_codegen"),
    ):
        (tmp_path / f"module_0000.jit_layers.{name}.hlo.pb").write_bytes(
            getattr(captured.default, field)
        )
    dumped = mgx.capture_dump(tmp_path, "tpu_v4i", name="layers")
    assert dumped.default == captured.default
    assert dumped.xla_plan.served_by.tolist() == captured.xla_plan.served_by.tolist()
    with pytest.raises(mg.InvalidInputError, match="captured without its StableHLO module"):
        mgx.apply(dumped, dumped.xla_plan, compiler=compiler)
    with pytest.raises(mg.MissingFileError, match="xla_dump_to"):
        mgx.capture_dump(tmp_path / "empty", "tpu_v4i")


def test_command_line(run, run_json, tmp_path):
    (tmp_path / "mine.py").write_text(
        "import jax\n"
        "def made():\n"
        "    shape = jax.ShapeDtypeStruct((512, 512), 'bfloat16')\n"
        "    return (lambda a, b: jax.nn.relu(a @ b) @ b), (shape, shape)\n"
    )
    cache = ("--cache", tmp_path / "cache")
    row = run_json("xla", "capture", "mine:made", "-o", "folder", *cache)
    assert (
        row["program"] == "made" and row["valid"] is True and row["xla_ps"] == row["latency_ps"] > 0
    )
    assert "not a measurement" in row["estimate"]
    solved = run_json("solve", "folder/program.mgp", "--solver", "greedy", "-o", "plan.json")
    applied = run_json(
        "xla", "apply", "folder", "plan.json", "--rounds", 1, "-o", "options.json", *cache
    )
    assert applied["predicted_ps"] == solved["latency_ps"] and 0 <= applied["honoured"] <= 1
    assert applied["verified_speedup"] == pytest.approx(applied["xla_ps"] / applied["verified_ps"])
    assert mgx.load_options(tmp_path / "options.json")
    own = ("xla", "apply", "folder", "xla-assigned", "--rounds", 1, "--options", "kept")
    text = run(*own, *cache)
    assert not (tmp_path / "kept").exists() and "so kept stays as it is" in text.stdout
    assert (
        text.returncode == 0
        and "100.0%" in text.stdout
        and "not a measurement on a chip" in text.stdout
    )
    for wrong, message in ((("mine:nothing",), "has no 'nothing'"), (("resnet50",), "no workload")):
        failed = run("xla", "capture", *wrong, "-o", "folder")
        # Progress may stand above it.
        assert failed.returncode == 2 and message in failed.stderr.splitlines()[-1], failed.stderr


def test_workloads_can_be_traced():
    found = workloads()
    assert len(found) >= 25
    for name in (
        "llama_1b_decode_8l_b4_kv1024",
        "efficientnet_b0_b8",
        "whisper_tiny_b1",
        "gnn_meshgraph_4k",
    ):
        _, function, args = find_source(name)
        leaves = jax.tree.leaves(jax.eval_shape(function, *args))
        assert leaves and all(leaf.size > 0 for leaf in leaves)


def test_workload_is_the_corpus_program(compiler):
    name, function, args = find_source("wavernn_64steps_b8")
    program = mgx.capture(function, *args, name=name, compiler=compiler).program
    bundled = mg.load_program("wavernn_64steps_b8.tpu_v4i")
    assert program.instruction_names == bundled.instruction_names
    assert program.buffer_names == bundled.buffer_names
    assert np.array_equal(program.accesses, bundled.accesses)
    assert (
        mg.simulate(program, program.xla_plan).latency_ps
        == mg.simulate(bundled, bundled.xla_plan).latency_ps
    )


def test_compiler_for_another_target(captured):
    with (
        mgx.Compiler(mgx.find_target("tpu_v5e"), cache=None) as other,
        pytest.raises(
            mg.InvalidInputError, match=r"found one for tpu_v5e .*, the program is for tpu_v4i"
        ),
    ):
        mgx.apply(captured, captured.xla_plan, compiler=other)
    assert other.compiles == 0


def test_what_is_made_in_fast_memory_and_leaves_later_is_pinned(compiler):
    """Its definition is pinned, and its last use is kept in main memory, if that can be."""

    def skip(weights, x):
        first = x = jax.nn.relu(x @ weights[0])
        for weight in weights[1:]:
            x = jax.nn.relu(x @ weight)
        return x * first

    captured = mgx.capture(skip, *LAYERS, compiler=compiler)
    program = captured.program
    made = program.buffer_names.index("convolution_maximum_fusion.5")
    written, read, read_last = np.flatnonzero(program.accesses["buffer"] == made).tolist()
    game = mg.Game(program, required=[written, read], forbidden=[read_last])
    plan = mg.solve(game, "xla-heuristic").plan
    asked = request(program, plan, captured.default.before)
    assert {(one.action, one.accesses) for one in asked.overrides if one.buffer == made} == {
        (PIN, (written, read)),
        (KEEP, (read_last,)),
    }
    done = mgx.apply(captured, plan, rounds=1, compiler=compiler)
    assert done.plan.served_by[written] >= 0 and done.plan.served_by[read] >= 0
    assert mg.validate(done.program, done.plan).ok


def test_sizes_in_the_order_change_no_place(captured, compiler):
    """They only spare the compiler comparisons of names; one that is wrong is overlooked."""
    program = captured.program
    prober = Prober(captured, compiler)
    wanted = request(program, captured.xla_plan, captured.default.before)
    assert wanted.order and all(
        size == program.buffers["size_bytes"][program.buffer_names.index(name)]
        for name, size in wanted.order
    )
    last_first = dataclasses.replace(wanted, order=wanted.order[::-1])
    places = []
    for options in (wanted.options(), last_first.options()):
        order = options["xla_tpu_msa_sort_order_overrides"]
        assert len(re.findall(r"size_gte: (\d+) size_lte: \1 ", order)) == len(wanted.order)
        without = options | {
            "xla_tpu_msa_sort_order_overrides": re.sub(r" size_[gl]te: \d+", "", order)
        }
        looks = [
            captured.plan_of(prober.compile(captured.module, asked)) for asked in (options, without)
        ]
        assert np.array_equal(looks[0].residences, looks[1].residences)
        places.append(looks[0].residences["offset"].tolist())
    assert places[0] != places[1]  # So the order is obeyed.


def test_example(tmp_path):
    example = SOURCE_ROOT / "examples" / "import_from_jax.py"
    done = subprocess.run(
        [sys.executable, str(example), "tpu_v5e", "2"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "not a measurement on a chip" in done.stdout and mgx.load_options(
        tmp_path / "options.json"
    )
