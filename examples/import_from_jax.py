"""Makes a JAX function of yours a game, and a plan of it a program.

It is captured for a TPU that needn't be there, solved, and the compiler links what the plan says.

    python examples/import_from_jax.py [TARGET] [SECONDS]

TARGET is one that `mallocgame xla targets` lists. Needs mallocgame[xla] and no TPU.
"""

import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # this process only traces

import jax

import mallocgame as mg
import mallocgame.xla as mgx


def recurrent(weights, bias, x):
    """The weights are used in every iteration: where do they lie?"""
    return jax.lax.fori_loop(0, 32, lambda _, state: jax.numpy.tanh(state @ weights + bias), x)


SHAPES = tuple(
    jax.ShapeDtypeStruct(shape, "bfloat16") for shape in ((1024, 1024), (1024,), (16, 1024))
)


def microseconds(picoseconds: int) -> str:
    return f"{picoseconds / 1e6:,.1f} us"


def main() -> int:
    target = sys.argv[1] if len(sys.argv) > 1 else "tpu_v5e"
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 5.0
    with mgx.Compiler(mgx.find_target(target)) as compiler:
        captured = mgx.capture(recurrent, *SHAPES, target=target, compiler=compiler)
        program = captured.program
        print(f"{program.name} on {target}: {program.counts['accesses']} accesses")
        print("XLA's own plan:", microseconds(mg.simulate(program, captured.xla_plan).latency_ps))

        state = mg.Game(program).initial_state()  # a game as any other; here a solver plays it
        print(f"a game of up to {state.game.max_decisions} decisions")
        plan = mg.solve(program, "portfolio", seconds=seconds).plan
        print("the plan, as predicted:", microseconds(mg.simulate(program, plan).latency_ps))

        done = mgx.apply(captured, plan, compiler, executables="tuned")
        print("the program, at the compiler's prices:", microseconds(done.report.latency_ps))
    print(f"All are {mgx.tuning.NOTE}.")
    print("written: tuned, for mgx.jit(recurrent, options='tuned')")
    return 0


if __name__ == "__main__":
    sys.exit(main())
