"""A bound on the latency of every plan at every order of the instructions.

It knows no time and no space: each instruction has a placement, and a value that one of them reads
in another memory than all that wrote it is copied once at least. All copies together fit into what
all instructions leave to the channel, and into waiting. So whatever the order is, no plan is
faster. Times are in units of the linear programme (relaxation.py).
"""

import numpy as np

from mallocgame._core import (
    INSTRUCTION,
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

_MAX_SLOTS = 8
_ALL_MAIN = 1e4  # the units of time that the program takes all in main memory


class AnyOrder:
    """The linear programme of a program, whose optimum is the bound in units of `unit_ps`."""

    def __init__(self, program: Program, hardware: Hardware) -> None:
        self.lp = Linear()
        self.all_main_ps = simulate(program, all_main_plan(program, hardware), hardware).latency_ps
        self.unit_ps = max(1e-3, self.all_main_ps / _ALL_MAIN)
        self._program, self._hardware = program, hardware
        # Work less capacity of the channel, all trips; waiting is time that it has as well.
        self._channel: Terms = [(self.lp.column(top=1e6, cost=1.0), -1.0)]
        self._idle = 0.0
        # By access: its share in fast memory. Accesses that may lie anywhere have none.
        self._fast: dict[int, Terms] = {}
        self._preloads: Terms = []
        self._preloaded: Terms = []
        self._price_instructions()
        accesses = program.accesses
        by_buffer = np.argsort(accesses["buffer"], kind="stable")
        cuts = np.flatnonzero(np.diff(accesses["buffer"][by_buffer])) + 1
        for own in np.split(by_buffer, cuts):
            if len(own):
                self._copy(int(accesses["buffer"][own[0]]), sorted(own.tolist()))
        if self._preloads:
            self.lp.row(self._preloads, high=1.0)
            self.lp.row(self._preloaded, high=float(hardware.max_preloads))
        self.lp.row(self._channel, high=self._idle)

    def _price_instructions(self) -> None:
        program, hardware = self._program, self._hardware
        rows, decided = placement_prices(program, hardware, max_slots=_MAX_SLOTS)
        instructions = program.instructions
        sizes = program.buffers["size_bytes"][program.accesses["buffer"]]
        starts = np.searchsorted(rows["tick"], np.arange(program.ticks + 1))
        for tick in range(program.ticks):
            own = rows[starts[tick] : starts[tick + 1]]
            trips = int(instructions["trips"][tick])
            first = int(instructions["first_access"][tick])
            slots = [
                slot
                for slot in range(int(instructions["access_count"][tick]))
                if int(decided[tick]) >> slot & 1
            ]
            for slot in slots:
                self._fast[first + slot] = []
            if len(own) == 0:
                continue
            chosen: Terms = []
            for row in own:
                column = self.lp.column(cost=trips * float(row["time_ps"]) / self.unit_ps)
                chosen.append((column, 1.0))
                work = -trips * float(row["idle_ps"]) / self.unit_ps
                if row["replaced"]:  # A copy does what the instruction would.
                    copied = hardware.transfer_ps(int(sizes[first + 1]))
                    work += trips * copied / self.unit_ps
                self._channel.append((column, work))
                for slot in slots:
                    if int(row["fast"]) >> slot & 1 and not (row["replaced"] and slot == 0):
                        self._fast[first + slot].append((column, 1.0))
            self.lp.row(chosen, low=1.0, high=1.0)

    def _copy(self, buffer: int, accesses: list[int]) -> None:
        """Adds what the placements of one buffer's accesses need of copies."""
        buffers, kinds = self._program.buffers, self._program.accesses["kind"]
        size, origin = int(buffers["size_bytes"][buffer]), int(buffers["origin"][buffer])
        decided = [access for access in accesses if access in self._fast]
        if not decided:
            return
        if size > self._hardware.fast_bytes:
            for access in decided:
                self.lp.row(self._fast[access], high=0.0)
            return
        writes = [access for access in accesses if kinds[access] in (WRITE, UPDATE)]
        if any(access not in self._fast for access in writes):
            return  # It may be written in either memory, so perhaps nothing is copied.
        reads = [access for access in decided if kinds[access] == READ]
        work = self._hardware.transfer_ps(size) / self.unit_ps
        written: Terms = [term for access in writes for term in self._fast[access]]
        if reads:
            fetched = self.lp.column()
            self._channel.append((fetched, work))
            came: Terms = [(fetched, -1.0)]
            if origin == PARAMETER:
                preloaded = self.lp.column()
                came.append((preloaded, -1.0))
                self._preloads.append((preloaded, size / self._hardware.fast_bytes))
                self._preloaded.append((preloaded, 1.0))
            came += [(column, -value) for column, value in written]
            for access in reads:
                self.lp.row(self._fast[access] + came, high=0.0)
        if not writes or origin != INSTRUCTION:
            return
        # What is written in fast memory only, and read in main memory or given out, goes back.
        back = self.lp.column()
        self._channel.append((back, work))
        left = [*written, (back, -1.0)]
        for access in reads:
            here = [(column, -value) for column, value in self._fast[access]]
            self.lp.row(here + left, high=len(writes) - 1.0)
        if buffers["is_output"][buffer]:
            self.lp.row(left, high=len(writes) - 1.0)
