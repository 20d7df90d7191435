"""Finds maps of the placement problem by all methods.

It makes a table of docs/results/egrl.md.

    python benchmarks/quality/placement.py FOLDER [--hierarchies nnp_i] [--programs P ...]
        [--methods M ...] [--seeds 5] [--evaluations 4000] [--jobs 1 | --ray ADDRESS]

Keeps every run (hierarchy, program, method, seed) as a file in FOLDER, so that it can be
interrupted and goes on where it stopped. Then prints, for each hierarchy, the speed-up over the
compiler and over first-come, mean and standard deviation over the seeds, and what a run takes. A
method that found no map that fits counts with everything in the slowest level.

`egrl` and its parts know the compiler's map, but `egrl-slow`, which begins with everything in the
slowest level alone, as do the searches but `anneal`. `anneal` gets 25 times the evaluations: it
stands for what there is to gain. `optimal` is the integer programme (a minute at most, needs
mallocgame[bounds]); with it, the first table says what no map can beat. Each run uses one thread.
`egrl` and its parts need Torch.
"""

import functools
import time
from typing import Literal

import numpy as np

import mallocgame as mg
from mallocgame import agents
from mallocgame import experiments as ex

PROGRAMS = ("resnet50_b1.tpu_v4i", "resnet101_b4.tpu_v4i", "bert_base_b1_s128.tpu_v4i")
AGENTS: dict[str, dict[str, object]] = {  # the settings of EGRL by method
    "egrl": {},
    "paper": {"preset": "paper"},
    "egrl-slow": {"refined": 0},
    "no-screening": {"screened": 0},
    "no-boltzmann": {"boltzmann_share": 0},
    "evolution-only": {"gradient": False},
    "gradient-only": {"population": 0, "rollouts": 16},
}
METHODS = (*mg.placement.searches(), "optimal", *AGENTS)
MORE_FOR_ANNEALING = 25
PLAIN = ("compiler", "first-come")  # one evaluation
# What may stand in the place of a hierarchy: the TPU's games.
GAMES: dict[str, Literal["time", "priority"]] = {"time-game": "time", "priority-game": "priority"}
ONCE = (*PLAIN, "optimal")  # no chance
OPTIMAL_SECONDS = 60


def named(program: str) -> mg.Program:
    """The bundled program, or that of a level."""
    if program in mg.program_names():
        return mg.load_program(program)
    return level_programs()[program].load_program()


@functools.cache
def level_programs() -> dict[str, mg.Level]:
    splits = ("train", "validation", "test")
    return {level.program_name: level for split in splits for level in mg.levels(split)}


@functools.cache
def problem_of(hierarchy: str, program: str) -> mg.placement.Placement:
    if hierarchy in GAMES:
        return mg.placement.problem(named(program), game=GAMES[hierarchy])
    return mg.placement.problem(named(program), hierarchy)


def runs(bench: ex.Bench, grid: ex.Grid, evaluations: int) -> list[ex.Row]:
    """The runs of a grid (seed, hierarchy, program, method), but one of methods without chance."""
    first = min((cell["seed"] for cell in grid), default=0)
    chosen = grid.where(lambda seed, method, **_: method not in ONCE or seed == first)
    return bench.run(measure, chosen, settings={"evaluations": evaluations}, inputs=inputs)


def inputs(hierarchy: str, program: str, method: str, **_: object) -> dict[str, object]:
    """What a run depends on beside its evaluations."""
    problem, settings = problem_of(hierarchy, program), {}
    if method in AGENTS:
        settings = {one.name: one.default for one in agents.egrl_settings()}
        settings |= {name: str(value) for name, value in AGENTS[method].items()}
    asked = {"fingerprint": problem.program.fingerprint, "baseline_ps": problem.baseline_ps}
    return asked | {"agent": settings}


def measure(seed: int, hierarchy: str, program: str, method: str, evaluations: int) -> dict:
    problem = problem_of(hierarchy, program)
    evaluations *= MORE_FOR_ANNEALING if method == "anneal" else 1
    own: dict[str, object] = {}
    if method in AGENTS:
        agents.egrl_settings()  # It loads Torch, which is no part of the run.
    begin = time.process_time()
    if method in AGENTS:
        trainer = agents.Egrl(problem, AGENTS[method], seed, threads=1)
        trainer.train(evaluations)
        found = trainer.best()
    elif method == "optimal":
        best = mg.placement.optimal_map(problem, OPTIMAL_SECONDS)
        reward = problem.evaluate(best.map).reward
        found = agents.FoundMap(best.map, best.latency_ps, reward, np.array([best.latency_ps]))
        own = {"bound_ps": best.bound_ps}
    else:
        found = problem.search(method, evaluations, seed, threads=1)
    return own | {
        "cpu_seconds": time.process_time() - begin,
        "graded": len(found.best_ps),
        "latency_ps": int(found.best_ps[:evaluations][-1]) or slow_ps(hierarchy, program),
        "map": found.map.tolist(),
    }


