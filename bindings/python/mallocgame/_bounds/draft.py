"""A draft of a plan: what the best point found of the integer programme describes.

The programme knows neither offsets nor the order in which the channel serves copies, and of a loop
only the mean of its passes. So a draft says which residences there are, which access each of them
serves, and, in a program without loops, when its bytes come and go. It is well formed and seldom
valid; mallocgame/solvers/draft.h makes a plan of it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from mallocgame._bounds.bound import relaxation_of
from mallocgame._bounds.linear import Among, Terms
from mallocgame._bounds.relaxation import Level, Relaxation
from mallocgame._bounds.relaxation_walk import BufferWalk, Loop, Move, Visit
from mallocgame._core import (
    LOOP_ENTRY,
    PARAMETER,
    PREFETCH,
    READ,
    UPDATE,
    WRITE,
    WRITE_BACK,
    Hardware,
    Plan,
    Program,
    all_main_plan,
)

_LITTLE = 1e-4  # a share that is none
_WORSE = 5e-4  # a draft's latency may be so much more, as a share, if it holds less


def draft_plan(
    program: Program, hardware: Hardware, seconds: float, stopped: Callable[[], bool]
) -> Plan | None:
    """Returns a draft; None if none was found in time.

    seconds: wall time for the search; building the programme takes some seconds more. Once
    `stopped` returns True the search ends. MallocGameError: highspy is not installed.
    """
    relaxation = relaxation_of(program, hardware, "solver 'milp'", for_plans=True)
    found = relaxation.lp.solve_integer(
        relaxation.choices + relaxation.alive,
        seconds,
        stopped,
        # Offsets are found the more easily the less is held.
        Among(_WORSE, relaxation.occupied, relaxation.choices),
        gap=_WORSE / 5,
    )
    return None if found.values is None else _Draft(relaxation, found.values).plan()


@dataclass
class _Stay:
    """A residence in the making."""

    buffer: int
    begin: int
    last: int  # the last tick that needs its bytes
    fetched: bool = False
    need: int = -1  # the first tick that needs what prefetches bring
    preload: bool = False
    replaces: int = -1
    written: int = -1  # the tick that wrote what it holds, if that isn't in main memory
    source: "_Stay | None" = None  # the one whose write-back brought the value to main memory
    # (bucket, share of the buffer) of what comes, and of what is written back.
    arrivals: list[tuple[int, float]] = field(default_factory=list)
    departures: list[tuple[int, float]] = field(default_factory=list)


class _Draft:
    """Reads a plan out of the values of the columns."""

    def __init__(self, relaxation: Relaxation, values: np.ndarray) -> None:
        self.r, self._values = relaxation, values
        self._ticks, self._kinds = relaxation.accesses["tick"], relaxation.accesses["kind"]
        self._served: dict[int, _Stay] = {}
        self._stays: list[_Stay] = []

    def plan(self) -> Plan:
        """Returns the draft."""
        for walk in self.r.walks:
            self._follow(walk)
        used = {id(stay) for stay in self._served.values()}
        self._stays = [stay for stay in self._stays if id(stay) in used]
        number = {id(stay): index for index, stay in enumerate(self._stays)}
        sizes = self.r.buffers["size_bytes"]
        residences: list[dict] = []
        copies: list[dict] = []
        stalled = self._stalled()
        for index, stay in enumerate(self._stays):
            size = int(sizes[stay.buffer])
            end = max([stay.last + 1, *(self._end(bucket) for bucket, _ in stay.departures)])
            end = min(end, self.r.program.ticks)
            own = list(self._copies_of(stay, index, size, end, stalled.get(id(stay), {})))
            copies += own
            arrive = [copy["begin"] for copy in own if copy["kind"] == PREFETCH]
            begin = min(arrive) if arrive else min(stay.begin, stay.last)
            residences.append({"offset": 0, "buffer": stay.buffer, "begin": begin, "end": end})
        # The channel serves first what is needed first.
        copies.sort(key=lambda copy: (not copy["preload"], copy["begin"], copy["end"]))
        served_by = np.full(len(self._ticks), -1, np.int32)
        for access, stay in self._served.items():
            served_by[access] = number[id(stay)]
        program, hardware = self.r.program, self.r.hardware
        columns = all_main_plan(program, hardware)
        return Plan.of(
            program,
            hardware,
            _table(residences, columns.residences.dtype),
            _table(copies, columns.copies.dtype),
            served_by,
        )

    def _value(self, terms: Terms) -> float:
        return float(sum(self._values[column] * factor for column, factor in terms))

    def _stay(self, buffer: int, begin: int, fetched: bool) -> _Stay:
        self._stays.append(_Stay(buffer, begin, begin, fetched))
        return self._stays[-1]

    def _serve(self, access: int, stay: _Stay) -> None:
        tick = int(self._ticks[access])
        self._served[access] = stay
        stay.last = max(stay.last, tick)
        if stay.fetched and stay.need < 0:
            stay.need = tick

    # One buffer.

    def _follow(self, walk: BufferWalk) -> None:
        """Finds the residences of a buffer and the accesses that they serve."""
        buffer = int(self.r.accesses["buffer"][walk.indices[0]])
        state = _State(self._preloaded(walk, buffer))
        around: list[tuple[_Stay | None, bool]] = []  # what there was before each loop around
        for step in walk.path:
            if isinstance(step, Loop):
                if step.begins:
                    around.append((state.stay, state.entered))
                    state.stay = state.stay if state.entered else None
                else:
                    state.stay, over = around.pop()
                    if over and state.stay is not None:
                        state.stay.last = max(state.stay.last, step.exit)
                state.entered = False
            elif around and around[-1][1]:  # The residence over the loop serves all inside.
                if isinstance(step, Visit) and state.stay is not None:
                    self._serve(step.access, state.stay)
                    state.entered = self._kinds[step.access] == LOOP_ENTRY
            elif isinstance(step, Move):
                self._move(step, buffer, state)
            elif self._kinds[step.access] == WRITE:
                self._write(step, buffer, state)
            else:
                self._access(step, buffer, state)

    def _preloaded(self, walk: BufferWalk, buffer: int) -> _Stay | None:
        start = next((step for step in walk.path if not isinstance(step, Loop)), None)
        if start is None or start.before is None or walk.origin != PARAMETER:
            return None
        if self._value(start.before.kept + start.before.fetched) < 0.5:
            return None
        stay = self._stay(buffer, 0, fetched=True)
        stay.preload = True
        return stay

    def _move(self, step: Move, buffer: int, state: "_State") -> None:
        before, behind = step.before, step.behind
        kept = self._value(behind.kept) > 0.5
        written_back = self._value(before.missing) - self._value(behind.missing)
        outside = step.level is self.r.top
        if outside and written_back > _LITTLE and state.stay is not None:
            state.stay.departures.append((step.bucket, written_back))
            state.source = state.stay
        if before.kept and not kept and state.stay is not None and not state.stay.fetched:
            state.stay = None
        if kept and not self._value(behind.replaced) > 0.5:
            return  # What is fetched beside it is of no use.
        had, has = self._value(before.fetched), self._value(behind.fetched)
        came = self._value(step.transferred)
        if came > _LITTLE:
            if state.stay is not None and (not state.stay.fetched or has < had + came - _LITTLE):
                state.stay = None
            if state.stay is None:
                state.stay = self._stay(buffer, self._begin(step.level, step.bucket), fetched=True)
                state.stay.source = state.source
                if state.replaced >= 0:
                    self._replace(state.replaced, state)
            if outside:
                state.stay.arrivals.append((step.bucket, came))
        elif has < _LITTLE and state.stay is not None and state.stay.fetched:
            state.stay = None

    def _write(self, step: Visit, buffer: int, state: "_State") -> None:
        column = self.r.replaced.get(int(self._ticks[step.access]))
        if column is not None and self._values[column] > 0.5:
            if state.stay is None or not state.stay.fetched:
                state.stay, state.replaced = None, step.access
            else:
                self._replace(step.access, state)
            return
        state.stay, state.source, state.replaced = None, None, -1
        if self._value(step.fast) > 0.5:
            tick = int(self._ticks[step.access])
            state.stay = self._stay(buffer, tick, fetched=False)
            state.stay.written = tick
            self._serve(step.access, state.stay)

    def _replace(self, write: int, state: "_State") -> None:
        """Lets the residence be filled in the place of the plain copy that makes this write."""
        assert state.stay is not None, "a prefetch fills a residence"
        self._served[write] = state.stay
        state.stay.replaces = int(self._ticks[write])
        state.stay.last = max(state.stay.last, state.stay.replaces)
        state.replaced = -1

    def _access(self, step: Visit, buffer: int, state: "_State") -> None:
        tick, kind = int(self._ticks[step.access]), self._kinds[step.access]
        fast = self._value(step.fast) > 0.5
        if kind == READ and self.r.fast[step.access] is None:  # It costs the same either way.
            fast = step.before is not None and self._value(step.before.missing) > 0.5
        if fast and state.stay is None and kind == UPDATE and step.before is None:
            state.stay = self._stay(buffer, tick, fetched=False)
        if fast and state.stay is not None:
            self._serve(step.access, state.stay)
            state.entered = kind == LOOP_ENTRY
        if kind == UPDATE:
            if not fast:
                state.stay = None
            elif state.stay is not None:  # From here on it holds what was written.
                state.stay.fetched, state.stay.written = False, tick
            state.source = None

    def _begin(self, level: Level, bucket: int) -> int:
        """Returns the tick at which copies of a bucket begin."""
        return level.points[bucket - 1] if bucket > 0 else level.begin

    def _end(self, bucket: int) -> int:
        points = self.r.top.points
        return points[bucket] if bucket < len(points) else self.r.program.ticks

    # Copies.

    def _stalled(self) -> dict[int, dict[int, float]]:
        """Returns, by the id of a residence and a bucket, the share that comes in stalls.

        It comes when the bucket ends. What is needed first waits first, and of that the largest,
        because it hardly fits beside what leaves.
        """
        r, values = self.r, self._values
        left = {b: values[c] for b, c in enumerate(r.stalls[id(r.top)]) if values[c] > _LITTLE}
        stalled: dict[int, dict[int, float]] = {}
        copy_time = {int(r.accesses["buffer"][w.indices[0]]): w.copy_time for w in r.walks}
        sizes = r.buffers["size_bytes"]
        for stay in sorted(self._stays, key=lambda stay: (stay.need, -sizes[stay.buffer])):
            for bucket, share in stay.arrivals:
                if bucket not in left or stay.need > self._end(bucket):
                    continue
                whole = copy_time[stay.buffer]
                taken = min(left[bucket], share * whole)
                left[bucket] -= taken
                stalled.setdefault(id(stay), {})[bucket] = taken / whole
        return stalled

    def _copies_of(
        self, stay: _Stay, index: int, size: int, end: int, stalled: dict[int, float]
    ) -> Iterator[dict]:
        """Yields the copies of a residence. Those of a program with loops stay to be found."""
        if stay.preload:
            yield _copy(PREFETCH, index, 0, 0, 0, size, preload=True)
            return
        if len(self.r.levels) > 1:
            return
        if stay.arrivals:
            parts = []
            for bucket, share in stay.arrivals:
                late, begin = stalled.get(bucket, 0.0), self._begin(self.r.top, bucket)
                parts += [(begin, share - late), (self._end(bucket) if late else begin, late)]
            need = max(stay.need, stay.begin)
            there = 0 if stay.source is None else self._written_back(stay.source)
            for begin, from_byte, to_byte in _slices(parts, size):
                begin = min(max(begin, there), need)
                yield _copy(PREFETCH, index, begin, need, from_byte, to_byte, stay.replaces)
        done = min(end, self._written_back(stay))
        parts = [(self._begin(self.r.top, bucket), share) for bucket, share in stay.departures]
        for begin, from_byte, to_byte in _slices(parts, size):
            begin = min(max(begin, stay.written + 1), done)
            yield _copy(WRITE_BACK, index, begin, done, from_byte, to_byte)

    def _written_back(self, stay: _Stay) -> int:
        """Returns the tick at which all that it writes back is in main memory."""
        return max((self._end(bucket) for bucket, _ in stay.departures), default=0)


@dataclass
class _State:
    """What is there of a buffer at one moment."""

    stay: _Stay | None
    replaced: int = -1  # the write of a plain copy whose place the next prefetch takes
    entered: bool = False  # whether it is to lie over the loop that begins
    source: _Stay | None = None  # the one that wrote the newest value back


def _slices(parts: list[tuple[int, float]], size: int) -> Iterator[tuple[int, int, int]]:
    """Cuts `size` bytes in proportion to the parts' shares: (tick, first byte, last byte + 1)."""
    parts = [(tick, share) for tick, share in parts if share > _LITTLE / 10]
    total, done, begin = sum(share for _, share in parts), 0.0, 0
    for index, (tick, share) in enumerate(parts):
        done += share
        end = size if index == len(parts) - 1 else min(size, round(size * done / total))
        if end > begin:
            yield tick, begin, end
        begin = max(begin, end)


def _table(rows: list[dict], dtype: np.dtype) -> np.ndarray:
    assert dtype.names is not None, "the columns of a plan have names"
    return np.array([tuple(row[name] for name in dtype.names) for row in rows], dtype)


def _copy(
    kind: int,
    residence: int,
    begin: int,
    end: int,
    part_begin: int,
    part_end: int,
    replaces: int = -1,
    preload: bool = False,
) -> dict:
    return {
        "kind": kind,
        "residence": residence,
        "begin": begin,
        "end": end,
        "part_begin": part_begin,
        "part_end": part_end,
        "replaces": replaces,
        "preload": preload,
    }
