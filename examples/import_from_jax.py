"""Makes a JAX function of yours a game.

It is captured for a TPU that needn't be there, solved, and handed back to the compiler.

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
    target = sys.argv[1] if len(sys.argv) > 1 else "tpu_v4i"
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 5.0
    with mgx.Compiler(mgx.find_target(target)) as compiler:
        captured = mgx.capture(recurrent, *SHAPES, target=target, compiler=compiler)
        captured, lessons = mgx.profile(captured, compiles=1, compiler=compiler)
        program = captured.program
        print(
            f"{program.name} on {target}: {program.counts['accesses']} accesses, "
            f"{len(lessons)} more placement priced"
        )
        print("XLA's own plan:", microseconds(mg.simulate(program, captured.xla_plan).latency_ps))

        state = mg.Game(program).initial_state()  # a game as any other; here a solver plays it
        print(f"a game of up to {state.game.max_decisions} decisions")
        plan = mg.solve(program, "greedy", seconds=seconds).plan

        done = mgx.apply(captured, plan, rounds=2, seconds=seconds, compiler=compiler)
        print(
            f"predicted {microseconds(done.predicted_ps)}, "
            f"{done.honoured:.0%} of the accesses served as asked"
        )
        print("what the compiler then emits:", microseconds(done.verified_ps))
        for refusal in done.refusals:
            print(f"  refused: {refusal.buffer} at {refusal.instruction}: {refusal.reason}")
    print(f"All are {mgx.NOTE}.")
    mgx.save_options(done.options, "options.json")
    print("written: options.json, for jax.jit(recurrent, compiler_options=...)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
