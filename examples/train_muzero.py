"""Trains the MuZero agent on one program for a minute.

Then it plays a program that it has not seen.

    python examples/train_muzero.py [PROGRAM] [SECONDS]
"""

import sys

import mallocgame as mg
from mallocgame import agents


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "mlp_train_adam_b512.tpu_v4i"
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 60.0
    program = mg.load_program(name)
    assert program.xla_plan is not None, "every bundled program has XLA's own plan"
    xla_ps = mg.simulate(program, program.xla_plan).latency_ps

    def show(progress: dict) -> None:
        print(
            f"step {progress['iteration']}: best {progress['best_ps'][0] / 1e6:.1f} µs "
            f"({xla_ps / progress['best_ps'][0]:.4f}x XLA), "
            f"return of its games {progress['mean_return'][0]:.4f}, "
            f"value error {progress['value_error']:.1f} thousandths"
        )

    trainer = agents.MuZero(program, config={"demonstration_decisions": 50_000}, seed=0)
    trainer.train(seconds, on_step=show)
    best = trainer.polish(seconds=1.0)
    assert mg.validate(program, best.plan).ok
    print(f"{program.name}: {best.report.latency_ps / 1e6:.1f} µs by {best.found_by}")

    unseen = mg.load_program("gcn_dense_2048.tpu_v4i")
    played = trainer.agent().play(unseen)
    greedy = mg.solve(unseen, "greedy")
    print(
        f"{unseen.name}, unseen: {played.report.latency_ps / 1e6:.1f} µs, "
        f"greedy {greedy.report.latency_ps / 1e6:.1f} µs"
    )


if __name__ == "__main__":
    main()
