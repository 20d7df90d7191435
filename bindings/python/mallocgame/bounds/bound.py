"""Proven lower bounds on the latency that `simulate` gives a valid plan.

`no-contention` and `lagrangian` need NumPy only; the others need highspy (the extra `bounds`).
proof.md has the proofs.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mallocgame import _arguments
from mallocgame._core import Hardware, Program, no_contention_ps
from mallocgame.bounds.lagrangian import Certificate, climb, proven_ps
from mallocgame.errors import InvalidInputError, MissingExtraError

if TYPE_CHECKING:
    from mallocgame.bounds.relaxation import Relaxation

BOUNDS = ("no-contention", "any-order", "lagrangian", "lp", "milp")
# (buffer, point) pairs of the relaxation. More of them give a better bound and take longer.
_NODES = 30_000
# Programs with more accesses have linear programmes that take longer to write down than the time
# that `lp` has by default; and the share of the time of `lp` that goes to `lagrangian` first.
MOST_ACCESSES_OF_LP = 5000
ASCENT_SHARE = 1 / 3


@dataclass(frozen=True)
class Bound:
    """A proven lower bound on the latency of every valid plan, in picoseconds."""

    bound_ps: int
    name: str  # one of BOUNDS
    # "optimal": the best of its kind; "converged": more time would hardly raise it; "stopped": the
    # time was over, it still holds
    status: str
    # What proves it, if `lagrangian` does: verify() checks it.
    certificate: Certificate | None = field(default=None, compare=False, repr=False)


def bound(
    program: Program,
    name: str = "no-contention",
    hardware: Hardware | None = None,
    seconds: float = 60.0,
    free_below_bytes: int | None = None,
    progress: Callable[[float, float], object] | None = None,
) -> Bound:
    """Proves a lower bound on the latency of every valid plan.

    name: one of BOUNDS. `no-contention` and `any-order` hold for every order of the program's
    instructions (docs/schedule.md), the others for its own. Those are never below `no-contention`.
    `lagrangian` is for programs of every size. `lp` is `lagrangian` too where its linear programme
    isn't solved in time. The proofs of `any-order`, `lagrangian` and `lp` don't depend on the
    solver's tolerances; for those of `milp` a hundred-thousandth is off.

    hardware: None is the program's own.

    seconds: wall time for the solver; 0 is no limit, and then `milp` may not end. Building the
    linear programme of `any-order`, `lp` and `milp` takes some seconds more.

    free_below_bytes: for `lagrangian`, `lp` and `milp`, buffers of fewer bytes may lie anywhere at
    no cost. None is 1/4096 of fast memory. With less the bound may be higher, and takes longer.

    progress: called as progress(seconds, value_ps) some times a second while `lagrangian` rises.

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
        check_solver(f"bound '{name}'")
        from mallocgame.bounds.any_order import AnyOrder

        free = AnyOrder(program, hardware)
        found = free.lp.solve(seconds or math.inf)
        proven_ps = _proven_ps(found.bound, free.unit_ps, free.all_main_ps)
        status = "optimal" if found.optimal else "stopped"
        return Bound(max(least_ps, proven_ps), name, status)
    small = hardware.fast_bytes // 4096 if free_below_bytes is None else free_below_bytes
    if name == "lagrangian":
        risen = climb(program, hardware, seconds, small, progress)
        status = "converged" if risen.converged else "stopped"
        return Bound(max(least_ps, risen.bound_ps), name, status, risen.certificate)
    if name == "lp" and seconds > 0:
        return _lp_in_time(program, hardware, seconds, small, progress, least_ps)
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


def verify(program: Program, bound: Bound, hardware: Hardware | None = None) -> None:
    """Checks a bound's certificate in integer arithmetic.

    InvalidInputError: it has none, or it proves less. hardware: that of the bound.
    """
    own = _arguments.instance("program", program, Program).hardware
    hardware = own if hardware is None else hardware
    if bound.certificate is None:
        raise InvalidInputError(f"verify: the bound '{bound.name}' has no certificate")
    proven = max(
        no_contention_ps(program, hardware), proven_ps(program, hardware, bound.certificate)
    )
    if bound.bound_ps > proven:
        raise InvalidInputError(
            f"verify: found a bound of {bound.bound_ps} ps, but its certificate proves {proven} ps"
        )


def _lp_in_time(
    program: Program,
    hardware: Hardware,
    seconds: float,
    small: int,
    progress: Callable[[float, float], object] | None,
    least_ps: int,
) -> Bound:
    """The bound `lp`, or what the Lagrangian dual of the same constraints reaches in the time."""
    check_solver("bound 'lp'")
    begin = time.monotonic()
    solves = len(program.accesses) <= MOST_ACCESSES_OF_LP
    share = ASCENT_SHARE if solves else 1.0
    risen = climb(program, hardware, share * seconds, small, progress)
    status = "stopped"
    certificate: Certificate | None = risen.certificate
    best_ps = max(least_ps, risen.bound_ps)
    if solves:
        relaxation = relaxation_of(program, hardware, "bound 'lp'", small)
        found = relaxation.lp.solve(max(1e-3, begin + seconds - time.monotonic()))
        solved_ps = _proven_ps(found.bound, relaxation.unit_ps, relaxation.all_main_ps)
        if found.optimal:
            status = "optimal"
        if solved_ps >= best_ps:
            best_ps, certificate = solved_ps, None
    return Bound(best_ps, "lp", status, certificate)


def relaxation_of(
    program: Program, hardware: Hardware, purpose: str, free_below_bytes: int | None = None
) -> "Relaxation":
    """Builds the linear programme. MallocGameError: highspy is missing, which `purpose` needs."""
    check_solver(purpose)
    from mallocgame.bounds.relaxation import Relaxation

    return Relaxation(program, hardware, _NODES, free_below_bytes)


def check_solver(purpose: str) -> None:
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
