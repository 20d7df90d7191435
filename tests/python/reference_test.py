"""Where XLA's own plan is no valid one, every command says so and compares nothing with it."""

import gzip
import pathlib

import pytest

import mallocgame as mg
from mallocgame._cli.main import main
from mallocgame.experiments.plan_rows import reference

HLO = pathlib.Path(__file__).resolve().parents[2] / "benchmarks/programs/hlo/core/tpu_v5e"
SENTENCE = "XLA's own plan is no valid plan here, so it is no reference: outstanding: "


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """A program whose plan of XLA's has more prefetches at once than its hardware allows."""
    folder = HLO / "mlp_train_adam_b512"
    hardware = mg.hardware("tpu_v5e").replace(name="tpu_v5e_narrow", max_outstanding_prefetches=1)
    before, after = (
        gzip.decompress((folder / f"{name}_msa.hlo.pb.gz").read_bytes()) for name in ("pre", "post")
    )
    path = tmp_path_factory.mktemp("narrow") / "narrow.mgp"
    mg.save_program(mg.import_hlo(before, assigned=after, hardware=hardware, name="narrow"), path)
    return path


def test_the_reference_says_which_rule_the_plan_breaks(program):
    narrow = mg.load_program(program)
    own = reference(narrow, narrow.hardware)
    assert own.report is None
    assert own.invalid == f"outstanding: {mg.validate(narrow, narrow.xla_plan).message}"
    other = mg.load_program("mlp_train_adam_b512.tpu_v5e")
    assert reference(other, other.hardware).sentence is None


def test_commands_compare_nothing_with_it(program, run_json, capsys):
    row = run_json("solve", str(program), "--solver", "greedy")
    assert row["valid"]
    assert row["xla_ps"] is row["xla_cold_ps"] is row["speedup_vs_xla"] is None
    assert row["xla_invalid"].startswith("outstanding: ")
    capsys.readouterr()
    for command in (
        ["solve", str(program), "--solver", "greedy"],
        ["compare", str(program), "--solvers", "greedy,xla-assigned"],
    ):
        assert main(command) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert SENTENCE in text, text
        assert "XLA's own 1" not in text, "no row of its latency"
    rows = run_json("compare", str(program), "--solvers", "greedy,xla-assigned")["results"]
    assert [one["status"] for one in rows] == ["heuristic", "unavailable"]
    assert all(one["speedup_vs_xla"] is None for one in rows)
