"""Counts instructions whose results the compiler prices no cheaper in fast memory than in main.

    python benchmarks/measured/fast_results.py

It prints a row for each hardware of the bundled programs: the instructions with two prices that
differ in results only, those of them where more results in fast memory are no cheaper, and those
where they are more than 5 % dearer.
"""

import collections
from collections.abc import Iterator, Sequence

import mallocgame as mg
from mallocgame import experiments as ex


def main() -> None:
    """Prints the table."""
    counts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    for name in mg.program_names():
        program = mg.load_program(name)
        pools = program.pools
        for pool in program.pool_of:
            found = list(_ratios(pools[pool][-1])) if pool >= 0 else []
            if found:
                count = counts[program.hardware.name]
                count["both"] += 1
                count["no cheaper"] += max(found) >= 1.0
                count["dearer"] += max(found) > 1.05
    table = ex.Table(["hardware", "with both prices", "no cheaper", "over 5 % dearer"])
    for hardware, count in sorted(counts.items()):
        table.add(hardware, *(f"{count[key]:,}" for key in ("both", "no cheaper", "dearer")))
    print(table)


def _ratios(rows: Sequence[tuple[int, int, int]]) -> Iterator[float]:
    """Yields the price with more results in fast memory over that with fewer."""
    for operands, results, cycles in rows:
        for its_operands, its_results, its_cycles in rows:
            if operands == its_operands and results != its_results and not results & ~its_results:
                yield its_cycles / max(1, cycles)


if __name__ == "__main__":
    main()
