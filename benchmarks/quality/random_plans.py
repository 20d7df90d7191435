"""Has the compiler carry out plans of random games, and reads back what became of each.

    python benchmarks/quality/random_plans.py FOLDER [--programs NAME,...] [--plans 20] [--seed 0]
        [--game time|schedule]

A program is WORKLOAD.HARDWARE, as the bundled ones are called, or one that levels are made of. It
is captured, and as many games are played at random, each with odds of its own for the actions. Each
plan is written into the compiler's module, checked, lowered and linked. Then the module that was
linked is imported anew, and its plan is compared with the one that was written: the memory and the
offset of every access, and begin and end of every prefetch. Both latencies must be one to the
picosecond, and that of before too if all its prices were known. Plans of the schedule game have an
order of instructions of their own, which is read back too. *Main memory* is the most that one of
them needs, as a share of what XLA's order needs with nothing in fast memory; `tune` takes no other
order that needs more.

FOLDER has a file for each plan, so that this can be interrupted and goes on where it stopped. Then
the table of docs/results/tpu.md is printed, with the causes of refusals. Needs mallocgame[xla] and
no TPU. Exits 1 if a plan was carried out in another way than it says.
"""

import atexit
import collections
import contextlib
import functools
import os
from collections.abc import Callable
from typing import Any, Literal

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # this process only traces

import numpy as np

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame import experiments as ex
from mallocgame._core import reorder_module, timeline
from mallocgame.level_sets.splits import drafts
from mallocgame.records import PREFETCH
from mallocgame.xla.modules import hlo_proto
from mallocgame.xla.prices import profile_of
from mallocgame.xla.sources import find_source, workloads
from mallocgame.xla.targets import bundled_target

PROGRAMS = (
    "wavernn_64steps_b8.tpu_v5e",
    "muzero_unroll_b32.tpu_v5e",
    "mlp_train_adam_b512.tpu_v5e",
    "mlp_train_adam_b512.tpu_v6e",
    "perceptron_001.tpu_v5e",
    "recurrent_002.tpu_v6e",
)
_NO_WORK = {"bitcast", "constant", "get-tuple-element", "parameter", "tuple"}


