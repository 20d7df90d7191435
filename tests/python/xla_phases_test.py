"""The compiler run phase by phase, and whole, through the PJRT C API."""

import pytest

import mallocgame.xla as mgx
from mallocgame._core import compile_options
from mallocgame.errors import InvalidInputError
from mallocgame.xla.partial_programs import PartialProgram, of_stablehlo
from mallocgame.xla.stablehlo import device_count, portable_artifact

jax = pytest.importorskip("jax")
pytest.importorskip("libtpu")

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
    with pytest.raises(mgx.CompilerRefusedError, match="No such compile option: 'nobody'"):
        compiler.run_phase(PHASE_1, [program], {"nobody": "1"})


def test_what_a_phase_cannot_take(compiler, optimized):
    with pytest.raises(mgx.CompilerRefusedError, match='"phase0"'):
        compiler.run_phase("phase0", [optimized["opt_hlo"]])
    with pytest.raises(mgx.CompilerRefusedError, match="RET_CHECK"):
        compiler.run_phase(PHASE_3, [optimized["opt_hlo"]])
    with pytest.raises(mgx.CompilerEndedError, match=r"tpu_v5e ended by SIG"):
        compiler.run_phase(PHASE_2A, [b"xx"])
    assert compiler.run_phase(PHASE_2A, [optimized[name] for name in TOP])
    with pytest.raises(InvalidInputError, match="partial program"):
        PartialProgram.from_bytes(b"\xff")


def test_options_are_those_of_jax(module):
    """Debug options are left out: the compiler has the same defaults."""
    numpy = pytest.importorskip("numpy")
    from jax._src import compiler as of_jax

    from mallocgame.xla.modules import without_fields

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
