"""Programs with Pallas kernels: what is captured of them, and what is modelled."""

import functools

import jax
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import mallocgame as mg
import mallocgame.xla as mgx

pytestmark = pytest.mark.weekly

TARGET = "tpu_v5e"
ROWS, WIDTH = 512, 1024
ESTIMATE = pl.CostEstimate(flops=1 << 30, transcendentals=0, bytes_accessed=5 << 20)


def kernel_layers(estimates, weights, x):
    """One kernel for each estimate, and a matrix product behind each."""

    def kernel(x_ref, out_ref):
        out_ref[...] = jax.nn.relu(x_ref[...])

    block = pl.BlockSpec((256, WIDTH), lambda i: (i, 0))
    call = functools.partial(
        pl.pallas_call, kernel, grid=(ROWS // 256,), in_specs=[block], out_specs=block, out_shape=x
    )
    for estimate, weight in zip(estimates, weights, strict=True):
        x = call(cost_estimate=estimate)(x) @ weight
    return x


def test_kernel_that_takes_too_much_memory():
    """The compiler refuses the program as a whole, and its sentence is told."""

    def kernel(x_ref, out_ref):
        out_ref[...] = x_ref[...] + 1.0

    params = pltpu.CompilerParams(vmem_limit_bytes=1 << 20)
    x = jax.ShapeDtypeStruct((1024, 1024), "float32")
    with pytest.raises(mgx.compiler.CompilerRefusedError, match="vmem"):
        mgx.capture(
            lambda x: pl.pallas_call(kernel, out_shape=x, compiler_params=params)(x) @ x,
            x,
            target=TARGET,
        )


def test_program_with_kernels(tmp_path, run):
    weights = [jax.ShapeDtypeStruct((WIDTH, WIDTH), "bfloat16")] * 2
    x = jax.ShapeDtypeStruct((ROWS, WIDTH), "bfloat16")
    layers = functools.partial(kernel_layers, (ESTIMATE, None))
    cache = tmp_path / "cache"
    with mgx.Compiler(mgx.find_target(TARGET), seconds=300, cache=cache) as compiler:
        captured = mgx.capture(layers, weights, x, target=TARGET, compiler=compiler, name="layers")
        program, plan = captured.program, captured.xla_plan
        assert mg.validate(program, plan).ok
        assert program.counts["kernels"] == 2
        assert program.counts["kernels_without_estimate"] == 1
        for wanted in (plan, mg.all_main_plan(program), mg.solve(program, "greedy").plan):
            done = mgx.apply(captured, wanted, compiler)
            assert done.plan.served_by.tolist() == wanted.served_by.tolist()
            assert done.report.kernel_ps == mg.simulate(program, wanted).kernel_ps
        compiled = compiler.compile(captured.module)
    # In main memory both take what their bytes take: as estimated, and read and written once.
    everywhere = mg.simulate(program, mg.all_main_plan(program))
    bytes_moved = (5 << 20) + 2 * 2 * ROWS * WIDTH
    assert everywhere.kernel_ps == pytest.approx(bytes_moved / 819e9 * 1e12, rel=1e-3)
    assert 0 < mg.simulate(program, plan).kernel_ps <= everywhere.kernel_ps
    again = mg.Program.from_bytes(program.to_bytes())
    assert again.counts == program.counts and again.fingerprint == program.fingerprint

    dump = tmp_path / "dump"
    dump.mkdir()
    for name, module in (("before_buffer_assignment", compiled.before), ("", compiled.assigned)):
        stage = "_".join(filter(None, ("x.after_optimizations", name)))
        (dump / f"{stage}.hlo.pb").write_bytes(module)
    (dump / "x.after_codegen.hlo.pb").write_bytes(compiled.priced)
    said = run(
        "xla", "capture", dump, "-o", tmp_path / "read", "--cache", cache, "--target", TARGET
    )
    assert said.returncode == 0, said.stderr
    assert "µs are kernels, which are modelled and not priced by the compiler" in said.stdout
    assert "1 of 2 kernels have no cost_estimate" in said.stdout


def test_operands_that_the_compiler_gives_kernels_in_fast_memory():
    """On tpu7x, where it assigns memory itself. They may lie in main memory all the same."""
    weights = [jax.ShapeDtypeStruct((WIDTH, WIDTH), "bfloat16")] * 2
    x = jax.ShapeDtypeStruct((ROWS, WIDTH), "bfloat16")
    layers = functools.partial(kernel_layers, (None, None))
    with mgx.Compiler(mgx.find_target("tpu7x"), seconds=300, cache=None) as compiler:
        captured = mgx.capture(layers, weights, x, target="tpu7x", compiler=compiler)
        program, own = captured.program, captured.xla_plan
        assert program.counts["kernels"] == 2
        for plan in (own, mg.all_main_plan(program)):
            done = mgx.apply(captured, plan, compiler)
            assert done.plan.served_by.tolist() == plan.served_by.tolist()
