"""The law that turns the compiler's price of an instruction into a calibrated one.

    time = max(factor * price, bytes in main memory / achieved bandwidth)

price    the compiler's cycles at its own clock
factor   speed(chip) for a matmul. For all other classes also the width of what is moved: the
         compiler prices vector work by the number of elements, as if each took 4 bytes, but
         registers and channels are full of narrow ones, too. A reduction has a factor of its own.
bytes    what surely moves (FloorPs); a price below is none that the chip reaches, so the price is
         clipped there

A kernel has the roofline as its price, with the flops that such kernels reach. A copy takes its
bytes over the achieved bandwidth and a latency. More in fast memory is never dearer than less.

It needs of each instruction: its class, the width, its arrays' bytes and memories, and the
compiler's cycles (classes.py, prices.py). All are known when a program is imported.
"""

import dataclasses
import json
import math
import pathlib

from classes import Work
from prices import Cost, Row

import mallocgame as mg

FILE = pathlib.Path(__file__).with_name("coefficients.json")


@dataclasses.dataclass(frozen=True)
class Law:
    """The figures of one chip."""

    chip: str
    achieved_bytes_per_second: float  # of main memory, by instructions and copies
    copy_latency_ps: float
    speed: float  # factor of all prices: clock and cores
    reduction: float  # further factor of reductions
    kernel: float  # the share of the chip's flops that a kernel reaches

    def factor(self, work: Work) -> float:
        """Returns what the compiler's price of such work is multiplied by."""
        if work.class_ == "matmul":
            return self.speed
        factor = self.speed * min(1.0, work.width)
        return factor * self.reduction if work.class_ == "reduce" else factor

    def time_ps(self, work: Work, price_ps: float, main_bytes: int) -> float:
        """Returns the calibrated time of an instruction that the compiler priced."""
        return max(self.factor(work) * price_ps, self.transfer_ps(main_bytes))

    def transfer_ps(self, main_bytes: float) -> float:
        """Returns the time that bytes take over the main-memory channel."""
        return main_bytes * 1e12 / self.achieved_bytes_per_second

    def cycles(self, hardware: mg.Hardware, work: Work, cost: Cost, row: Row) -> int:
        """Returns the calibrated price of a row in cycles, as a Program holds it."""
        price_ps = hardware.cycles_to_ps(row.cycles)
        time = self.time_ps(work, price_ps, cost.main_bytes(row))
        return math.ceil(time * hardware.clock_hz / 1e12)

    def hardware(self, preset: mg.Hardware) -> mg.Hardware:
        """Returns the hardware with the achieved bandwidth, and with what kernels reach."""
        return preset.replace(
            main_bytes_per_second=round(self.achieved_bytes_per_second),
            flops_per_second=round(preset.flops_per_second * self.kernel),
        )


def load(file: pathlib.Path = FILE) -> dict[str, Law]:
    """Returns the law of each chip by its name."""
    document = json.loads(file.read_text())
    shared = document["shared"]
    return {
        name: Law(
            chip=name,
            achieved_bytes_per_second=chip["achieved_bytes_per_second"]["value"],
            copy_latency_ps=chip["copy_latency_ps"]["value"],
            speed=chip["speed"]["value"],
            reduction=shared["reduction"]["value"],
            kernel=shared["kernel"]["value"],
        )
        for name, chip in document["chips"].items()
    }
