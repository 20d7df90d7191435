"""The bridge to XLA:TPU: real compiles of three small programs.

They are skipped, with the reason, where JAX or libtpu is missing.
"""

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import SOURCE_ROOT

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame.xla.imitation import Imitation
from mallocgame.xla.option_files import read_request
from mallocgame.xla.overrides import (
    KEEP,
    PIN,
    Override,
    Request,
    as_xla_does,
    changed,
    request,
    ways_to_ask,
)
from mallocgame.xla.probe import Climb, Prober, _other_schedule, find_main_memory
from mallocgame.xla.sources import find_source, workloads

os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax = pytest.importorskip("jax", reason="needs JAX: pip install 'mallocgame[xla]'")
pytest.importorskip("libtpu", reason="needs libtpu: pip install 'mallocgame[xla]'")

SHAPE = jax.ShapeDtypeStruct


def layers(weights, x):
    """Six dense layers whose weights fit into fast memory."""
    for weight in weights:
        x = jax.nn.relu(x @ weight)
    return x


LAYERS = ([SHAPE((1024, 1024), "bfloat16")] * 6, SHAPE((256, 1024), "bfloat16"))


def loop(weight, x):
    """The same weights in every iteration."""
    return jax.lax.fori_loop(0, 50, lambda _, state: jax.numpy.tanh(state @ weight), x)


LOOP = (SHAPE((1024, 1024), "bfloat16"), SHAPE((8, 1024), "bfloat16"))


@pytest.fixture(scope="module")
def compiler(tmp_path_factory):
    with mgx.Compiler(
        mgx.find_target("tpu_v4i"), seconds=300, cache=tmp_path_factory.mktemp("cache")
    ) as shared:
        yield shared


@pytest.fixture(scope="module")
def captured(compiler) -> mgx.Capture:
    return mgx.capture(layers, *LAYERS, compiler=compiler)


@pytest.fixture(scope="module")
def tuned_loop(compiler) -> mgx.Tuned:
    return mgx.tune(loop, *LOOP, seconds=15, compiles=2, compiler=compiler)


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


def test_tuned_loop(tuned_loop):
    """XLA reads the weights from main memory in every iteration.

    Brought in once, they save most of the time.
    """
    assert tuned_loop.speedup > 1.2 and tuned_loop.speedup_cold > 1.2
    assert tuned_loop.best.verified_ps < tuned_loop.xla.latency_ps
    assert "xla_tpu_msa_tensor_overrides" in tuned_loop.options


def test_time_is_kept(tuned_loop, compiler):
    """To within one compile that has begun."""
    found = []
    tuned = mgx.tune_capture(tuned_loop.capture, 12, compiler=compiler, found=found.append)
    assert tuned.seconds < 12 + compiler.longest + 5 and not tuned.interrupted
    assert [one.options for one in found][-1:] == [tuned.options]


def test_interrupted(tuned_loop, compiler):
    """What was found by then comes back."""

    def stop(_: mgx.Outcome) -> None:
        raise KeyboardInterrupt

    tuned = mgx.tune_capture(tuned_loop.capture, 60, compiler=compiler, found=stop)
    assert tuned.interrupted and tuned.speedup > 1 and tuned.seconds < 60


def test_going_on(tuned_loop, compiler):
    """It is no worse than what it starts from, however little time there is."""
    best = tuned_loop.options
    capture = tuned_loop.capture
    found = []
    tuned = mgx.tune_capture(capture, 1, compiler=compiler, found=found.append, start=best)
    assert tuned.speedup >= tuned_loop.speedup and found[0].options == best
    with pytest.raises(mg.InvalidInputError, match="others than tune"):
        other = {"xla_max_cross_program_prefetches": "0", "other": "1"}
        mgx.tune_capture(capture, 1, compiler=compiler, start=other)
    with pytest.raises(mg.InvalidInputError, match="has nothing like: overrides"):
        keep = Override(KEEP, 0, (), "no_such_instruction", None, ())
        mgx.tune_capture(
            capture, 1, compiler=compiler, start=Request((keep,), (), sliced=True).options()
        )
    with pytest.raises(mg.InvalidInputError, match="not an override of mallocgame: what"):
        mgx.tune_capture(
            capture, 1, compiler=compiler, start={"xla_tpu_msa_tensor_overrides": "what"}
        )


