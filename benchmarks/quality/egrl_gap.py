"""How much of the gap between compilers and optimum EGRL closes, on twenty workloads.

docs/results/egrl.md has its means, and tables/egrl_gap.csv beside this file the workloads.

    python benchmarks/quality/egrl_gap.py FOLDER [--methods M ...] [--seeds 3] [--evaluations 4000]
                                          [--transfer-evaluations 1000]
                                          [--jobs 1 | --ray ADDRESS]

The hierarchy is nnp_i_12_engines. In all workloads the best map there is leaves 5 % or more to
gain over both compilers. Settings were chosen on LEARNED alone; UNSEEN are of other families. Keeps
every run in FOLDER, as placement.py does, and goes on from there.

The first table has, for each workload and method, the share of the gap that is closed
(OptimalMap.gap_closed), the mean over the seeds; then means over workloads with two 95 % intervals
each (rliable): of draws of seeds, for these very workloads, and of draws of workloads and seeds,
for others like them. `anneal` gets 25 times the maps. The second table trains one agent on all of
LEARNED, and places UNSEEN with it, without training on them. Each run uses one thread.
"""

import argparse
import functools
import pathlib
import sys

import numpy as np
from numpy.typing import NDArray
from placement import Bench, make  # type: ignore[import-not-found]

import mallocgame as mg
from mallocgame import agents
from mallocgame._cli.parser import add_workers, workers
from mallocgame._levels.scores import Interval, mean, mean_of_levels

HIERARCHY = "nnp_i_12_engines"
LEARNED = [
    "recurrent_000.tpu_v4i",
    "stacked_004.tpu_v5e",
    "stacked_005.tpu_v6e",
    "translator_002.tpu_v6e",
    "translator_004.tpu_v5e",
    "convolution_000.tpu_v4i",
    "convolution_004.tpu_v5e",
    "encoder_004.tpu_v5e",
    "autoencoder_002.tpu_v6e",
    "autoencoder_004.tpu_v5e",
]
UNSEEN = [
    "resnet50_b1.tpu_v4i",
    "mlp_train_adam_b512.tpu_v4i",
    "moe_transformer_2l_b4_s128.tpu_v4i",
    "muzero_unroll_b32.tpu_v4i_16mib",
    "gnn_meshgraph_4k.tpu_v5e",
    "cached_decoder_000.tpu_v4i",
    "cached_decoder_003.tpu_v4i",
    "state_space_000.tpu_v4i",
    "mixer_003.tpu_v4i",
    "graph_003.tpu_v4i",
]
METHODS = ["egrl", "evolution-only", "gradient-only", "greedy-dp", "evolution", "anneal"]


