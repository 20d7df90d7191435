"""Captures functions of the kinds that people post, on every chip, and judges XLA's own plans.

    python benchmarks/quality/capture_table.py FOLDER [--targets T,...] [FUNCTION...]

Keeps each answer in FOLDER, so that it can be interrupted and goes on where it stopped, and the
compiler's answers in its cache. Prints what docs/testing.md sums up: what each function
came to on each chip, and the sentence where XLA's plan is no plan of ours.
Needs JAX and libtpu (.ci/setup xla) and no TPU. Exits 1 if a capture failed that the function
doesn't ask for.
"""

import atexit
import functools
import time

from posted_functions import FUNCTIONS  # type: ignore[import-not-found]

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame import experiments as ex

TARGETS = ("tpu_v4i", "tpu_v4", "tpu_v5e", "tpu_v5p", "tpu_v6e", "tpu7x")
# They call the host's Python, which a program for an absent device can't be lowered with.
REFUSED = ("callback", "printed")


@functools.cache
def compiler(target: str) -> mgx.Compiler:
    """One for each chip: its process serves many captures."""
    made = mgx.Compiler(mgx.find_target(target))
    atexit.register(made.close)
    return made


def judged(target: str, function: str) -> dict:
    """Returns the row of one function on a chip."""
    ask, begin = compiler(target), time.monotonic()
    try:
        made, args = FUNCTIONS[function]()
        captured = mgx.capture(made, *args, target=target, name=function, compiler=ask)
    except mg.MallocGameError as error:
        return {"outcome": "refused", "sentence": str(error)}
    program = captured.program
    verdict = mg.validate(program, captured.xla_plan)
    return {
        "outcome": "valid" if verdict.ok else "invalid",
        "sentence": verdict.message,
        "rule": verdict.rule,
        "counts": program.counts,
        "replaced": sorted(
            {
                program.instruction_opcodes[copy["replaces"]]
                for copy in captured.xla_plan.copies
                if copy["replaces"] >= 0
            }
        ),
        "seconds": round(time.monotonic() - begin, 1),
    }


def main(bench: ex.Bench, *functions: str, targets: tuple[str, ...] = TARGETS) -> int:
    # Chip by chip, so that a compiler serves many captures.
    rows = bench.run(judged, ex.Grid(target=targets, function=functions or FUNCTIONS))
    table = ex.Table(["function", *targets], left=1 + len(targets))
    for name, several in ex.grouped(rows, "function").items():
        table.add(f"`{name}`", *(row["outcome"] for row in several))
    print(table)
    for row in rows:
        if row["outcome"] != "valid":
            print(f"\n- `{row['function']}` on {row['target']}: {row['sentence']}")
    return int(any(row["outcome"] == "refused" and row["function"] not in REFUSED for row in rows))


if __name__ == "__main__":
    ex.main(main)
