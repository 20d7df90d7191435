"""What EGRL finds on the TPU's games: a level for each tensor, or a mode and turn for each run.

docs/results/egrl.md has its means, and tables/egrl_games.csv beside this file the programs.

    python benchmarks/quality/egrl_games.py FOLDER [--evaluations 2000] [--seeds 3]
                                            [--jobs 1 | --ray ADDRESS] [PROGRAM ...]

Every method grades the same number of maps of each program, by default of all contended ones, and
all but annealing know the map of XLA's plan where a map can say it. `anneal` plays as many priority
games, which it begins as it always does. Keeps every run in FOLDER, as placement.py does, and goes
on from there.

Prints the speed-up over XLA, the geometric mean over the seeds; then the geometric means over the
programs, and what the first column is over the others, with 95 % intervals (rliable), of draws of
seeds. Each run uses one thread.
"""

import dataclasses

import numpy as np
from placement import problem_of, runs  # type: ignore[import-not-found]

import mallocgame as mg
from mallocgame import experiments as ex
from mallocgame.programs import suite

# (game, method), by the title of its column.
COLUMNS = {
    "EGRL, runs": ("priority-game", "egrl"),
    "evolution alone": ("priority-game", "evolution-only"),
    "policy gradient alone": ("priority-game", "gradient-only"),
    "EGRL, tensors": ("time-game", "egrl"),
}
ANNEAL = "anneal"


def anneal(seed: int, program: str, evaluations: int) -> dict:
    problem = problem_of("priority-game", program)
    result = mg.solve(
        problem.program, ANNEAL, seconds=0, evaluations=evaluations, seed=seed, game="priority"
    )
    return {"latency_ps": result.report.latency_ps}


def log_of(run: ex.Row) -> float:
    """The natural logarithm of the speed-up over XLA."""
    program = problem_of("priority-game", run["program"]).program
    assert program.xla_plan is not None, "every bundled program has XLA's own plan"
    return float(np.log(mg.simulate(program, program.xla_plan).latency_ps / run["latency_ps"]))


def main(
    bench: ex.Bench, *programs: str, evaluations: int = 2000, seeds: tuple[int, ...] = (0, 1, 2)
) -> None:
    names = list(programs) or suite("contended")
    axes = {"seed": seeds, "program": names}
    games, methods = zip(*COLUMNS.values(), strict=True)
    grid = ex.Grid(hierarchy=dict.fromkeys(games), method=dict.fromkeys(methods), **axes).where(
        lambda hierarchy, method, **_: (hierarchy, method) in COLUMNS.values()
    )
    found = ex.grouped(runs(bench, grid, evaluations), "hierarchy", "method")
    kept = dataclasses.replace(bench, folder=bench.folder / ANNEAL)
    annealed = kept.run(anneal, ex.Grid(**axes), settings={"evaluations": evaluations})
    rows = {title: found[column] for title, column in COLUMNS.items()} | {ANNEAL: annealed}
    logs = {title: ex.array(several, log_of, "seed", "program") for title, several in rows.items()}
    table = ex.Table(["program", "tensors", "runs", *rows])
    for place, program in enumerate(names):
        nodes = [problem_of(game, program) for game in ("time-game", "priority-game")]
        sizes = (nodes[0].tensor_bytes > 0).sum(), nodes[1].num_nodes
        cells = (f"{np.exp(own[:, place].mean()):.3f}" for own in logs.values())
        table.add(f"`{program}`", *sizes, *cells)
    means = [f"{ex.mean_of_levels(own).exp():.4f}" for own in logs.values()]
    table.add("geometric mean", "", "", *means)
    (title, first), *others = logs.items()
    over = [f"{ex.mean_of_levels(first - own).exp():.4f}" for _, own in others]
    table.add(f"`{title}` over it", "", "", "", *over)
    print(table)


if __name__ == "__main__":
    ex.main(main)
