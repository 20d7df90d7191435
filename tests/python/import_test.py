"""What `mallocgame import` says of damaged and of mismatched files.

Whatever is wrong, it gives status 2 and one line.
"""

import gzip
import random

import pytest
from conftest import SOURCE_ROOT

import mallocgame as mg
from mallocgame._cli import main as cli

HLO = SOURCE_ROOT / "benchmarks/programs/hlo/core"
OWN = HLO / "tpu_v4i/gcn_dense_2048"
OTHER = HLO / "tpu_v4i/resnet50_b1"
MODULE = OWN / "pre_msa.hlo.pb.gz"
RAW = gzip.decompress(MODULE.read_bytes())


@pytest.fixture
def refused(tmp_path, capfd):
    """refused(argument...) -> the one line that `mallocgame import` gives."""

    def call(*arguments: object) -> str:
        output = tmp_path / "out.mgp"
        assert cli.main(["import", *map(str, arguments), "-o", str(output)]) == 2
        said = capfd.readouterr()  # what libraries print counts too
        assert said.out == "" and not output.exists()
        assert (
            said.err.startswith("mallocgame import: ")
            and said.err.count("\n") == 1
            and said.err.endswith("\n")
        )
        return said.err

    return call


def without_schedule(module: bytes) -> bytes:
    """The serialized HloProto with the fields of hlo_module (1) but for its schedule (7)."""

    def fields(data: bytes):
        def varint(at: int) -> tuple[int, int]:
            value = shift = 0
            while True:
                value |= (data[at] & 127) << shift
                at, shift = at + 1, shift + 7
                if data[at - 1] < 128:
                    return value, at

        at = 0
        while at < len(data):
            begin = at
            key, at = varint(at)
            size, after = varint(at)
            at = after + size if key & 7 == 2 else after
            yield key >> 3, data[begin:at], data[after:at]

    def packed(data: bytes) -> bytes:
        size, text = len(data), b"\x0a"
        while size > 127:
            text, size = text + bytes([size & 127 | 128]), size >> 7
        return text + bytes([size]) + data

    inner = next(content for number, _, content in fields(module) if number == 1)
    return packed(b"".join(whole for number, whole, _ in fields(inner) if number != 7))


@pytest.mark.parametrize("twentieth", range(20))
def test_truncated(refused, tmp_path, twentieth):
    (tmp_path / "cut.pb").write_bytes(RAW[: len(RAW) * twentieth // 20])
    assert "module: " in refused(tmp_path / "cut.pb", "--hardware", "tpu_v4i")


@pytest.mark.parametrize("size", [1, 10, 1000, 100_000])
def test_random_bytes(refused, tmp_path, size):
    (tmp_path / "random.pb").write_bytes(random.Random(size).randbytes(size))
    assert "module: " in refused(tmp_path / "random.pb", "--hardware", "tpu_v4i")


def test_damaged_gzip(refused, tmp_path):
    packed = MODULE.read_bytes()
    for name, content in (
        ("cut.gz", packed[: len(packed) // 2]),
        ("noise.gz", packed[:20] + b"?" * 100),
    ):
        (tmp_path / name).write_bytes(content)
        assert f"{name}: gzip: " in refused(tmp_path / name, "--hardware", "tpu_v4i")


def test_text_that_is_not_utf8(refused, tmp_path):
    name = b"fusion"
    (tmp_path / "name.pb").write_bytes(RAW.replace(name, b"\xff" * len(name)))
    assert "not UTF-8" in refused(tmp_path / "name.pb", "--hardware", "tpu_v4i")


def test_unscheduled_where_a_schedule_is_asked_for(refused, tmp_path):
    (tmp_path / "unscheduled.pb").write_bytes(without_schedule(RAW))
    assert "has no schedule, and one is required" in refused(
        tmp_path / "unscheduled.pb", "--hardware", "tpu_v4i", "--schedule", "module"
    )


@pytest.mark.parametrize(
    ("option", "file", "message"),
    [
        ("--profile", OTHER / "profile.json.gz", "of another program"),
        ("--priced", OTHER / "codegen_default.hlo.pb.gz", "of another program"),
        ("--assigned", OTHER / "post_msa.hlo.pb.gz", "assigned module: no instruction"),
        ("--assigned", MODULE, "assigned module: it has no buffer_assignment"),
        ("--profile", MODULE, "profile: not JSON"),
        ("--priced", OWN / "profile.json.gz", "priced module 0: found text that begins with"),
    ],
)
def test_file_of_another_program_or_kind(refused, option, file, message):
    assert message in refused(MODULE, option, file, "--hardware", "tpu_v4i")


@pytest.mark.parametrize(
    ("option", "file"),
    [("--assigned", OWN / "post_msa.hlo.pb.gz"), ("--priced", OWN / "codegen_default.hlo.pb.gz")],
)
def test_other_hardware(refused, option, file):
    assert "S(3), the fast memory of tpu_v4i, tpu_v4, tpu_v4_megacore, none in S(1)" in refused(
        MODULE, option, file, "--hardware", "tpu_v5e"
    )


def test_module_from_after_assignment(refused, run, tmp_path):
    """It is brought back to main memory, which is told, and costs there what it cost before."""
    after = OWN / "post_msa.hlo.pb.gz"
    assert "compiled for other hardware" in refused(after, "--hardware", "tpu_v5e")
    out = tmp_path / "back.mgp"
    said = run("import", after, "--hardware", "tpu_v4i", "-o", out)
    assert "is from after memory space assignment" in said.stderr
    assert "after_optimizations_before_buffer_assignment" in said.stderr
    before = mg.import_hlo(MODULE, hardware="tpu_v4i")
    back = mg.load_program(out)
    assert back.counts["unassigned_arrays"] > 0
    assert back.counts["unassigned_copies"] > 0
    assert back.counts["kept_copies"] == 0
    main_ps = [mg.simulate(p, mg.all_main_plan(p)).latency_ps for p in (before, back)]
    assert main_ps[0] == main_ps[1]
    assert back.counts["accesses"] == before.counts["accesses"]


def test_unknown_hardware(refused):
    assert "'tpu_v9' is not known" in refused(MODULE, "--hardware", "tpu_v9")
    assert "cannot read none.json" in refused(MODULE, "--hardware", "none.json")


def test_missing_file(refused, tmp_path):
    assert "cannot read" in refused(tmp_path / "missing.pb", "--hardware", "tpu_v4i")
