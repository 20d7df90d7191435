"""For daily use: jit() with a folder of programs, measure(), and every program of a run.

They are skipped, with the reason, where JAX or libtpu is missing.
"""

import pickle
import subprocess
import sys
from types import SimpleNamespace

import pytest
from conftest import SOURCE_ROOT
from xla_programs import SHAPE, jax

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame.xla import dumps
from mallocgame.xla.compiler import inherited_flags
from mallocgame.xla.lowering import fingerprint
from mallocgame.xla.targets import target_of_device
from mallocgame.xla.tuned_folders import Key, TunedFolder

pytestmark = pytest.mark.full

# What libtpu dumps of this function: constants are moved and shared, and defaults are left out.
DUMPED = """#loc = loc(unknown)
#loc1 = loc("a")
module @jit_scaled attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @empty_mesh = <[]> {stablehlo.mesh = {axes = []}} loc(#loc)
  func.func public @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@empty_mesh,
      [{}, {}]>} loc("a")) -> (tensor<8x8xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32> loc(#loc)
    %0 = stablehlo.dot_general %arg0, %arg0, contracting_dims = [1] x [0]
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc(#loc4)
    %1 = stablehlo.broadcast_in_dim %cst, dims = []
      : (tensor<f32>) -> tensor<8x8xf32> loc(#loc5)
    %2 = stablehlo.multiply %0, %1 : tensor<8x8xf32> loc(#loc5)
    return %2 : tensor<8x8xf32> loc(#loc3)
  } loc(#loc)
} loc(#loc)
#loc2 = loc("mine.py":7:9 to :14)
#loc3 = loc("jit(scaled)"(#loc2))
#loc4 = loc("jit(scaled)/dot_general"(#loc2))
#loc5 = loc("jit(scaled)/mul"(#loc2))
"""


def scaled(a):
    return a @ a * 2.0


def test_fingerprint():
    """The same for shapes, arrays and what was dumped; another for another program."""
    one = jax.numpy.ones((8, 8))
    texts = [
        mgx.lower(scaled, SHAPE((8, 8), "float32")),
        mgx.lower(jax.jit(scaled), one),
        mgx.lower(mgx.jit(scaled, executables="none"), jax.device_put(one, jax.devices()[0])),
        DUMPED,
    ]
    assert len({fingerprint(text) for text in texts}) == 1 < len(set(texts))
    others = [
        mgx.lower(scaled, SHAPE((8, 8), "bfloat16")),
        mgx.lower(jax.jit(scaled, donate_argnums=0), one),
        DUMPED.replace('"a"', '"b"'),
        DUMPED.replace("dense<2", "dense<3"),
    ]
    assert len({fingerprint(text) for text in [*texts, *others]}) == 1 + len(others)
    with pytest.raises(mg.InvalidInputError, match="no StableHLO text"):
        fingerprint("modul")


def test_jit_compiles_as_xla_does_where_there_is_no_tpu():
    """It says why, once; all else is as with jax.jit."""
    sevenfold = mgx.jit(lambda a, times: a * times, executables="none", static_argnames="times")
    one = jax.numpy.ones(3)
    with pytest.warns(mgx.NotTunedWarning, match="is compiled as XLA does: it is for cpu") as said:
        assert sevenfold(one, 7).tolist() == [7.0] * 3
        assert sevenfold(one, times=2).tolist() == sevenfold(one, 2).tolist() == [2.0] * 3
        assert sevenfold(jax.numpy.ones(4), 7).shape == (4,)
    assert len(said) == 1 and said[0].filename == __file__
    assert sevenfold.lower(one, 7).compile()(one).tolist() == [7.0] * 3
    assert sevenfold.trace(one, 7).jaxpr.out_avals[0].shape == (3,)
    assert sevenfold.eval_shape(one, 7).shape == (3,)


def test_a_strict_jit_raises_in_place_of_the_warning(recwarn):
    """At each call, before anything is compiled or run; not where the function is only a part."""

    @mgx.jit(executables="none", strict=True)
    def add(a):
        return a + 1

    one = jax.numpy.ones(3)
    copied = pickle.loads(pickle.dumps(mgx.jit(scaled, executables="none", strict=True)))
    for call in (add, add, add.lower, add.trace, copied):
        with pytest.raises(mgx.NotTunedWarning, match="is not tuned, and strict: it is for cpu"):
            call(one)
    assert add.eval_shape(one).shape == (3,) and add.untuned(one).tolist() == [2.0] * 3
    assert jax.jit(add)(one).tolist() == [2.0] * 3
    assert not recwarn.list


