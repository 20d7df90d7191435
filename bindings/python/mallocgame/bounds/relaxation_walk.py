"""One buffer on its way through the schedule, as columns and rows of the relaxation.

proof.md calls content what is followed here.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mallocgame._core import CONSTANT, LOOP_ENTRY, PARAMETER, READ, UPDATE, WRITE
from mallocgame.bounds.linear import Terms

if TYPE_CHECKING:
    from mallocgame.bounds.relaxation import Level, Relaxation

# Of fast memory: in the integer programme a preload of more can't go in part and come back, which
# takes rows of its own.
_LARGE = 1 / 4


@dataclass
class Content:
    """Shares of the buffer's newest value at one position of a level, as linear expressions."""

    position: int  # index of the next point of the level
    kept: Terms = field(default_factory=list)  # in fast memory since it was written or preloaded
    fetched: Terms = field(default_factory=list)  # in fast memory by prefetches
    covered: Terms = field(default_factory=list)  # in fast memory over the whole loop around
    missing: Terms = field(default_factory=list)  # not in main memory
    # How much of its writer was a plain copy that a prefetch took the place of.
    replaced: Terms = field(default_factory=list)
    unwritten: bool = False  # whether that plain copy is still to come
    writer: int = -1  # the tick that wrote the value in this level; -1: before it, or a plain copy

    @property
    def fast(self) -> Terms:
        """All that lies in fast memory."""
        return self.kept + self.fetched + self.covered


