"""Counts instructions whose results the compiler prices no cheaper in fast memory than in main.

    python benchmarks/measured/fast_results.py

It prints a row for each hardware of the bundled programs: the instructions with two prices that
differ in results only, those of them where more results in fast memory are no cheaper, and those
where they are more than 5 % dearer.
"""

import collections
from collections.abc import Iterator, Sequence

import prices

import mallocgame as mg


def main() -> None:
    """Prints the table."""
    counts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    for name in mg.program_names():
        program = mg.load_program(name)
        costs, pools = prices.read(program)
        for cost in costs:
            found = list(_ratios(pools[cost.pool])) if cost.pool >= 0 else []
            if found:
                count = counts[program.hardware.name]
                count["both"] += 1
                count["no cheaper"] += max(found) >= 1.0
                count["dearer"] += max(found) > 1.05
    print("| hardware | with both prices | no cheaper | over 5 % dearer |")
    print("| --- | --: | --: | --: |")
    for hardware, count in sorted(counts.items()):
        cells = [f"{count[key]:,}" for key in ("both", "no cheaper", "dearer")]
        print(f"| {hardware} | {' | '.join(cells)} |")


def _ratios(rows: Sequence[prices.Row]) -> Iterator[float]:
    """Yields the price with more results in fast memory over that with fewer."""
    for less in rows:
        for more in rows:
            results_only = less.operands == more.operands and less.outputs != more.outputs
            if results_only and less.is_below(more):
                yield more.cycles / max(1, less.cycles)


if __name__ == "__main__":
    main()
