"""What the searches without a network reach on the placement problem: a table in Markdown.

    python benchmarks/quality/placement.py [--evaluations 4000] [--seeds 5] [--hierarchy nnp_i]

Speed-up over the compiler's map, mean and standard deviation over the seeds. A search that found no map that fits counts with
everything in the slowest level. `anneal` gets 25 times the evaluations: it stands for what there is to gain.
"""

import argparse
import sys

import numpy as np

import mallocgame as mg

PROGRAMS = ["resnet50_b1.tpu_v4i", "resnet101_b4.tpu_v4i", "bert_base_b1_s128.tpu_v4i"]
SEARCHES = ["first-come", "random", "greedy-dp", "evolution", "anneal"]


def speed_ups(problem: mg.Placement, search: str, evaluations: int, seeds: int) -> np.ndarray:
    if search == "anneal":
        evaluations *= 25
    return np.array([problem.baseline_ps / problem.search(search, evaluations, seed)[1] for seed in range(seeds)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evaluations", type=int, default=4000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--hierarchy", default="nnp_i")
    arguments = parser.parse_args()
    print(f"| {arguments.hierarchy} | nodes | compiler, us | all slow | {' | '.join(SEARCHES)} |")
    print("| --- |" + " --: |" * (3 + len(SEARCHES)))
    for name in PROGRAMS:
        print(f"placement: {name}", file=sys.stderr)
        problem = mg.Placement(mg.load_program(name), mg.Hierarchy.preset(arguments.hierarchy))
        slowest = np.full((problem.num_nodes, 2), len(problem.level_names) - 1, np.uint8)
        cells = [name, problem.num_nodes, f"{problem.baseline_ps / 1e6:.1f}", f"{problem.baseline_ps / problem.evaluate(slowest)[0]:.3f}"]
        for search in SEARCHES:
            found = speed_ups(problem, search, arguments.evaluations, arguments.seeds)
            cells.append(f"{found.mean():.3f} ± {found.std():.3f}")
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
