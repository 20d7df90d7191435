"""What is known of a program before anybody plays it: how large, how hard, of which structure."""

import hashlib
from typing import Any

import numpy as np

from mallocgame._core import Game, Hardware, Program, all_main_plan, simulate, validate
from mallocgame._solve import solve
from mallocgame.bounds.bound import bound
from mallocgame.games import PriorityGame
from mallocgame.level_sets import MIN_BUFFER_BYTES
from mallocgame.level_sets.splits import CAPACITIES, VARIANTS, WHOLE_SPLITS, WHOLE_VARIANTS, Variant

_BOUND_SECONDS = 60.0
_WHOLE_BOUND_SECONDS = 3.0
# Of `packing`, for the best known latency of a whole model, where it is learned on or judged.
_TRIALS_TO_LEARN_ON, _TRIALS_TO_JUDGE_ON = 10_000, 30_000
_PARAMETER = 1  # an origin of buffers
# Solvers of the priority game with complete games for each: what the best known latency of a
# variant is the least of. Counted in games they find the same on every machine.
_BEST_OF = {"anneal": 2000, "styles": 100}


def peak_bytes(program: Program) -> int:
    """Returns the most bytes of buffers at a time that may lie in fast memory and are needed.

    A buffer is needed from its first access to its last, a parameter from the start, an output
    until the end.
    """
    buffers, accesses = program.buffers, program.accesses
    first = np.full(len(buffers), program.ticks)
    last = np.full(len(buffers), -1)
    np.minimum.at(first, accesses["buffer"], accesses["tick"])
    np.maximum.at(last, accesses["buffer"], accesses["tick"])
    first[buffers["origin"] == _PARAMETER] = 0
    last[buffers["is_output"]] = program.ticks - 1
    change = np.zeros(program.ticks + 1, np.int64)
    counted = buffers["eligible"] & (last >= first)
    np.add.at(change, first[counted], buffers["size_bytes"][counted])
    np.subtract.at(change, last[counted] + 1, buffers["size_bytes"][counted])
    return int(np.cumsum(change).max(initial=0))


def structure(program: Program) -> str:
    """Returns a hash of the instructions and of who accesses what, without sizes and prices."""
    order: dict[int, int] = {}
    told = hashlib.sha256()
    for opcode in program.instruction_opcodes:
        told.update(opcode.encode() + b"\n")
    for tick, buffer, kind in program.accesses[["tick", "buffer", "kind"]].tolist():
        told.update(f"{tick} {order.setdefault(buffer, len(order))} {kind}\n".encode())
    return told.hexdigest()[:16]


def describe(program: Program, whole: bool = False) -> dict[str, Any]:
    """Returns the entry of a program in a set's index.

    It takes seconds: the bound is `lp`, of whole models `lagrangian`.
    """
    counts, opcodes = program.counts, program.instruction_opcodes
    return {
        "hardware": program.hardware.name,
        "fast_bytes": program.hardware.fast_bytes,
        "fingerprint": program.fingerprint,
        "structure": structure(program),
        "instructions": counts["instructions"],
        "accesses": counts["accesses"],
        "loops": counts["loops"],
        "branches": sum(opcode == "conditional" for opcode in opcodes),
        "free_pairs": program.free_pairs,
        "peak_bytes": peak_bytes(program),
        "all_main_ps": simulate(program, all_main_plan(program)).latency_ps,
        "xla_ps": _xla_ps(program, program.hardware),
        "bound_ps": bound(program, "lagrangian", seconds=_WHOLE_BOUND_SECONDS).bound_ps
        if whole
        else _bound_ps(program, program.hardware),
    }


def describe_whole(program: Program, split: str) -> dict[str, Any]:
    """Returns the entry of a whole model of a split, of which each variant is a level.

    The best known latency of a variant is that of `packing` with a limit of trials, of greedy or of
    XLA, whose own plan is valid where there is as much fast memory as it was made for.
    """
    entry = describe(program, whole=True)
    trials = _TRIALS_TO_LEARN_ON if split == WHOLE_SPLITS[0] else _TRIALS_TO_JUDGE_ON
    variants: dict[str, dict[str, int | None]] = {}
    for variant in WHOLE_VARIANTS:
        hardware = variant.of(program.hardware, entry["peak_bytes"])
        own = variant.priced(program, program.hardware, entry["peak_bytes"])
        if variant.calibrated:
            hardware = own.hardware
        game = Game(own, hardware, min_buffer_bytes=MIN_BUFFER_BYTES)
        found = solve(game, "packing", seconds=0, evaluations=trials).report.latency_ps
        greedy, xla = greedy_ps(own, hardware), _xla_ps(own, hardware)
        figures = {
            "greedy_ps": greedy,
            "best_known_ps": min(one for one in (found, greedy, xla) if one is not None),
            "bound_ps": entry["bound_ps"]
            if variant == Variant()
            else bound(own, "lagrangian", hardware, _WHOLE_BOUND_SECONDS).bound_ps,
        }
        # With the same figures as with more memory it would be the same level again.
        if not any(figures.items() <= other.items() for other in variants.values()):
            variants[variant.text] = figures | {"xla_ps": xla}
    return entry | {"variants": variants}


def _xla_ps(program: Program, hardware: Hardware) -> int | None:
    """The latency of XLA's own plan; None: it is not known, or not valid there."""
    plan = program.xla_plan
    if plan is None or not validate(program, plan, hardware):
        return None
    return simulate(program, plan, hardware).latency_ps


def hardest_variant(program: Program, bandwidth: int) -> Variant:
    """Returns the capacity that leaves most between the solver greedy and the bound `lp`."""
    least_bytes = peak_bytes(program)

    def left(variant: Variant) -> float:
        hardware = variant.of(program.hardware, least_bytes)
        return greedy_ps(program, hardware) / max(1, _bound_ps(program, hardware))

    return max((Variant(capacity, bandwidth) for capacity in (None, *CAPACITIES)), key=left)


def describe_variants(program: Program) -> dict[str, dict[str, int]]:
    """Returns greedy's and the best known latency of each variant that has something to decide."""
    least_bytes = peak_bytes(program)
    found = {}
    for variant in VARIANTS:
        hardware = variant.of(program.hardware, least_bytes)
        game = Game(program, hardware, min_buffer_bytes=MIN_BUFFER_BYTES)
        if not game.initial_state().is_terminal():
            greedy = greedy_ps(program, hardware)
            best = min(greedy, _best_ps(program, hardware))
            found[variant.text] = {"greedy_ps": greedy, "best_known_ps": best}
    return found


def _best_ps(program: Program, hardware: Hardware) -> int:
    game = Game(program, hardware, PriorityGame(min_buffer_bytes=MIN_BUFFER_BYTES))
    return min(
        solve(game, solver, seconds=0, evaluations=count).report.latency_ps
        for solver, count in _BEST_OF.items()
    )


def greedy_ps(program: Program, hardware: Hardware) -> int:
    """Returns the latency of the solver greedy in the game of a level."""
    game = Game(program, hardware, min_buffer_bytes=MIN_BUFFER_BYTES)
    return solve(game, "greedy", seconds=0).report.latency_ps


def _bound_ps(program: Program, hardware: Hardware) -> int:
    return bound(program, "lp", hardware, _BOUND_SECONDS).bound_ps
