"""Experiments: a grid of cells, each measured once and kept, and a table with intervals.

    from mallocgame import experiments as ex

    def measure(program: str, solver: str, seed: int, seconds: float) -> dict:
        result = mg.solve(mg.load_program(program), solver, seconds, seed)
        return {"latency_ps": result.report.latency_ps}

    grid = ex.Grid(program=["a", "b"], solver=["greedy", "anneal"], seed=range(3))
    rows = ex.run(measure, grid, "out", settings={"seconds": 1.0}, workers=2)
    print(ex.table(rows, "solver", "latency_ps", ex.mean_of_levels, level="program"))

Interrupted, the same run goes on where it stopped. main() makes a command of such a benchmark.
play() runs solvers on levels, and judge_submission() judges folders of plans.
"""

from mallocgame._jobs import HERE, Cluster, FailedJobsError, Workers, cores
from mallocgame.experiments.command import Bench, main
from mallocgame.experiments.grid import Cell, Grid, cell_name, evenly, name_of
from mallocgame.experiments.intervals import (
    Interval,
    difference,
    interquartile_mean,
    mean,
    mean_of_levels,
    middle_mean,
)
from mallocgame.experiments.judging import Run, judge_plan, judge_submission, results_of
from mallocgame.experiments.playing import Player, play
from mallocgame.experiments.running import FailedCellsError, Row, run, tell
from mallocgame.experiments.scores import Budget, Result, Summary, score, scores_of, summarize
from mallocgame.experiments.tables import Table, array, grouped, table

__all__ = [
    "HERE",
    "Bench",
    "Budget",
    "Cell",
    "Cluster",
    "FailedCellsError",
    "FailedJobsError",
    "Grid",
    "Interval",
    "Player",
    "Result",
    "Row",
    "Run",
    "Summary",
    "Table",
    "Workers",
    "array",
    "cell_name",
    "cores",
    "difference",
    "evenly",
    "grouped",
    "interquartile_mean",
    "judge_plan",
    "judge_submission",
    "main",
    "mean",
    "mean_of_levels",
    "middle_mean",
    "name_of",
    "play",
    "results_of",
    "run",
    "score",
    "scores_of",
    "summarize",
    "table",
    "tell",
]
