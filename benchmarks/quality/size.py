"""Measures what large programs need: to be captured, bounded, solved and tuned.

    python benchmarks/quality/size.py FOLDER [--seconds 240] [--steps capture,lp,...] [PROGRAM...]

PROGRAM is WORKLOAD.TARGET. Each step is a command of `mallocgame`, and what it took and answered is
kept in FOLDER, so that this can be interrupted and goes on where it stopped. Then prints the tables
of docs/results/size.md. Needs mallocgame[xla,bounds] and no TPU. Exits 1 if a step failed, a solver
took a fifth longer than it may, or memory went over the limit.
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import threading
import time

DECODE, TRAIN = "llama_8b_decode_32l_b8_kv2048", "gpt2_train_adamw_b8_s1024"
PROGRAMS = (
    f"{DECODE}.tpu_v6e",
    f"{DECODE}_scan.tpu_v6e",
    *(
        f"{workload}.{target}"
        for workload in (
            TRAIN,
            f"{TRAIN}_scan",
            "diffusion_unet_b2_64",
            "moe_transformer_8l_b4_s512",
        )
        for target in ("tpu_v6e", "tpu_v5e")
    ),
)
# Names and seconds; 0: it ends by itself.
SOLVERS = {"greedy": 10, "xla-heuristic": 10, "rent": 10, "anneal": 10, "portfolio": 30}
STEPS = ("capture", "lp", *SOLVERS, "tune")
MOST_MIB, MOST_LATE = 8 << 10, 1.2
_PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / 2**20


def resident_mib(process: int) -> float:
    """Returns the memory of a process and all that it started."""
    total = 0.0
    for number in (process, *descendants(process)):
        try:
            pages = pathlib.Path(f"/proc/{number}/statm").read_text().split()[1]
        except (FileNotFoundError, ProcessLookupError):  # It has just ended.
            continue
        total += int(pages) * _PAGE_MIB
    return total


def descendants(process: int) -> list[int]:
    """Returns the numbers of all that a process started, directly or not."""
    found = []
    for task in pathlib.Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = [int(number) for number in task.read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
        for child in children:
            found += [child, *descendants(child)]
    return found


def measured(arguments: list[str]) -> dict:
    """Runs a command of mallocgame: wall and processor seconds, peak MiB, and its answer."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    peak = 0.0
    done = threading.Event()
    with subprocess.Popen(
        [sys.executable, "-m", "mallocgame", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:

        def watch() -> None:
            nonlocal peak
            while not done.wait(0.1):
                peak = max(peak, resident_mib(process.pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        out, said = process.communicate()
        done.set()
        watcher.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    row = {
        "wall_s": time.monotonic() - begin,
        "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "peak_mib": peak,
    }
    if process.returncode:
        return row | {"error": said.decode().strip().splitlines()[-1]}
    return row | {"answer": json.loads(out)}


def command(step: str, program: str, folder: pathlib.Path, seconds: float) -> list[str]:
    """Returns the arguments of mallocgame for a step."""
    workload, target = program.split(".")
    captured = str(folder / "capture" / "program.mgp")
    compiling = ("--no-cache", "--compile-seconds", "1800", "--json")
    if step == "capture":
        capture = str(folder / "capture")
        return [*("xla", "capture", workload, "--target", target), *("-o", capture, *compiling)]
    if step == "lp":
        return ["solve", captured, "--solver", "all-main", "--bound", "lp", "--json"]
    if step == "tune":
        return [
            *("xla", "tune", workload, "--target", target),
            *("--seconds", f"{seconds:g}", *compiling),
        ]
    return ["solve", captured, "--solver", step, "--seconds", str(SOLVERS[step]), "--json"]


def rows_of(
    program: str, folder: pathlib.Path, steps: list[str], seconds: float
) -> dict[str, dict]:
    """Does what is missing of a program's steps, and returns all that is known of them."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: dict[str, dict] = {}
    for step in STEPS:
        path = folder / f"{step}.json"
        if step in steps and not path.exists():
            print(f"{program}: {step}", file=sys.stderr, flush=True)
            path.write_text(json.dumps(measured(command(step, program, folder, seconds))))
        if path.exists():
            rows[step] = json.loads(path.read_text())
        if "error" in rows.get("capture", {}):
            break  # There is no program for the other steps.
    return rows


def took(row: dict) -> str:
    """Returns wall and processor seconds, and the peak."""
    return f"{row['wall_s']:.1f} / {row['cpu_s']:.1f} / {row['peak_mib']:,.0f}"


def size_cells(rows: dict[str, dict]) -> list[str]:
    """Returns what capturing and bounding took, and what is left."""
    row = rows["capture"]
    if "error" in row:
        return [f"refused: {row['error']}"]
    answer = row["answer"]
    cells = [f"{answer['accesses']:,}", took(row), f"{answer['xla_ps'] / 1e6:,.1f}"]
    if "lp" not in rows or "error" in rows["lp"]:
        return [*cells, rows.get("lp", {}).get("error", "–")]
    found = rows["lp"]["answer"]
    left = f"{answer['xla_ps'] / found['bound_ps'] - 1.0:.1%}"
    return [*cells, took(rows["lp"]), found["bound_status"], left]


def solver_cells(rows: dict[str, dict]) -> list[str]:
    """Returns each solver's speed-up over XLA, and what it took."""
    cells = []
    for solver in SOLVERS:
        row = rows.get(solver, {"error": "–"})
        cells.append(
            row["error"]
            if "error" in row
            else f"{row['answer']['speedup_vs_xla']:.3f} in {row['wall_s']:.1f} / "
            f"{row['cpu_s']:.1f} / {row['peak_mib']:,.0f}"
        )
    return cells


def tune_cells(rows: dict[str, dict]) -> list[str]:
    """Returns what tune reached."""
    row = rows["tune"]
    if "error" in row:
        return [row["error"]]
    answer = row["answer"]
    return [
        f"{answer['speedup']:.3f}",
        f"{answer['speedup_cold']:.3f}",
        str(answer["plans"]),
        str(len(answer["refused"])),
        took(row),
    ]


def good(rows: dict[str, dict]) -> bool:
    """Returns whether all went well, in time and within memory."""
    return all(
        "error" not in row
        and row["peak_mib"] <= MOST_MIB
        and (step not in SOLVERS or row["answer"]["seconds"] <= MOST_LATE * SOLVERS[step])
        for step, row in rows.items()
    )


def print_table(heads: list[str], rows: list[tuple[str, list[str]]]) -> None:
    """Prints Markdown."""
    print(f"| program | {' | '.join(heads)} |\n| --- |{' --: |' * len(heads)}")
    for program, cells in rows:
        print(f"| `{program}` | {' | '.join(cells)} |")
    print()


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("programs", nargs="*", default=PROGRAMS, metavar="PROGRAM")
    parser.add_argument("--seconds", type=float, default=240.0, help="for tune (240)")
    parser.add_argument("--steps", default=",".join(STEPS), help="comma-separated (all)")
    options = parser.parse_intermixed_args()
    steps = options.steps.split(",")
    if unknown := set(steps) - {*STEPS, ""}:
        parser.error(f"steps: found {', '.join(unknown)}, allowed: {', '.join(STEPS)}")
    every = {
        program: rows_of(program, options.folder / program, steps, options.seconds)
        for program in options.programs
    }
    print_table(
        ["accesses", "capture, s / s / MiB", "XLA, µs", "lp, s / s / MiB", "lp", "left"],
        [(name, size_cells(rows)) for name, rows in every.items() if "capture" in rows],
    )
    print_table(
        [f"`{solver}`" for solver in SOLVERS],
        [(name, solver_cells(rows)) for name, rows in every.items() if {*SOLVERS} & {*rows}],
    )
    print_table(
        ["speed-up", "cold", "plans", "refused", "s / s / MiB"],
        [(name, tune_cells(rows)) for name, rows in every.items() if "tune" in rows],
    )
    return 0 if all(good(rows) for rows in every.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