def test_options_are_read_back(captured):
    """The same request, whatever it asks for."""
    program, before = captured.program, captured.default.before
    plan = mg.solve(program, "greedy", seconds=5).plan
    for wanted in (*ways_to_ask(program, plan, before), Request((), (), sliced=False)):
        again = read_request(wanted.options(), program, before)
        assert again.options() == wanted.options()
        assert [one.buffer for one in again.overrides] == [one.buffer for one in wanted.overrides]


def test_interrupted_command(tuned_loop, tmp_path):
    """Options are written as they are found, and again when Ctrl-C ends the command."""
    tuned_loop.capture.save(tmp_path / "loop")
    command = [sys.executable, "-m", "mallocgame", "xla", "tune", "loop", "--no-cache"]
    running = subprocess.Popen(
        [*command, "-o", "options.json", "--seconds", "200", "--json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        begin = time.monotonic()
        while not (tmp_path / "options.json").exists() and time.monotonic() - begin < 150:
            time.sleep(0.1)
        assert mgx.load_options(tmp_path / "options.json")
        running.send_signal(signal.SIGINT)
        row = json.loads(running.communicate(timeout=60)[0])
    finally:
        running.kill()
    assert running.returncode == 130 and row["interrupted"] and row["verified_speedup"] > 1
    assert mgx.load_options(tmp_path / "options.json")


def test_options_do_the_same_in_jax(tuned_loop):
    """As a user would compile: the same instructions at the same prices."""
    script = f"""
import json, re, sys
import jax
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding
device = topologies.get_topology_desc(platform="tpu", topology_name="v4 lite:1x1").devices[0]
chip = SingleDeviceSharding(device)
shapes = {[shape.shape for shape in LOOP]}
args = [jax.ShapeDtypeStruct(shape, "bfloat16", sharding=chip) for shape in shapes]
def loop(weight, x):
    return jax.lax.fori_loop(0, 50, lambda _, state: jax.numpy.tanh(state @ weight), x)
compiled = jax.jit(loop).lower(*args).compile(compiler_options=json.load(sys.stdin))
print(sorted(map(int, re.findall(r'"estimated_cycles":"(\\d+)"', compiled.as_text()))))
"""
    environment = os.environ | {
        "TPU_SKIP_MDS_QUERY": "1",
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
        "JAX_PLATFORMS": "cpu",
    }
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(tuned_loop.options),
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    ours = re.findall(rb'"estimated_cycles":"(\d+)"', tuned_loop.best.compiled.priced)
    assert json.loads(done.stdout.splitlines()[-1]) == sorted(map(int, ours))


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


def test_less_fast_memory(tmp_path):
    with mgx.Compiler(mgx.find_target("tpu_v4i", 1), cache=None) as small:
        little = mgx.capture(layers, *LAYERS, fast_mib=1, compiler=small)
    assert little.program.hardware.fast_bytes == 2**20
    plan = little.xla_plan
    sizes = little.program.buffers["size_bytes"][plan.residences["buffer"]]
    assert np.all(plan.residences["offset"] + sizes <= 2**20)


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


def test_program_for_several_chips():
    mesh = jax.sharding.AbstractMesh((2,), ("chips",), axis_types=(jax.sharding.AxisType.Auto,))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("chips"))
    with pytest.raises(mg.InvalidInputError, match="is for 2 chips"):
        mgx.lower(lambda x: x + 1, SHAPE((8, 128), "float32", sharding=sharding))


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
    text = run("xla", "apply", "folder", "xla-assigned", "--rounds", 1, *cache)
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


def test_changing_what_is_asked(captured):
    """On top of what XLA does by itself, only buffers that are named are asked for."""
    program, plan = captured.program, mg.all_main_plan(captured.program)
    nothing = Request((), (), sliced=True)
    assert changed(nothing, program, plan, captured.default.before, ()) == nothing
    moved = np.unique(program.accesses["buffer"][captured.xla_plan.served_by >= 0]).tolist()
    other = changed(nothing, program, plan, captured.default.before, moved)
    assert {one.buffer for one in other.overrides} == set(moved)
    assert {one.action for one in other.overrides} == {KEEP}
    assert (
        changed(other, program, plan, captured.default.before, moved[:1]).overrides[-1].buffer
        == moved[0]
    )


def test_a_look_is_what_a_compile_does(captured, compiler):
    """The same plan, without code generation, and with its refusals."""
    plan = mg.solve(captured.program, "greedy", seconds=5).plan
    before, looks_before = compiler.compiles, compiler.looks
    prober = Prober(captured, compiler)
    look = prober.ask(captured, request(captured.program, plan, captured.default.before))
    assert compiler.looks >= looks_before + 2  # the first finds out how to look
    assert compiler.compiles == before
    done = prober.verify(captured, look)
    assert np.array_equal(done.plan.served_by, look.plan.served_by) and done.honoured == 1.0
    assert np.array_equal(done.plan.residences, look.plan.residences)
    assert np.array_equal(done.plan.copies, look.plan.copies)
    assert done.predicted_ps == mg.simulate(captured.program, look.plan).latency_ps


def test_a_look_at_a_program_that_memory_could_be_saved_in():
    """Told of too little main memory the compiler would make values of this decoder twice.

    Then its schedule would be another one, and a look would not say what a compile does.
    """
    name, function, args = find_source("whisper_tiny_b1")
    with mgx.Compiler(mgx.find_target("tpu_v5e"), seconds=600, cache=None) as compiler:
        captured = mgx.capture(function, *args, target="tpu_v5e", name=name, compiler=compiler)
        mib = find_main_memory(captured, compiler)
        assert isinstance(mib, int), mib
        look = captured.plan_of(compiler.look(captured.module, {}, mib))
        assert np.array_equal(look.served_by, captured.xla_plan.served_by)
        # With hardly any main memory it is another schedule still.
        where = _other_schedule(captured, compiler, 1)
        assert where is not None and "is another from number" in where


def test_ways_to_ask(captured):
    """What XLA would do anyhow is asked for by few words."""
    program, before = captured.program, captured.default.before
    fewest, ordered, whole = ways_to_ask(program, captured.xla_plan, before)
    assert fewest == as_xla_does(program) and not fewest.overrides
    assert whole == request(program, captured.xla_plan, before)
    assert ordered == dataclasses.replace(fewest, order=whole.order) and whole.order
    fewest, _, _ = ways_to_ask(program, mg.all_main_plan(program), before)
    moved = np.unique(program.accesses["buffer"][captured.xla_plan.served_by >= 0])
    assert {one.buffer for one in fewest.overrides} == set(moved.tolist())


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


def test_climb_reaches_a_plan(captured, compiler):
    """From everything in main memory to XLA's own plan."""
    program = captured.program
    prober = Prober(captured, compiler)
    bottom = prober.ask(
        captured, request(program, mg.all_main_plan(program), captured.default.before)
    )
    top = mg.simulate(program, captured.xla_plan)
    most = bottom.report.latency_ps, bottom.report.latency_cold_ps
    climb = Climb(captured, prober, bottom, most, seed=0)
    climb.to(captured.xla_plan)
    assert climb.best.report.latency_ps <= top.latency_ps < bottom.report.latency_ps
    assert climb.seen and not any(look.exceeds(most) for look in climb.seen)


def test_imitation_is_no_worse_than_the_heuristic():
    program = mg.load_program("mlp_train_adam_b512.tpu_v4i")
    heuristic = mg.solve(program, "xla-heuristic").report
    imitation = Imitation(program, heuristic.latency_cold_ps, seed=1)
    latencies = [heuristic.latency_ps]
    for _ in range(2):  # the second goes on from the first
        plan = imitation.plan(program, seconds=0.5)
        assert mg.validate(program, plan).ok
        latencies.append(mg.simulate(program, plan).latency_ps)
    assert latencies == sorted(latencies, reverse=True)


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
