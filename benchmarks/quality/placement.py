"""Finds maps of the placement problem by all methods.

It makes a table of docs/results/egrl.md, and pictures.

    python benchmarks/quality/placement.py FOLDER [--hierarchies nnp_i] [--programs P ...]
    [--methods M ...] [--seeds 5]
                                           [--evaluations 4000] [--jobs 1 | --ray ADDRESS]
                                           [--pictures docs/images] [--transfer]

Keeps every run (hierarchy, program, method, seed) as a file in FOLDER, so that it can be
interrupted and goes on where it stopped; machines of --ray must see FOLDER. Then prints, for each
hierarchy, the speed-up over the compiler and over first-come, mean and standard deviation over
the seeds, and what a run takes, in Markdown. A method that found no map that fits counts with
everything in the slowest level.

`egrl` and its parts know the compiler's map, but `egrl-slow`, which begins with everything in the
slowest level alone, as do the searches but `anneal`. `anneal` gets 25 times the evaluations: it
stands for what there is to gain. `optimal` is the integer
programme (a minute at most, needs mallocgame[bounds]); with it, the first table says what no map
can beat. --transfer places each program with the agents trained on the others, without training;
the best of --samples maps of each network counts. Each run uses one thread. `egrl` and its parts
need Torch.
"""

import functools
import os
import pathlib
import time
from typing import Literal

import numpy as np

import mallocgame as mg
from mallocgame import agents, plots
from mallocgame import experiments as ex

PROGRAMS = ("resnet50_b1.tpu_v4i", "resnet101_b4.tpu_v4i", "bert_base_b1_s128.tpu_v4i")
AGENTS: dict[str, dict[str, object]] = {  # the settings of EGRL by method
    "egrl": {},
    "egrl-slow": {"refined": 0},
    "no-boltzmann": {"boltzmann_share": 0},
    "evolution-only": {"gradient": False},
    "gradient-only": {"population": 0, "rollouts": 16},
}
METHODS = (*mg.placement.searches(), "optimal", *AGENTS)
DRAWN = (
    *("egrl", "evolution-only", "gradient-only"),
    *("greedy-dp", "random", "evolution", "first-come"),
)
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
    work = functools.partial(measure, folder=bench.folder)
    return bench.run(work, chosen, settings={"evaluations": evaluations}, inputs=inputs)


def inputs(hierarchy: str, program: str, method: str, **_: object) -> dict[str, object]:
    """What a run depends on beside its evaluations."""
    problem, settings = problem_of(hierarchy, program), {}
    if method in AGENTS:
        settings = {one.name: one.default for one in agents.egrl_settings()}
        settings |= {name: str(value) for name, value in AGENTS[method].items()}
    asked = {"fingerprint": problem.program.fingerprint, "baseline_ps": problem.baseline_ps}
    return asked | {"agent": settings}


def agent_file(folder: pathlib.Path, hierarchy: str, program: str, seed: int) -> pathlib.Path:
    return folder / f"{hierarchy}.{program}.{seed}.egrl"


def measure(
    seed: int, hierarchy: str, program: str, method: str, evaluations: int, folder: pathlib.Path
) -> dict:
    problem = problem_of(hierarchy, program)
    evaluations *= MORE_FOR_ANNEALING if method == "anneal" else 1
    own: dict[str, object] = {}
    begin = time.process_time()
    if method in AGENTS:
        trainer = agents.Egrl(problem, AGENTS[method], seed, threads=1)
        trainer.train(evaluations)
        found = trainer.best()
        if method == "egrl":
            trainer.save(agent_file(folder, hierarchy, program, seed))
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
        "shown": min(evaluations, len(found.best_ps)),
        "improvements": improvements(found.best_ps[:evaluations]),
        "map": found.map.tolist(),
    }


def best_ps(run: ex.Row) -> int:
    """The latency of the best map of a run."""
    return int(run["improvements"][-1][1])


def slow_ps(hierarchy: str, program: str) -> int:
    """With everything in the slowest level."""
    problem = problem_of(hierarchy, program)
    slowest = np.full((problem.num_nodes, 2), len(problem.level_names) - 1, np.uint8)
    return problem.evaluate(slowest).latency_ps


