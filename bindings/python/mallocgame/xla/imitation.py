"""A search over what can be asked of the compiler, judged by a twin of its allocator.

`xla-heuristic` does with a request what the compiler would do, in milliseconds. So requests are
searched, not plans: what is found can be asked for as it is.
"""

import collections
import concurrent.futures
import copy
import dataclasses
import functools
import math
import random
import threading
import time
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from mallocgame._core import (
    INSTRUCTION,
    LOOP_ENTRY,
    PARAMETER,
    READ,
    UNDEFINED,
    UPDATE,
    WRITE,
    Game,
    Plan,
    Program,
    placement_prices,
    plan_like_xla,
    simulate,
)
from mallocgame.xla.claims import cost_ps
from mallocgame.xla.overrides import (
    SMALL_BYTES,
    Request,
    as_xla_does,
    bottom_up,
    filled_by,
    replaced_in,
    request_of,
)
from mallocgame.xla.settings import PRELOADS, SHORT_WINDOWS, WHOLE_COPIES

_FIRST_TEMPERATURE, _LAST_TEMPERATURE = 3e-3, 1e-8  # shares of the latency
_MOST_REPAIRS = 2  # how often something is left out of a request until the twin grants it
_COLD_WEIGHT = 10  # the weight of latency above what is allowed with cold preloads
CLOSE = 0.005  # share of the latency by which the twin may be off to be right
_MOST_CHAINS = 4  # more would wait for each other, as requests are drawn under Python's lock
_LONGEST_WINDOW = 60  # instructions before a use at which a copy that is asked for may begin
_LEAVING_OUT_SHARE = 0.4  # of the draws for a buffer's copies, to leave one out
_SAME_USE_SHARE = 0.5  # of the others, for a use that a copy is asked for already
_COPY_SHARE = 1 / 2  # of the draws for a copy or a pin, for a copy where both are possible
_TICKS_BEFORE_LOOP = 2  # a copy for what a loop carries begins so many ticks before it, or sooner
_LOSING_SHARE = 0.4  # of the draws, for a buffer by what it loses in main memory


@dataclasses.dataclass(frozen=True)
class Directive:
    """What is asked for one buffer."""

    kept: frozenset[int] = frozenset()  # accesses that main memory must serve
    pinned: bool = False  # made in fast memory, to stay there
    # Accesses, and the ticks at which copies for them begin, at most one for each.
    prefetches: frozenset[tuple[int, int]] = frozenset()
    turn: float | None = None  # below 0: its turn before the buffers that have none


_NOTHING = Directive()
_WHOLE_COPIES = {name: (value,) for name, value in WHOLE_COPIES.items()}


