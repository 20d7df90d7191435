"""Finds maps of the placement problem by all methods.

It makes a table of docs/results/egrl.md, and pictures.

    python benchmarks/quality/placement.py FOLDER [--hierarchies nnp_i] [--programs P ...]
    [--methods M ...] [--seeds 5]
                                           [--evaluations 4000] [--jobs 1 | --ray ADDRESS]
                                           [--pictures docs/images] [--transfer]

Keeps every run (hierarchy, program, method, seed) as a file in FOLDER, so that it can be
interrupted and goes on where it stopped, and several may work on one folder, as the machines of
--ray do, which must see it; a run in FOLDER is
made again only if the program, the settings or the evaluations are others now. Then prints, for
each hierarchy, the speed-up over the compiler and over first-come, mean and standard deviation over
the seeds, and what a run takes, in Markdown. A method that found no map that fits counts with
everything in the slowest level.

`egrl` and its parts know the compiler's map, but `egrl-slow`, which begins with everything in the
slowest level alone, as do the searches but `anneal`. `anneal` gets 25 times the evaluations: it
stands for what there is to gain. --pictures draws what is in FOLDER. `optimal` is the integer
programme (a minute at most, needs mallocgame[bounds]); with it, the first table says what no map
can beat. --transfer places each program with the agents trained on the others, without training.
Each run uses one thread. `egrl` and its parts need Torch.
"""

import argparse
import contextlib
import functools
import json
import os
import pathlib
import sys
import time
from typing import Literal

import numpy as np

import mallocgame as mg
from mallocgame import agents, plots
from mallocgame._cli.parser import add_workers, workers
from mallocgame._core import placement_searches
from mallocgame._jobs import HERE, Workers, run_jobs

PROGRAMS = ["resnet50_b1.tpu_v4i", "resnet101_b4.tpu_v4i", "bert_base_b1_s128.tpu_v4i"]
AGENTS: dict[str, dict[str, object]] = {  # the settings of EGRL by method
    "egrl": {},
    "egrl-slow": {"refined": 0},
    "no-boltzmann": {"boltzmann_share": 0},
    "evolution-only": {"gradient": False},
    "gradient-only": {"population": 0, "rollouts": 16},
}
METHODS = [*placement_searches(), "optimal", *AGENTS]
DRAWN = [
    "egrl",
    "evolution-only",
    "gradient-only",
    "greedy-dp",
    "random",
    "evolution",
    "first-come",
]
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


