"""Program, Hardware, Plan: columns, files, and what is refused."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from conftest import OTHER, SMALL

import mallocgame as mg


def test_columns_agree_with_each_other(program):
    counts = program.counts
    instructions, buffers, accesses = program.instructions, program.buffers, program.accesses
    assert (
        len(instructions)
        == program.ticks
        == len(program.instruction_names)
        == len(program.instruction_opcodes)
    )
    assert (instructions["kind"] != 1).sum() == counts["instructions"]
    assert (
        len(buffers)
        == counts["buffers"]
        == len(program.buffer_names)
        == len(program.ineligible_because)
    )
    assert buffers["eligible"].sum() == counts["eligible_buffers"]
    assert [not why for why in program.ineligible_because] == list(buffers["eligible"])
    assert len(accesses) == counts["accesses"] == instructions["access_count"].sum()
    assert (np.diff(accesses["tick"]) >= 0).all()
    assert buffers["eligible"][accesses["buffer"]].all()
    assert (buffers["size_bytes"] > 0).all()
    assert not instructions.flags.writeable


def test_files_and_pickles_round_trip(program, tmp_path):
    path = tmp_path / "copy.mgp"
    mg.save_program(program, path)
    again = mg.load_program(path)
    assert again.fingerprint == program.fingerprint
    assert again.to_bytes() == program.to_bytes() == path.read_bytes()
    assert pickle.loads(pickle.dumps(program)).to_bytes() == program.to_bytes()
    assert again.hardware == program.hardware and again.xla_plan == program.xla_plan
    assert pickle.loads(pickle.dumps(program.hardware)) == program.hardware


def test_names_that_are_not_known(tmp_path):
    with pytest.raises(mg.InvalidInputError, match=SMALL):
        mg.load_program(SMALL.replace("adam", "adm"))
    with pytest.raises(FileNotFoundError):
        mg.load_program(tmp_path / "none.mgp")
    with pytest.raises(mg.MallocGameError):
        mg.load_program(tmp_path)
    with pytest.raises(mg.InvalidInputError, match="tpu_v5e"):
        mg.hardware("tpu_v9")
    with pytest.raises(mg.errors.MissingFileError):
        mg.hardware(tmp_path / "none.json")


@pytest.mark.parametrize("content", [b"", b"hello", b"\x1f\x8b\x08broken", bytes(range(256)) * 8])
def test_program_files_that_are_none(tmp_path, content):
    path = tmp_path / "bad.mgp"
    path.write_bytes(content)
    with pytest.raises(mg.InvalidInputError, match=r"bad.mgp"):
        mg.load_program(path)


def test_program_file_cut_short(program):
    data = program.to_bytes()
    for size in (1, 10, len(data) // 2, len(data) - 1):
        with pytest.raises(mg.InvalidInputError):
            mg.Program.from_bytes(data[:size])


def test_hardware_json(program, tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(program.hardware.to_json())
    assert mg.hardware(path) == program.hardware == mg.hardware(program.hardware.name)
    path.write_text(program.hardware.to_json().replace("fast_bytes", "fast_bites"))
    with pytest.raises(mg.InvalidInputError, match=r"mine.json"):
        mg.hardware(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(mg.InvalidInputError, match=r"mine.json"):
        mg.hardware(path)
    assert mg.hardware("tpu_v4i_16mib").fast_bytes == 16 << 20


def test_hardware_with_other_fields(program):
    own = program.hardware
    four = own.replace(max_preloads=4)
    assert (four.max_preloads, four.name, own.max_preloads) == (4, own.name, 1)
    assert four.replace(max_preloads=1) == own != four
    assert program.xla_plan_for(own) == program.xla_plan == program.xla_plan_for(four)
    assert mg.validate(program, program.xla_plan, four).ok
    for other in (own.replace(max_preloads=0), four.replace(fast_bytes=2**20)):
        assert program.xla_plan_for(other) is None
    for wrong in ({"preloads": 4}, {"max_preloads": -1}, {"fast_bytes": "1"}):
        with pytest.raises(mg.InvalidInputError, match=next(iter(wrong))):
            own.replace(**wrong)


def test_other_hardware_is_solved_without_xlas_plan(program):
    small = mg.hardware("tpu_v4i_16mib")
    result = mg.solve(program, "greedy", seconds=0, hardware=small)
    assert result.game.hardware == small and result.plan.hardware == "tpu_v4i_16mib"
    assert result.report.peak_fast_bytes <= 16 << 20
    assert mg.validate(program, result.plan, small).ok
    assert not mg.validate(program, result.plan).ok  # made for other hardware
    with pytest.raises(mg.InvalidInputError):
        mg.solve(program, "xla-assigned", hardware=small)


def test_plan_files(program, tmp_path):
    plan = mg.solve(program, "greedy", seconds=0).plan
    path = tmp_path / "plan.json"
    mg.save_plan(plan, program, path)
    assert mg.load_plan(path, program) == plan
    assert len(plan.served_by) == len(program.accesses)
    assert (plan.residences["begin"] < plan.residences["end"]).all()
    assert "main" in plan.to_string(program) or len(plan.to_string(program).splitlines()) > len(
        plan.residences
    )
    other = mg.load_program(OTHER)
    for call in (plan.to_json, plan.to_string, lambda wrong: mg.load_plan(path, wrong)):
        with pytest.raises(mg.InvalidInputError, match=other.fingerprint):
            call(other)
    assert not mg.validate(other, plan).ok
    with pytest.raises(mg.InvalidInputError):
        mg.simulate(other, plan)


def test_the_plan_with_all_in_main_memory_stalls_never(program):
    report = mg.simulate(program, mg.all_main_plan(program))
    assert (
        report.latency_ps == report.all_main_ps == report.latency_cold_ps and report.stall_ps == 0
    )
    assert report.stall_at_ps.shape == report.fast_bytes_at.shape == (program.ticks,)


@pytest.mark.parametrize(
    "module", [b"", b"\x0a\xff\xff\xff\xff", bytes(range(256)), b"\x1f\x8b\x08", b"not a module"]
)
def test_modules_that_are_none(module):
    with pytest.raises(mg.InvalidInputError):
        mg.import_hlo(module, hardware="tpu_v4i")


def test_unknown_wrong_arguments(program):
    with pytest.raises(mg.InvalidInputError, match="greedy"):
        mg.solve(program, "gready")
    with pytest.raises(mg.InvalidInputError, match="seconds"):
        mg.solve(program, "greedy", seconds=float("nan"))
    with pytest.raises(TypeError, match=r"program: mallocgame._core.Program"):
        mg.Game(None)


def test_import_is_light():
    heavy = {"rich", "torch", "gymnasium", "jax", "importlib.metadata"}
    code = f"import sys, mallocgame; print(sorted(sys.modules.keys() & {heavy}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/"
    )
    assert done.stdout.strip() == "[]"
