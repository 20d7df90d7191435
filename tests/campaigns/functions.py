"""Functions as people post them are captured, and plans of them carried out, each on two chips.

    python tests/campaigns/functions.py OUT [--targets CHIP,...] [--only NAME,...] [--retry]

Each function of tests/campaigns/posted is captured. Then four plans of it are carried out: XLA's
own, greedy's, that of two seconds of `portfolio`, and that of a random game. A plan is as planned
if the module that was linked, imported anew, has every access and every prefetch where they were
written, and takes as long to the picosecond. Each run has a process of its own, because the
compiler may end it or never answer.

OUT/rows.jsonl has a line for each run, so that this can be interrupted and goes on where it
stopped; with --retry it runs again what failed. Then tables by chip and by cause are printed.
Needs mallocgame[xla] and no TPU. Exits 1 if a run failed.
"""

import argparse
import collections
import itertools
import json
import multiprocessing
import os
import pathlib
import re
import signal
import sys
import time
from collections.abc import Iterator

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # the processes only trace
_ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(_ROOT / "benchmarks" / "quality"))

import random_plans
from posted import FUNCTIONS

import mallocgame as mg
import mallocgame.xla as mgx

CHIPS = ("tpu_v4i", "tpu_v4", "tpu_v5e", "tpu_v5p", "tpu_v6e", "tpu7x")
PAIRS = list(itertools.combinations(CHIPS, 2))
# Four devices of each.
_SEVERAL = {
    "tpu_v4i": "2x2",
    "tpu_v4": "1x2x1",
    "tpu_v5e": "2x2",
    "tpu_v5p": "2x2x1",
    "tpu_v6e": "2x2",
    "tpu7x": "1x2x1",
}
PLANS = ("XLA's own", "greedy", "portfolio", "random game")
AS_PLANNED = "as planned"
_SECONDS = 2.0  # of portfolio
_LIMIT = 600.0  # seconds of a run
_NAMES = re.compile(r"'[^']*'|\b[0-9a-f]{32}\b|\d[\d,.]*")  # what differs between like causes


def chips_of(name: str) -> tuple[str, str]:
    """Returns the two chips of a function: all pairs take turns."""
    return PAIRS[FUNCTIONS[name].number * 4 % len(PAIRS)]


def target_of(name: str, chip: str) -> str:
    """Returns the target that a function has on a chip."""
    return chip if FUNCTIONS[name].devices == 1 else f"{chip}:{_SEVERAL[chip]}"


def plan_of(kind: str, program: mg.Program) -> mg.Plan:
    """Returns a plan of the program."""
    if kind == "XLA's own":
        assert program.xla_plan is not None, "it is captured"
        return program.xla_plan
    if kind == "random game":
        return random_plans.random_plan(program, [0], "time")[0]
    return mg.solve(program, kind, seconds=_SECONDS).plan


def outcome(kind: str, emitter: mgx.emitting.Emitter) -> tuple[str, int]:
    """Carries out a plan. Returns what became of it, and its accesses to fast memory."""
    plan = plan_of(kind, emitter.capture.program)
    placed = int((plan.served_by >= 0).sum())
    written = emitter.link(emitter.write(plan))
    again, found = random_plans.read_back(emitter.capture, written, False)
    elsewhere = random_plans.differences(written.program, written.plan, found)
    wrong = [
        f"{elsewhere[of]} {of}" for of in elsewhere if of.startswith("other_") and elsewhere[of]
    ]
    if mg.simulate(again, found).latency_ps != written.report.latency_ps:
        wrong.append("another latency")
    return (f"read back with {', '.join(wrong)}" if wrong else AS_PLANNED), placed


