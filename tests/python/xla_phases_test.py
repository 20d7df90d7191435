"""The compiler run phase by phase, and whole, through the PJRT C API."""

import dataclasses
import os
import subprocess
import sys

import pytest

import mallocgame.xla as mgx
from mallocgame._core import compile_options
from mallocgame.errors import InvalidInputError
from mallocgame.xla.compiler_process import NO_CHIP
from mallocgame.xla.modules import read_dump, without_fields
from mallocgame.xla.partial_programs import PartialProgram, of_stablehlo
from mallocgame.xla.stablehlo import device_count, portable_artifact

jax = pytest.importorskip("jax")
pytest.importorskip("libtpu")

pytestmark = pytest.mark.weekly

PHASE_1, PHASE_2A, PHASE_2B, PHASE_3 = (
    "phase1_hlo_opts",
    "phase2a_tlp_lowering",
    "phase2b_deduped_lowering",
    "phase3_linking",
)
TOP = ("opt_hlo", "modified_comp_envs", "buffer_assignment")


@pytest.fixture(scope="module")
def module() -> str:
    def function(x, w):
        return jax.numpy.tanh(x @ w).sum(0) + x[0]

    return mgx.lower(
        function,
        jax.ShapeDtypeStruct((256, 512), "bfloat16"),
        jax.ShapeDtypeStruct((512, 512), "bfloat16"),
    )


@pytest.fixture(scope="module")
def compiler():
    with mgx.Compiler(mgx.find_target("tpu_v5e"), seconds=300, cache=None) as shared:
        yield shared


@pytest.fixture(scope="module")
def optimized(compiler, module) -> dict[str, bytes]:
    """What phase 1 gives, by name."""
    programs = compiler.run_phase(PHASE_1, [of_stablehlo(module).to_bytes()])
    return {PartialProgram.from_bytes(program).name: program for program in programs}


def isolated(optimized: dict[str, bytes]) -> list[bytes]:
    return [program for name, program in optimized.items() if name.startswith("isolated_hlo.")]


def test_phase_1_gives_the_module_its_buffers_and_its_fusions_one_by_one(optimized):
    assert {*TOP, "original_hlo_module"} < set(optimized)
    assert isolated(optimized)
    opt_hlo = PartialProgram.from_bytes(optimized["opt_hlo"])
    assert opt_hlo.generating_phase == PHASE_1 and PHASE_2A in opt_hlo.next_phases
    assert b"jit_function" in opt_hlo.program
    assert opt_hlo == PartialProgram.from_bytes(opt_hlo.to_bytes())


def test_the_chain_of_phases_links(compiler, optimized):
    top = [optimized[name] for name in TOP]
    lowered = compiler.run_phase(PHASE_2A, top)
    for one in isolated(optimized):
        lowered += compiler.run_phase(PHASE_2B, [one, optimized["modified_comp_envs"]])
    # Programs go as they came, or as they are written again.
    again = [PartialProgram.from_bytes(program).to_bytes() for program in top]
    for programs in (top, again):
        linked = compiler.run_phase(
            PHASE_3, [*programs, optimized["original_hlo_module"], *lowered]
        )
        names = [PartialProgram.from_bytes(program).name for program in linked]
        assert names == ["pjrt_executable", "executable_metadata"]


def test_options_reach_a_phase(compiler, module, optimized):
    program = of_stablehlo(module).to_bytes()
    without = compiler.run_phase(PHASE_1, [program], {"xla_msa_enable": "DISABLED"})
    assert PartialProgram.from_bytes(without[0]).program != (
        PartialProgram.from_bytes(optimized["opt_hlo"]).program
    )
    with pytest.raises(mgx.compiler.CompilerRefusedError, match="No such compile option: 'nobody'"):
        compiler.run_phase(PHASE_1, [program], {"nobody": "1"})


def test_what_a_phase_cannot_take(compiler, optimized):
    with pytest.raises(mgx.compiler.CompilerRefusedError, match='"phase0"'):
        compiler.run_phase("phase0", [optimized["opt_hlo"]])
    with pytest.raises(mgx.compiler.CompilerRefusedError, match="RET_CHECK"):
        compiler.run_phase(PHASE_3, [optimized["opt_hlo"]])
    # Without buffers a check inside the compiler fails. The next job goes to another process.
    nowhere = dataclasses.replace(
        PartialProgram.from_bytes(optimized["buffer_assignment"]), program=b""
    )
    with pytest.raises(mgx.compiler.CompilerEndedError, match=r"tpu_v5e ended by SIGABRT: "):
        compiler.run_phase(
            PHASE_2A, [optimized["opt_hlo"], optimized["modified_comp_envs"], nowhere.to_bytes()]
        )
    assert compiler.run_phase(PHASE_2A, [optimized[name] for name in TOP])
    with pytest.raises(InvalidInputError, match="partial program"):
        PartialProgram.from_bytes(b"\xff")


# What jax.jit(...).lower(...).compile(compiler_options=...) does.
COMPILE_WITH_JAX = """
import pathlib, sys
from jax._src import compiler
from jax._src.interpreters import mlir
from jax.experimental import topologies
from jaxlib import xla_client
from jaxlib.mlir import ir

source, dump = sys.argv[1:]
description = topologies.get_topology_desc(
    platform="tpu", topology_name="v5e:1x1", chips_per_host_bounds=[1, 1, 1]
)
options = compiler.get_compile_options(
    num_replicas=1,
    num_partitions=1,
    env_options_overrides={"xla_dump_to": dump, "xla_dump_hlo_as_proto": True},
)
device = description.devices[0]
with mlir.make_ir_context():
    module = ir.Module.parse(pathlib.Path(source).read_text())
    device.client.compile(module, xla_client.DeviceList((device,)), options)
"""


def test_a_whole_compile_is_that_of_jax(compiler, module, tmp_path):
    assert not compiler.target.options
    (tmp_path / "module.mlir").write_text(module)
    subprocess.run(
        [sys.executable, "-c", COMPILE_WITH_JAX, "module.mlir", "dump"],
        env=os.environ | NO_CHIP,
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    # In both it is the first module of a process, which numbers them.
    with compiler.another() as fresh:
        assert fresh.compile(module) == read_dump(tmp_path / "dump")


def test_options_are_those_of_jax():
    """Debug options are left out: the compiler has the same defaults."""
    numpy = pytest.importorskip("numpy")
    from jax._src import compiler as of_jax

    overrides = {"xla_tpu_max_hbm_size_mib": "7", "a": True, "b": 3, "c": 0.5}
    for count in (1, 4):
        several = {"device_assignment": numpy.arange(count).reshape(1, count)}
        options = of_jax.get_compile_options(
            num_replicas=1,
            num_partitions=count,
            env_options_overrides=overrides,
            **(several if count > 1 else {}),
        )
        expected = without_fields(options.SerializeAsString(), {3: {3: None}})
        assert compile_options(count, overrides) == expected


def test_stablehlo_as_the_compiler_takes_it(module):
    assert portable_artifact(module).startswith(b"ML\xefR") and device_count(module) == 1
    with pytest.raises(ValueError, match="no StableHLO text"):
        portable_artifact("modul {}")
