"""Tuning with the real compiler: never slower, in time, interrupted, and the same again.

Skipped, with the reason, where JAX or libtpu is missing.
"""

import dataclasses
import math
import re
import time
import types

import numpy as np
import pytest
from xla_programs import LOOP, loop

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame._cli.xla_tune import _tuned_row
from mallocgame.xla import captures, phases, plan_search
from mallocgame.xla.claims import cost_ps
from mallocgame.xla.compiler_errors import CompilerDeadlineError
from mallocgame.xla.tuned_folders import Key, TunedFolder

pytestmark = pytest.mark.full


class Stop:
    """Told of the work, it interrupts it after some plans, as Ctrl-C does."""

    def __init__(self, plans: int) -> None:
        self.plans = plans
        self.lines: list[str] = []

    def __call__(self, line: str) -> None:
        if line.startswith("plan "):
            self.lines.append(line)
        if len(self.lines) == self.plans:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def executables(tmp_path_factory):
    return tmp_path_factory.mktemp("tuned")


@pytest.fixture(scope="module")
def tuned(compiler, executables) -> mgx.Tuned:
    return mgx.tune(
        loop, *LOOP, seconds=100, compiler=compiler, executables=executables, tell=Stop(2)
    )


def test_weights_of_a_loop_are_brought_in_once(tuned):
    """XLA reads them from main memory in every iteration."""
    assert tuned.speedup > 2 and tuned.speedup_cold > 2
    program, best = tuned.best.program, tuned.best
    weights = program.buffer_names.index("weight.1")
    inside = program.accesses["buffer"] == weights
    assert (best.plan.served_by[inside] >= 0).sum() > (
        program.xla_plan.served_by[inside] >= 0
    ).sum()


@pytest.mark.parametrize(
    "of", ["captured_loop", pytest.param("captured", marks=pytest.mark.weekly)]
)
def test_never_slower_than_xla(request, compiler, of):
    captured = request.getfixturevalue(of)
    tuned = mgx.tune_capture(captured, 2, compiler=compiler)
    assert tuned.xla.latency_ps == mg.simulate(captured.program, captured.xla_plan).latency_ps
    assert tuned.report.latency_ps <= tuned.xla.latency_ps
    assert tuned.report.latency_cold_ps <= tuned.xla.latency_cold_ps


def test_the_best_is_what_the_compiler_has_priced(tuned):
    best = tuned.best
    assert tuned.report.predicted_ps == 0
    assert mg.validate(best.program, best.plan).ok
    again = mg.simulate(best.program, best.plan)
    assert again.latency_ps == tuned.report.latency_ps
    assert best.cost_ps == cost_ps(again) < cost_ps(tuned.xla)


def test_it_is_kept_for_jit(tuned, executables):
    found = TunedFolder(executables).find(Key.of(tuned.capture))
    assert found.executable() == tuned.best.executable
    assert found.cost_ps == tuned.best.cost_ps
    assert found.about["speedup"] == tuned.speedup


@pytest.mark.weekly
def test_a_capture_that_knows_the_prices_goes_on_from_them(tuned, captured_loop, compiler):
    known = tuned.capture
    assert known.module == captured_loop.module
    assert known.program.counts["rows"] > captured_loop.program.counts["rows"]
    again = mgx.tune_capture(known, 100, compiler=compiler, tell=Stop(1))
    assert again.speedup == tuned.speedup


def test_no_time(captured, compiler):
    tuned = mgx.tune_capture(captured, 0, compiler=compiler)
    assert tuned.best is None and tuned.plans == 0
    assert tuned.speedup == tuned.speedup_cold == 1.0


@pytest.mark.weekly
def test_the_same_seed_writes_the_same_plans(captured_loop, compiler):
    found = []
    for _ in range(2):
        stop = Stop(2)
        tuned = mgx.tune_capture(captured_loop, 100, 5, compiler, stop)
        found.append((stop.lines, tuned.best.plan.served_by.tolist()))
    assert found[0] == found[1]


@pytest.mark.weekly
def test_ctrl_c_gives_the_best_so_far(captured_loop, compiler, tmp_path):
    tuned = mgx.tune_capture(captured_loop, 100, 0, compiler, Stop(1), tmp_path)
    assert tuned.interrupted and tuned.plans == 1 and tuned.speedup > 1
    assert TunedFolder(tmp_path).find(Key.of(captured_loop)) is not None


def test_ctrl_c_while_prices_are_asked_for(captured_loop, compiler):
    tuned = mgx.tune_capture(captured_loop, 100, 0, compiler, Stop(0))
    assert tuned.interrupted and tuned.best is None and tuned.speedup == 1.0


