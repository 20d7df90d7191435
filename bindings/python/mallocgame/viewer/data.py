"""What the page shows, as one JSON document.

It has tables by column, integers throughout, and nothing that the page could work out itself. Sizes
are bytes, times picoseconds of all trips of a tick together, intervals half-open.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mallocgame._core import (
    GameLog,
    Hardware,
    Plan,
    Program,
    all_main_plan,
    placement_prices,
    simulate,
    timeline,
    validate,
)
from mallocgame.bounds.bound import bound
from mallocgame.errors import InvalidInputError
from mallocgame.files import replay
from mallocgame.plots.style import residence_kinds
from mallocgame.reports.scopes import GROUPINGS, default_grouping, group_instructions

_SCOPE_DEPTH = 3  # names of a scope that are told apart
_MAX_FRAMES = 4000  # the most positions of a game for which the picture is kept


Document = dict[str, Any]  # a part of the JSON document


@dataclass(frozen=True)
class Subject:
    """A plan to show, with the game it comes from if there is one."""

    label: str
    plan: Plan
    log: GameLog | None = None


def document(
    program: Program, hardware: Hardware, subjects: Sequence[Subject], bound_name: str
) -> Document:
    """Makes the JSON document of one plan, or of two to be compared."""
    least = bound(program, bound_name, hardware)
    main = timeline(program, all_main_plan(program, hardware), hardware)
    xla = program.xla_plan_for(hardware)
    return {
        "program": _program(program),
        "hardware": {
            "name": hardware.name,
            "fast_bytes": hardware.fast_bytes,
            "copy_ps_per_mib": hardware.transfer_ps(2**20),
        },
        "main_ps": main["compute_ps"].tolist(),
        "least_ps": _least(program, hardware).tolist(),
        "xla_ps": None if xla is None else _spent(timeline(program, xla, hardware)).tolist(),
        "bound": {"name": least.name, "ps": least.bound_ps, "status": least.status},
        "groups": _groups(program),
        "plans": [_plan(program, hardware, subject) for subject in subjects],
        "game": None if subjects[0].log is None else _game(program, subjects[0].log),
    }


def _spent(times: np.ndarray) -> np.ndarray:
    return times["compute_ps"] + times["stall_ps"]


def _least(program: Program, hardware: Hardware) -> np.ndarray:
    """Returns the least price of each tick: what the no-contention bound adds up."""
    rows, _ = placement_prices(program, hardware, 0)
    least = np.full(program.ticks, np.iinfo(np.int64).max)
    np.minimum.at(least, rows["tick"], rows["time_ps"])
    return least * program.instructions["trips"]


def _program(program: Program) -> Document:
    instructions, buffers, accesses, loops = (
        program.instructions,
        program.buffers,
        program.accesses,
        program.loops,
    )
    return {
        "name": program.name,
        "origin": program.origin,
        "ticks": program.ticks,
        "instructions": {
            "name": program.instruction_names,
            "trips": instructions["trips"].tolist(),
            "reserved": instructions["reserved_bytes"].tolist(),
            "first": instructions["first_access"].tolist(),
            "count": instructions["access_count"].tolist(),
        },
        "buffers": {
            "name": program.buffer_names,
            "bytes": buffers["size_bytes"].tolist(),
            "origin": buffers["origin"].tolist(),
            "output": buffers["is_output"].astype(int).tolist(),
        },
        "accesses": {name: accesses[name].tolist() for name in ("tick", "buffer", "kind")},
        "loops": {name: loops[name].tolist() for name in ("entry", "exit", "trips")},
    }


def _groups(program: Program) -> list[Document]:
    """Returns how instructions are told together, the grouping that says most first.

    `of` has for each tick the index in `names` and `together`.
    """
    first = default_grouping(program)
    documents = []
    for by in GROUPINGS[GROUPINGS.index(first) :]:
        groups = group_instructions(program, by, depth=_SCOPE_DEPTH)
        number = {group: place for place, group in enumerate(dict.fromkeys(groups))}
        documents.append(
            {
                "by": by,
                "names": [group.name for group in number],
                "together": [group.together for group in number],
                "of": [number[group] for group in groups],
            }
        )
    return documents


def _plan(program: Program, hardware: Hardware, subject: Subject) -> Document:
    report = simulate(program, subject.plan, hardware)
    verdict = validate(program, subject.plan, hardware)
    times = timeline(program, subject.plan, hardware)
    residences, copies = _film(program, subject)
    totals = (
        "latency_ps",
        "latency_cold_ps",
        "all_main_ps",
        "stall_ps",
        "prefetched_bytes",
        "written_back_bytes",
        "preloaded_bytes",
        "peak_fast_bytes",
    )
    return {
        "label": subject.label,
        "broken": "" if verdict.ok else f"{verdict.rule}: {verdict.message}",
        "report": {name: getattr(report, name) for name in totals},
        "times": {
            name: times[name].tolist()
            for name in ("compute_ps", "stall_ps", "idle_ps", "copied_ps", "main_bytes")
        },
        "served": subject.plan.served_by.tolist(),
        "residences": residences,
        "copies": copies,
    }


# The film: the rows of the picture, each with the decisions [born, died) between which it is there.


class _Rows:
    """Rows that come and go from frame to frame."""

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype = dtype
        self._now = np.empty(0, dtype)
        self._born = np.empty(0, np.int64)
        self._done: list[tuple[np.ndarray, np.ndarray, int]] = []  # rows, born, died

    def show(self, rows: np.ndarray, step: int) -> None:
        """Takes the rows of the frame at `step`."""
        whole = np.dtype((np.void, self.dtype.itemsize))
        before, now = self._now.view(whole), rows.view(whole)
        stays = np.isin(before, now)
        self._done.append((self._now[~stays], self._born[~stays], step))
        comes = ~np.isin(now, before)
        self._now = np.concatenate([self._now[stays], rows[comes]])
        self._born = np.concatenate([self._born[stays], np.full(int(comes.sum()), step)])

    def columns(self) -> Document:
        """Returns all rows by their begin; `died` is -1 for what is there at the end."""
        parts = [*self._done, (self._now, self._born, -1)]
        rows = np.concatenate([part[0] for part in parts])
        born = np.concatenate([part[1] for part in parts])
        died = np.concatenate([np.full(len(part[0]), part[2]) for part in parts])
        order = np.lexsort((rows["buffer"], rows["end"], rows["begin"]))
        columns = {name: rows[name][order].tolist() for name in self.dtype.names or ()}
        return columns | {"born": born[order].tolist(), "died": died[order].tolist()}


_RESIDENCE = np.dtype([(name, np.int64) for name in ("buffer", "offset", "begin", "end", "kind")])
_COPY = np.dtype(
    [
        (name, np.int64)
        for name in ("buffer", "begin", "end", "bytes", "kind", "preload", "replaces")
    ]
)


def _film(program: Program, subject: Subject) -> tuple[Document, Document]:
    residences, copies = _Rows(_RESIDENCE), _Rows(_COPY)
    if subject.log is None:
        _show(subject.plan, 0, residences, copies)
        return residences.columns(), copies.columns()
    actions = subject.log.actions
    stride = math.ceil(max(1, len(actions)) / _MAX_FRAMES)
    state = subject.log.game(program).initial_state()
    for step, action in enumerate(actions, 1):
        state.apply(int(action))
        if step % stride == 0 or step == len(actions):
            _show(state.plan(), step, residences, copies)
    return residences.columns(), copies.columns()


def _show(plan: Plan, step: int, residences: _Rows, copies: _Rows) -> None:
    stays, moves = plan.residences, plan.copies
    rows = np.zeros(len(stays), _RESIDENCE)
    for name in ("buffer", "offset", "begin", "end"):
        rows[name] = stays[name]
    rows["kind"] = residence_kinds(plan)
    residences.show(rows, step)

    rows = np.zeros(len(moves), _COPY)
    for name in ("begin", "end", "kind", "preload", "replaces"):
        rows[name] = moves[name]
    rows["buffer"] = stays["buffer"][moves["residence"]]
    rows["bytes"] = moves["part_end"] - moves["part_begin"]
    copies.show(rows, step)


def _game(program: Program, log: GameLog) -> Document:
    """Returns the decisions in order. `legal` is a bit mask of actions.

    `asked` has the accesses that each decision is about, as State.asked_about().
    """
    verdict = replay(log, program)
    if not verdict.same:
        raise InvalidInputError(f"the game doesn't come out as logged: {verdict.message}")
    game = log.game(program)
    state = game.initial_state()
    asked, legal = [], []
    for action in log.actions:
        asked.append(state.asked_about())
        legal.append(sum(1 << one for one in state.legal_actions()))
        state.apply(int(action))
    return {
        "solver": log.solver,
        "seed": log.seed,
        "kind": game.kind,
        "actions": game.action_names,
        "asked": asked,
        "modes": 5 if game.kind == "priority" else None,
        "legal": legal,
        "action": log.actions.tolist(),
        "saved_ps": log.saved_ps.tolist(),
        "visits": log.search_visits.tolist(),
        "values": log.search_values.tolist(),
    }
