"""The search for requests, its limits of time, and what it compiles, without a compiler."""

import contextlib
import itertools
import math
import threading
import types
from time import monotonic

import numpy as np
import pytest

import mallocgame as mg
from mallocgame._cli import xla_tune
from mallocgame._cli.main import main
from mallocgame.xla import probe as probing
from mallocgame.xla.climb import Climb
from mallocgame.xla.compiler import CompilerEndedError
from mallocgame.xla.negotiate import PATIENCE
from mallocgame.xla.overrides import Request
from mallocgame.xla.probe import Probe, most_doubtful
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

    def ask_each(self, capture: object, requests):
        for key, wanted in requests:
            if monotonic() >= self.until:
                return
            yield key, self.ask(capture, wanted)


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


def test_parts_that_help_beside_what_was_fastest_then_are_asked_for_again():
    """Two requests are under way at a time, so an answer may come after a faster one."""
    good = frozenset(range(0, 8, 2))
    asked = []

    class Two:
        until = math.inf

        def ask_each(self, _, requests):
            waiting = iter(requests)
            while two := list(itertools.islice(waiting, 2)):
                for key, wanted in two:
                    asked.append(wanted)
                    yield key, wanted

    capture = types.SimpleNamespace(default=types.SimpleNamespace(before=b""))
    climb = Climb(capture, Two(), None, (0, 0), seed=0)
    climb._keep = lambda probe: None

    def cost(state: frozenset[int]) -> tuple[float, float]:
        return -len(state & good) + len(state - good), 0.0

    end = climb._by_parts(
        frozenset(),
        (0.0, 0.0),
        lambda at: sorted(frozenset(range(8)) - at),
        lambda at, part: (at | set(part), at | set(part)),
        lambda state, _: (state, cost(state)),
    )
    assert end == good
    assert len(asked) < 40


class Several:
    """A compiler of which there may be several. A look takes until `ready` says so."""

    target = None
    most_bytes = 1

    def __init__(self, ready) -> None:
        self.ready, self.stopped, self.closed = ready, threading.Event(), 0
        self.others: list[Several] = []

    def another(self) -> "Several":
        self.others.append(Several(self.ready))
        return self.others[-1]

    def look(self, *_) -> None:
        self.ready(self)
        if self.stopped.is_set():
            raise CompilerEndedError("stopped")

    def stop(self) -> None:
        self.stopped.set()

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def several(monkeypatch):
    """several(ready, jobs) returns a compiler, and what probes with it and others."""

    def negotiated(capture, program, wanted, compiler, tell, until, patience):
        return wanted, compiler.compile("module {}", {}), ()

    def make(ready, jobs: int) -> tuple[Several, probing.Prober]:
        compiler = Several(ready)
        return compiler, probing.Prober(None, compiler, jobs=jobs)

    monkeypatch.setattr(probing, "find_main_memory", lambda *_: 100)
    monkeypatch.setattr(probing, "negotiate", negotiated)
    return make


CAPTURE = types.SimpleNamespace(program=None, plan_of=lambda _: None)


def test_compilers_look_side_by_side(several):
    """Each of three looks waits for the two others, and a request is drawn when it can be asked."""
    together = threading.Barrier(3, timeout=60)
    compiler, prober = several(lambda _: together.wait(), 3)
    drawn, answered = 0, 0

    def requests():
        nonlocal drawn
        for number in range(9):
            assert drawn - answered < 3
            drawn += 1
            yield number, Request((), ())

    keys = []
    for key, probe in prober.ask_each(CAPTURE, requests()):
        answered += 1
        assert probe.request == Request((), ())
        keys.append(key)
    assert sorted(keys) == list(range(9))
    prober.close()
    assert compiler.closed == 0 and [one.closed for one in compiler.others] == [1, 1]


def test_what_is_refused_is_none_and_an_unknown_error_is_not_lost(several):
    def refuse(_) -> None:
        raise CompilerEndedError("ended")

    _, prober = several(refuse, 2)
    requests = [(number, Request((), ())) for number in range(4)]
    assert sorted(prober.ask_each(CAPTURE, requests)) == [(number, None) for number in range(4)]

    def fail(_) -> None:
        raise ZeroDivisionError

    _, prober = several(fail, 2)
    with pytest.raises(ZeroDivisionError):
        list(prober.ask_each(CAPTURE, requests))


def test_looks_under_way_are_ended_with_the_generator(several):
    """As after Ctrl-C: nobody waits for a compile that nobody wants."""
    first = threading.Event()

    def ready(compiler: Several) -> None:
        if first.is_set():
            assert compiler.stopped.wait(60)
        first.set()

    compiler, prober = several(ready, 2)
    requests = ((number, Request((), ())) for number in range(9))
    answers = prober.ask_each(CAPTURE, requests)
    next(answers)
    answers.close()
    stopped = [one for one in (compiler, *compiler.others) if one.stopped.is_set()]
    assert stopped and all(one.closed for one in stopped)


def test_no_request_is_drawn_after_the_time(several):
    _, prober = several(lambda _: None, 2)
    prober.until = monotonic() - 1
    assert not list(prober.ask_each(CAPTURE, iter([(0, Request((), ()))])))


def test_as_many_compilers_as_there_are_processors_and_memory(monkeypatch):
    compiler = Several(None)
    monkeypatch.setattr(probing, "cores", lambda: [0, 1, 2, 3])
    assert probing._most_at_once(compiler) == 4
    compiler.most_bytes = 1 << 60
    assert probing._most_at_once(compiler) == 1
    compiler.most_bytes = 0  # Nobody knows.
    assert probing._most_at_once(compiler) == 1


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
            latency_ps=latency_ps, latency_cold_ps=latency_ps, predicted_ps=predicted_ps
        )
        return made

    known, hopeless, some, much = probe(90, 0), probe(120, 30), probe(100, 20), probe(120, 80)
    assert most_doubtful([known, hopeless, some, much], 100) is much
    assert most_doubtful([known, hopeless, some], 100) is some
    assert most_doubtful([known, hopeless], 100) is None
