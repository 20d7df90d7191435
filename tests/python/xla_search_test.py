"""The search for requests, its limits of time, and what it compiles, without a compiler."""

import contextlib
import types
from time import monotonic

import numpy as np
import pytest

import mallocgame as mg
from mallocgame._cli import xla_tune
from mallocgame._cli.main import main
from mallocgame.xla import probe as probing
from mallocgame.xla.negotiate import PATIENCE
from mallocgame.xla.overrides import Request
from mallocgame.xla.probe import Climb, Probe, most_doubtful
from mallocgame.xla.settings import PRELOADS, SETTINGS


class Prober:
    """In place of the compiler: XLA's own plan with the settings given, else all in main memory."""

    def __init__(self, program: mg.Program, needed: dict[str, str]) -> None:
        self.until = 0.0
        self.asked: list[Request] = []
        self._program, self._needed = program, needed

    def ask(self, capture: object, wanted: Request) -> Probe:
        self.asked.append(wanted)
        fast = wanted.settings.items() >= self._needed.items()
        plan = self._program.xla_plan if fast else mg.all_main_plan(self._program)
        return Probe(self._program, plan, wanted)


def settled(needed: dict[str, str], seconds: float) -> tuple[Climb, Prober]:
    """A climb that has settled from everything in main memory."""
    program = mg.load_program("mlp_train_adam_b512.tpu_v4i")
    bottom = Probe(program, mg.all_main_plan(program), Request((), ()))
    capture = types.SimpleNamespace(program=program, default=types.SimpleNamespace(before=b""))
    prober = Prober(program, needed)
    most = bottom.report.latency_ps, bottom.report.latency_cold_ps
    climb = Climb(capture, prober, bottom, most, seed=0)
    climb.settle(monotonic() + seconds)
    return climb, prober


def test_settling_keeps_only_what_is_faster():
    needed = {"xla_msa_max_repacks": "8"}
    climb, prober = settled(needed, 60)
    assert climb.best.request.settings == needed
    assert np.array_equal(climb.best.plan.served_by, climb.best.program.xla_plan.served_by)
    options = [tuple(sorted(one.options().items())) for one in prober.asked]
    assert len(options) == len(set(options))  # Nothing is asked twice.
    tried = {item for one in prober.asked for item in one.settings.items()}
    most = climb.best.program.hardware.max_preloads
    assert tried == {
        (name, value)
        for name, values in SETTINGS.items()
        for value in values
        if name != PRELOADS or int(value) <= most
    }


def test_settling_changes_some_settings_at_once():
    climb, prober = settled({"no such setting": ""}, 60)
    assert not climb.best.request.settings
    assert {1, 2, 3} <= {len(one.settings) for one in prober.asked}


def test_settling_ends_in_time():
    climb, prober = settled({}, -1)
    assert not prober.asked and climb.best.request == Request((), ())


class Clock:
    """In place of the module time: it goes on only where it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("look_seconds", "left", "patience"), [(0.2, 25, PATIENCE), (2.0, 64, 4), (10.0, 60, 0)]
)
def test_the_slower_a_look_the_fewer_refusals_are_awaited(
    monkeypatch, look_seconds, left, patience
):
    """Each refusal costs a look. Of a large program all looks would go to one request."""
    clock = Clock()

    class Slow:
        target = None

        def look(self, *_):
            clock.now += look_seconds

    monkeypatch.setattr(probing, "time", clock)
    monkeypatch.setattr(probing, "find_main_memory", lambda *_: 100)
    prober = probing.Prober(None, Slow())
    prober.until = clock.now + left
    assert prober.patience == PATIENCE  # Nothing is known yet.
    for _ in range(3):
        prober.compile("module {}", {})
    prober.until = clock.now + left
    assert prober.patience == patience
    prober.until = clock.now - 1
    assert prober.patience == 0


def test_the_command_has_capturing_count(monkeypatch):
    """What is left of the seconds is for the search."""
    clock, given = Clock(), []

    def capture_source(*_):
        clock.now += 200.0

    def tune_capture(_, seconds, *__):
        given.append(seconds)
        raise mg.InvalidInputError("enough is known")

    monkeypatch.setattr(xla_tune, "time", clock)
    monkeypatch.setattr(xla_tune, "capture_source", capture_source)
    monkeypatch.setattr(xla_tune, "tune_capture", tune_capture)
    monkeypatch.setattr(xla_tune, "open_compiler", contextlib.nullcontext)
    for seconds in ("240", "100"):
        assert main(["xla", "tune", "any", "--seconds", seconds]) == 2
    assert given == [40.0, 0.0]


def test_most_doubtful():
    """That whose predicted prices leave the most to hope for."""

    def probe(latency_ps: int, predicted_ps: int) -> Probe:
        made = Probe(program=None, plan=None, request=Request((), ()))
        made.__dict__["report"] = types.SimpleNamespace(
            latency_ps=latency_ps, predicted_ps=predicted_ps
        )
        return made

    known, hopeless, some, much = probe(90, 0), probe(120, 30), probe(100, 20), probe(120, 80)
    assert most_doubtful([known, hopeless, some, much], 100) is much
    assert most_doubtful([known, hopeless, some], 100) is some
    assert most_doubtful([known, hopeless], 100) is None
