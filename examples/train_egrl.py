"""Trains the EGRL agent on where ResNet-50's tensors lie.

Then it places a program that it has not seen.

    python examples/train_egrl.py [PROGRAM] [MAPS]
"""

import sys

import mallocgame as mg
from mallocgame import agents


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "resnet50_b1.tpu_v4i"
    evaluations = int(sys.argv[2]) if len(sys.argv) > 2 else 4000
    problem = mg.placement.problem(name, "nnp_i")

    def show(progress: dict) -> None:
        if progress["generation"] % 20 == 0 and progress["best_ps"]:
            print(
                f"{progress['evaluations']} maps: "
                f"{problem.baseline_ps / progress['best_ps']:.3f} times as fast as the compiler, "
                f"{100 * progress['fresh']:.0f} % of the generation is new, "
                f"of {progress['migrants']} migrants "
                f"{progress['migrants_elite'] + progress['migrants_selected']} survived"
            )

    trainer = agents.Egrl(problem, seed=0)
    trainer.train(evaluations, on_step=show)
    best = trainer.best()
    assert problem.evaluate(best.map) == (best.latency_ps, 0.0, best.reward)
    print(
        f"{name}: {best.latency_ps / 1e6:.1f} µs, the compiler {problem.baseline_ps / 1e6:.1f} µs"
    )
    for level, memory in enumerate(problem.level_names):
        weights, activations = (problem.tensor_bytes * (best.map == level)).sum(axis=0) / 2**20
        print(f"  {memory}: {weights:.1f} MiB of weights, {activations:.1f} MiB of activations")

    unseen = mg.placement.problem("mlp_train_adam_b512.tpu_v4i", "nnp_i")
    placed = trainer.agent().place(unseen)
    print(
        f"{unseen.program.name}, unseen: {placed.latency_ps / 1e6:.1f} µs, "
        f"the compiler {unseen.baseline_ps / 1e6:.1f} µs"
    )


if __name__ == "__main__":
    main()
