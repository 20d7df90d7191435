"""Makes the split `schedule` of the bundled levels: where the order of instructions counts.

    python benchmarks/programs/make_schedule_levels.py [PROGRAM ...] [--evaluations N]

It tries bundled programs for one chip whose instructions may stand in another order, all or those
that are named, with the fast memory of the chip and with less (docs/levels.md). A level is one
where there is room, as the bound `lp` at the program's own order is LEAST_ROOM above the bound of
any order, and where a search over orders finds it, as its plan is LEAST_FOUND faster than that of
the same search at the program's own order. It prints a line for each that it tries, and writes
bindings/python/mallocgame/level_sets/schedule, where the levels of other programs stay. The
latencies depend on the number of cores. Needs mallocgame[bounds], and an hour of a core or more for
all.
"""

import json
import pathlib
import zipfile
from typing import Any

import mallocgame as mg
from mallocgame import experiments as ex
from mallocgame.level_sets.describing import describe, greedy_ps, peak_bytes
from mallocgame.level_sets.level_set import BEST_KNOWN, FORMAT, INDEX, load_level_set, write_archive
from mallocgame.level_sets.splits import KNOWN, SCHEDULE, Variant
from mallocgame.programs import suite

FOLDER = pathlib.Path(__file__).parents[2] / "bindings/python/mallocgame/level_sets/schedule"
CAPACITIES = (None, 20)
LEAST_ROOM, LEAST_FOUND = 1.02, 1.01
SEED = 1


def attempt(
    program: mg.Program, variant: Variant, evaluations: int
) -> tuple[dict[str, int], mg.SolveResult] | None:
    """Returns the figures of a level and its best plan.

    None where nothing is to be decided, or no plan was found that is better than at the own order.
    """
    hardware = variant.of(program.hardware, peak_bytes(program))
    if mg.Game(program, hardware).initial_state().is_terminal():
        return None
    found = mg.solve(
        program, "anneal", seconds=0, evaluations=evaluations, seed=SEED, hardware=hardware,
        order=True,
    )  # fmt: skip
    own = mg.solve(
        program, "anneal", seconds=0, evaluations=evaluations, seed=SEED, hardware=hardware
    )
    if found.report.latency_ps >= own.report.latency_ps:
        return None
    bounds = {name: mg.bounds.bound(program, name, hardware) for name in ("any-order", "lp")}
    return {
        "greedy_ps": greedy_ps(program, hardware),
        "own_order_ps": own.report.latency_ps,
        "own_order_bound_ps": bounds["lp"].bound_ps,
        "best_known_ps": found.report.latency_ps,
        "bound_ps": bounds["any-order"].bound_ps,
    }, found


def main(*names: str, evaluations: int = 10_000) -> None:
    tried = list(names) or sorted(set(suite("core")) | set(suite("cloud")))
    programs, known, plans = before(tried)
    for name in tried:
        program = mg.load_program(name)
        if program.free_pairs == 0:
            continue
        kept: list[tuple[Variant, dict[str, int], mg.SolveResult]] = []
        sizes: set[int] = set()
        for capacity in CAPACITIES:
            variant = Variant(capacity)
            fast_bytes = variant.of(program.hardware, peak_bytes(program)).fast_bytes
            if fast_bytes in sizes:
                continue
            sizes.add(fast_bytes)
            made = attempt(program, variant, evaluations)
            if made is None:
                continue
            figures, found = made
            room = figures["own_order_bound_ps"] / figures["bound_ps"]
            gain = figures["own_order_ps"] / figures["best_known_ps"]
            print(f"{variant.level(name)}: {figures}, {room:.3f}, {gain:.3f}", flush=True)
            if room >= LEAST_ROOM and gain >= LEAST_FOUND:
                kept.append((variant, figures, found))
        if not kept:
            continue
        variants = {}
        for variant, figures, found in kept:
            variants[variant.text] = figures
            level = variant.level(name)
            known[level] = {"latency_ps": figures["best_known_ps"], "found_by": "anneal, order"}
            path = FOLDER / "plan.json"
            FOLDER.mkdir(exist_ok=True)
            mg.save_plan(found.plan, program, path, order=found.order)
            plans[f"{level}.json"] = path.read_bytes()
            path.unlink()
        programs[name] = {"split": SCHEDULE, "family": KNOWN, **describe(program)}
        programs[name]["variants"] = variants
        write(programs, known, plans)


def before(
    names: list[str],
) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]], dict[str, bytes]]:
    """Returns the index, the latencies and the plans that are there of other programs."""
    if not (FOLDER / INDEX).exists():
        return {}, {}, {}
    there = load_level_set(FOLDER)
    programs = {name: entry for name, entry in there.programs.items() if name not in names}
    known = {
        level: entry
        for level, entry in there.best_known.items()
        if level.partition("@")[0] in programs
    }
    with zipfile.ZipFile(FOLDER / BEST_KNOWN) as archive:
        return programs, known, {f"{one}.json": archive.read(f"{one}.json") for one in known}


def write(
    programs: dict[str, dict[str, Any]], known: dict[str, dict[str, Any]], plans: dict[str, bytes]
) -> None:
    index = {
        "format": FORMAT,
        "seed": SEED,
        "programs": dict(sorted(programs.items())),
        "left_out": {},
    }
    (FOLDER / INDEX).write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
    latencies = json.dumps(dict(sorted(known.items())), indent=1) + "\n"
    write_archive(
        FOLDER / BEST_KNOWN,
        {"latencies.json": latencies.encode()} | dict(sorted(plans.items())),
        zipfile.ZIP_DEFLATED,
    )


if __name__ == "__main__":
    ex.main(main)
