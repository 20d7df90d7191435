"""Programs with branches and loops in loops: what is captured, and what is carried out of plans.

Skipped, with the reason, where JAX or libtpu is missing.
"""

import pytest
from xla_programs import SHAPE, jax

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame.xla.modules import hlo_proto

pytestmark = pytest.mark.full

MATRIX, NUMBER = SHAPE((256, 256), "float32"), SHAPE((), "int32")


def gated(which, x, weight):
    """The gradient of a branch: both branches hand on what they were given."""

    def loss(weight):
        return jax.lax.cond(
            which > 0, lambda: jax.numpy.tanh(x @ weight).sum(), lambda: (x @ weight @ weight).sum()
        )

    return jax.grad(loss)(weight)


def guarded(weight, x, scale):
    """A step that is left out if the gradient isn't finite."""
    gradient = jax.grad(lambda weight: ((x @ weight) ** 2).sum() * scale)(weight) / scale
    finite = jax.numpy.isfinite(gradient).all()
    return jax.lax.cond(finite, lambda: weight - 1e-3 * gradient, lambda: weight)


def nested(outer, inner, x):
    """Loops in a loop that run as often as the caller says."""

    def body(_, state):
        return jax.lax.fori_loop(0, inner, lambda _, state: jax.numpy.tanh(state @ state), state)

    return jax.lax.fori_loop(0, outer, body, x)


@pytest.mark.parametrize(
    "function, arguments",
    [
        (gated, (NUMBER, MATRIX, MATRIX)),
        (guarded, (MATRIX, MATRIX, SHAPE((), "float32"))),
        (nested, (NUMBER, NUMBER, MATRIX)),
    ],
)
def test_plans_of_branches_and_nested_loops_are_carried_out(compiler, function, arguments):
    capture = mgx.capture(function, *arguments, compiler=compiler)
    assert capture.xla_verdict.ok
    with mgx.emitting.Emitter(capture, compiler, jobs=1) as emitter:
        for plan in (capture.xla_plan, mg.solve(capture.program, "greedy", seconds=0).plan):
            written = emitter.write(plan.rebased_on(emitter.capture.program))
            scheduled = written.scheduled
            read = mg.import_hlo(
                capture.before,
                assigned=hlo_proto(scheduled.module, scheduled.assignment),
                hardware=capture.target.hardware,
            )
            assert (read.xla_plan.served_by >= 0).tolist() == (plan.served_by >= 0).tolist()
            assert mg.validate(read, read.xla_plan).ok
