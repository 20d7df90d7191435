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

import argparse
import pathlib

import numpy as np
from numpy.typing import NDArray
from placement import Bench, make  # type: ignore[import-not-found]

import mallocgame as mg
from mallocgame._cli.parser import add_workers, workers
from mallocgame._levels.scores import mean_of_levels
from mallocgame.programs import suite

# (game, method), by the title of its column.
COLUMNS = {
    "EGRL, runs": ("priority-game", "egrl"),
    "evolution alone": ("priority-game", "evolution-only"),
    "policy gradient alone": ("priority-game", "gradient-only"),
    "EGRL, tensors": ("time-game", "egrl"),
}
ANNEAL = "anneal"


def logs_of(bench: Bench, program_name: str, title: str) -> NDArray[np.float64]:
    """Natural logarithms of speed-ups over XLA, [seeds]."""
    program = bench.problem("priority-game", program_name).program
    xla_ps = mg.simulate(program, program.xla_plan).latency_ps
    if title == ANNEAL:
        found = [annealed_ps(program, bench.evaluations, seed) for seed in range(bench.seeds)]
    else:
        game, method = COLUMNS[title]
        runs = bench.runs(game, program_name, method)
        found = [run["improvements"][-1][1] for run in runs]
    return np.log(xla_ps / np.array(found, np.float64))


def annealed_ps(program: mg.Program, games: int, seed: int) -> int:
    result = mg.solve(program, ANNEAL, seconds=0, evaluations=games, seed=seed, game="priority")
    return result.report.latency_ps


def shown(logs: NDArray[np.float64]) -> str:
    """The geometric mean of [seeds, programs] and its interval."""
    interval = mean_of_levels(logs)
    mean, low, high = np.exp([interval.mean, interval.low, interval.high])
    return f"{mean:.4f} ({low:.4f} to {high:.4f})"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("programs", metavar="PROGRAM", nargs="*", default=suite("contended"))
    parser.add_argument("--evaluations", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=3)
    add_workers(parser, 1, "runs side by side (1)")
    options = parser.parse_intermixed_args()
    bench = Bench(options.folder, options.evaluations, options.seeds)
    # Seed by seed, so that an interrupted benchmark can be printed with fewer of them.
    tasks = [
        (game, program, method, seed)
        for seed in range(options.seeds)
        for game, method in COLUMNS.values()
        for program in options.programs
    ]
    with workers(options, here=True) as several:
        make(bench, tasks, several)
    titles = [*COLUMNS, ANNEAL]
    print(f"| program | tensors | runs | {' | '.join(titles)} |\n| --- |{' --: |' * 7}")
    logs: dict[str, list[NDArray[np.float64]]] = {title: [] for title in titles}
    for program in options.programs:
        for title in titles:
            logs[title].append(logs_of(bench, program, title))
        nodes = [bench.problem(game, program) for game in ("time-game", "priority-game")]
        tensors, runs = (nodes[0].tensor_bytes > 0).sum(), nodes[1].num_nodes
        cells = " | ".join(f"{np.exp(logs[title][-1].mean()):.3f}" for title in titles)
        print(f"| `{program}` | {tensors} | {runs} | {cells} |", flush=True)
    tables = {title: np.array(logs[title]).T for title in titles}
    cells = " | ".join(shown(tables[title]) for title in titles)
    print(f"| geometric mean | | | {cells} |")
    first = tables[titles[0]]
    cells = " | ".join(shown(first - tables[title]) for title in titles[1:])
    print(f"| `{titles[0]}` over it | | | | {cells} |")


if __name__ == "__main__":
    main()