@pytest.mark.parametrize("plans", [0, 1])
def test_xla_and_the_best_have_the_same_prices(captured_loop, compiler, plans):
    """Also if the capture had no time for prices of XLA's own places, and the search asks them."""
    unpriced, stop = dataclasses.replace(captured_loop, prices={}), Stop(plans or 1)

    def tell(line: str) -> None:
        stop("plan " if plans == 0 and "placements of single" in line else line)

    tuned = mgx.tune_capture(unpriced, 100, 0, compiler, tell)
    known = tuned.capture
    before = mg.simulate(unpriced.program, unpriced.xla_plan)
    assert tuned.xla.latency_ps == mg.simulate(known.program, known.xla_plan).latency_ps
    assert tuned.xla.latency_ps != before.latency_ps
    row = _tuned_row(tuned)
    assert row["default_ps"] == row["xla_ps"] == tuned.xla.latency_ps
    assert row["latency_ps"] == tuned.report.latency_ps
    if tuned.best is None:
        figures = ("speedup", "speedup_vs_xla", "speedup_calibrated")
        cold = (name.replace("speedup", "speedup_cold", 1) for name in figures[:2])
        assert {row[name] for name in (*figures, *cold, "speedup_calibrated_cold")} == {1.0}
    else:
        assert tuned.best.program.fingerprint == known.program.fingerprint


@pytest.mark.weekly
def test_several_compilers_find_the_same_prices(captured_loop, compiler):
    """Each has its own process. They are closed with the tuning, the one that is lent is not."""
    with mgx.Compiler(compiler.target, cache=None) as fresh:
        several = mgx.tune_capture(captured_loop, 100, 0, fresh, Stop(1), jobs=3)
        assert fresh.phases["phase2b_deduped_lowering"] > 0
    one = mgx.tune_capture(captured_loop, 100, 0, compiler, Stop(1), jobs=1)
    assert one.speedup == several.speedup
    for name in one.capture.prices.keys() & several.capture.prices.keys():
        mine, others = one.capture.prices[name], several.capture.prices[name]
        assert all(mine[where] == others[where] for where in mine.keys() & others.keys())


@pytest.mark.weekly
def test_what_a_plan_is_refused_for_is_learnt(captured_loop):
    """Nothing more is asked of the instruction that a refusal names."""

    class Refusing(mgx.Compiler):
        def run_phase(self, phase, programs, options=None, kept=False):
            if phase == "phase3_linking":
                why = mgx.compiler.CompilerRefusedError("no words")
                raise why.about("compiler", ["convolution_tanh_fusion.2"])
            return super().run_phase(phase, programs, options, kept)

    with Refusing(captured_loop.target, cache=None) as refusing:
        tuned = mgx.tune_capture(captured_loop, 100, 0, refusing, Stop(1), jobs=1)
    assert tuned.best is None and 0 < len(tuned.refused) < tuned.plans
    assert set(tuned.refused) == {"no words"}


def test_a_gain_of_nearly_nothing_is_not_paid_with_cold_preloads(captured):
    class Costs:
        def __init__(self, latency_ps: int, latency_cold_ps: int) -> None:
            self.latency_ps, self.latency_cold_ps = latency_ps, latency_cold_ps

    assert cost_ps(Costs(100, 120)) == 110
    assert cost_ps(Costs(1000, 1000)) < cost_ps(Costs(999, 1070))
    assert cost_ps(Costs(1000, 1000)) > cost_ps(Costs(930, 1001))
    own = mg.simulate(captured.program, captured.xla_plan)
    assert cost_ps(own) == np.mean([own.latency_ps, own.latency_cold_ps])


@pytest.mark.parametrize(("seconds", "own", "main"), [(400, 130, 260), (100, 30, 30)])
def test_each_stage_of_a_capture_is_told(captured_loop, compiler, monkeypatch, seconds, own, main):
    """The time of schedules, of 70 s each here, is gone for prices, but for a minute."""
    told, schedules = [], []
    schedule = phases.Phases.schedule

    def slow(*given: object) -> phases.Scheduled:
        schedules.append(70)
        return schedule(*given)

    clock = types.SimpleNamespace(monotonic=lambda: time.monotonic() + sum(schedules))
    monkeypatch.setattr(phases.Phases, "schedule", slow)
    monkeypatch.setattr(captures, "time", clock)
    given = (captured_loop.module, compiler.target, "loop", compiler)
    mgx.capture_module(*given, seconds=seconds, tell=told.append)
    stages = [line for line in told if line.startswith("stage ")]
    assert [line.partition(",")[0] for line in stages] == [f"stage {n} of 3" for n in range(1, 4)]
    assert f"at most {own} s" in stages[1]
    assert f"at most {main} s" in stages[2]


