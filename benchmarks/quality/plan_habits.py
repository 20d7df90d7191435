"""Shows what plans do, beside XLA's: what lies in fast memory, for how long, and what is copied.

    python benchmarks/quality/plan_habits.py PROGRAM PLAN ...

A PLAN is a file that `solve -o`, `train` or `xla tune` wrote. Prints a table in Markdown with a
column for XLA's own plan and for each of them: of the accesses to buffers of each size the share
that fast memory serves; the same by the number of ticks since the buffer was accessed before, of
those that may lie there; the residences and how long they last; prefetches, and how many ticks
before its first use each begins; evictions; the bytes of both. Medians are over residences and
copies. Needs no package.
"""

import pathlib

import numpy as np

import mallocgame as mg
from mallocgame import experiments as ex

SIZES = (64 << 10, 1 << 20, 8 << 20)  # bytes; between them are the classes
DISTANCES = (2, 16, 128)  # ticks


def classes(limits: tuple[int, ...], unit: str, scale: int) -> list[str]:
    names = [f"up to {limit // scale} {unit}" for limit in limits]
    return [*names, f"more than {limits[-1] // scale} {unit}"]


def distances(program: mg.Program) -> np.ndarray:
    """Of each access the ticks since its buffer's last one; -1 of the first."""
    last: dict[int, int] = {}
    found = []
    for access in program.accesses:
        buffer, tick = int(access["buffer"]), int(access["tick"])
        found.append(tick - last[buffer] if buffer in last else -1)
        last[buffer] = tick
    return np.array(found)


def habits(program: mg.Program, plan: mg.Plan) -> dict[str, str]:
    buffers = program.accesses["buffer"]
    may = program.buffers["eligible"][buffers]
    fast = plan.served_by >= 0
    size, distance = program.buffers["size_bytes"][buffers], distances(program)
    rows: dict[str, str] = {}

    def share(name: str, which: np.ndarray) -> None:
        count = int((which & may).sum())
        rows[f"{name} ({count})"] = f"{100 * fast[which & may].mean():.0f} %" if count else "-"

    share("accesses served", np.ones(len(may), bool))
    of_size = np.searchsorted(SIZES, size)
    for number, name in enumerate(classes(SIZES, "KiB", 1 << 10)):
        share(f"buffers of {name}", of_size == number)
    share("first accesses", distance < 0)
    of_distance = np.searchsorted(DISTANCES, distance)
    for number, name in enumerate(classes(DISTANCES, "ticks", 1)):
        share(f"{name} after the last", (of_distance == number) & (distance >= 0))

    stays, copies = plan.residences, plan.copies
    rows["residences"] = f"{len(stays)}"
    rows["median length, ticks"] = median(stays["end"] - stays["begin"])
    first: dict[int, int] = {}  # the tick of the first access that a residence serves
    for index, tick in zip(plan.served_by, program.accesses["tick"], strict=True):
        first.setdefault(int(index), int(tick))
    for kind, name in ((0, "prefetches"), (1, "evictions")):
        own = copies[(copies["kind"] == kind) & ~copies["preload"]]
        rows[name] = f"{len(own)}"
        rows[f"{name}, MiB"] = f"{(own['part_end'] - own['part_begin']).sum() / 2**20:.1f}"
        if kind == 0:
            used = [(first[int(c["residence"])], c) for c in own if int(c["residence"]) in first]
            leads = [tick - int(c["begin"]) for tick, c in used]
            rows["median lead, ticks"] = median(np.array(leads))
    return rows


def median(values: np.ndarray) -> str:
    return f"{np.median(values):.0f}" if len(values) else "-"


def main(program: str, *plans: str) -> None:
    loaded = mg.load_program(program)
    assert loaded.xla_plan is not None, "every bundled program has XLA's own plan"
    shown = {"XLA": loaded.xla_plan}
    shown |= {pathlib.Path(path).name: mg.load_plan(path, loaded) for path in plans}
    table = ex.Table(["", *shown])
    found = [habits(loaded, plan) for plan in shown.values()]
    for name in found[0]:
        table.add(name, *(one[name] for one in found))
    latencies = [mg.simulate(loaded, plan).latency_ps / 1e6 for plan in shown.values()]
    table.add("latency, µs", *(f"{one:,.1f}" for one in latencies))
    print(table)


if __name__ == "__main__":
    ex.main(main)
