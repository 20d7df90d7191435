"""Programs with Pallas kernels: what is captured of them, and what is modelled."""

import functools

import jax
import pytest
from jax.experimental import pallas as pl

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame._core import find_uses
from mallocgame.xla.negotiate import negotiate
from mallocgame.xla.overrides import KEEP, Override, Request, mostly_in_main

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
        assert mgx.apply(captured, plan, rounds=1, compiler=compiler).honoured == 1.0
    # In main memory both take what their bytes take: as estimated, and read and written once.
    everywhere = mg.simulate(program, mg.all_main_plan(program))
    bytes_moved = (5 << 20) + 2 * 2 * ROWS * WIDTH
    assert everywhere.kernel_ps == pytest.approx(bytes_moved / 819e9 * 1e12, rel=1e-3)
    assert 0 < mg.simulate(program, plan).kernel_ps <= everywhere.kernel_ps
    again = mg.Program.from_bytes(program.to_bytes())
    assert again.counts == program.counts and again.fingerprint == program.fingerprint

    dump = tmp_path / "dump"
    dump.mkdir()
    for name, module in (
        ("before_buffer_assignment", captured.default.before),
        ("", captured.default.assigned),
    ):
        stage = "_".join(filter(None, ("x.after_optimizations", name)))
        (dump / f"{stage}.hlo.pb").write_bytes(module)
    (dump / "x.after_codegen.hlo.pb").write_bytes(captured.default.priced)
    said = run(
        "xla", "capture", dump, "-o", tmp_path / "read", "--cache", cache, "--target", TARGET
    )
    assert said.returncode == 0, said.stderr
    assert "µs are kernels, by a model that no compiler priced" in said.stdout
    assert "1 of 2 kernels have no cost_estimate" in said.stdout


def test_operands_that_a_kernel_requires_in_fast_memory():
    """On tpu7x the compiler lets kernels require that, and ends if main memory is asked for."""
    weights = [jax.ShapeDtypeStruct((WIDTH, WIDTH), "bfloat16")] * 2
    x = jax.ShapeDtypeStruct((ROWS, WIDTH), "bfloat16")
    layers = functools.partial(kernel_layers, (None, None))
    with mgx.Compiler(mgx.find_target("tpu7x"), seconds=300, cache=None) as compiler:
        captured = mgx.capture(layers, weights, x, target="tpu7x", compiler=compiler)
        program, before = captured.program, captured.default.before
        required = {use[0] for use in find_uses(program, before) if use[3] == 1}
        kernels = {program.instruction_names[program.accesses["tick"][a]] for a in required}
        assert len(required) == len(kernels) == program.counts["kernels"] == 2
        wanted = mg.all_main_plan(program)
        done = mgx.apply(captured, wanted, rounds=1, compiler=compiler)
        assert not done.refusals  # Nothing was asked that ends the compiler.
        assert (done.plan.served_by[sorted(required)] >= 0).all()
        assert done.honoured < 1
        # What is asked all the same, it is asked for without.
        buffers = {int(program.accesses["buffer"][access]) for access in required}
        kept = [Override(KEEP, b, (), program.buffer_names[b], None, ()) for b in sorted(buffers)]
        asked = Request(tuple(kept), ())
        granted, _, refusals = negotiate(captured, program, asked, compiler)
        assert not granted.overrides
        assert {program.buffer_names.index(one.buffer) for one in refusals} == buffers
        drawn = mostly_in_main(program, before, 1.0, lambda: 0.0).overrides
        assert drawn and buffers.isdisjoint(one.buffer for one in drawn)
