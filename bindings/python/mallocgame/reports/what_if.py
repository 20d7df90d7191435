"""What more fast memory, or a faster main memory, would bring to a program."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mallocgame import _solve
from mallocgame._core import Hardware, Plan, PriceLaw, Program, calibrated, simulate, validate
from mallocgame.bounds.bound import bound
from mallocgame.errors import InvalidInputError

MORE_BYTES = 32 * 2**20  # what people ask for first
BOUND = "bound"
_ALLOCATOR = "xla-heuristic"
_SIZES = (0.25, 0.5, 0.75, 1.5, 2.0)  # of fast memory, over the hardware's
_BANDWIDTHS = (0.5, 0.75, 1.0, 1.5, 2.0)  # of main memory, over what the chip reaches


@dataclasses.dataclass(frozen=True)
class Point:
    """A machine, and the latency of each method on it; the last one is the proven bound.

    bandwidth: of main memory, over what the chip reaches.
    """

    fast_bytes: int
    bandwidth: float
    latency_ps: dict[str, int]

    def is_of(self, told: WhatIf) -> bool:
        """Whether the machine is the hardware that is asked about."""
        return (self.fast_bytes, self.bandwidth) == (told.fast_bytes, 1.0)


@dataclasses.dataclass(frozen=True)
class WhatIf:
    """Latency over fast memory, at the program's own prices, and over bandwidth.

    Over bandwidth prices are calibrated: the compiler's are of one bandwidth. `bandwidth` is empty
    where the program can't have them, and `no_bandwidth` says why.
    """

    program: str
    hardware: str
    fast_bytes: int  # the hardware's own
    fast: tuple[Point, ...]
    bandwidth: tuple[Point, ...]
    no_bandwidth: str = ""

    def document(self) -> dict[str, Any]:
        """Returns it as JSON has it."""
        return dataclasses.asdict(self)


def what_if(
    program: Program,
    hardware: Hardware | None = None,
    sizes: Sequence[int] | None = None,
    bandwidths: Sequence[float] = _BANDWIDTHS,
    solver: str = "portfolio",
    seconds: float = 10.0,
    seed: int = 0,
    bound_name: str = "no-contention",
    tell: Callable[[str], object] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> WhatIf:
    """Finds plans on machines that differ from the hardware in one thing.

    The methods are XLA's allocator (its re-implementation, which decides anew for each machine), a
    solver and the bound. A plan that the solver has found for one machine counts on all that can
    carry it out. What the compiler would do otherwise with more memory, such as other tiles and
    fusions, is not in it.

    sizes: of fast memory in bytes; None is from a quarter to twice the hardware's, and 32 MiB more
    than it. The hardware's own is always there. bandwidths: of main memory, over what the chip
    reaches. seconds: for each machine. bound_name: as bounds.bound() has it. tell: is told of the
    work. stop: once it returns True, what is left is left out.

    InvalidInputError: there is no such solver or bound.
    """
    machine = program.hardware if hardware is None else hardware
    own = machine.fast_bytes
    if sizes is None:
        sizes = [round(own * size / 2**20) * 2**20 for size in _SIZES] + [own + MORE_BYTES]
    least = int(program.instructions["reserved_bytes"].max(initial=1))
    kept = sorted({size for size in [*sizes, own] if size >= least})

    def measured(machines: Iterable[tuple[int, float, Program, Hardware]]) -> tuple[Point, ...]:
        return _points(machines, solver, seconds, seed, bound_name, tell, stop)

    fast = measured((size, 1.0, program, machine.replace(fast_bytes=size)) for size in kept)
    try:
        faster = [_faster(program, machine, factor) for factor in bandwidths]
    except InvalidInputError as error:
        return WhatIf(program.name, machine.name, own, fast, (), str(error))
    pairs = zip(bandwidths, faster, strict=True)
    bandwidth = measured((own, factor, one, one.hardware) for factor, one in pairs)
    return WhatIf(program.name, machine.name, own, fast, bandwidth)


def _faster(program: Program, hardware: Hardware, factor: float) -> Program:
    """Returns the program at calibrated prices of a chip with so many times the bandwidth."""
    law = PriceLaw.of(hardware.name)
    figures = {
        name: getattr(law, name) for name in ("main_share", "copy_latency_ps", "speed", "kernel")
    }
    figures["main_share"] *= factor
    return calibrated(program, hardware, PriceLaw(**figures))


def _points(
    machines: Iterable[tuple[int, float, Program, Hardware]],
    solver: str,
    seconds: float,
    seed: int,
    bound_name: str,
    tell: Callable[[str], object],
    stop: Callable[[], bool],
) -> tuple[Point, ...]:
    """Measures machines that can be left as they are, or carry out plans of the others."""
    measured, plans = [], []
    for fast_bytes, bandwidth, program, hardware in machines:
        if stop():
            break
        tell(f"{fast_bytes / 2**20:,.0f} MiB of fast memory, {bandwidth:g} times the bandwidth")
        try:
            allocated = _solve.solve(program, _ALLOCATOR, hardware=hardware, seed=seed)
            found = _solve.solve(
                program, solver, seconds=seconds, seed=seed, hardware=hardware, stop=stop
            )
        except InvalidInputError:
            if fast_bytes < program.hardware.fast_bytes:
                continue  # Kernels may pin more than that.
            raise
        plans.append(found.plan)
        latency = {
            _ALLOCATOR: allocated.report.latency_ps,
            BOUND: bound(program, bound_name, hardware).bound_ps,
        }
        measured.append((fast_bytes, bandwidth, program, hardware, latency))
    points = []
    for fast_bytes, bandwidth, program, hardware, latency in measured:
        best = min(_latencies(program, hardware, plans))
        ordered = {_ALLOCATOR: latency[_ALLOCATOR], solver: best, BOUND: latency[BOUND]}
        points.append(Point(fast_bytes, bandwidth, ordered))
    return tuple(points)


def _latencies(program: Program, hardware: Hardware, plans: Iterable[Plan]) -> Iterable[int]:
    for plan in plans:
        own = plan.rebased_on(program)
        if validate(program, own, hardware):
            yield simulate(program, own, hardware).latency_ps