def slow_ps(hierarchy: str, program: str) -> int:
    """With everything in the slowest level."""
    problem = problem_of(hierarchy, program)
    slowest = np.full((problem.num_nodes, 2), len(problem.level_names) - 1, np.uint8)
    return problem.evaluate(slowest).latency_ps


def speed_ups(several: list[ex.Row]) -> np.ndarray:
    """[seeds] over the compiler, of one method."""
    of = several[0]["hierarchy"], several[0]["program"]
    return np.array([problem_of(*of).baseline_ps / run["latency_ps"] for run in several])


def spread(numbers: np.ndarray) -> str:
    return (
        f"{numbers.mean():.3f} ± {numbers.std():.3f}"
        if len(numbers) > 1
        else f"{numbers.mean():.3f}"
    )


Programs = tuple[str, ...]
Runs = dict[str, dict[str, list[ex.Row]]]  # of a hierarchy, by method and program: each seed


def problems(hierarchy: str, every: Runs, programs: Programs) -> ex.Table:
    columns = ["nodes", "compiler, µs", "all in the slowest, µs"]
    columns += ["no map is faster than, µs"] * ("optimal" in every)
    table = ex.Table([hierarchy, *columns])
    for program in programs:
        problem = problem_of(hierarchy, program)
        times = [problem.baseline_ps, slow_ps(hierarchy, program)]
        if "optimal" in every:
            times.append(every["optimal"][program][0]["bound_ps"])
        table.add(program, problem.num_nodes, *(f"{ps / 1e6:,.1f}" for ps in times))
    return table


def ratios(
    hierarchy: str, shown: Runs, programs: Programs, over: str, others: dict[str, list[ex.Row]]
) -> ex.Table:
    table = ex.Table([f"{hierarchy}, over {over}", *programs, "mean"])
    for method, own in shown.items():
        cells = [speed_ups(own[program]) / speed_ups(others[program])[0] for program in programs]
        mean = np.mean([numbers.mean() for numbers in cells])
        table.add(f"`{method}`", *map(spread, cells), f"{mean:.3f}")
    return table


def times(hierarchy: str, every: Runs, programs: Programs) -> ex.Table:
    heads = [f"{hierarchy}, CPU seconds a run", *programs, f"maps/s, {programs[0]}"]
    table = ex.Table(heads)
    for method, own in every.items():
        seconds = [np.mean([run["cpu_seconds"] for run in own[program]]) for program in programs]
        if method not in PLAIN:  # which take no time
            rate = np.mean([run["graded"] for run in own[programs[0]]]) / seconds[0]
            table.add(f"`{method}`", *(f"{s:.3g}" for s in seconds), f"{rate:,.0f}")
    return table


def main(
    bench: ex.Bench,
    *,
    hierarchies: tuple[str, ...] = tuple(mg.placement.Hierarchy.preset_names()),
    programs: tuple[str, ...] = PROGRAMS,
    methods: tuple[str, ...] = METHODS,
    seeds: tuple[int, ...] = tuple(range(5)),
    evaluations: int = 4000,
) -> None:
    # Seed by seed, so that an interrupted benchmark can be printed with fewer of them.
    asked = dict.fromkeys((*methods, *PLAIN))
    grid = ex.Grid(seed=seeds, hierarchy=hierarchies, program=programs, method=asked)
    for hierarchy, several in ex.grouped(runs(bench, grid, evaluations), "hierarchy").items():
        every = {
            method: ex.grouped(own, "program")
            for method, own in ex.grouped(several, "method").items()
        }
        shown = {method: own for method, own in every.items() if method in methods}
        print(problems(hierarchy, shown, programs), end="\n\n")
        for over in PLAIN:
            print(ratios(hierarchy, shown, programs, over, every[over]), end="\n\n")
        print(times(hierarchy, shown, programs), end="\n\n")


if __name__ == "__main__":
    ex.main(main)