def test_jit_as_a_part_of_something_larger(recwarn):
    """Of a transformation, a method, or a decorator with donated arguments."""

    @mgx.jit(executables="none", donate_argnums=0)
    def add(total, step):
        """Adds."""
        return jax.tree.map(lambda one: one + step, total)

    assert add.__name__ == "add" and add.__doc__ == "Adds."
    step = jax.numpy.ones(3)
    assert jax.jit(lambda a: add(a, step))(step + 0).tolist() == [2.0] * 3
    assert jax.vmap(add)(step + 0, step).tolist() == [2.0] * 3
    assert jax.grad(lambda a: add(a, step).sum())(step + 0).tolist() == [1.0] * 3
    assert not recwarn.list  # the larger program's options count
    total = {"a": jax.numpy.zeros(3)}
    with pytest.warns(mgx.NotTunedWarning, match="^add is compiled"):
        total = add(total, step)
    assert add(total, step)["a"].tolist() == [2.0] * 3 and total["a"].is_deleted()

    class Model:
        @mgx.jit(executables="none", static_argnums=0)
        def apply(self, a):
            return a + 1

    with pytest.warns(mgx.NotTunedWarning, match="apply is compiled"):
        assert Model().apply(step).tolist() == [2.0] * 3
    with pytest.raises(mg.InvalidInputError, match="compiler_options: found some"):
        mgx.jit(scaled, executables="none", compiler_options={"a": "1"})
    with pytest.raises(TypeError, match="non-array argument"):
        mgx.jit(scaled, executables="none")("text")


def test_devices_are_targets():
    assert target_of_device("TPU v5 lite", 1) == "tpu_v5e"
    assert target_of_device("TPU v4", 2) == "tpu_v4_megacore"
    assert target_of_device("TPU v9", 1) is None


