"""Every bundled program against its manifest and against the totals its source recorded."""

import hashlib
import pathlib

import pytest
from conftest import SOURCE_ROOT

import mallocgame as mg
from mallocgame.programs import manifest

ALLOWED_DIFFERENCE = 0.02


def documented_exceptions() -> dict[tuple[str, str], float]:
    """(program, total) -> difference in percent, from the table in benchmarks/programs/README.md: the one list there is."""
    text = (SOURCE_ROOT / "benchmarks/programs/README.md").read_text()
    rows = text.split("## Exceptions", 1)[1].splitlines()
    cells = [[cell.strip(" `") for cell in row.split("|")[1:4]] for row in rows if row.startswith("| `")]
    return {(program, total): float(percent.rstrip("%")) / 100 for program, total, percent in cells}


def totals(program: mg.Program) -> dict[str, int]:
    xla = mg.simulate(program, program.xla_plan)
    return {"all_main": xla.all_main_ps, "xla": xla.latency_ps, "xla_cold": xla.latency_cold_ps}


def test_manifest_lists_what_is_there():
    assert sorted(manifest()) == mg.program_names()
    assert len([name for name in mg.program_names() if not name.endswith("_16mib")]) == 28


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


@pytest.mark.parametrize("name", mg.program_names())
def test_totals_are_those_of_the_compiler(name):
    program = mg.load_program(name)
    exceptions = documented_exceptions()
    for total, found_ps in totals(program).items():
        expected_ps = program.hardware.cycles_to_ps(manifest()[name]["expected_cycles"][total])
        difference = found_ps / expected_ps - 1
        if (name, total) in exceptions:
            # A documented exception that is none any more must go from the list.
            assert difference == pytest.approx(exceptions[name, total], abs=0.002), total
            assert abs(difference) > ALLOWED_DIFFERENCE, total
        else:
            assert abs(difference) <= ALLOWED_DIFFERENCE, f"{total}: {100 * difference:+.2f} %"


def test_exceptions_are_of_bundled_programs():
    assert {name for name, _ in documented_exceptions()} <= set(mg.program_names())
