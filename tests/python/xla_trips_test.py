"""Loops whose trip count depends on data: `xla capture` tells them, and takes their counts."""

import dataclasses
import json

import pytest
from xla_programs import jax

from mallocgame.xla import capture, load_capture

pytestmark = pytest.mark.full


def until_small(x):
    """Halves a matrix until its largest entry is small."""
    return jax.lax.while_loop(
        lambda y: jax.numpy.max(y) > 0.1, lambda y: jax.numpy.tanh(y @ y) * 0.5, x
    )


SHAPE = jax.ShapeDtypeStruct((512, 512), jax.numpy.float32)


def loops(captured):
    program = captured.program
    return [
        (program.instruction_names[loop["entry"]], int(loop["trips"]), bool(loop["trips_known"]))
        for loop in program.loops
    ]


@pytest.fixture(scope="module")
def endless(compiler):
    return capture(until_small, SHAPE, compiler=compiler)


def test_the_trips_of_a_capture_may_be_told(endless, compiler, tmp_path):
    ((name, trips, known),) = loops(endless)
    assert (trips, known) == (5, False)
    told = dataclasses.replace(endless, trips={name: 300})
    assert loops(told) == [(name, 300, True)]
    assert told.xla_plan.served_by.tolist() == endless.xla_plan.served_by.tolist()
    told.save(tmp_path)
    back = load_capture(tmp_path)
    assert back.trips == {name: 300} and back.program.fingerprint == told.program.fingerprint
    again = capture(until_small, SHAPE, compiler=compiler, trips={name: 300})
    assert loops(again) == [(name, 300, True)]


def test_the_command_tells_them(endless, run, tmp_path):
    ((name, _, _),) = loops(endless)
    endless.save(tmp_path / "capture")
    for options, left in ((), [{"loop": name, "trips": 5}]), (("--trips", f"{name}=70"), []):
        done = run("xla", "capture", tmp_path / "capture", "-o", tmp_path / "out", *options)
        assert done.returncode == 0, done.stderr
        assert (f"{name} (5)" in done.stdout) == bool(left)
        done = run(
            "xla", "capture", tmp_path / "capture", "-o", tmp_path / "out", "--json", *options
        )
        assert json.loads(done.stdout)["unknown_trips"] == left
    assert loops(load_capture(tmp_path / "out")) == [(name, 70, True)]
    done = run("xla", "capture", tmp_path / "capture", "-o", tmp_path / "o", "--trips", "gone=3")
    assert done.returncode == 2 and f"'gone' is no loop; loops are {name}" in done.stderr