class Gaps:
    """The gaps of the workloads, and how much of them is closed."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    @functools.cache  # noqa: B019 - there is one for the whole run
    def optimal(self, program: str) -> mg.placement.OptimalMap:
        run = self.bench.run(HIERARCHY, program, "optimal", 0)
        problem = self.bench.problem(HIERARCHY, program)
        first_come_ps = problem.search("first-come", 1).latency_ps
        return mg.placement.OptimalMap(
            np.array(run["map"], np.uint8),
            run["improvements"][-1][1],
            run["bound_ps"],
            "optimal",
            min(problem.baseline_ps, first_come_ps),
        )

    def closed(self, program: str, method: str) -> NDArray[np.float64]:
        """One number for each seed. A method that is no better than a compiler closes nothing."""
        optimal, runs = self.optimal(program), self.bench.runs(HIERARCHY, program, method)
        return np.array([optimal.gap_closed(run["improvements"][-1][1]) for run in runs])


def shown(interval: Interval) -> str:
    return f"{interval.mean:.3f} ({interval.low:.3f} to {interval.high:.3f})"


# How means are estimated: scores [seeds, workloads] become a mean and its interval.
ESTIMATES = {"seeds": mean_of_levels, "workloads and seeds": mean}


def print_gaps(gaps: Gaps, methods: list[str], seeds: int) -> None:
    print(
        f"| workload | nodes | gap | {' | '.join(methods)} |\n| --- |"
        + " --: |" * (len(methods) + 2)
    )
    scores: dict[str, list[NDArray[np.float64]]] = {method: [] for method in methods}
    for program in LEARNED + UNSEEN:
        optimal = gaps.optimal(program)
        nodes = gaps.bench.problem(HIERARCHY, program).num_nodes
        for method in methods:
            scores[method].append(np.resize(gaps.closed(program, method), seeds))
        cells = " | ".join(f"{scores[method][-1].mean():.3f}" for method in methods)
        gap = 1 - optimal.bound_ps / optimal.compiler_ps
        print(f"| `{program}` | {nodes} | {gap:.1%} | {cells} |", flush=True)
    for label, chosen in (
        ("all", slice(None)),
        ("those that settings were chosen on", slice(len(LEARNED))),
        ("the others", slice(len(LEARNED), None)),
    ):
        for drawn, estimate in ESTIMATES.items():
            means = [estimate(np.array(scores[method][chosen]).T) for method in methods]
            cells = " | ".join(map(shown, means))
            print(f"| mean of {label}, draws of {drawn} | | | {cells} |")
    first = np.array(scores[methods[0]]).T
    for drawn, estimate in ESTIMATES.items():
        less = [estimate(first - np.array(scores[method]).T) for method in methods[1:]]
        cells = " | ".join(map(shown, less))
        label = f"`{methods[0]}` less it, workload by workload"
        print(f"| {label}, draws of {drawn} | | | | {cells} |")
    print()


def trained(bench: Bench, seed: int, evaluations: int) -> agents.EgrlAgent:
    """The agent that was trained on all of LEARNED, from the folder if it is there."""
    path = bench.folder / f"learned-{evaluations}-{seed}.egrl"
    if not path.exists():
        print(f"egrl_gap: one agent on {len(LEARNED)} workloads, seed {seed}", file=sys.stderr)
        problems = [bench.problem(HIERARCHY, program) for program in LEARNED]
        trainer = agents.Egrl(problems, {}, seed, threads=1)
        trainer.train(evaluations * len(LEARNED))
        partial = path.with_suffix(".partial")
        trainer.save(partial)
        partial.rename(path)
    return agents.EgrlAgent.load(path)


def print_transfer(gaps: Gaps, seeds: int, evaluations: int) -> None:
    print("| workload | placed without training |\n| --- | --: |")
    placing = [trained(gaps.bench, seed, evaluations) for seed in range(seeds)]
    scores = []
    for program in UNSEEN:
        problem, optimal = gaps.bench.problem(HIERARCHY, program), gaps.optimal(program)
        placed = [agent.place(problem, seed=seed) for seed, agent in enumerate(placing)]
        scores.append([optimal.gap_closed(found.latency_ps) for found in placed])
        print(f"| `{program}` | {np.mean(scores[-1]):.3f} |", flush=True)
    for drawn, estimate in ESTIMATES.items():
        print(f"| mean, draws of {drawn} | {shown(estimate(np.array(scores).T))} |")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--evaluations", type=int, default=4000)
    parser.add_argument("--transfer-evaluations", type=int, default=1000)
    add_workers(parser, 1, "runs side by side (1)")
    options = parser.parse_args()
    bench = Bench(options.folder, options.evaluations, options.seeds)
    # Seed by seed, so that an interrupted benchmark can be printed with fewer of them.
    tasks = [
        (HIERARCHY, program, method, seed)
        for seed in range(options.seeds)
        for method in ["optimal", *options.methods]
        for program in LEARNED + UNSEEN
        if seed in bench.seeds_of(method)
    ]
    with workers(options, here=True) as several:
        make(bench, tasks, several)
    gaps = Gaps(bench)
    print_gaps(gaps, options.methods, options.seeds)
    print_transfer(gaps, options.seeds, options.transfer_evaluations)


if __name__ == "__main__":
    main()
