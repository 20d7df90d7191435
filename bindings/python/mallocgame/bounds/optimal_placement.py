"""The best map of a placement problem on a hierarchy of memories, with proof.

HiGHS solves it as an integer programme.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mallocgame import _arguments
from mallocgame._core import Placement
from mallocgame.errors import InvalidInputError, MissingExtraError

_GAP = 1e-6  # share of the latency; many times what the solver's tolerances can amount to


@dataclass(frozen=True)
class OptimalMap:
    """A map that fits, and what no map can beat."""

    map: np.ndarray  # uint8 [num_nodes, 2]
    latency_ps: int
    # No map that fits takes less. The solver proves it in floating point, so a millionth is off.
    bound_ps: int
    status: str  # "optimal": within a millionth of the bound; "stopped": the time was over
    # Of the faster of both compilers, the problem's own and the search "first-come".
    compiler_ps: int

    def gap_closed(self, latency_ps: int) -> float:
        """Returns how much of what there is to gain over the compilers a latency gains.

        It is (compiler_ps - latency_ps) / (compiler_ps - bound_ps): 0 is the faster compiler, 1
        what no map can beat, and slower maps than the compiler's are below 0. NaN: no gap.
        """
        gap = self.compiler_ps - self.bound_ps
        return (self.compiler_ps - latency_ps) / gap if gap > 0 else math.nan


def optimal_map(problem: Placement, seconds: float = 60.0) -> OptimalMap:
    """Finds the fastest map of a problem on a hierarchy, on one thread.

    If no better map was found in time it is the compiler's own. seconds: wall time for the solver;
    0 is no limit. If it is stopped early the result depends on the machine.

    InvalidInputError: seconds < 0, or the problem is a game. MallocGameError: highspy is not
    installed.
    """
    _arguments.instance("problem", problem, Placement)
    if not seconds >= 0:
        raise InvalidInputError(f"optimal_map: seconds must be >= 0, found {seconds}")
    if problem.game is not None:
        raise InvalidInputError(
            "optimal_map: found a placement on a game, allowed: one on a hierarchy of memories"
        )
    try:
        import highspy
    except ModuleNotFoundError:
        raise MissingExtraError("optimal_map needs highspy", "bounds") from None
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
    compiler_ps = min(problem.baseline_ps, problem.search("first-come", 1).latency_ps)
    status = "optimal" if optimal else "stopped"
    return OptimalMap(best, latency_ps, bound_ps, status, compiler_ps)


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
    # Of each node, in its share of the baseline's latency: the terms of all levels, and those of
    # the last one.
    terms: list[list[Any]] = [[] for _ in range(problem.num_nodes)]
    slow: list[list[Any]] = [[] for _ in range(problem.num_nodes)]
    times = costs["term_ps"] * costs["trips"][costs["term_node"], None] / problem.baseline_ps
    for node, tensor, shares in zip(costs["term_node"], costs["term_tensor"], times, strict=True):
        terms[node] += [float(s) * at for s, at in zip(shares, lies[tensor], strict=True)]
        slow[node].append(terms[node][-1])
    least, fixed = (
        costs[name] * costs["trips"] / problem.baseline_ps for name in ("compute_ps", "fixed_ps")
    )
    room = costs["staging_ps"] / problem.baseline_ps
    ahead: Any = 0.0  # what is fetched ahead when the node begins
    for node, staged in enumerate(costs["staged_term"]):
        takes = highs.addVariable(float(least[node]), obj=1.0)
        idle = takes - sum(slow[node], float(fixed[node]))
        if staged >= 0:
            share = times[staged]
            taken = highs.addVariable(0, float(share[-1]))
            highs.addConstr(taken <= float(share[-1]) * lies[2 * node][-1])
            highs.addConstr(taken - ahead <= 0.0)
            spared, idle = float(1 - share[0] / share[-1]) * taken, idle + taken
        else:
            spared, taken = 0.0, 0.0
        highs.addConstr(takes - sum(terms[node], float(fixed[node])) + spared >= 0.0)
        if room > 0:
            following = highs.addVariable(0, float(room))
            highs.addConstr(following - ahead + taken - idle <= 0.0)
            ahead = following
    begin, end = costs["alive"].reshape(-1, 2).T
    copies = np.ones(sizes.size)  # the engines for which a tensor takes its bytes
    for level, capacity in enumerate(costs["capacity_bytes"]):
        if level > 0:
            copies[1::2] = costs["engines"]
        takes_bytes = sizes * copies
        limited = {
            tuple(np.flatnonzero((sizes > 0) & (begin <= node) & (node < end)))
            for node in range(problem.num_nodes)
        }
        for alive in sorted(limited):
            if takes_bytes[list(alive)].sum() > capacity:
                highs.addConstr(
                    sum(
                        float(takes_bytes[tensor] / capacity) * lies[tensor][level]
                        for tensor in alive
                    )
                    <= 1.0
                )
    return np.array([[at.index for at in row] for row in lies])
