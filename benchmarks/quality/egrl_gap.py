"""How much of the gap between compilers and optimum EGRL closes, on twenty workloads.

docs/results/egrl.md has its means, and tables/egrl_gap.csv beside this file the workloads.

    python benchmarks/quality/egrl_gap.py FOLDER [--methods M ...] [--seeds 3] [--evaluations 4000]
                                          [--transfer-evaluations 1000] [--others-only]
                                          [--jobs 1 | --ray ADDRESS]

The hierarchy is nnp_i_12_engines. In all workloads the best map there is leaves 5 % or more to
gain over both compilers. Settings were chosen on LEARNED alone; UNSEEN are of other families. Keeps
every run in FOLDER, as placement.py does, and goes on from there.

The first table has, for each workload and method, the share of the gap that is closed
(OptimalMap.gap_closed), the mean over the seeds; then means over workloads with two 95 % intervals
each (rliable): of draws of seeds, for these very workloads, and of draws of workloads and seeds,
for others like them. `anneal` gets 25 times the maps. The second table trains one agent on all of
LEARNED, and places UNSEEN with it, without training on them. With --others-only there is only the
first table, of UNSEEN. Each run uses one thread.
"""

import dataclasses

import numpy as np
from numpy.typing import NDArray
from placement import problem_of, runs  # type: ignore[import-not-found]

import mallocgame as mg
from mallocgame import agents
from mallocgame import experiments as ex

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
METHODS = ("egrl", "evolution-only", "gradient-only", "greedy-dp", "evolution", "anneal")


# How means are estimated: scores [seeds, workloads] become a mean and its interval.
ESTIMATES = {"seeds": ex.mean_of_levels, "workloads and seeds": ex.mean}


def optimal(run: ex.Row) -> mg.placement.OptimalMap:
    """The best map there is of a workload, from the run of `optimal`."""
    problem = problem_of(HIERARCHY, run["program"])
    first_come_ps = problem.search("first-come", 1).latency_ps
    compiler_ps = min(problem.baseline_ps, first_come_ps)
    best = np.array(run["map"], np.uint8)
    return mg.placement.OptimalMap(best, run["latency_ps"], run["bound_ps"], "optimal", compiler_ps)


Best = dict[str, mg.placement.OptimalMap]  # by workload
Closed = dict[str, NDArray[np.float64]]  # by method, [seeds, workloads]


def gaps(best: Best, closed: Closed) -> ex.Table:
    table = ex.Table(["workload", "nodes", "gap", *closed])
    for place, (program, one) in enumerate(best.items()):
        nodes = problem_of(HIERARCHY, program).num_nodes
        cells = (f"{scores[:, place].mean():.3f}" for scores in closed.values())
        table.add(f"`{program}`", nodes, f"{1 - one.bound_ps / one.compiler_ps:.1%}", *cells)
    for label, programs in (
        ("all", LEARNED + UNSEEN),
        ("those that settings were chosen on", LEARNED),
        ("the others", UNSEEN),
    ):
        chosen = [place for place, program in enumerate(best) if program in programs]
        if len(chosen) < len(programs):
            continue
        for drawn, estimate in ESTIMATES.items():
            means = (estimate(scores[:, chosen]) for scores in closed.values())
            table.add(f"mean of {label}, draws of {drawn}", "", "", *means)
    (first, own), *others = closed.items()
    for drawn, estimate in ESTIMATES.items():
        label = f"`{first}` less it, workload by workload, draws of {drawn}"
        table.add(label, "", "", "", *(estimate(own - scores) for _, scores in others))
    return table


def train(seed: int, evaluations: int) -> dict:
    """Trains one agent on all of LEARNED, and returns its maps of UNSEEN."""
    problems = [problem_of(HIERARCHY, program) for program in LEARNED]
    trainer = agents.Egrl(problems, {}, seed, threads=1)
    trainer.train(evaluations * len(LEARNED))
    agent = trainer.agent()
    placed = {one: agent.place(problem_of(HIERARCHY, one), seed=seed).latency_ps for one in UNSEEN}
    return {"placed_ps": placed}


def transfer(best: Best, rows: list[ex.Row]) -> ex.Table:
    table = ex.Table(["workload", "placed without training"])
    closed = np.array(
        [[best[one].gap_closed(row["placed_ps"][one]) for one in UNSEEN] for row in rows]
    )
    for place, program in enumerate(UNSEEN):
        table.add(f"`{program}`", f"{closed[:, place].mean():.3f}")
    for drawn, estimate in ESTIMATES.items():
        table.add(f"mean, draws of {drawn}", estimate(closed))
    return table


def main(
    bench: ex.Bench,
    *,
    methods: tuple[str, ...] = METHODS,
    seeds: tuple[int, ...] = (0, 1, 2),
    evaluations: int = 4000,
    transfer_evaluations: int = 1000,
    others_only: bool = False,
) -> None:
    programs = UNSEEN if others_only else LEARNED + UNSEEN
    grid = ex.Grid(
        seed=seeds, hierarchy=[HIERARCHY], method=["optimal", *methods], program=programs
    )
    by_method = ex.grouped(runs(bench, grid, evaluations), "method")
    best = {run["program"]: optimal(run) for run in by_method.pop("optimal")}

    def closed(run: ex.Row) -> float:
        return best[run["program"]].gap_closed(run["latency_ps"])

    scores = {name: ex.array(own, closed, "seed", "program") for name, own in by_method.items()}
    print(gaps(best, scores), end="\n\n")
    if others_only:
        return
    kept = dataclasses.replace(bench, folder=bench.folder / "learned")
    trained = kept.run(train, ex.Grid(seed=seeds), settings={"evaluations": transfer_evaluations})
    print(transfer(best, trained))


if __name__ == "__main__":
    ex.main(main)
