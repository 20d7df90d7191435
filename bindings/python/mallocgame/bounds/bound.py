"""Proven lower bounds on the latency that `simulate` gives a valid plan.

`no-contention` needs NumPy only and takes no time. The others need highspy (the extra `bounds`).
proof.md has the proofs.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mallocgame import _arguments
from mallocgame._core import Hardware, Program, no_contention_ps
from mallocgame.errors import InvalidInputError, MissingExtraError

if TYPE_CHECKING:
    from mallocgame.bounds.relaxation import Relaxation

BOUNDS = ("no-contention", "any-order", "lp", "milp")
# (buffer, point) pairs of the relaxation. More of them give a better bound and take longer.
_NODES = 30_000


@dataclass(frozen=True)
class Bound:
    """A proven lower bound on the latency of every valid plan, in picoseconds."""

    bound_ps: int
    name: str  # one of BOUNDS
    status: str  # "optimal": the best of its kind; "stopped": the time was over, it still holds


def bound(
    program: Program,
    name: str = "no-contention",
    hardware: Hardware | None = None,
    seconds: float = 60.0,
    free_below_bytes: int | None = None,
) -> Bound:
    """Proves a lower bound on the latency of every valid plan.

    name: one of BOUNDS. `no-contention` and `any-order` hold for every order of the program's
    instructions (docs/schedule.md), `lp` and `milp` for its own, and are at least as good as
    `no-contention` if the time is enough. The proofs of `any-order` and `lp` don't depend on the
    solver's tolerances; for those of `milp` a hundred-thousandth is off.

    hardware: None is the program's own.

    seconds: wall time for the solver; 0 is no limit, and then `milp` may not end. Building the
    programme takes some seconds more.

    free_below_bytes: for `lp` and `milp`, buffers of fewer bytes may lie anywhere at no cost. None
    is 1/4096 of fast memory. With less the bound may be higher, and takes longer.

    InvalidInputError: there is no such bound, or seconds or free_below_bytes < 0. MallocGameError:
    highspy is not installed.
    """
    if name not in BOUNDS:
        raise InvalidInputError(f"bound: found '{name}', allowed: {', '.join(BOUNDS)}")
    if not seconds >= 0:
        raise InvalidInputError(f"bound: seconds must be >= 0, found {seconds}")
    if free_below_bytes is not None and free_below_bytes < 0:
        raise InvalidInputError(f"bound: free_below_bytes must be >= 0, found {free_below_bytes}")
    own = _arguments.instance("program", program, Program).hardware
    hardware = own if hardware is None else hardware
    least_ps = no_contention_ps(program, hardware)
    if name == "no-contention":
        return Bound(least_ps, name, "optimal")
    if name == "any-order":
        _check_solver(f"bound '{name}'")
        from mallocgame.bounds.any_order import AnyOrder

        free = AnyOrder(program, hardware)
        found = free.lp.solve(seconds or math.inf)
        proven_ps = _proven_ps(found.bound, free.unit_ps, free.all_main_ps)
        status = "optimal" if found.optimal else "stopped"
        return Bound(max(least_ps, proven_ps), name, status)
    relaxation = relaxation_of(
        program, hardware, f"bound '{name}'", free_below_bytes=free_below_bytes
    )
    if name == "milp":
        whole = relaxation.choices + relaxation.alive
        integer = relaxation.lp.solve_integer(whole, seconds or math.inf)
        units, optimal = integer.bound, integer.optimal
    else:
        found = relaxation.lp.solve(seconds or math.inf)
        units, optimal = found.bound, found.optimal
    proven_ps = _proven_ps(units, relaxation.unit_ps, relaxation.all_main_ps)
    return Bound(max(least_ps, proven_ps), name, "optimal" if optimal else "stopped")


def relaxation_of(
    program: Program, hardware: Hardware, purpose: str, free_below_bytes: int | None = None
) -> "Relaxation":
    """Builds the linear programme. MallocGameError: highspy is missing, which `purpose` needs."""
    _check_solver(purpose)
    from mallocgame.bounds.relaxation import Relaxation

    return Relaxation(program, hardware, _NODES, free_below_bytes)


def _check_solver(purpose: str) -> None:
    try:
        import highspy  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtraError(f"{purpose} needs highspy", "bounds") from None


def _proven_ps(units: float, unit_ps: float, all_main_ps: int) -> int:
    """The bound in picoseconds.

    Latencies are whole ones. What is taken off is far more than the rounding of the programme's own
    numbers.
    """
    return min(math.ceil(max(0.0, units * unit_ps * (1 - 1e-12) - 1e-3)), all_main_ps)