def test_each_stage_of_a_search_is_told(captured_loop, compiler):
    told = []
    clock, begin = phases.StageClock(told.append), time.monotonic()
    mgx.tune_capture(captured_loop, 0.5, 0, compiler, clock)
    assert {f"stage {n} of 3" for n in range(1, 4)} <= {line.partition(",")[0] for line in told}
    seconds = clock.seconds()
    assert [name.partition(",")[0] for name in seconds] == [f"stage {n} of 3" for n in range(1, 4)]
    assert 0 < sum(seconds.values()) <= time.monotonic() - begin


def test_no_plan_is_begun_that_has_no_time_for_its_link(captured_loop, compiler, monkeypatch):
    """Once there is a plan, those that can't be linked in time aren't begun."""
    monkeypatch.setattr(mgx.emitting.Emitter, "look_seconds", 1000.0)
    told = []
    tuned = mgx.tune_capture(captured_loop, 900, 0, compiler, told.append)
    gains = [float(line.split()[-1][:-1]) for line in told if re.match(r"plan \d+:", line)]
    assert tuned.best is not None and len(gains) == tuned.plans
    assert gains[-1] > 1.002 and all(gain < 1.002 for gain in gains[:-1])


def soon_content(monkeypatch):
    """Has a search of plans end by itself after a few."""
    monkeypatch.setattr(plan_search, "_MOST_SECONDS", plan_search._FIRST_SECONDS)
    monkeypatch.setattr(plan_search, "_PATIENCE", 1)
    monkeypatch.setattr(plan_search, "_EXPLORING", 0.0)


def test_behind_a_first_plan_that_is_late_comes_one_of_known_code(captured_loop, monkeypatch):
    """Of a whole model there is time for the code of no other plan."""
    ends, cautions = [], []
    write, cautious = mgx.emitting.Emitter.write, plan_search.cautious

    def late(emitter, plan, hardware=None, order=None, until=math.inf):
        ends.append(until)
        return write(emitter, plan, hardware, order, 0.0 if len(ends) == 1 else until)

    def told(program, caution):
        cautions.append(caution)
        return cautious(program, caution)

    monkeypatch.setattr(mgx.emitting.Emitter, "write", late)
    monkeypatch.setattr(plan_search, "cautious", told)
    soon_content(monkeypatch)
    with mgx.Compiler(captured_loop.target, cache=None) as fresh:
        tuned = mgx.tune_capture(captured_loop, 900, 0, fresh)
    assert ends[0] < ends[1] == math.inf
    assert cautions[:2] == [0.3, 100] and max(cautions[2:], default=0) < 1
    assert tuned.plans > 1 and not tuned.refused


def test_where_there_is_time_for_few_plans_the_first_is_of_known_code(
    captured_loop, compiler, monkeypatch
):
    """A whole model is foreseen to have none for other code."""
    cautions = []
    cautious = plan_search.cautious

    def told(program, caution):
        cautions.append(caution)
        return cautious(program, caution)

    monkeypatch.setattr(plan_search, "cautious", told)
    monkeypatch.setattr(mgx.emitting, "_ACCESSES_PER_SECOND", 0.01)
    soon_content(monkeypatch)
    tuned = mgx.tune_capture(captured_loop, 900, 0, compiler)
    assert cautions[0] == 100 and max(cautions[1:], default=0) < 1
    assert tuned.plans > 0 and not tuned.refused


def test_what_a_plan_takes_beside_its_code_is_known(captured_loop, compiler):
    with mgx.emitting.Emitter(captured_loop, compiler) as emitter:
        assert emitter.look_seconds == len(captured_loop.program.accesses) / 1000
        written = emitter.write(emitter.capture.xla_plan)
        without_link = emitter.look_seconds
        emitter.link(written)
        assert 0 < without_link < emitter.look_seconds < 60


def test_ctrl_c_in_the_schedules_ends_the_compilers(captured_loop, monkeypatch):
    """Whole models take a minute there, and nobody waits for them."""
    ended = []
    with mgx.Compiler(captured_loop.target, cache=None) as fresh:
        close = fresh.close
        monkeypatch.setattr(fresh, "close", lambda: (ended.append(True), close()))

        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(phases.Phases, "schedule", interrupted)
        with pytest.raises(KeyboardInterrupt):
            mgx.capture_module(captured_loop.module, fresh.target, "loop", fresh)
        assert ended


def test_a_time_that_is_over_in_the_capture_says_where(captured_loop):
    """A user is told before how long it may take, and afterwards that it can be gone on with."""
    told = []
    with (
        mgx.Compiler(captured_loop.target, cache=None) as fresh,
        fresh.until(time.monotonic()),
        pytest.raises(CompilerDeadlineError, match=r"stage 1 of 3.*the same again goes on"),
    ):
        mgx.capture_module(captured_loop.module, fresh.target, "loop", fresh, tell=told.append)
    assert "the capture of 9 operations takes up to 10 s of one core" in told[0]
