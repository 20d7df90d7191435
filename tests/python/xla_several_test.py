"""Programs for several chips: their targets, what is captured, and what is modelled of it."""

import types

import pytest

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame.xla.claims import speedup

TARGET = "tpu_v5e:2x2"
DUMPS = {
    "before": "x.after_optimizations_before_buffer_assignment.hlo.pb",
    "assigned": "x.after_optimizations.hlo.pb",
    "priced": "x.after_codegen.hlo.pb",
}


def test_targets_of_several_chips():
    target = mgx.find_target(TARGET, 16)
    assert target == mgx.find_target("v5e:2x2", 16) and target != mgx.find_target("v5e:1x1", 16)
    assert target.title == TARGET and target.topology == "v5e:2x2" and target.devices == 4
    assert target.hardware == mgx.find_target("tpu_v5e", 16).hardware
    assert mgx.find_target("tpu_v4:2x2x1").devices == 8  # two cores each
    assert mgx.find_target("tpu_v4_megacore:2x2x1").devices == 4
    assert mgx.find_target("v4:1x1x1").devices == 1
    for wrong in ("tpu_v5e:2", "tpu_v5e:2x2x1", "tpu_v5e:0x2", "v5e:x", "v5e:"):
        with pytest.raises(mg.InvalidInputError, match=r"allowed: 2 sides, as in tpu_v5e:2x2"):
            mgx.find_target(wrong)
    with pytest.raises(mg.InvalidInputError, match="found 'tpu_v9:2x2'"):
        mgx.find_target("tpu_v9:2x2")


def test_speed_up_without_links():
    """Waits are left out where they are the larger part, as no plan changes them."""

    def report(latency_ps, modelled_ps, kernel_ps=0):
        return types.SimpleNamespace(
            latency_ps=latency_ps,
            latency_cold_ps=latency_ps + 20,
            modelled_ps=modelled_ps,
            kernel_ps=kernel_ps,
        )

    assert speedup(report(100, 50), report(90, 50)) == pytest.approx(100 / 90)
    assert speedup(report(100, 60), report(90, 60)) == pytest.approx(40 / 30)
    assert speedup(report(100, 60), report(90, 60), cold=True) == pytest.approx(60 / 50)
    assert speedup(report(100, 60), report(90, 60), part=mgx.claims.WHOLE) == pytest.approx(
        100 / 90
    )
    assert speedup(report(100, 100), report(100, 100)) == 1.0
    # What kernels win doesn't count then, what they lose does.
    assert speedup(report(100, 10, 50), report(80, 10, 40)) == pytest.approx(40 / 30)
    assert speedup(report(100, 10, 50), report(90, 10, 60)) == pytest.approx(40 / 30)


@pytest.fixture(scope="module")
def sharded():
    """A function for four devices and its shapes: weights are sharded, sums are over devices."""
    jax = pytest.importorskip("jax", reason="needs JAX: pip install 'mallocgame[xla]'")
    pytest.importorskip("libtpu", reason="needs libtpu: pip install 'mallocgame[xla]'")
    mesh = jax.sharding.AbstractMesh((4,), ("tp",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec

    def shape(sizes, *axes):
        sharding = jax.sharding.NamedSharding(mesh, spec(*axes))
        return jax.ShapeDtypeStruct(sizes, "bfloat16", sharding=sharding)

    def permute(x):
        return jax.lax.ppermute(x, "tp", [(i, (i + 1) % 4) for i in range(4)])

    def mlp(weights, x):
        for up, down in weights:
            x = x + jax.nn.relu(x @ up) @ down
        return jax.shard_map(permute, mesh=mesh, in_specs=spec("tp"), out_specs=spec("tp"))(x)

    pair = (shape((512, 2048), None, "tp"), shape((2048, 512), "tp", None))
    return mlp, ([pair] * 3, shape((256, 512)))


@pytest.fixture(scope="module")
def compiler(tmp_path_factory):
    target, cache = mgx.find_target(TARGET), tmp_path_factory.mktemp("cache")
    with mgx.Compiler(target, seconds=300, cache=cache) as shared:
        yield shared


@pytest.fixture(scope="module")
def captured(sharded, compiler):
    mlp, arguments = sharded
    return mgx.capture(mlp, *arguments, target=TARGET, compiler=compiler)


@pytest.mark.weekly
def test_program_for_several_chips(captured, tmp_path):
    program, own = captured.program, mg.simulate(captured.program, captured.xla_plan)
    assert captured.xla_verdict.ok
    # A quarter of each weight; three sums, and a permute that begins and ends.
    assert program.argument_bytes == 2 * (3 * 2 * 512 * 512 + 256 * 512)
    assert program.counts["modelled_instructions"] >= 3 + 2
    assert 0 < own.modelled_ps < own.latency_ps
    captured.save(tmp_path / "saved")
    again = mgx.load_capture(tmp_path / "saved")
    assert again.target.title == TARGET and again.program.fingerprint == program.fingerprint


@pytest.mark.weekly
@pytest.mark.parametrize("solver", ["xla-assigned", "all-main", "greedy"])
def test_plans_of_it_are_carried_out(captured, compiler, solver):
    """Collectives too have code that depends on where their arrays lie."""
    program = captured.program
    plan = mg.solve(program, solver, seconds=0).plan
    done = mgx.apply(captured, plan, compiler)
    assert done.plan.served_by.tolist() == plan.served_by.tolist()
    expected = mg.simulate(program, plan)
    assert done.report.modelled_ps == expected.modelled_ps
    if expected.predicted_ps == 0:
        assert done.report.latency_ps == expected.latency_ps


@pytest.mark.weekly
def test_a_dump_of_it_is_read_by_the_command(captured, run, tmp_path):
    dump = tmp_path / "dump"
    dump.mkdir()
    with mgx.Compiler(captured.target, cache=None) as fresh:
        compiled = fresh.compile(captured.module)
    for field, name in DUMPS.items():
        (dump / name).write_bytes(getattr(compiled, field))
    command = ("xla", "capture", dump, "-o", tmp_path / "read", "--target")
    said = run(*command, TARGET)
    assert said.returncode == 0, said.stderr
    modelled = (
        "µs are waits for links between chips, for the host and for what runs beside the program"
    )
    assert modelled in said.stdout
    refused = run(*command, "tpu_v5e")
    assert refused.returncode != 0
    assert "dump: is for 4 devices, but target tpu_v5e has 1 device" in refused.stderr


@pytest.mark.full
def test_wrong_number_of_devices(sharded):
    mlp, arguments = sharded
    for target, found in (("tpu_v5e", "1 device; several"), ("tpu_v5e:4x4", "16 devices")):
        with pytest.raises(
            mg.InvalidInputError, match=rf"mlp: is for 4 devices, but target {target} has {found}"
        ):
            mgx.capture(mlp, *arguments, target=target)


@pytest.mark.full
def test_replicas():
    pytest.importorskip("jax", reason="needs JAX: pip install 'mallocgame[xla]'")
    text = "module @m attributes {mhlo.num_replicas = 2 : i32} {}"
    lowered = types.SimpleNamespace(as_text=lambda debug_info: text)
    traced = types.SimpleNamespace(lower=lambda lowering_platforms: lowered)
    function = types.SimpleNamespace(trace=lambda: traced, __name__="replicated")
    with pytest.raises(mg.InvalidInputError, match="replicated: found 2 replicas, allowed: 1"):
        mgx.lower(function)