class BufferWalk:
    """Adds all that one buffer brings to the relaxation."""

    def __init__(self, relaxation: "Relaxation", buffer: int, indices: Sequence[int]) -> None:
        self.r = relaxation
        self.lp = relaxation.lp
        self.indices = indices
        row = relaxation.buffers[buffer]
        self.origin, self.is_output = int(row["origin"]), bool(row["is_output"])
        self.size = int(row["size_bytes"])
        self.share = float(row["size_bytes"]) / relaxation.hardware.fast_bytes
        self.copy_time = (
            float(row["size_bytes"])
            * 1e12
            / relaxation.hardware.main_bytes_per_second
            / relaxation.unit_ps
        )
        self.kinds = [int(kind) for kind in relaxation.accesses["kind"][indices]]
        self.ticks = [int(tick) for tick in relaxation.accesses["tick"][indices]]
        # Whether content takes space. Inside a loop that writes the buffer the loop's share does.
        self.counts = True

    def run(self) -> None:
        """Adds the columns and rows."""
        top = self.r.top
        start = Content(0) if self.origin in (PARAMETER, CONSTANT) else None
        if self.origin == PARAMETER and self.r.hardware.max_preloads > 0:
            preload = self.lp.column()
            self.r.preloads.append((preload, 1.0))
            self.r.choices.append(preload)
            if self.share > _LARGE:
                start = Content(0, kept=[(preload, 1.0)])
            else:
                start = Content(0, fetched=[(preload, 1.0)])
        end = self._level(top, 0, len(self.indices), start, [])
        if self.is_output and end is not None and end.missing:
            self.lp.row(self._advance(top, end, top.end).missing, high=0.0)

    # A level: the accesses [first, last) of the buffer, all inside it.

    def _level(
        self, level: "Level", first: int, last: int, content: Content | None, floor: Terms
    ) -> Content | None:
        entry: Terms = []
        index = first
        while index < last:
            tick, kind = self.ticks[index], self.kinds[index]
            if self.r.level_of[tick] is not level:
                loop = next(loop for loop in level.loops if loop.begin <= tick < loop.end)
                behind = bisect_left(self.ticks, loop.end, index, last)
                content = self._loop(level, loop, index, behind, content, entry)
                entry, index = [], behind
                continue
            if kind == WRITE:
                content = self._write(level, index, floor)
            else:
                if content is not None:
                    content = self._advance(level, content, tick)
                content, entry = self._access(level, index, content, floor)
            index += 1
        return content

    def _access(
        self, level: "Level", index: int, content: Content | None, floor: Terms
    ) -> tuple[Content | None, Terms]:
        """Adds a read, an update or a loop's entry at `content`."""
        tick, kind, served = self.ticks[index], self.kinds[index], self.r.fast[self.indices[index]]
        fast: Terms = served or []
        if kind != READ:
            fast = [(self._fast_column(served), 1.0)]
        if kind != READ or served is not None:
            self._keep_floor(fast, floor)
            if content is not None:
                self.lp.row(fast + _less(content.fast), high=0.0)
                if content.missing:  # What a plain copy reads may be read in its place later.
                    taken = [(self.r.replaced[tick], 1.0)] if tick in self.r.replaced else []
                    self.lp.row(content.missing + _less(fast + taken), high=0.0)
        if content is not None:
            self._occupy_at(level, tick, content.kept + content.fetched)
        if kind == UPDATE:
            if content is None:
                self._occupy_at(level, tick, fast)
            behind = level.bucket_behind(tick)
            return Content(behind, kept=fast, missing=fast, writer=tick), []
        return content, fast if kind == LOOP_ENTRY else []

    def _write(self, level: "Level", index: int, floor: Terms) -> Content:
        tick = self.ticks[index]
        fast = [(self._fast_column(self.r.fast[self.indices[index]]), 1.0)]
        column = self.r.replaced.get(tick)
        if column is None:
            self._keep_floor(fast, floor)
            self._occupy_at(level, tick, fast)
            behind = level.bucket_behind(tick)
            return Content(behind, kept=fast, missing=fast, writer=tick)
        replaced = [(column, 1.0)]
        self._keep_floor(fast + replaced, floor)
        begin = Content(
            bisect_right(level.points, self._source_written(level, tick)),
            replaced=replaced,
            unwritten=True,
        )
        before = self._advance(level, begin, tick)
        self._occupy_at(level, tick, fast + before.fetched)
        behind = level.bucket_behind(tick)
        return Content(
            behind, kept=fast, fetched=before.fetched, missing=fast + replaced, replaced=replaced
        )

    def _source_written(self, level: "Level", tick: int) -> int:
        """Returns the last tick before the plain copy at `tick` that writes what it reads.

        It is at least the one before the level.
        """
        first = int(self.r.instructions["first_access"][tick])
        written = self.r.writes_of(int(self.r.accesses["buffer"][first]))
        at = bisect_left(written, tick) - 1
        return max(written[at], level.begin - 1) if at >= 0 else level.begin - 1

    def _loop(
        self,
        level: "Level",
        loop: "Level",
        first: int,
        last: int,
        content: Content | None,
        entry: Terms,
    ) -> Content | None:
        """Adds the accesses inside a loop.

        `entry` says how much of the loop's entry was served from fast memory; without terms the
        buffer lives and dies inside.
        """
        if not entry:
            self._level(loop, first, last, Content(0) if self.origin == CONSTANT else None, [])
            return content
        point = level.points.index(loop.end)
        if not any(kind in (UPDATE, WRITE) for kind in self.kinds[first:last]):
            if content is None:
                return content
            content = self._pass_points(level, content, point + 1)
            self.lp.row(entry + _less(content.fast), high=0.0)
            self._level(loop, first, last, Content(0, covered=content.fast), entry)
            return content
        whole = [(self.lp.column(), 1.0)]  # of the residence over the whole loop
        self.lp.row(entry + _less(whole), high=0.0)
        self._occupy(level, point, whole)
        counted, self.counts = self.counts, False
        begin = None if content is None else Content(0, covered=whole)
        behind = self._level(loop, first, last, begin, entry)
        assert behind is not None, "a loop that writes a buffer leaves content"
        end = self._advance(loop, behind, loop.end)
        self.counts = counted
        self.lp.row(end.missing + _less(entry), high=0.0)
        kept = [(self.lp.column(), 1.0)]
        self.lp.row(kept + _less(whole), high=0.0)
        self.lp.row(kept + _less(end.fast), high=0.0)
        return Content(point + 1, kept=kept, missing=end.missing)

    # Steps.

    def _advance(self, level: "Level", content: Content, tick: int) -> Content:
        """Moves to before the instruction at `tick`; the end of a level counts as a tick."""
        points = level.points
        target = bisect_right(points, tick) if tick in level.loop_at else bisect_left(points, tick)
        content = self._step(level, self._pass_points(level, content, target), target)
        content.position = target + (target < len(points) and points[target] == tick)
        return content

    def _pass_points(self, level: "Level", content: Content, target: int) -> Content:
        """Moves to the position of the point before `target`, unless it is behind that."""
        while content.position < target:
            point = content.position
            content = self._step(level, content, point)
            self._occupy(level, point, content.kept + content.fetched)
            content.position = point + 1
        return content

    def _step(self, level: "Level", old: Content, bucket: int) -> Content:
        """Moves from one position to a later one in the same bucket of time."""
        lp, new = self.lp, replace(old)
        work: Terms = []
        if old.kept:
            new.kept = [(lp.column(), 1.0)]
            lp.row(new.kept + _less(old.kept), high=0.0)
            if level is self.r.top:  # A residence is alive, or it is not.
                self.r.alive.append(new.kept[0][0])
        if old.missing:
            new.missing = [(lp.column(), 1.0)]
            written_back = old.missing + _less(new.missing)
            lp.row(written_back, low=0.0)
            lp.row(
                written_back + _less(old.kept) + (_less(old.fetched) if old.replaced else []),
                high=0.0,
            )
            lp.row(new.missing + _less(new.kept) + _less(old.replaced), high=0.0)
            work += [(column, self.copy_time * value) for column, value in written_back]
        new.fetched = [(lp.column(), 1.0)]
        transferred = new.fetched
        if old.fetched:
            transferred = [(lp.column(), 1.0)]
            lp.row(new.fetched + _less(old.fetched) + _less(transferred), high=0.0)
        work += [(column, self.copy_time * value) for column, value in transferred]
        level.bucket_terms[bucket] += work
        if old.writer >= 0 and level.bucket_behind(old.writer) == bucket:
            level.written_work[bucket].setdefault(old.writer, []).extend(work)
        if self.counts:
            level.arriving[bucket] += [
                (column, self.share * value) for column, value in transferred
            ]
        if old.unwritten:
            lp.row(new.fetched + _less(old.replaced), high=0.0)
        elif new.missing:
            lp.row(new.fetched + new.missing + _less(old.replaced), high=1.0)
        return new

    # Rows that several of the above need.

    def _fast_column(self, fast: Terms | None) -> int:
        """Returns a column for how much of an access is served from fast memory."""
        column = self.lp.column()
        if fast is not None:
            self.lp.row([(column, 1.0), *_less(fast)], 0.0, 0.0)
        return column

    def _keep_floor(self, fast: Terms, floor: Terms) -> None:
        if floor:
            self.lp.row(fast + _less(floor), low=0.0)

    def _occupy(self, level: "Level", point: int, content: Terms) -> None:
        if self.counts:
            level.occupied[point] += [(column, self.share * value) for column, value in content]

    def _occupy_at(self, level: "Level", tick: int, content: Terms) -> None:
        point = bisect_left(level.points, tick)
        if point < len(level.points) and level.points[point] == tick and tick not in level.loop_at:
            self._occupy(level, point, content)


def _less(terms: Terms) -> Terms:
    """Returns the negative of an expression."""
    return [(column, -value) for column, value in terms]