class Bench:
    """The problems, and the runs in the folder."""

    def __init__(self, folder: pathlib.Path, evaluations: int, seeds: int) -> None:
        self.folder, self.evaluations, self.seeds = folder, evaluations, seeds
        self._problems: dict[tuple[str, str], mg.placement.Placement] = {}

    def problem(self, hierarchy: str, program: str) -> mg.placement.Placement:
        if (hierarchy, program) not in self._problems:
            self._problems[hierarchy, program] = (
                mg.placement.problem(named(program), game=GAMES[hierarchy])
                if hierarchy in GAMES
                else mg.placement.problem(named(program), hierarchy)
            )
        return self._problems[hierarchy, program]

    def runs(self, hierarchy: str, program: str, method: str) -> list[dict]:
        """One a seed; made now where they aren't there."""
        return [self.run(hierarchy, program, method, seed) for seed in self.seeds_of(method)]

    def seeds_of(self, method: str) -> range:
        return range(1 if method in ONCE else self.seeds)

    def path(
        self, hierarchy: str, program: str, method: str, seed: int, suffix: str
    ) -> pathlib.Path:
        return self.folder / hierarchy / program / f"{method}-{seed}{suffix}"

    def run(self, hierarchy: str, program: str, method: str, seed: int) -> dict:
        problem = self.problem(hierarchy, program)
        path = self.path(hierarchy, program, method, seed, ".json")
        settings: dict[str, object] = {}
        if method in AGENTS:
            settings = {s.name: s.default for s in agents.egrl_settings()} | AGENTS[method]
        evaluations = self.evaluations * (MORE_FOR_ANNEALING if method == "anneal" else 1)
        asked = {
            "fingerprint": problem.program.fingerprint,
            "baseline_ps": problem.baseline_ps,
            "evaluations": evaluations,
            "settings": {name: str(value) for name, value in settings.items()},
        }
        if path.exists():
            kept = json.loads(path.read_text())
            if kept["asked"] == asked:
                return kept
        print(
            f"placement: {hierarchy}, {program}, {method}, seed {seed}", file=sys.stderr, flush=True
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        begin = time.process_time()
        if method in AGENTS:
            trainer = agents.Egrl(problem, AGENTS[method], seed, threads=1)
            trainer.train(evaluations)
            found = trainer.best()
            if method == "egrl":
                trainer.save(self.path(hierarchy, program, method, seed, ".egrl"))
        elif method == "optimal":
            optimal = mg.placement.optimal_map(problem, OPTIMAL_SECONDS)
            found = agents.FoundMap(
                optimal.map,
                optimal.latency_ps,
                problem.evaluate(optimal.map).reward,
                np.array([optimal.latency_ps]),
            )
        else:
            found = problem.search(method, evaluations, seed, threads=1)
        run = {
            "asked": asked,
            "cpu_seconds": time.process_time() - begin,
            "graded": len(found.best_ps),
        }
        if method == "optimal":
            run["bound_ps"] = optimal.bound_ps
        run |= {
            "improvements": improvements(found.best_ps[:evaluations]),
            "map": found.map.tolist(),
        }
        partial = path.with_suffix(f".{os.getpid()}.partial")
        partial.write_text(json.dumps(run) + "\n")
        partial.rename(path)
        return run

    def slow_ps(self, hierarchy: str, program: str) -> int:
        """With everything in the slowest level."""
        problem = self.problem(hierarchy, program)
        return problem.evaluate(
            np.full((problem.num_nodes, 2), len(problem.level_names) - 1, np.uint8)
        ).latency_ps

    def speed_ups(self, hierarchy: str, program: str, method: str) -> np.ndarray:
        """[seeds, evaluations] over the compiler, of the best map so far."""
        runs, slow_ps = self.runs(hierarchy, program, method), self.slow_ps(hierarchy, program)
        return np.array(
            [self.problem(hierarchy, program).baseline_ps / curve(run, slow_ps) for run in runs]
        )


def make(bench: Bench, tasks: list[tuple[str, str, str, int]], several: Workers) -> None:
    """Runs in processes of their own."""
    run = functools.partial(_run_in_process, bench.folder, bench.evaluations)
    with contextlib.closing(run_jobs(run, tasks, several)) as finished:
        for _ in finished:
            pass


def _run_in_process(
    folder: pathlib.Path, evaluations: int, task: tuple[str, str, str, int]
) -> None:
    Bench(folder, evaluations, seeds=0).run(*task)


def improvements(best_ps: np.ndarray) -> list[tuple[int, int]]:
    """(evaluation, latency) of each better map; a whole curve has thousands of numbers."""
    changed = np.flatnonzero(np.diff(best_ps, prepend=0))
    return [(int(i), int(best_ps[i])) for i in changed]


def curve(run: dict, slow_ps: int) -> np.ndarray:
    best_ps = np.full(min(run["asked"]["evaluations"], run["graded"]), slow_ps)
    for i, ps in run["improvements"]:
        best_ps[i:] = ps
    return best_ps


def spread(numbers: np.ndarray) -> str:
    return (
        f"{numbers.mean():.3f} ± {numbers.std():.3f}"
        if len(numbers) > 1
        else f"{numbers.mean():.3f}"
    )


def print_problems(bench: Bench, hierarchy: str, programs: list[str], methods: list[str]) -> None:
    columns = ["nodes", "compiler, µs", "all in the slowest, µs"] + [
        "no map is faster than, µs"
    ] * ("optimal" in methods)
    print(f"| {hierarchy} | {' | '.join(columns)} |\n| --- |" + " --: |" * len(columns))
    for program in programs:
        problem = bench.problem(hierarchy, program)
        times = [problem.baseline_ps, bench.slow_ps(hierarchy, program)]
        if "optimal" in methods:
            times.append(bench.run(hierarchy, program, "optimal", 0)["bound_ps"])
        print(
            f"| {program} | {problem.num_nodes} | {' | '.join(f'{ps / 1e6:,.1f}' for ps in times)} "
            "|"
        )
    print()


def print_table(
    bench: Bench, hierarchy: str, programs: list[str], methods: list[str], over: str
) -> None:
    print(
        f"| {hierarchy}, over {over} | {' | '.join(programs)} | mean |\n| --- |"
        + " --: |" * (len(programs) + 1)
    )
    for method in methods:
        cells = []
        for program in programs:
            final = bench.speed_ups(hierarchy, program, method)[:, -1]
            cells.append(final / bench.speed_ups(hierarchy, program, over)[0, -1])
        mean = np.mean([numbers.mean() for numbers in cells])
        print(f"| `{method}` | {' | '.join(map(spread, cells))} | {mean:.3f} |", flush=True)
    print()


def print_times(bench: Bench, hierarchy: str, programs: list[str], methods: list[str]) -> None:
    print(f"| {hierarchy}, CPU seconds a run | {' | '.join(programs)} | maps/s, {programs[0]} |")
    print("| --- |" + " --: |" * (len(programs) + 1))
    for method in methods:
        runs = [bench.runs(hierarchy, program, method) for program in programs]
        seconds = [np.mean([run["cpu_seconds"] for run in some]) for some in runs]
        if method not in PLAIN:  # which take no time
            rate = np.mean([run["graded"] for run in runs[0]]) / seconds[0]
            print(f"| `{method}` | {' | '.join(f'{s:.3g}' for s in seconds)} | {rate:,.0f} |")
    print()


def print_transfer(bench: Bench, hierarchy: str, programs: list[str], samples: int) -> None:
    """Returns the speed-up of a map placed without training, as a share of the trained result.

    Programs are placed by agents trained on themselves, too.
    """
    print(
        f"| {hierarchy}, share of the trained result | {' | '.join(programs)} |\n| --- |"
        + " --: |" * len(programs)
    )
    for trained in programs:
        bench.runs(hierarchy, trained, "egrl")
        cells = []
        for program in programs:
            problem, shares = bench.problem(hierarchy, program), []
            for seed in range(bench.seeds):
                agent = agents.EgrlAgent.load(bench.path(hierarchy, trained, "egrl", seed, ".egrl"))
                placed_ps = agent.place(problem, samples, seed).latency_ps
                shares.append(
                    problem.baseline_ps
                    / placed_ps
                    / bench.speed_ups(hierarchy, program, "egrl")[:, -1].mean()
                )
            cells.append(spread(np.array(shares)))
        print(f"| trained on `{trained}` | {' | '.join(cells)} |", flush=True)
    print()


def draw(
    bench: Bench, hierarchy: str, programs: list[str], methods: list[str], folder: pathlib.Path
) -> None:
    panels = {
        program: {
            method: bench.speed_ups(hierarchy, program, method)
            for method in DRAWN
            if method in methods
        }
        for program in programs
    }
    plots.save_speed_ups(
        folder / f"placement-{hierarchy}.png", panels, f"speed-up over the compiler, {hierarchy}"
    )
    if "egrl" in methods:
        runs = bench.runs(hierarchy, programs[0], "egrl")
        best = min(runs, key=lambda run: run["improvements"][-1][1])
        maps = {
            "compiler": bench.problem(hierarchy, programs[0]).baseline_map,
            "egrl": np.array(best["map"], np.uint8),
        }
        plots.save_maps(
            folder / f"placement-map-{hierarchy}.png", bench.problem(hierarchy, programs[0]), maps
        )


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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument(
        "--hierarchies",
        nargs="+",
        default=mg.placement.Hierarchy.preset_names(),
        choices=mg.placement.Hierarchy.preset_names(),
    )
    parser.add_argument("--programs", nargs="+", default=PROGRAMS)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--evaluations", type=int, default=4000)
    add_workers(parser, 1, "runs side by side (1)")
    parser.add_argument("--pictures", type=pathlib.Path, metavar="FOLDER", help="to draw into")
    parser.add_argument("--transfer", action="store_true")
    parser.add_argument(
        "--samples", type=int, default=16, help="maps drawn from each network in --transfer (16)"
    )
    options = parser.parse_args()
    bench = Bench(options.folder, options.evaluations, options.seeds)
    # Seed by seed, so that an interrupted benchmark can be printed with fewer of them.
    tasks = [
        (hierarchy, program, method, seed)
        for seed in range(options.seeds)
        for hierarchy in options.hierarchies
        for program in options.programs
        for method in options.methods
        if seed in bench.seeds_of(method)
    ]
    with workers(options, here=True) as several:
        if several != HERE:
            make(bench, tasks, several)
    for hierarchy in options.hierarchies:
        print_problems(bench, hierarchy, options.programs, options.methods)
        for over in PLAIN:
            print_table(bench, hierarchy, options.programs, options.methods, over)
        print_times(bench, hierarchy, options.programs, options.methods)
        if options.transfer:
            print_transfer(bench, hierarchy, options.programs, options.samples)
        if options.pictures is not None:
            options.pictures.mkdir(parents=True, exist_ok=True)
            draw(bench, hierarchy, options.programs, options.methods, options.pictures)
    print_rate(bench.problem(options.hierarchies[0], options.programs[0]))


if __name__ == "__main__":
    main()