def speed_ups(several: list[ex.Row]) -> np.ndarray:
    """[seeds, evaluations] over the compiler, of the best map so far, of one method."""
    of = several[0]["hierarchy"], several[0]["program"]
    return np.array([problem_of(*of).baseline_ps / curve(run, slow_ps(*of)) for run in several])


def improvements(best_ps: np.ndarray) -> list[tuple[int, int]]:
    """(evaluation, latency) of each better map; a whole curve has thousands of numbers."""
    changed = np.flatnonzero(np.diff(best_ps, prepend=0))
    return [(int(i), int(best_ps[i])) for i in changed]


def curve(run: ex.Row, slow_ps: int) -> np.ndarray:
    found = np.full(run["shown"], slow_ps)
    for i, ps in run["improvements"]:
        found[i:] = ps
    return found


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
        cells = [
            speed_ups(own[program])[:, -1] / speed_ups(others[program])[0, -1]
            for program in programs
        ]
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


def transferred(
    folder: pathlib.Path, hierarchy: str, trained: dict[str, list[ex.Row]], samples: int
) -> ex.Table:
    """The speed-up of a map placed without training, as a share of the trained result.

    Programs are placed by agents trained on themselves, too.
    """
    table = ex.Table([f"{hierarchy}, share of the trained result", *trained])
    for source, several in trained.items():
        cells = []
        for program, own in trained.items():
            problem, shares = problem_of(hierarchy, program), []
            for seed in (run["seed"] for run in several):
                agent = agents.EgrlAgent.load(agent_file(folder, hierarchy, source, seed))
                placed = problem.baseline_ps / agent.place(problem, samples, seed).latency_ps
                shares.append(placed / speed_ups(own)[:, -1].mean())
            cells.append(spread(np.array(shares)))
        table.add(f"trained on `{source}`", *cells)
    return table


def draw(hierarchy: str, every: Runs, programs: Programs, folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    drawn = [method for method in DRAWN if method in every]
    panels = {
        program: {method: speed_ups(every[method][program]) for method in drawn}
        for program in programs
    }
    plots.save_speed_ups(
        folder / f"placement-{hierarchy}.png", panels, f"speed-up over the compiler, {hierarchy}"
    )
    if "egrl" in every:
        problem = problem_of(hierarchy, programs[0])
        best = min(every["egrl"][programs[0]], key=best_ps)
        maps = {"compiler": problem.baseline_map, "egrl": np.array(best["map"], np.uint8)}
        plots.save_maps(folder / f"placement-map-{hierarchy}.png", problem, maps)


def print_rate(problem: mg.placement.Placement) -> None:
    """Grades random maps by the core alone.

    The rates are in a CPU second, and in a second of wall time on all cores; medians of five.
    """
    maps = np.random.default_rng(0).integers(
        0, len(problem.level_names), (100_000, problem.num_nodes, 2), dtype=np.uint8
    )
    rates = []
    for _ in range(5):
        begin, cpu_begin = time.perf_counter(), time.process_time()
        problem.evaluate_many(maps)
        rates.append(
            (
                len(maps) / (time.process_time() - cpu_begin),
                len(maps) / (time.perf_counter() - begin),
            )
        )
    a_cpu, a_second = np.median(rates, axis=0)
    print(
        f"{problem.program.name}: {a_cpu:,.0f} maps a CPU second, "
        f"{a_second:,.0f} a second on {os.cpu_count()} cores"
    )


def main(
    bench: ex.Bench,
    *,
    hierarchies: tuple[str, ...] = tuple(mg.placement.Hierarchy.preset_names()),
    programs: tuple[str, ...] = PROGRAMS,
    methods: tuple[str, ...] = METHODS,
    seeds: tuple[int, ...] = tuple(range(5)),
    evaluations: int = 4000,
    pictures: pathlib.Path | None = None,
    transfer: bool = False,
    samples: int = 16,
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
        if transfer:
            print(transferred(bench.folder, hierarchy, every["egrl"], samples), end="\n\n")
        if pictures is not None:
            draw(hierarchy, shown, programs, pictures)
    print_rate(problem_of(hierarchies[0], programs[0]))


if __name__ == "__main__":
    ex.main(main)
