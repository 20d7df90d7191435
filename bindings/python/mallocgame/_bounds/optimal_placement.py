"""The best map of a placement problem on a hierarchy of memories, with proof.

HiGHS solves it as an integer programme.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mallocgame._core import Placement
from mallocgame.errors import InvalidInputError, MallocGameError

_GAP = 1e-6  # share of the latency; many times what the solver's tolerances can amount to


@dataclass(frozen=True)
class OptimalMap:
    """A map that fits, and what no map can beat."""

    map: np.ndarray  # uint8 [num_nodes, 2]
    latency_ps: int
    # No map that fits takes less. The solver proves it in floating point, so a millionth is off.
    bound_ps: int
    status: str  # "optimal": within a millionth of the bound; "stopped": the time was over


def optimal_map(problem: Placement, seconds: float = 60.0) -> OptimalMap:
    """Finds the fastest map of a problem on a hierarchy, on one thread.

    If no better map was found in time it is the compiler's own. seconds: wall time for the solver;
    0 is no limit. If it is stopped early the result depends on the machine.

    InvalidInputError: seconds < 0, or the problem is a game. MallocGameError: highspy is not
    installed.
    """
    if not seconds >= 0:
        raise InvalidInputError(f"optimal_map: seconds must be >= 0, found {seconds}")
    if problem.game is not None:
        raise InvalidInputError(
            "optimal_map: found a placement on a game, allowed: one on a hierarchy of memories"
        )
    try:
        import highspy
    except ModuleNotFoundError:
        raise MallocGameError(
            "optimal_map needs highspy; install it with: pip install 'mallocgame[bounds]'"
        ) from None
    highs = highspy.Highs()
    for option, value in {
        "output_flag": False,
        "threads": 1,
        "time_limit": float(seconds or math.inf),
        "mip_rel_gap": _GAP,
    }.items():
        highs.setOptionValue(option, value)
    chosen = _programme(highs, highspy, problem)
    highs.run()
    best, latency_ps = problem.baseline_map, problem.baseline_ps
    info = highs.getInfo()
    if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
        values = np.array(highs.getSolution().col_value)[chosen]
        found = problem.rectify(np.argmax(values, axis=1).astype(np.uint8).reshape(best.shape))
        found_ps = problem.evaluate(found).latency_ps
        if found_ps < latency_ps:
            best, latency_ps = found, found_ps
    proven = info.mip_dual_bound if math.isfinite(info.mip_dual_bound) else 0.0
    bound_ps = max(0, min(latency_ps, math.floor(proven * (1 - _GAP) * problem.baseline_ps)))
    optimal = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return OptimalMap(best, latency_ps, bound_ps, "optimal" if optimal else "stopped")


def _programme(highs: Any, highspy: Any, problem: Placement) -> np.ndarray:
    """Fills `highs`: minimise the latency divided by the compiler's.

    Returns the columns that say where each tensor lies, [tensors, levels].
    """
    costs = problem.costs()
    sizes, levels = problem.tensor_bytes.ravel(), len(problem.level_names)
    integer = highspy.HighsVarType.kInteger
    lies = [[highs.addVariable(0, 1, type=integer) for _ in range(levels)] for _ in sizes]
    for tensor, at in enumerate(lies):
        highs.addConstr(sum(at) == 1)
        if sizes[tensor] == 0:
            highs.addConstr(at[int(problem.baseline_map.ravel()[tensor])] == 1)
    terms: list[list[Any]] = [[] for _ in range(problem.num_nodes)]
    for node, tensor, times in zip(
        costs["term_node"],
        costs["term_tensor"],
        costs["term_ps"] / problem.baseline_ps,
        strict=True,
    ):
        terms[node] += [
            float(time * costs["trips"][node]) * at
            for time, at in zip(times, lies[tensor], strict=True)
        ]
    least, fixed = (
        costs[name] * costs["trips"] / problem.baseline_ps for name in ("compute_ps", "fixed_ps")
    )
    for node in range(problem.num_nodes):
        takes = highs.addVariable(float(least[node]), obj=1.0)
        if terms[node]:
            highs.addConstr(takes - sum(terms[node]) >= float(fixed[node]))
        else:
            highs.addConstr(takes >= float(fixed[node]))
    begin, end = costs["alive"].reshape(-1, 2).T
    for level, capacity in enumerate(costs["capacity_bytes"]):
        limited = {
            tuple(np.flatnonzero((sizes > 0) & (begin <= node) & (node < end)))
            for node in range(problem.num_nodes)
        }
        for alive in sorted(limited):
            if sizes[list(alive)].sum() > capacity:
                highs.addConstr(
                    sum(float(sizes[tensor] / capacity) * lies[tensor][level] for tensor in alive)
                    <= 1.0
                )
    return np.array([[at.index for at in row] for row in lies])