def told(error: BaseException) -> str:
    """Says an error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def run(name: str, target: str, cache: str) -> Iterator[dict]:
    """Yields what is found of a function on a target, as it is found."""
    posted = FUNCTIONS[name]
    os.cpu_count = lambda: 1  # One compiler, because two take longer to start than they save.
    with mgx.Compiler(mgx.find_target(target), seconds=_LIMIT, cache=cache) as compiler:
        yield {"stage": "capture"}
        try:
            captured = mgx.capture(
                posted.function, *posted.arguments, target=target, compiler=compiler, name=name
            )
        except Exception as error:  # Whatever it is, it is to be told.
            yield {"capture": told(error)}
            return
        verdict = captured.xla_verdict
        yield {
            "capture": "captured",
            "accesses": captured.program.counts["accesses"],
            "xla": "valid" if verdict.ok else f"{verdict.rule}: {verdict.message}",
            "stage": "schedule for plans",
        }
        try:
            with mgx.emitting.Emitter(captured, compiler, jobs=1) as emitter:
                for kind in PLANS:
                    yield {"stage": kind}
                    try:
                        became, placed = outcome(kind, emitter)
                        yield {kind: became, f"{kind}, in fast memory": placed}
                    except Exception as error:  # As above.
                        yield {kind: told(error)}
        except Exception as error:  # As above.
            yield {"plans": told(error)}


def _run_into(path: pathlib.Path, name: str, target: str, cache: pathlib.Path) -> None:
    """Writes what is found to a file, and what the process says beside it."""
    os.setsid()  # The compilers that it starts end with it.
    with path.with_suffix(".err").open("w") as words:
        os.dup2(words.fileno(), sys.stderr.fileno())
    with path.open("w") as lines:
        for found in run(name, target, str(cache)):
            print(json.dumps(found), file=lines, flush=True)


def row_of(name: str, target: str, out: pathlib.Path, limit: float) -> dict:
    """Runs a function on a target in a process of its own."""
    began = time.monotonic()
    path = out / "run.jsonl"
    for left in (path, path.with_suffix(".err")):
        left.write_text("")
    # Nothing of JAX but its modules is there to be forked.
    running = multiprocessing.get_context("fork").Process(
        target=_run_into, args=(path, name, target, out / "cache")
    )
    running.start()
    running.join(limit)
    ended = f"ended with {running.exitcode}" if running.exitcode else ""
    if running.exitcode is None:
        os.killpg(running.pid, signal.SIGKILL)
        running.join()
        ended = f"took longer than {limit:.0f} s"
    row: dict = {"function": name, "target": target}
    for line in path.read_text().splitlines():
        row |= json.loads(line)
    stage = row.pop("stage", "start")
    if ended:
        row["ended"] = f"{stage}: {ended}"
        row["words"] = path.with_suffix(".err").read_text(errors="replace")[-2000:]
    return row | {"seconds": round(time.monotonic() - began, 1)}


def faults(row: dict) -> dict[str, str]:
    """Returns what is wrong with a run, by stage."""
    good = {"capture": "captured", "xla": "valid"} | dict.fromkeys(PLANS, AS_PLANNED)
    wrong = {stage: row[stage] for stage, right in good.items() if row.get(stage, right) != right}
    return wrong | {stage: row[stage] for stage in ("plans", "ended") if stage in row}


def print_tables(rows: list[dict]) -> None:
    """Prints the runs by chip, and the failures by cause."""
    heads = ("runs", "captured", "XLA's plan valid", *PLANS, "all", "something placed")
    print(f"| chip | {' | '.join(heads)} |\n| --- |{' --: |' * len(heads)}")
    for chip in (*CHIPS, "all"):
        some = [row for row in rows if chip in (row["target"].partition(":")[0], "all")]
        cells = [
            len(some),
            sum(row.get("capture") == "captured" for row in some),
            sum(row.get("xla") == "valid" for row in some),
            *(sum(row.get(kind) == AS_PLANNED for row in some) for kind in PLANS),
            sum(not faults(row) for row in some),
            sum(any(row.get(f"{kind}, in fast memory") for kind in PLANS) for row in some),
        ]
        print(f"| `{chip}` | {' | '.join(map(str, cells))} |")
    causes = collections.defaultdict(list)
    for row in rows:
        for stage, cause in faults(row).items():
            cause = cause.replace(f"{row['function']}: ", "")
            causes[_NAMES.sub("…", cause)[:200]].append(
                f"{row['function']}@{row['target']} ({stage})"
            )
    if causes:
        print("\n| cause | runs |\n| --- | --- |")
        for cause, where in sorted(causes.items(), key=lambda one: -len(one[1])):
            print(f"| {cause.replace('|', chr(92) + '|')} | {', '.join(where)} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", metavar="OUT", type=pathlib.Path, help="folder of the results")
    parser.add_argument("--targets", help="chips instead of two of each function")
    parser.add_argument("--only", default=",".join(FUNCTIONS), help="functions, with commas")
    parser.add_argument("--retry", action="store_true", help="run again what failed")
    parser.add_argument("--seconds", type=float, default=_LIMIT, help="of a run, at most (600)")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "rows.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    known = [json.loads(line) for line in lines if line.endswith("\n")]
    rows = {
        (row["function"], row["target"]): row
        for row in known
        if not options.retry or not faults(row)
    }
    path.write_text("".join(json.dumps(row) + "\n" for row in rows.values()))
    names = sorted(options.only.split(","), key=lambda name: FUNCTIONS[name].number)
    chips = options.targets.split(",") if options.targets else None
    wanted = [  # All kinds soon, each with its first chip.
        (name, target_of(name, chip))
        for turn in range(len(chips or PAIRS[0]))
        for name in names
        for chip in (chips or chips_of(name))[turn : turn + 1]
    ]
    with path.open("a") as kept:
        for done, (name, target) in enumerate(wanted, 1):
            if (name, target) in rows:
                continue
            row = row_of(name, target, options.out, options.seconds)
            rows[name, target] = row
            print(json.dumps(row), file=kept, flush=True)
            what = "; ".join(f"{stage}: {cause}" for stage, cause in faults(row).items()) or "good"
            print(f"{done}/{len(wanted)} {name} {target}: {row['seconds']} s, {what[:300]}",
                  file=sys.stderr, flush=True)  # fmt: skip
    print_tables([rows[one] for one in wanted])
    return int(any(faults(rows[one]) for one in wanted))


if __name__ == "__main__":
    sys.exit(main())
