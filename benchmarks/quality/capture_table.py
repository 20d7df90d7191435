"""Captures functions of the kinds that people post, on every chip, and judges XLA's own plans.

    python benchmarks/quality/capture_table.py FOLDER [--targets T,...] [FUNCTION...]

Keeps each answer in FOLDER, so that it can be interrupted and goes on where it stopped, and the
compiler's answers in its cache. Prints what docs/results/chips.md sums up: what each function
came to on each chip, and the sentence where XLA's plan is no plan of ours.
Needs JAX and libtpu (.ci/setup xla) and no TPU. Exits 1 if a capture failed that the function
doesn't ask for.
"""

import argparse
import json
import pathlib
import sys
import time

from posted_functions import FUNCTIONS  # type: ignore[import-not-found]

import mallocgame as mg
import mallocgame.xla as mgx

TARGETS = ("tpu_v4i", "tpu_v4", "tpu_v5e", "tpu_v5p", "tpu_v6e", "tpu7x")
# They call the host's Python, which a program for an absent device can't be lowered with.
REFUSED = ("callback", "printed")


def judged(name: str, compiler: mgx.Compiler) -> dict:
    """Returns the row of one function on the compiler's chip."""
    target = compiler.target.name
    row: dict = {"function": name, "target": target}
    begin = time.monotonic()
    try:
        function, args = FUNCTIONS[name]()
        captured = mgx.capture(function, *args, target=target, name=name, compiler=compiler)
    except mg.MallocGameError as error:
        return row | {"outcome": "refused", "sentence": str(error)}
    program = captured.program
    verdict = mg.validate(program, captured.xla_plan)
    return row | {
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


def table(rows: list[dict]) -> list[str]:
    """Returns the lines of the table: a row for each function, a column for each chip."""
    targets = list(dict.fromkeys(row["target"] for row in rows))
    cell = {(row["function"], row["target"]): row for row in rows}
    lines = ["| function | " + " | ".join(targets) + " |", "| --- |" + " --- |" * len(targets)]
    for name in FUNCTIONS:
        found = [cell.get((name, target)) for target in targets]
        if any(found):
            words = ["" if row is None else row["outcome"] for row in found]
            lines.append(f"| `{name}` | " + " | ".join(words) + " |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("functions", nargs="*", default=list(FUNCTIONS))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for target in options.targets.split(","):
        with mgx.Compiler(mgx.find_target(target)) as compiler:
            for name in options.functions:
                kept = options.folder / f"{name}.{target}.json"
                if kept.exists():
                    rows.append(json.loads(kept.read_text()))
                    continue
                rows.append(judged(name, compiler))
                kept.write_text(json.dumps(rows[-1]))
                print(f"{name} {target}: {rows[-1]['outcome']}", file=sys.stderr)
    print("\n".join(table(rows)))
    for row in rows:
        if row["outcome"] != "valid":
            print(f"\n- `{row['function']}` on {row['target']}: {row['sentence']}")
    return int(any(row["outcome"] == "refused" and row["function"] not in REFUSED for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
