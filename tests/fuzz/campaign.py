"""Runs every fuzzer for some time, one after the other, and writes the table of what they did.

    python tests/fuzz/campaign.py OUT --seconds N [--only NAME ...] [--build build/fuzz]

OUT keeps the corpora, the logs and the findings. Run again with the same OUT, each fuzzer goes on
for what it lacks of N seconds, with the corpus that it has; OUT/table.md then tells the sums.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import time

SEEDS = pathlib.Path(__file__).resolve().parent / "seeds"
# A reader must not take more memory than this, and no longer for one input.
LIMITS = ["-timeout=60", "-rss_limit_mb=4096"]
EDGES = re.compile(rb"\bcov: (\d+)")
EXECUTIONS = re.compile(rb"^stat::number_of_executed_units:\s*(\d+)", re.MULTILINE)


def fuzz(program: pathlib.Path, out: pathlib.Path, seconds: int) -> dict[str, float]:
    """Runs one fuzzer until time is over or it has a finding."""
    name = program.name.removeprefix("fuzz_")
    corpus, findings = out / "corpus" / name, out / "findings" / name
    for folder in (corpus, findings):
        folder.mkdir(parents=True, exist_ok=True)
    command = [
        program,
        f"-max_total_time={seconds}",
        *LIMITS,
        "-print_final_stats=1",
        f"-artifact_prefix={findings}/",
        corpus,
        SEEDS / name,
    ]
    started = time.monotonic()
    done = subprocess.run(command, capture_output=True, check=False)
    (out / f"{name}.log").write_bytes(done.stderr)
    executed, edges = EXECUTIONS.search(done.stderr), EDGES.findall(done.stderr)
    if executed is None and not any(findings.iterdir()):
        sys.exit(f"{program} ended without a word of what it did:\n{done.stderr.decode()[-2000:]}")
    return {
        "seconds": time.monotonic() - started,
        "executions": int(executed[1]) if executed else 0,
        "edges": int(edges[-1]) if edges else 0,
        "findings": len(list(findings.iterdir())),
    }


def added(before: dict[str, float], run: dict[str, float]) -> dict[str, float]:
    return {
        "seconds": before.get("seconds", 0) + run["seconds"],
        "executions": before.get("executions", 0) + run["executions"],
        "edges": max(before.get("edges", 0), run["edges"]),
        "findings": run["findings"],
    }


def table(results: dict[str, dict[str, float]]) -> str:
    lines = [
        "| reader | seconds | executions | edges | findings |",
        "| --- | --: | --: | --: | --: |",
    ]
    for name, r in results.items():
        numbers = " | ".join(f"{r[k]:,.0f}" for k in ("seconds", "executions", "edges", "findings"))
        lines.append(f"| `{name}` | {numbers} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, required=True, help="for each fuzzer")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these fuzzers, without fuzz_")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/fuzz"))
    options = parser.parse_args()
    programs = {
        path.name.removeprefix("fuzz_"): path.resolve()
        for path in sorted((options.build / "tests" / "fuzz").glob("fuzz_*"))
        if path.is_file() and (SEEDS / path.name.removeprefix("fuzz_")).is_dir()
    }
    if unknown := set(options.only or ()) - set(programs):
        parser.error(f"found {', '.join(sorted(unknown))}, built are {', '.join(programs)}")
    options.out.mkdir(parents=True, exist_ok=True)
    record = options.out / "results.json"
    results = json.loads(record.read_text()) if record.exists() else {}
    for name in options.only or programs:
        before = results.get(name, {})
        if (left := round(options.seconds - before.get("seconds", 0))) < 1:
            continue
        results[name] = added(before, fuzz(programs[name], options.out.resolve(), left))
        record.write_text(json.dumps(results, indent=1, sort_keys=True))
        (options.out / "table.md").write_text(table(dict(sorted(results.items()))))
        print(name, results[name], flush=True)
    print(table(dict(sorted(results.items()))))
    return int(any(r["findings"] for r in results.values()))


if __name__ == "__main__":
    sys.exit(main())
