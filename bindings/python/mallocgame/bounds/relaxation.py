"""The linear programme under every valid plan; proof.md proves each constraint.

Times are in units of `unit_ps`, contents shares of a buffer, work and capacity as they are named. A
*point* is a position in the schedule at which the contents of fast memory are looked at: before the
instruction of some tick, or at the end of a loop. Points split a level (the ticks directly in one
loop, or in none) into *buckets* of time in which copies are served.
"""

from bisect import bisect_left, bisect_right

import numpy as np

from mallocgame._core import (
    CONSTANT,
    PARAMETER,
    READ,
    UPDATE,
    WRITE,
    Hardware,
    Program,
    all_main_plan,
    placement_prices,
    simulate,
)
from mallocgame.bounds.linear import Linear, Terms
from mallocgame.bounds.relaxation_walk import BufferWalk

_MAX_SLOTS = 8
# The units of time that the program takes all in main memory: solvers like such numbers.
_ALL_MAIN = 1e4


class Level:
    """The ticks directly inside one loop, or inside none, and the time they leave to copies."""

    def __init__(self, begin: int, end: int, trips: int, weight: int) -> None:
        self.begin, self.end = begin, end  # ticks, loops inside included
        self.trips = trips  # runs of one tick in one run of the program
        self.weight = weight  # passes played for one pass of the level around: at most two
        self.parent: Level | None = None
        self.loops: list[Level] = []  # directly inside
        # Ticks. The exit tick of a loop inside stands for the loop's end.
        self.points: list[int] = []
        self.loop_at: dict[int, Level] = {}  # the loop whose end is a point
        self.bucket_terms: list[Terms] = []  # of each bucket: work less capacity
        self.bucket_idle: list[float] = []  # of each bucket: capacity that no decision changes
        # Of each bucket: by the tick in its time that wrote a value, the work of copying the value.
        self.written_work: list[dict[int, Terms]] = []
        self.occupied: list[Terms] = []  # of each point: share of fast memory
        # Of each bucket: the share of fast memory that prefetches fill in it.
        self.arriving: list[Terms] = []
        # The column of the share of fast memory that buffers not used in the loop take over all of
        # it; -1 if there is none.
        self.covering: int = -1

    def bucket(self, tick: int) -> int:
        """Returns the bucket that ends at or behind the point before `tick`'s instruction."""
        return bisect_left(self.points, tick)

    def bucket_behind(self, tick: int) -> int:
        """Returns the bucket of the time that `tick`'s instruction leaves idle."""
        return bisect_right(self.points, tick)