@dataclasses.dataclass(frozen=True)
class Directives:
    """A request by buffer, and settings; what is left out is up to the compiler."""

    of: Mapping[int, Directive] = dataclasses.field(default_factory=dict)
    preloads: tuple[int, ...] = ()  # buffers
    settings: Mapping[str, str] = dataclasses.field(default_factory=dict)  # some of IMITATED

    def differing(self, other: "Directives") -> list[int]:
        """Returns the buffers for which the two ask otherwise."""
        buffers = self.of.keys() | other.of.keys()
        return sorted(b for b in buffers if self.of.get(b, _NOTHING) != other.of.get(b, _NOTHING))

    def with_those_of(self, other: "Directives", buffers: Collection[int]) -> "Directives":
        """Returns the same, but for these buffers, and for the settings, what `other` asks."""
        of = dict(self.of)
        for buffer in buffers:
            of[buffer] = other.of.get(buffer, _NOTHING)
        return Directives(of, other.preloads, other.settings)

    def with_settings(self, settings: Mapping[str, str]) -> "Directives":
        """Returns the same with these settings, which must be some of IMITATED."""
        return dataclasses.replace(self, settings=settings)

    @functools.cached_property
    def order(self) -> tuple[int, ...]:
        """The buffers that come before all others, in their order."""
        turns = [(one.turn, b) for b, one in self.of.items() if one.turn is not None]
        return tuple(buffer for _, buffer in sorted(turns))

    def plan(self, game: Game) -> tuple[Plan, list[int]]:
        """Returns what the compiler makes of it, and the accesses for which it refuses anything."""
        plan, refused, _ = plan_like_xla(
            game,
            in_main=[access for one in self.of.values() for access in one.kept],
            pinned=[buffer for buffer, one in self.of.items() if one.pinned],
            prefetches=[(*copy, False) for copy in self._prefetches()],
            order=list(self.order),
            preloads=list(self.preloads),
            settings=dict(self.settings),
        )
        return plan, [access for access, _ in refused]

    def request(self, program: Program, before: bytes) -> Request:
        """Returns it as overrides. before: the HloProto that `program` was made of."""
        return request_of(
            program,
            before,
            kept={buffer: one.kept for buffer, one in self.of.items() if one.kept},
            pinned=[buffer for buffer, one in self.of.items() if one.pinned],
            prefetches=self._prefetches(),
            order=self.order,
            preloads=self.preloads,
            settings=self.settings,
        )

    def without(self, refused: Mapping[int, Collection[int]]) -> "Directives":
        """Returns the same without the pins and copies that serve refused accesses, by buffer."""
        of = dict(self.of)
        for buffer, accesses in refused.items():
            old = of[buffer]
            prefetches = frozenset(one for one in old.prefetches if one[0] not in accesses)
            of[buffer] = dataclasses.replace(old, pinned=False, prefetches=prefetches)
        return dataclasses.replace(self, of=of)

    def _prefetches(self) -> list[tuple[int, int]]:
        return [copy for one in self.of.values() for copy in sorted(one.prefetches)]


class Losses:
    """What buffers lose by the accesses that main memory serves, each access taken by itself."""

    def __init__(self, program: Program) -> None:
        rows, _ = placement_prices(program)
        rows = rows[~rows["replaced"]]
        in_main = np.zeros(program.ticks, np.int64)
        in_main[rows["tick"][rows["fast"] == 0]] = rows["time_ps"][rows["fast"] == 0]
        trips = program.instructions["trips"]
        self._saved_ps = np.zeros(len(program.accesses))
        for slot in range(8 * rows["fast"].itemsize):
            alone = rows[rows["fast"] == 1 << slot]
            accesses = program.instructions["first_access"][alone["tick"]] + slot
            saved_ps = np.maximum(0, in_main[alone["tick"]] - alone["time_ps"])
            self._saved_ps[accesses] = saved_ps * trips[alone["tick"]]
        self._buffers = program.accesses["buffer"]
        self._num_buffers = len(program.buffers)

    def of(self, plan: Plan, buffers: list[int]) -> list[float]:
        """Returns what each of these buffers loses under a plan, in picoseconds."""
        main = plan.served_by < 0
        lost = np.bincount(self._buffers[main], self._saved_ps[main], self._num_buffers)
        return [float(one) for one in lost[buffers]]


def like_xla(program: Program) -> Directives:
    """Asks for what XLA does by itself."""
    names = {name: buffer for buffer, name in enumerate(program.buffer_names)}
    return Directives(preloads=tuple(names[name] for name in as_xla_does(program).preloads))


