"""Compares the totals of simulate with those of the captures, for every bundled program.

It makes the file tables/totals.csv beside it, which docs/numbers.md sums up.

    python benchmarks/quality/totals.py [PROGRAM...]

Prints CSV. Times are microseconds; a difference is simulate over the capture's own walk, less
one. The last two columns say how much of XLA's plan is priced by the compiler's own price of that
very placement, and how much from bytes moved.
"""

import mallocgame as mg
from mallocgame import experiments as ex
from mallocgame.programs import manifest, suite

_COLUMNS = (
    "program",
    "all-main us",
    "difference",
    "XLA us",
    "difference",
    "XLA cold us",
    "difference",
    "exact",
    "unpriced",
)


def differences(
    program: mg.Program, expected_cycles: dict[str, int]
) -> dict[str, tuple[int, float]]:
    """Returns by total the picoseconds and their relative difference from the capture's."""
    assert program.xla_plan is not None, "every bundled program has XLA's own plan"
    report = mg.simulate(program, program.xla_plan)
    found = {
        "all_main": report.all_main_ps,
        "xla": report.latency_ps,
        "xla_cold": report.latency_cold_ps,
    }
    return {
        total: (ps, ps / program.hardware.cycles_to_ps(expected_cycles[total]) - 1)
        for total, ps in found.items()
    }


def row(name: str) -> list[str]:
    program = mg.load_program(name)
    assert program.xla_plan is not None, "every bundled program has XLA's own plan"
    report = mg.simulate(program, program.xla_plan)
    cells = [name]
    for ps, difference in differences(program, manifest()[name]["expected_cycles"]).values():
        cells += [f"{ps / 1e6:.1f}", f"{100 * difference + 0.0:+.2f} %".replace("-0.00", "+0.00")]
    return cells + [
        f"{100 * part / report.compute_ps:.1f} %" for part in (report.exact_ps, report.unpriced_ps)
    ]


def main(*programs: str) -> None:
    rows = [row(name) for name in programs or suite("core")]
    print(ex.Table(_COLUMNS, rows).csv(), end="")


if __name__ == "__main__":
    ex.main(main)