class Relaxation:
    """The linear programme of a program on some hardware."""

    def __init__(
        self, program: Program, hardware: Hardware, nodes: int, free_below_bytes: int | None = None
    ) -> None:
        """Builds it with about `nodes` (buffer, point) pairs; fewer give a weaker bound.

        free_below_bytes: buffers of fewer bytes may lie anywhere at no cost; None is 1/4096 of fast
        memory.
        """
        self.program, self.hardware = program, hardware
        self.lp = Linear()
        # Columns that are 0 or 1 in every plan: placements and preloads, and whether a residence
        # that was written is still alive.
        self.choices: list[int] = []
        self.alive: list[int] = []
        self.all_main_ps = simulate(program, all_main_plan(program, hardware), hardware).latency_ps
        self.unit_ps = max(1e-3, self.all_main_ps / _ALL_MAIN)
        self.buffers, self.accesses = program.buffers, program.accesses
        self.instructions = program.instructions
        if free_below_bytes is None:
            free_below_bytes = hardware.fast_bytes // 4096
        self.smallest = free_below_bytes  # of the buffers that take space
        self._writes: dict[int, list[int]] = {}
        # Buffers that are never missing in main memory.
        self._free_reads = set(range(len(self.buffers)))
        for access in self.accesses:
            if access["kind"] in (UPDATE, WRITE):
                self._writes.setdefault(int(access["buffer"]), []).append(int(access["tick"]))
            if access["kind"] != READ:
                self._free_reads.discard(int(access["buffer"]))
        self._rows, self._decided = placement_prices(program, hardware, max_slots=_MAX_SLOTS)
        self._idle = np.zeros(program.ticks, bool)  # whether it may leave time to copies
        self._idle[self._rows["tick"][self._rows["idle_ps"] > 0]] = True
        self._make_levels()
        self._choose_points(nodes)
        self._price_instructions()
        self.preloads: Terms = []
        self._walk_buffers()
        self.space_rows: list[tuple[int, int]] = []  # tick and row of each limit of content
        # For each tick the rows that channel time at it takes part in, with its weight there.
        self.channel_rows: list[list[tuple[int, int]]] = [[] for _ in range(program.ticks)]
        self._close_levels()

    def writes_of(self, buffer: int) -> list[int]:
        """Returns the ticks that write or update the buffer."""
        return self._writes.get(buffer, [])

    # Time.

    def _make_levels(self) -> None:
        ticks = self.program.ticks
        self.top = Level(0, ticks, 1, 1)
        self.levels = [self.top]
        stack = [self.top]
        for loop in np.sort(self.program.loops, order="entry"):
            begin, end = int(loop["entry"]) + 1, int(loop["exit"])
            if self.instructions["trips"][begin] == 0:
                continue  # What never runs takes no time, and nothing is copied in it.
            while stack[-1].end < end:
                stack.pop()
            level = Level(
                begin, end, int(self.instructions["trips"][begin]), min(2, int(loop["trips"]))
            )
            level.trips = stack[-1].trips * int(loop["trips"])
            level.parent = stack[-1]
            stack[-1].loops.append(level)
            stack[-1].loop_at[end] = level
            self.levels.append(level)
            stack.append(level)
        self.level_of: list[Level] = [self.top] * ticks
        for level in self.levels:  # Outer levels come first.
            self.level_of[level.begin : level.end] = [level] * (level.end - level.begin)

    def _choose_points(self, nodes: int) -> None:
        spans = self._live_spans()
        steps = 0
        while True:
            for level in self.levels:
                own = [t for t in range(level.begin, level.end) if self.level_of[t] is level]
                # If there are too many, those go first in whose time nothing can be copied.
                if steps > 0:
                    own = [t for t in own if self._idle[t]][:: 2 ** (steps - 1)]
                level.points = sorted(set(own) | set(level.loop_at))
            count = sum(
                bisect_left(level.points, end) - bisect_left(level.points, begin)
                for level, begin, end in spans
            )
            if count <= nodes or 2**steps >= len(self.level_of):
                break
            steps += 1
        for level in self.levels:
            level.bucket_terms = [[] for _ in range(len(level.points) + 1)]
            level.bucket_idle = [0.0] * (len(level.points) + 1)
            level.written_work = [{} for _ in range(len(level.points) + 1)]
            level.occupied = [[] for _ in level.points]
            level.arriving = [[] for _ in level.bucket_terms]

    def _live_spans(self) -> list[tuple[Level, int, int]]:
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for access in self.accesses:
            buffer = int(access["buffer"])
            if self._matters(buffer):
                first.setdefault(buffer, int(access["tick"]))
                last[buffer] = int(access["tick"])
        spans = []
        for buffer, end in last.items():
            begin = (
                first[buffer] if self.buffers["origin"][buffer] not in (PARAMETER, CONSTANT) else 0
            )
            spans += [(level, begin, end) for level in self.levels]
        return spans

    def _matters(self, buffer: int) -> bool:
        return self.smallest <= self.buffers["size_bytes"][buffer] <= self.hardware.fast_bytes

    # Instructions.

    def _price_instructions(self) -> None:
        """Adds a column for each placement of an instruction.

        They add up to one, and say how much of an access is served from fast memory.
        """
        rows, decided = self._rows, self._decided
        self.fast: list[Terms | None] = [None] * len(self.accesses)  # None: nothing depends on it
        self.replaced: dict[int, int] = {}  # tick of a plain copy to its column
        makes_in_main = self.instructions["results_in_main"]
        for index, access in enumerate(self.accesses):
            if access["kind"] in (UPDATE, WRITE) and makes_in_main[access["tick"]]:
                self.fast[index] = []
        # For each tick: the channel time that it leaves, by its placement and whatever that is.
        self.idle_terms: list[Terms] = [[] for _ in range(self.program.ticks)]
        self.idle_always = np.zeros(self.program.ticks)
        starts = np.searchsorted(rows["tick"], np.arange(self.program.ticks + 1))
        for tick in range(self.program.ticks):
            own = rows[starts[tick] : starts[tick + 1]]
            level = self.level_of[tick]
            bucket = level.bucket_behind(tick)
            first = int(self.instructions["first_access"][tick])
            if len(own) == 1:
                self.lp.constant += level.trips * float(own["time_ps"][0]) / self.unit_ps
                self.idle_always[tick] = float(own["idle_ps"][0]) / self.unit_ps
                level.bucket_idle[bucket] += self.idle_always[tick]
                continue
            slots = [
                s
                for s in range(int(self.instructions["access_count"][tick]))
                if int(decided[tick]) >> s & 1
            ]
            served: dict[int, Terms] = {slot: [] for slot in slots}
            for slot in slots:
                self.fast[first + slot] = served[slot]
            columns: Terms = []
            for row in own[self._undominated(own, first)]:
                column = self.lp.column(cost=level.trips * float(row["time_ps"]) / self.unit_ps)
                columns.append((column, 1.0))
                self.choices.append(column)
                self.idle_terms[tick].append((column, float(row["idle_ps"]) / self.unit_ps))
                if row["replaced"]:
                    self.replaced[tick] = column
                    continue
                for slot in slots:
                    if int(row["fast"]) >> slot & 1:
                        served[slot].append((column, 1.0))
            idle_terms = [(column, -idle) for column, idle in self.idle_terms[tick]]
            level.bucket_terms[bucket] += idle_terms
            self.lp.row(columns, 1.0, 1.0)

    def _undominated(self, rows: np.ndarray, first: int) -> list[int]:
        """Drops placements that put more reads into fast memory than another and are no better.

        Only reads of buffers that nothing writes count: those of another may be impossible from
        main memory. Returns the rows that stay.
        """
        buffers = self.accesses["buffer"]
        fast = [int(f) for f in rows["fast"]]
        keep = []
        for i, row in enumerate(rows):
            dominated = False
            for j, other in enumerate(rows):
                more = fast[i] & ~fast[j]
                if i == j or fast[j] & ~fast[i] or row["replaced"] or other["replaced"] or not more:
                    continue
                free = all(
                    int(buffers[first + s]) in self._free_reads for s in range(64) if more >> s & 1
                )
                if (
                    free
                    and other["time_ps"] <= row["time_ps"]
                    and other["idle_ps"] >= row["idle_ps"]
                ):
                    dominated = True
                    break
            if not dominated:
                keep.append(i)
        return keep

    # Buffers.

    def _walk_buffers(self) -> None:
        by_buffer: dict[int, list[int]] = {}
        for index, buffer in enumerate(self.accesses["buffer"]):
            by_buffer.setdefault(int(buffer), []).append(index)
        for buffer, indices in by_buffer.items():
            if self._matters(buffer):
                BufferWalk(self, buffer, indices).run()
            else:
                self._fix_too_large(buffer, indices)
        if self.preloads:
            self.lp.row(self.preloads, high=float(self.hardware.max_preloads))

    def _fix_too_large(self, buffer: int, indices: list[int]) -> None:
        if self.buffers["size_bytes"][buffer] > self.hardware.fast_bytes:
            for index in indices:
                fast = self.fast[index]
                if fast:
                    self.lp.row(fast, high=0.0)

    # What is left when all buffers are known.

    def _close_levels(self) -> None:
        longest = self.all_main_ps / self.unit_ps  # A plan that stalls longer is of no interest.
        stalls: dict[int, list[int]] = {}  # by the id of a level: of its buckets' stalls
        lent: dict[int, int] = {}  # column: time of a loop that copies from around it use
        for level in self.levels:
            stalls[id(level)] = [
                self.lp.column(longest / level.trips, float(level.trips))
                for _ in level.bucket_terms
            ]
            if level is not self.top:
                lent[id(level)] = self.lp.column(longest)
        for level in self.levels:
            rows = []
            for bucket, terms in enumerate(level.bucket_terms):
                others: Terms = [(stalls[id(level)][bucket], -1.0)]
                if bucket < len(level.points) and level.points[bucket] in level.loop_at:
                    others.append((lent[id(level.loop_at[level.points[bucket]])], -1.0))
                rows.append(self.lp.row(terms + others, high=level.bucket_idle[bucket]))
                self._limit_written(level, bucket, others)
            for tick in range(level.begin, level.end):
                if self.level_of[tick] is level:
                    self.channel_rows[tick].append((rows[level.bucket_behind(tick)], 1))
            if level is not self.top:
                self._limit_lent(level, lent, stalls)
            for index, point in enumerate(level.points):
                arriving = self._arriving_at(level, index, stalls[id(level)])
                self._limit_occupied(level, point, level.occupied[index], arriving)

    def _limit_written(self, level: Level, bucket: int, others: Terms) -> None:
        """Limits the copies of values that a bucket's own instructions write.

        A value is copied when its writer is done, so not in the time that its writer leaves idle.
        """
        work: Terms = []
        end = level.points[bucket] if bucket < len(level.points) else level.end
        for tick in sorted(level.written_work[bucket], reverse=True):
            work = work + level.written_work[bucket][tick]
            behind = [t for t in range(tick + 1, end) if self.level_of[t] is level]
            idle_terms = [(c, -v) for t in behind for c, v in self.idle_terms[t]]
            idle_always = float(self.idle_always[behind].sum())
            row = self.lp.row(work + idle_terms + others, high=idle_always)
            for t in behind:
                self.channel_rows[t].append((row, 1))

    def _limit_lent(self, loop: Level, lent: dict[int, int], stalls: dict[int, list[int]]) -> None:
        """Limits the copies from around a loop that are served inside.

        They are served in at most two passes of it, behind all copies of the passes themselves.
        """
        assert loop.parent is not None, "the top level is no loop"
        terms = [(lent[id(loop)], 1.0)]
        idle = 0.0
        weights: dict[int, int] = {}  # of the levels in the loop
        for level in self.levels:
            weight = 1
            outer: Level | None = level
            while outer is not None and outer is not loop:
                weight, outer = weight * outer.weight, outer.parent
            if outer is None:
                continue
            weight *= loop.weight
            for bucket, own in enumerate(level.bucket_terms):
                terms += [(column, weight * value) for column, value in own]
                terms.append((stalls[id(level)][bucket], -float(level.trips // loop.parent.trips)))
                idle += weight * level.bucket_idle[bucket]
            weights[id(level)] = weight
        row = self.lp.row(terms, high=idle)
        for tick in range(loop.begin, loop.end):
            self.channel_rows[tick].append((row, weights[id(self.level_of[tick])]))

    def _arriving_at(self, level: Level, index: int, stalls: list[int]) -> Terms:
        """Returns what arrives while the instruction of a point runs.

        What is served in that time is at its place by then; what stalls serve may be not.
        """
        bucket, point = index + 1, level.points[index]
        behind = level.points[bucket] if bucket < len(level.points) else level.end
        if (
            point in level.loop_at
            or behind in level.loop_at
            or self._idle[point + 1 : behind].any()
            or not level.arriving[bucket]
        ):
            return []  # Copies are served in other instructions of the bucket, too.
        served = (
            self.unit_ps * self.hardware.main_bytes_per_second / 1e12 / self.hardware.fast_bytes
        )
        return [*level.arriving[bucket], (stalls[bucket], -served)]

    def _limit_occupied(self, level: Level, point: int, terms: Terms, arriving: Terms) -> None:
        around = [(level.covering, 1.0)] if level.covering >= 0 else []
        if point in level.loop_at:
            loop = level.loop_at[point]
            if terms or around:
                loop.covering = self.lp.column()
                self.lp.row([(loop.covering, 1.0)] + [(c, -v) for c, v in terms + around], low=0.0)
            return
        reserved = int(self.instructions["reserved_bytes"][point])
        room = max(0.0, 1.0 - reserved / self.hardware.fast_bytes)
        if terms:
            self.space_rows.append((point, self.lp.row(terms + around, high=room)))
        if arriving:
            self.space_rows.append((point, self.lp.row(terms + around + arriving, high=room)))

    # What the programme says of the resources.

    def prices(self, duals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns what a byte of space and a picosecond of the channel are worth at each tick.

        duals: of the programme's rows. Both are in picoseconds of latency.
        """
        ticks = self.program.ticks
        space, channel = np.zeros(ticks), np.zeros(ticks)
        for tick, row in self.space_rows:
            space[tick] -= duals[row] * self.unit_ps / self.hardware.fast_bytes
        for tick, rows in enumerate(self.channel_rows):
            channel[tick] = -sum(duals[row] * weight for row, weight in rows)
        return np.maximum(space, 0.0), np.maximum(channel, 0.0)