class Imitation:
    """Annealing over requests. When it is asked again it goes on from a given one.

    overrides: whether single buffers are asked for, beside their turns and what is preloaded.
    settings: the values of IMITATED that may be asked for, beside those that trust() adds.
    """

    def __init__(
        self,
        program: Program,
        most_cold_ps: int,
        seed: int,
        overrides: bool = True,
        settings: Mapping[str, Iterable[str]] = _WHOLE_COPIES,
    ) -> None:
        self._settings = {name: list(values) for name, values in settings.items()}
        self._most_cold_ps = most_cold_ps
        self._overrides = overrides
        self.start = like_xla(program)
        self._preloads = self.start.preloads
        self._chance = random.Random(seed)
        self._kinds = program.accesses["kind"]
        self._ticks = program.accesses["tick"]
        self._regions = program.instructions["region"]
        self._origins = program.buffers["origin"]
        self._outputs = program.buffers["is_output"]
        self._accesses: dict[int, list[int]] = {}
        for access, buffer in enumerate(program.accesses["buffer"]):
            row = program.buffers[buffer]
            if row["eligible"] and row["size_bytes"] >= SMALL_BYTES:
                self._accesses.setdefault(int(buffer), []).append(access)
        # Reads beside results of the same size: kept in main memory, these would be so too.
        sizes = program.buffers["size_bytes"][program.accesses["buffer"]]
        made = {
            (int(tick), int(size))
            for tick, size, kind in zip(self._ticks, sizes, self._kinds, strict=True)
            if kind in (WRITE, UPDATE)
        }
        self._with_results = {
            access
            for access, key in enumerate(zip(self._ticks, sizes, strict=True))
            if (int(key[0]), int(key[1])) in made
        }
        self._buffers = list(self._accesses)
        self._buffer_of = program.accesses["buffer"]
        self._most_preloads = program.hardware.max_preloads
        # Parameters that may be preloaded, where other requests can't bring them in.
        self._preloadable = [
            buffer
            for buffer, accesses in self._accesses.items()
            if not overrides
            and self._origins[buffer] == PARAMETER
            and self._most_preloads
            and not self._is_carried(accesses)
        ]
        self._weights = [
            math.sqrt(program.buffers["size_bytes"][buffer]) for buffer in self._buffers
        ]

    def search(
        self,
        program: Program,
        start: Directives,
        seconds: float,
        chains: int = 1,
        plan: Plan | None = None,
    ) -> Directives:
        """Returns the best request found within that time, by the prices of `program`.

        Where a plan is given every other search begins near that, not at `start`.

        chains: how many searches go on at the same time, each with chances of its own; four at
        most. plan: of `program`.
        """
        if not self._buffers:
            return start
        chains = min(chains, _MOST_CHAINS)
        searches = chains if plan is None else max(chains, 2)
        share = seconds * chains / searches
        game = Game(program)
        stop = threading.Event()
        own = [copy.copy(self) for _ in range(searches)]
        for one in own:
            one._chance = random.Random(self._chance.random())
        with concurrent.futures.ThreadPoolExecutor(chains) as pool:
            ends = [
                pool.submit(one._anneal, game, start, plan if number % 2 else None, share, stop)
                for number, one in enumerate(own)
            ]
            try:
                return min((end.result() for end in ends), key=lambda end: end[0])[1]
            finally:  # Ctrl-C must not wait for the others.
                stop.set()

    def near(
        self, game: Game, plan: Plan, until: float = math.inf, stop: threading.Event | None = None
    ) -> Directives:
        """Returns as much of a request for a plan as the twin grants and as makes it faster.

        It asks for halves of it, quarters, down to single buffers, beside what XLA does by itself.
        until: time.monotonic() after which it asks for no more.
        """
        target = self._asking_for(plan)
        at, cost = self.start, self.cost(game, self.start)
        buffers = list(target.of)
        size = 2 * len(buffers)
        while size > 1:
            size = (size + 1) // 2
            self._chance.shuffle(buffers)
            for first in range(0, len(buffers), size):
                if time.monotonic() >= until or (stop and stop.is_set()):
                    return at
                other = at.with_those_of(target, buffers[first : first + size])
                other_cost = self.cost(game, other)
                if other_cost < cost:
                    at, cost = other, other_cost
        return at

    def _asking_for(self, plan: Plan) -> Directives:
        """Returns a request for all of a plan, with its buffers in turn from the bottom up."""
        filled, order = filled_by(plan), bottom_up(plan)
        turns = {buffer: float(rank - len(order)) for rank, buffer in enumerate(order)}
        replaced = replaced_in(plan)
        of, preloads = {}, []
        for buffer, accesses in self._accesses.items():
            served = {access: int(plan.served_by[access]) for access in accesses}
            main = {
                access
                for access, by in served.items()
                if by < 0 and int(self._ticks[access]) not in replaced
            }
            if max(served.values()) < 0:
                of[buffer] = Directive(frozenset(main))
                continue
            kept = {access for access in main if self._may_keep(access)}
            brought = [access for access in accesses if served[access] in filled]
            preloaded = any(filled[served[access]]["preload"] for access in brought)
            prefetches = self._copies_in(plan, filled, accesses)
            if preloaded and not self._is_carried(accesses):
                preloads.append(buffer)
            pinned = not brought and not kept and self._may_pin(buffer)
            of[buffer] = Directive(frozenset(kept), pinned, prefetches, turns[buffer])
        settings = dict(WHOLE_COPIES)
        # There is often little between two loops that could hide a copy.
        if LOOP_ENTRY in self._kinds:
            settings |= self._trusted(SHORT_WINDOWS)
        return Directives(of, tuple(preloads[: self._most_preloads]), settings)

    def _is_carried(self, accesses: list[int]) -> bool:
        """Returns whether a loop carries what these accesses are of. It can't be preloaded then."""
        return bool(LOOP_ENTRY in self._kinds[accesses])

    def _copies_in(
        self, plan: Plan, filled: Mapping[int, np.void], accesses: list[int]
    ) -> frozenset[tuple[int, int]]:
        """Returns the copies by which a plan brings a buffer, for the first uses that they serve.

        It brings what a loop carries for each loop. To the compiler what is allocated without being
        written has to be brought too, which a plan need not do.
        """
        copies, seen = set(), set()
        for access in accesses:
            residence = int(plan.served_by[access])
            kind, tick = self._kinds[access], int(self._ticks[access])
            first = residence not in seen
            seen.add(residence)
            if residence < 0:
                continue
            copy = filled.get(residence)
            if kind == LOOP_ENTRY and (copy is not None or access == accesses[0]):
                begin = copy if copy is not None else plan.residences[residence]
                copies.add((access, max(1, min(int(begin["begin"]), tick - _TICKS_BEFORE_LOOP))))
            elif kind == READ and first and copy is not None and not copy["preload"]:
                copies.add((access, max(1, int(copy["begin"]))))
        return frozenset(copies)

    def _may_fetch(self, buffer: int, access: int) -> bool:
        """Returns whether a copy can be asked for that serves an access.

        What an instruction makes is pinned instead, but for what a loop carries.
        """
        kind = self._kinds[access]
        made = self._origins[buffer] in (INSTRUCTION, UNDEFINED)
        return bool(kind == LOOP_ENTRY or (kind == READ and not made))

    def _may_keep(self, access: int) -> bool:
        """Returns whether a single access can be asked to be served from main memory."""
        return self._kinds[access] == READ and access not in self._with_results

    def _may_pin(self, buffer: int) -> bool:
        """Returns whether a buffer can be asked to be made in fast memory."""
        made = self._kinds[self._accesses[buffer][0]] == WRITE and not self._outputs[buffer]
        return bool(made and self._origins[buffer] == INSTRUCTION)

    def _anneal(
        self,
        game: Game,
        start: Directives,
        plan: Plan | None,
        seconds: float,
        stop: threading.Event,
    ) -> tuple[float, Directives]:
        """Returns the best request found and its cost. plan: to begin near it, not at `start`."""
        begin = time.monotonic()
        if plan is not None:
            start = self.near(game, plan, begin + seconds, stop)
        losses = Losses(game.program)
        at = best = start
        cost, made = self._answer(game, at)
        best_cost, lost = cost, losses.of(made, self._buffers)
        while (used := (time.monotonic() - begin) / seconds) < 1 and not stop.is_set():
            granted = self._granted(game, self._neighbour(at, lost))
            if granted is None:
                continue
            other, other_cost, made = granted
            temperature = (
                best_cost * _FIRST_TEMPERATURE * (_LAST_TEMPERATURE / _FIRST_TEMPERATURE) ** used
            )
            if other_cost <= cost or self._chance.random() < math.exp(
                (cost - other_cost) / temperature
            ):
                at, cost, lost = other, other_cost, losses.of(made, self._buffers)
                if cost < best_cost:
                    best, best_cost = at, cost
        return best_cost, best

    def trust(self, game: Game, name: str, value: str, latency_ps: int) -> None:
        """Lets a setting be asked for if the twin knows what the compiler makes of it.

        latency_ps: what the compiler makes of a request for nothing else.
        """
        plan, _ = self.start.with_settings({name: value}).plan(game)
        if abs(simulate(game.program, plan).latency_ps / latency_ps - 1) <= CLOSE:
            values = self._settings.setdefault(name, [])
            if value not in values:
                values.append(value)

    def settled(self, directives: Directives, settings: Mapping[str, str]) -> Directives:
        """Returns the same with those of some settings that may be asked for, and no others."""
        preloads = () if settings.get(PRELOADS) == "0" else directives.preloads
        return dataclasses.replace(directives, preloads=preloads, settings=self._trusted(settings))

    def _trusted(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Returns those of some settings that may be asked for."""
        return {
            name: value for name, value in settings.items() if value in self._settings.get(name, ())
        }

    def draw(self, changes: int) -> Directives:
        """Draws a request that differs from XLA's own in so many changes, or fewer."""
        at = self.start
        for _ in range(changes if self._buffers else 0):
            at = self._neighbour(at)
        return at

    def cost(self, game: Game, directives: Directives) -> float:
        """Returns the cost_ps() that the twin expects; infinity if something is refused."""
        return self._answer(game, directives)[0]

    def _answer(self, game: Game, directives: Directives) -> tuple[float, Plan]:
        """Returns cost() and what the twin makes of it."""
        plan, refused = directives.plan(game)
        return (math.inf if refused else self._cost(game, plan)), plan

    def _cost(self, game: Game, plan: Plan) -> float:
        report = simulate(game.program, plan)
        too_cold = max(0, report.latency_cold_ps - self._most_cold_ps)
        return cost_ps(report) + _COLD_WEIGHT * too_cold

    def _granted(self, game: Game, wanted: Directives) -> tuple[Directives, float, Plan] | None:
        """Leaves out what the twin refuses. Returns the rest, its cost and plan; None: in vain.

        What gives way to another buffer is often asked to be in fast memory itself.
        """
        for _ in range(_MOST_REPAIRS + 1):
            plan, refused = wanted.plan(game)
            if not refused:
                return wanted, self._cost(game, plan), plan
            by_buffer = collections.defaultdict(set)
            for access in refused:
                by_buffer[int(self._buffer_of[access])].add(access)
            wanted = wanted.without(by_buffer)
        return None

    def _neighbour(self, at: Directives, lost: list[float] | None = None) -> Directives:
        """Asks otherwise for one buffer, or rarely sets something else.

        lost: what each of the buffers loses, to draw by that now and then; None: never.
        """
        if lost and self._overrides and self._chance.random() < _LOSING_SHARE and any(lost):
            buffer = self._chance.choices(self._buffers, lost)[0]
            sooner = self._sooner(at, buffer, at.of.get(buffer, _NOTHING))
            return dataclasses.replace(at, of={**at.of, buffer: sooner})
        draw = self._chance.random()
        if draw < 0.04:
            return dataclasses.replace(at, settings=self._other_settings(at.settings))
        if draw < 0.06 and self._preloads:
            return dataclasses.replace(at, preloads=() if at.preloads else self._preloads)
        if draw < 0.12 and self._preloadable:
            return dataclasses.replace(at, preloads=self._other_preloads(at.preloads))
        buffer = self._chance.choices(self._buffers, self._weights)[0]
        old = at.of.get(buffer, _NOTHING)
        return dataclasses.replace(at, of={**at.of, buffer: self._otherwise(at, buffer, old)})

    def _other_settings(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Sets one option otherwise, or leaves it to XLA."""
        name = self._chance.choice(list(self._settings))
        others = {other: value for other, value in settings.items() if other != name}
        values = [one for one in (None, *self._settings[name]) if one != settings.get(name)]
        value = self._chance.choice(values)
        return others if value is None else {**others, name: value}

    def _other_preloads(self, preloads: tuple[int, ...]) -> tuple[int, ...]:
        """Takes one parameter more, in place of one if there are too many."""
        added = self._chance.choice(self._preloadable)
        kept = [one for one in preloads if one != added]
        self._chance.shuffle(kept)
        return tuple(sorted([added, *kept[: self._most_preloads - 1]]))

    def _otherwise(self, at: Directives, buffer: int, old: Directive) -> Directive:
        if not self._overrides:
            return self._another_turn(at, old)
        accesses = self._accesses[buffer]
        draw = self._chance.random()
        if draw < 0.3:  # Out of fast memory, or back in.
            return _NOTHING if len(old.kept) == len(accesses) else Directive(frozenset(accesses))
        if draw < 0.45:  # One access of it.
            access = self._chance.choice(accesses)
            if not self._may_keep(access):
                return old
            kept = old.kept ^ {access}
            prefetches = frozenset(copy for copy in old.prefetches if copy[0] not in kept)
            return dataclasses.replace(old, kept=kept, prefetches=prefetches, pinned=False)
        if len(old.kept) == len(accesses):
            old = _NOTHING
        if draw < 0.8:
            return self._another_turn(at, old)
        return self._brought_otherwise(buffer, old)

    def _sooner(self, at: Directives, buffer: int, old: Directive) -> Directive:
        """Asks for a buffer so that it gets into fast memory rather than now."""
        accesses = self._accesses[buffer]
        if len(old.kept) == len(accesses) or self._chance.random() < 0.5:
            old = dataclasses.replace(old, kept=frozenset())
        draw = self._chance.random()
        if draw < 0.6:
            return dataclasses.replace(old, turn=self._turn(at, old.turn or 0.0))
        if draw < 0.8:
            return self._brought_otherwise(buffer, old)
        return old

    def _brought_otherwise(self, buffer: int, old: Directive) -> Directive:
        """Asks for it to be made in fast memory, or for a copy, or for none of these any more."""
        uses = [a for a in self._accesses[buffer] if self._may_fetch(buffer, a)]
        if uses and (not self._may_pin(buffer) or self._chance.random() < _COPY_SHARE):
            return dataclasses.replace(old, prefetches=self._other_copies(old, uses))
        if not self._may_pin(buffer):
            return old
        return dataclasses.replace(old, pinned=not old.pinned, kept=frozenset())

    def _another_turn(self, at: Directives, old: Directive) -> Directive:
        if old.turn is not None and self._chance.random() < 0.3:
            return dataclasses.replace(old, turn=None)
        return dataclasses.replace(old, turn=self._turn(at))

    def _turn(self, at: Directives, before: float = 0.0) -> float:
        """Draws a turn below `before`: before all others, or behind some buffer that has one."""
        turns = [turn for turn in (at.of[b].turn or 0.0 for b in at.order) if turn < before]
        place = self._chance.randrange(len(turns) + 1)
        low = turns[place - 1] if place else (turns[0] if turns else before) - 2.0
        high = turns[place] if place < len(turns) else before
        return (low + high) / 2

    def _other_copies(self, old: Directive, uses: list[int]) -> frozenset[tuple[int, int]]:
        """Draws when a copy begins for one of the uses, or leaves one that is asked for out."""
        uses = [access for access in uses if access not in old.kept]
        if not uses:
            return frozenset()
        asked = dict(old.prefetches)
        if asked and self._chance.random() < _LEAVING_OUT_SHARE:
            del asked[self._chance.choice(sorted(asked))]
            return frozenset(asked.items())
        again = sorted(asked.keys() & set(uses))
        if again and self._chance.random() < _SAME_USE_SHARE:
            access = self._chance.choice(again)
        else:
            access = self._chance.choice(uses)
        tick = int(self._ticks[access])
        last = tick - (1 if self._kinds[access] == READ else _TICKS_BEFORE_LOOP)
        first = max(1, tick - _LONGEST_WINDOW)
        begins = [t for t in range(first, last + 1) if self._regions[t] == self._regions[tick]]
        if begins:
            asked[access] = self._chance.choice(begins)
        else:
            asked.pop(access, None)
        return frozenset(asked.items())