def test_flags_that_place_nothing_are_left_out(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=x --xla_other=1")
    monkeypatch.setenv("LIBTPU_INIT_ARGS", "--xla_tpu_use_enhanced_launch_barrier=true")
    assert inherited_flags() == {"XLA_FLAGS": "--xla_other=1"}


@pytest.fixture
def run_of_a_user(captured, tmp_path):
    """A folder as XLA dumps it: one program for v4i, and four that can't be tuned for it."""
    text = captured.module
    for number, (name, content, chip) in enumerate(
        (
            ("layers", text.encode(), "TFRT TPU v4 lite\\nBuilt on"),
            ("again", text.encode(), "TFRT TPU v4 lite\\nBuilt on"),
            ("host", text.encode(), "cpu"),
            (
                "many",
                text.replace("num_partitions = 1", "num_partitions = 4").encode(),
                "TFRT TPU v4 lite",
            ),
            ("packed", b"ML\xefR", "TFRT TPU v4 lite"),
        )
    ):
        folder = tmp_path / "dumps" / f"module_{number:04}.jit_{name}.cl_1"
        folder.mkdir(parents=True)
        (folder / "module.mlir").write_bytes(content)
        (folder / "topology.textproto").write_text(f'platform_version: "{chip}"')
    return tmp_path / "dumps"


def tuned_dumps(dumps, options, compiler, **settings) -> dict[str, mgx.dumps.TunedModule]:
    """Tunes the programs of a folder, each of which must be told. Returns them by their names."""
    told = []
    results = mgx.tune_dumps(
        dumps, options, seconds=6, compiler=compiler, report=told.append, **settings
    )
    assert told == results
    return {one.name.split(".")[1].removeprefix("jit_"): one for one in results}


@pytest.mark.weekly
def test_every_program_of_a_run(run_of_a_user, captured, compiler, tmp_path):
    """Those that can't be tuned say why. The same call again goes on."""
    results = tuned_dumps(run_of_a_user, tmp_path / "tuned", compiler)
    assert {name: one.why_not for name, one in results.items()} == {
        "again": "the same program as module_0000.jit_layers.cl_1",
        "host": "it is for no TPU, the target is tpu_v4i",
        "many": "it is for 4 devices, the target has 1",
        "packed": "its StableHLO is bytecode, not text",
        "layers": None,
    }
    layers = results["layers"]
    own_ps = mg.simulate(captured.program, captured.xla_plan).latency_ps
    assert layers.latency_ps == own_ps and layers.note is None and layers.tuned.speedup >= 1
    with pytest.raises(mg.errors.MissingFileError, match=r"module\.mlir; dump with XLA_FLAGS"):
        mgx.tune_dumps(tmp_path / "tuned", tmp_path / "tuned", compiler=compiler)


def test_what_is_tuned_already_is_left_out(run_of_a_user, captured, compiler, tmp_path):
    done = mgx.apply(captured, captured.xla_plan, compiler, executables=tmp_path / "tuned")
    results = tuned_dumps(run_of_a_user, tmp_path / "tuned", compiler)
    assert results["layers"].why_not.endswith("has it already")
    assert TunedFolder(tmp_path / "tuned").find(Key.of(captured)).executable() == done.executable


@pytest.mark.weekly
def test_every_program_of_a_run_side_by_side(run_of_a_user, captured, compiler, tmp_path):
    results = tuned_dumps(run_of_a_user, tmp_path / "tuned", compiler, jobs=2)
    (one,) = (one for one in results.values() if one.tuned is not None)
    assert len(results) == 5 and one.tuned.speedup >= 1 and not one.interrupted
    kept = TunedFolder(tmp_path / "tuned").find(Key.of(captured))
    assert (kept is None) == (one.tuned.best is None)
    if kept is not None:
        assert kept.executable() == one.tuned.best.executable


def test_every_program_of_a_run_by_command(run_of_a_user, run, run_json):
    command = ("xla", "tune", run_of_a_user, "-o", "tuned", "--target", "tpu_v5e", "--seconds", 1)
    rows = run_json(*command)["modules"]
    assert len(rows) == 5 and all(row["tuned"] is None for row in rows)
    assert rows[0]["why_not"] == "it is for TPU v4 lite, the target is tpu_v5e"
    shown = run(*command).stdout
    assert "module_0003.jit_many.cl_1: not tuned: it is for TPU v4 lite" in shown
    refused = run("xla", "tune", "gcn_dense_2048", "--ray", "local")
    assert refused.returncode == 2 and "found one program" in refused.stderr


def test_programs_without_time_have_no_share_of_it(tmp_path):
    nothing = dumps._Module("nothing", "", None, 0, [])
    told = []
    kept = SimpleNamespace(find=lambda _: None)
    assert list(dumps._tasks([nothing, nothing], 60.0, kept, False, told.append)) == []
    assert [one.why_not for one in told] == 2 * ["its share is 0.0 s, and a search needs 5"]


def test_measure():
    """The same program twice: the interval holds 1, and the ratio."""
    one = jax.numpy.ones((64, 64))
    same = mgx.measure(scaled, one, options={}, samples=20)
    assert same.low <= same.speedup <= same.high and same.low < 1.05 and same.high > 0.95
    assert same.default.shape == same.tuned.shape == (20,) and (same.default > 0).all()
    assert same.device == "cpu" and "x, 95 % between" in str(same)
    wrong = {"xla_tpu_msa_tensor_overrides": ""}
    with pytest.raises(jax.errors.JaxRuntimeError, match="No such compile option"):
        mgx.measure(scaled, one, options=wrong)
    with pytest.raises(mg.InvalidInputError, match="executables: found None"):
        mgx.measure(scaled, one)
    with pytest.raises(mg.InvalidInputError, match="samples: found 1, allowed: 2"):
        mgx.measure(scaled, one, options={}, samples=1)


def test_measure_copies_what_is_donated():
    step = mgx.jit(scaled, executables="none", donate_argnums=0)
    one = jax.numpy.ones((64, 64))
    with pytest.warns(mgx.NotTunedWarning, match="measured as XLA compiles it: it is for cpu"):
        measured = mgx.measure(step, one, samples=2)
    assert not one.is_deleted() and len(measured.tuned) == 2


def test_example(tmp_path):
    example = SOURCE_ROOT / "examples" / "tuned_jit.py"
    done = subprocess.run(
        [sys.executable, str(example)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "NotTunedWarning: step is compiled as XLA does: it is for cpu" in done.stderr
    assert "tuned on cpu" in done.stdout