def source(name: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Returns a function and its arguments. InvalidInputError: no program is called so."""
    model = name.partition(".")[0]
    if model in workloads():
        return find_source(model)[1:]
    draft = next((draft for draft in drafts() if draft.name == name), None)
    if draft is None:
        raise mg.InvalidInputError(f"program '{name}': no workload and no program of levels")
    from mallocgame.workloads.drawn import draw

    return draw(draft.family, draft.number, draft.seed)


def random_plan(program: mg.Program, seed: list[int], game: str) -> tuple[mg.Plan, Any]:
    """Returns the plan of a game in which each action has its odds, and its order if it has one."""
    rng = np.random.default_rng(seed)
    state = mg.Game(program, game=game).initial_state()
    odds = rng.exponential(size=state.game.num_actions)
    while not state.is_terminal():
        legal = state.legal_actions()
        chances = odds[legal] / odds[legal].sum()
        state.apply(int(rng.choice(legal, p=chances)))
    return state.plan(), state.order


def read_back(
    capture: mgx.Capture, written: mgx.emitting.Written, ordered: bool
) -> tuple[mg.Program, mg.Plan]:
    """Returns the program and the plan of the module that was linked.

    An instruction elsewhere than in the order of `written` is an error.
    """
    scheduled = written.scheduled
    program = mg.import_hlo(
        reorder_module(written.program, capture.before) if ordered else capture.before,
        assigned=hlo_proto(scheduled.module, scheduled.assignment),
        priced=capture.priced,
        profile=profile_of(capture.prices),
        hardware=capture.target.hardware,
        name=capture.name,
        origin=capture.origin,
        trips=capture.trips,
    )
    assert program.xla_plan is not None, "the module has an assignment"
    return program, program.xla_plan


def next_work(program: mg.Program, plan: mg.Plan) -> list[int]:
    """Returns for each tick, and the end, the first from it on at which something is done.

    Between two of them a copy may begin or end anywhere: the module is the same, or takes as long.
    Where a prefetch does what a plain copy did, nothing else is done.
    """
    replaced = set(plan.copies["replaces"].tolist())
    opcodes = program.instruction_opcodes
    times_ps = timeline(program, mg.all_main_plan(program))["compute_ps"]
    exits = {int(loop["exit"]) for loop in program.loops}  # ticks behind the last trip
    found = [len(opcodes)]
    for tick in range(len(opcodes) - 1, -1, -1):
        # A custom call may be no more than the bytes of a loop's carry (AllocateBuffer).
        idle = opcodes[tick] in _NO_WORK or (opcodes[tick] == "custom-call" and not times_ps[tick])
        idle = idle or tick in exits
        found.append(found[-1] if idle or tick in replaced else tick)
    return found[::-1]


def copies(program: mg.Program, plan: mg.Plan) -> collections.Counter[tuple[int, ...]]:
    """Returns the prefetches: buffer, begin and end, without what writing a plan changes.

    An eviction is one copy that begins with its last part, and is left out where main memory has
    the value already. A preload is done at its first use. Parts of prefetches end at tiles.
    """
    work = next_work(program, plan)
    found: collections.Counter[tuple[int, ...]] = collections.Counter()
    for copy in plan.copies:
        if copy["kind"] == PREFETCH and not copy["preload"]:
            buffer = plan.residences["buffer"][copy["residence"]]
            found[int(buffer), work[copy["begin"]], work[copy["end"]]] += 1
    return found


def differences(program: mg.Program, plan: mg.Plan, found: mg.Plan) -> dict[str, int]:
    """Returns how much of a plan was found to be elsewhere."""
    fast = plan.served_by >= 0
    same = fast == (found.served_by >= 0)
    both = fast & same
    offsets, others = (
        one.residences["offset"][one.served_by[both]] for one in (plan, found)
    )  # fmt: skip
    planned, read = copies(program, plan), copies(program, found)
    return {
        "accesses": len(fast),
        "other_memory": int((~same).sum()),
        "other_offset": int((offsets != others).sum()),
        "copies": planned.total(),
        "other_copies": ((planned - read) + (read - planned)).total(),
    }


@functools.lru_cache(maxsize=1)
def emitter_of(name: str) -> mgx.emitting.Emitter:
    """Returns who carries out plans of a program; it ends what was there for another one."""
    _open.close()
    function, arguments = source(name)
    target = bundled_target(name.partition(".")[2])
    compiler = _open.enter_context(mgx.Compiler(target))
    capture = mgx.capture(
        function, *arguments, target=target.title, fast_mib=target.fast_mib, name=name,
        compiler=compiler,
    )  # fmt: skip
    return _open.enter_context(mgx.emitting.Emitter(capture, compiler))


_open = contextlib.ExitStack()
atexit.register(_open.close)


def carried_out(program: str, plan: int, seed: int, game: str) -> dict:
    """Returns the row of a plan."""
    return _carried_out(emitter_of(program), [seed, plan], game)


def _carried_out(emitter: mgx.emitting.Emitter, seed: list[int], game: str) -> dict:
    plan, order = random_plan(emitter.capture.program, seed, game)
    ordered = order is not None
    program = emitter.capture.program.reordered(order) if ordered else emitter.capture.program
    row: dict = {"seed": seed}
    try:
        written = emitter.write(plan, order=order)
        executable = emitter.link(written).executable
    except mgx.CompilerError as error:
        return row | {"refused": str(error), "rule": error.rule or type(error).__name__}
    before = mg.simulate(program, written.plan.rebased_on(program))
    row |= {"predicted_ps": before.latency_ps, "all_known": before.exact_ps == before.compute_ps}
    row["left_out"] = len(plan.copies) - len(written.plan.copies)
    if ordered:
        row["moved"] = int((order != np.arange(len(order))).sum())
        row["main_bytes"] = emitter.main_bytes(written)
        row["own_main_bytes"] = emitter.main_bytes()
    again, found = read_back(emitter.capture, written, ordered)
    return row | {
        "executable_bytes": len(executable),
        "written_ps": written.report.latency_ps,
        "read_ps": mg.simulate(again, found).latency_ps,
        **differences(written.program, written.plan, found),
    }


def is_as_planned(row: dict) -> bool:
    """Says whether a plan that was linked is what was planned."""
    wrong = row["other_memory"] or row["other_offset"] or row["other_copies"]
    latencies = {row["written_ps"], row["read_ps"]}
    if row["all_known"]:
        latencies.add(row["predicted_ps"])
    return not wrong and len(latencies) == 1


def print_table(every: dict[str, list[ex.Row]]) -> None:
    """Prints a row for each program, and the causes of refusals."""
    heads = ("plans", "linked", "accesses", "elsewhere", "copies", "otherwise", "all known")
    table = ex.Table(["program", *heads, "exact", "main memory"])
    causes: collections.Counter[str] = collections.Counter()
    samples: dict[str, str] = {}
    for name, rows in every.items():
        linked = [row for row in rows if "refused" not in row]
        known = [row for row in linked if row["all_known"]]
        cells = [
            len(rows),
            len(linked),
            sum(row["accesses"] for row in linked),
            sum(row["other_memory"] + row["other_offset"] for row in linked),
            sum(row["copies"] for row in linked),
            sum(row["other_copies"] for row in linked),
            len(known),
            sum(row["predicted_ps"] == row["written_ps"] == row["read_ps"] for row in known),
        ]
        shares = [row["main_bytes"] / row["own_main_bytes"] for row in linked if row.get("moved")]
        most = f"{max(shares):.3f}" if shares else "–"
        table.add(f"`{name}`", *(f"{cell:,}" for cell in cells), most)
        refusals = [row for row in rows if "refused" in row]
        causes.update(row["rule"] for row in refusals)
        samples |= {row["rule"]: row["refused"] for row in refusals}
    print(table)
    refused = ex.Table(["rule", "plans", "such as"])
    for rule, count in causes.most_common():
        refused.add(rule, count, " ".join(samples[rule].split()).replace("|", chr(92) + "|"))
    if causes:
        print(f"\n{refused}")


def main(
    bench: ex.Bench,
    *,
    programs: tuple[str, ...] = PROGRAMS,
    plans: int = 20,
    seed: int = 0,
    game: Literal["time", "schedule"] = "time",
) -> int:
    grid = ex.Grid(program=programs, plan=range(plans))
    failed = None
    try:
        rows = bench.run(carried_out, grid, settings={"seed": seed, "game": game})
    except ex.FailedCellsError as error:
        failed, rows = error, error.rows
        ex.tell(str(error))
    print_table(ex.grouped(rows, "program"))
    linked = [row for row in rows if "refused" not in row]
    return 1 if failed or not all(map(is_as_planned, linked)) else 0


if __name__ == "__main__":
    ex.main(main)
