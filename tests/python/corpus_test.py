"""Every bundled program against its manifest, its source and the totals its source recorded."""

import csv
import gzip
import hashlib
import importlib.util
import pathlib

import pytest
from conftest import SOURCE_ROOT

import mallocgame as mg
from mallocgame.programs import manifest, suite

ALLOWED_DIFFERENCE = 0.005


def script(path: str):
    """A script of the repository as a module."""
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, SOURCE_ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


corpus = script("benchmarks/programs/make_corpus.py")
quality = script("benchmarks/quality/totals.py")


def documented_exceptions() -> dict[tuple[str, str], float]:
    """Returns the difference by program and total.

    The file is the only list of them, with a cause of each.
    """
    with open(SOURCE_ROOT / "benchmarks/quality/tables/totals_exceptions.csv", newline="") as file:
        return {
            (row["program"], row["total"]): float(row["difference"].rstrip("%")) / 100
            for row in csv.DictReader(file)
        }


def test_manifest_lists_what_is_there():
    assert sorted(manifest()) == mg.program_names()
    assert len([name for name in suite("core") if not name.endswith("_16mib")]) == 28
    apart = [name for one in ("core", "cloud", "sharded") for name in suite(one)]
    assert sorted(apart) == suite("all") == mg.program_names()
    assert len(apart) - len(suite("core")) >= 40
    assert set(suite("contended")) < set(suite("core"))


def test_programs_for_several_chips_are_sharded():
    for name in mg.program_names():
        several = name.rpartition(".")[2] != manifest()[name]["hardware"]
        assert several == (name in suite("sharded")), name


@pytest.mark.parametrize("name", mg.program_names())
def test_program(name):
    entry = manifest()[name]
    path = pathlib.Path(mg.__file__).parent / "programs" / f"{name}.mgp"
    assert hashlib.sha256(path.read_bytes()).hexdigest() == entry["sha256"]
    program = mg.load_program(name)
    assert (program.name, program.fingerprint) == (name, entry["fingerprint"])
    assert program.hardware == mg.hardware(entry["hardware"])
    for count in ("instructions", "buffers", "eligible_buffers", "accesses"):
        assert program.counts[count] == entry[count], count
    assert program.argument_bytes == entry["argument_bytes"]
    assert program.counts["unknown_trip_counts"] == 0
    verdict = mg.validate(program, program.xla_plan)
    assert verdict.ok, verdict.message


@pytest.mark.parametrize("name", suite("core"))
def test_totals_are_those_of_the_compiler(name):
    program = mg.load_program(name)
    exceptions = documented_exceptions()
    for total, (_, difference) in quality.differences(
        program, manifest()[name]["expected_cycles"]
    ).items():
        if (name, total) in exceptions:
            # A documented exception that is none any more must go from the list.
            assert difference == pytest.approx(exceptions[name, total], abs=0.0001), total
            assert abs(difference) > ALLOWED_DIFFERENCE, total
        else:
            assert abs(difference) <= ALLOWED_DIFFERENCE, f"{total}: {100 * difference:+.2f} %"


def test_exceptions_are_of_bundled_programs():
    assert {name for name, _ in documented_exceptions()} <= set(mg.program_names())


def test_totals_are_the_recorded_ones():
    with open(SOURCE_ROOT / "benchmarks/quality/tables/totals.csv", newline="") as file:
        recorded = {row[0]: row[1:] for row in csv.reader(file)}
    for name in suite("core"):
        assert recorded[name] == quality.row(name)[1:], f"{name}: run benchmarks/quality/totals.py"


def test_every_program_has_a_source_and_says_where_it_is_from():
    assert sorted(corpus.entries(corpus.CAPTURED)) == mg.program_names()
    for name, entry in manifest().items():
        assert set(entry["origin"]) == {"jax", "jaxlib", "libtpu"}
        assert "/" not in mg.load_program(name).origin


@pytest.mark.parametrize(
    "name", ["wavernn_64steps_b8.tpu_v4i_16mib", "mlp_train_adam_b512.tpu_v6e"]
)
def test_made_again_from_its_source_a_program_is_the_same(name, tmp_path):
    program, entry = corpus.make(*corpus.entries(corpus.CAPTURED)[name])
    recorded = dict(manifest()[name])
    del recorded["sha256"]
    assert entry == recorded
    mg.save_program(program, tmp_path / "again.mgp")
    bundled = pathlib.Path(mg.__file__).parent / "programs" / f"{name}.mgp"
    # Compression libraries differ in their choices; what they pack may not.
    assert payload(tmp_path / "again.mgp") == payload(bundled)


def payload(path: pathlib.Path) -> tuple[bytes, bytes]:
    header, packed = path.read_bytes().split(b"\n", 1)
    return header, gzip.decompress(packed)
