"""Tuning: looks, climbs, settings, and the search in requests, with the real compiler.

They are skipped, with the reason, where JAX or libtpu is missing.
"""

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
import types

import numpy as np
import pytest
from conftest import HEEDING
from xla_programs import LOOP, loop

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame._core import LOOP_ENTRY, UNDEFINED, plan_like_xla
from mallocgame.xla.claims import cost_ps
from mallocgame.xla.climb import Climb
from mallocgame.xla.imitation import Directive, Directives, Imitation, Losses, like_xla
from mallocgame.xla.option_files import read_request
from mallocgame.xla.option_folders import OptionFolder
from mallocgame.xla.overrides import (
    KEEP,
    Override,
    Request,
    as_xla_does,
    changed,
    request,
    ways_to_ask,
)
from mallocgame.xla.probe import Prober, _other_schedule, find_main_memory
from mallocgame.xla.settings import IMITATED, PRELOADS, SETTINGS, SHORT_WINDOWS, WHOLE_COPIES
from mallocgame.xla.sources import find_source
from mallocgame.xla.tuning import _Tuning


@pytest.fixture(scope="module")
def tuned_loop(compiler) -> mgx.Tuned:
    return mgx.tune(loop, *LOOP, seconds=15, compiles=2, compiler=compiler)


def test_tuned_loop(tuned_loop):
    """XLA reads the weights from main memory in every iteration.

    Brought in once, they save most of the time.
    """
    assert tuned_loop.speedup > 1.2 and tuned_loop.speedup_cold > 1.2
    assert tuned_loop.best.verified_ps < tuned_loop.xla.latency_ps
    assert "xla_tpu_msa_tensor_overrides" in tuned_loop.options


def test_time_is_kept(tuned_loop, compiler):
    """To within one compile that has begun."""
    found = []
    tuned = mgx.tune_capture(tuned_loop.capture, 12, compiler=compiler, found=found.append)
    assert tuned.seconds < 12 + compiler.longest + 5 and not tuned.interrupted
    assert [one.options for one in found][-1:] == [tuned.options]


def test_interrupted(tuned_loop, compiler):
    """What was found by then comes back."""

    def stop(_: mgx.Outcome) -> None:
        raise KeyboardInterrupt

    tuned = mgx.tune_capture(tuned_loop.capture, 60, compiler=compiler, found=stop)
    assert tuned.interrupted and tuned.speedup > 1 and tuned.seconds < 60


def test_going_on(tuned_loop, compiler):
    """It is no worse than what it starts from, however little time there is."""
    best = tuned_loop.options
    capture = tuned_loop.capture
    found = []
    tuned = mgx.tune_capture(capture, 1, compiler=compiler, found=found.append, start=best)
    assert tuned.speedup >= tuned_loop.speedup and found[0].options == best
    with pytest.raises(mg.InvalidInputError, match="others than tune"):
        other = {"xla_max_cross_program_prefetches": "0", "other": "1"}
        mgx.tune_capture(capture, 1, compiler=compiler, start=other)
    with pytest.raises(mg.InvalidInputError, match="has nothing like: overrides"):
        keep = Override(KEEP, 0, (), "no_such_instruction", None, ())
        mgx.tune_capture(capture, 1, compiler=compiler, start=Request((keep,), ()).options())
    with pytest.raises(mg.InvalidInputError, match="not an override of mallocgame: what"):
        mgx.tune_capture(
            capture, 1, compiler=compiler, start={"xla_tpu_msa_tensor_overrides": "what"}
        )


def test_interrupted_command(tuned_loop, tmp_path):
    """Options are written as they are found, and again when Ctrl-C ends the command."""
    tuned_loop.capture.save(tmp_path / "loop")
    command = [*HEEDING, sys.executable, "-m", "mallocgame", "xla", "tune", "loop", "--no-cache"]
    running = subprocess.Popen(
        [*command, "-o", "options.json", "--seconds", "200", "--json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        begin = time.monotonic()
        while not (tmp_path / "options.json").exists() and time.monotonic() - begin < 150:
            time.sleep(0.1)
        assert mgx.load_options(tmp_path / "options.json")
        running.send_signal(signal.SIGINT)
        row = json.loads(running.communicate(timeout=60)[0])
    finally:
        running.kill()
    assert running.returncode == 130 and row["interrupted"] and row["verified_speedup"] > 1
    assert mgx.load_options(tmp_path / "options.json")


def test_options_do_the_same_in_jax(tuned_loop, tmp_path):
    """As a user would compile: the same instructions at the same prices."""
    capture, best = tuned_loop.capture, tuned_loop.best
    OptionFolder(tmp_path).keep(capture, best)
    script = f"""
import re, sys
import jax
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding
import mallocgame.xla as mgx
device = topologies.get_topology_desc(platform="tpu", topology_name="v4 lite:1x1").devices[0]
chip = SingleDeviceSharding(device)
shapes = {[shape.shape for shape in LOOP]}
args = [jax.ShapeDtypeStruct(shape, "bfloat16", sharding=chip) for shape in shapes]
def loop(weight, x):
    return jax.lax.fori_loop(0, 50, lambda _, state: jax.numpy.tanh(state @ weight), x)
compiled = mgx.jit(loop, options=sys.argv[1]).lower(*args).compile()
print(sorted(map(int, re.findall(r'"estimated_cycles":"(\\d+)"', compiled.as_text()))))
"""
    environment = os.environ | {
        "TPU_SKIP_MDS_QUERY": "1",
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
        "JAX_PLATFORMS": "cpu",
    }
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", script, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    ours = re.findall(rb'"estimated_cycles":"(\d+)"', best.compiled.priced)
    assert json.loads(done.stdout.splitlines()[-1]) == sorted(map(int, ours))


def test_changing_what_is_asked(captured):
    """On top of what XLA does by itself, only buffers that are named are asked for."""
    program, plan = captured.program, mg.all_main_plan(captured.program)
    nothing = Request((), ())
    assert changed(nothing, program, plan, captured.default.before, ()) == nothing
    moved = np.unique(program.accesses["buffer"][captured.xla_plan.served_by >= 0]).tolist()
    other = changed(nothing, program, plan, captured.default.before, moved)
    assert {one.buffer for one in other.overrides} == set(moved)
    assert {one.action for one in other.overrides} == {KEEP}
    assert (
        changed(other, program, plan, captured.default.before, moved[:1]).overrides[-1].buffer
        == moved[0]
    )


def test_a_look_is_what_a_compile_does(captured, compiler):
    """The same plan, without code generation, and with its refusals."""
    plan = mg.solve(captured.program, "greedy", seconds=5).plan
    before, looks_before = compiler.compiles, compiler.looks
    prober = Prober(captured, compiler)
    look = prober.ask(captured, request(captured.program, plan, captured.default.before))
    assert compiler.looks >= looks_before + 2  # the first finds out how to look
    assert compiler.compiles == before
    done = prober.verify(captured, look)
    assert np.array_equal(done.plan.served_by, look.plan.served_by) and done.honoured == 1.0
    assert np.array_equal(done.plan.residences, look.plan.residences)
    assert np.array_equal(done.plan.copies, look.plan.copies)
    assert done.predicted_ps == mg.simulate(captured.program, look.plan).latency_ps


def test_a_look_at_a_program_that_memory_could_be_saved_in():
    """Told of too little main memory the compiler would make values of this decoder twice.

    Then its schedule would be another one, and a look would not say what a compile does.
    """
    name, function, args = find_source("whisper_tiny_b1")
    with mgx.Compiler(mgx.find_target("tpu_v5e"), seconds=600, cache=None) as compiler:
        captured = mgx.capture(function, *args, target="tpu_v5e", name=name, compiler=compiler)
        mib = find_main_memory(captured, compiler)
        assert isinstance(mib, int), mib
        look = captured.plan_of(compiler.look(captured.module, {}, mib))
        assert np.array_equal(look.served_by, captured.xla_plan.served_by)
        # With hardly any main memory it is another schedule still.
        where = _other_schedule(captured, compiler, 1)
        assert where is not None and "is another from number" in where


def test_ways_to_ask(captured):
    """What XLA would do anyhow is asked for by few words."""
    program, before = captured.program, captured.default.before
    fewest, ordered, whole = ways_to_ask(program, captured.xla_plan, before)
    assert fewest == as_xla_does(program) and not fewest.overrides
    assert whole == request(program, captured.xla_plan, before)
    assert ordered == dataclasses.replace(fewest, order=whole.order) and whole.order
    fewest, _, _ = ways_to_ask(program, mg.all_main_plan(program), before)
    moved = np.unique(program.accesses["buffer"][captured.xla_plan.served_by >= 0])
    assert {one.buffer for one in fewest.overrides} == set(moved.tolist())


def test_climb_reaches_a_plan(captured, compiler):
    """From everything in main memory to XLA's own plan."""
    program = captured.program
    prober = Prober(captured, compiler)
    bottom = prober.ask(
        captured, request(program, mg.all_main_plan(program), captured.default.before)
    )
    top = mg.simulate(program, captured.xla_plan)
    most = bottom.report.latency_ps, bottom.report.latency_cold_ps
    climb = Climb(captured, prober, bottom, most, seed=0)
    climb.to(captured.xla_plan)
    assert climb.best.report.latency_ps <= top.latency_ps < bottom.report.latency_ps
    assert climb.seen and not any(look.exceeds(most) for look in climb.seen)


def test_settings_are_obeyed(captured, compiler):
    """The compiler accepts much that it overlooks, so what counts is that placements differ."""
    prober = Prober(captured, compiler)
    default = as_xla_does(captured.program)
    values = {
        "xla_msa_explicit_prefetch_memory_limit_kib": "16384",
        "xla_msa_max_outstanding_prefetches": "3",
        "xla_tpu_async_copy_bandwidth_scaling_factor": "0.5",
        "xla_tpu_preferred_prefetch_overrides": SETTINGS["xla_tpu_preferred_prefetch_overrides"][0],
        "xla_tpu_sliced_prefetch_preferred_slice_size": "4194304",
        PRELOADS: "0",
        **WHOLE_COPIES,
    }
    plans = [
        captured.plan_of(prober.compile(captured.module, wanted.options()))
        for wanted in (default, *(default.having(*setting) for setting in values.items()))
    ]
    copies = {name: len(plan.copies) for name, plan in zip(("", *values), plans, strict=True)}
    assert np.array_equal(plans[0].served_by, captured.xla_plan.served_by)
    for name, plan in zip(values, plans[1:], strict=True):
        assert not np.array_equal(plan.copies, plans[0].copies), (name, copies)


def test_settling(captured, compiler):
    """No worse than XLA's default, as a whole compile confirms, and read back from the options."""
    program, before = captured.program, captured.default.before
    prober = Prober(captured, compiler)
    default = prober.ask(captured, as_xla_does(program))
    most = default.report.latency_ps, default.report.latency_cold_ps
    climb = Climb(captured, prober, default, most, seed=0)
    climb.settle(time.monotonic() + 20)
    wanted = climb.best.request
    assert climb.best.report.latency_ps <= most[0] and not climb.best.exceeds(most)
    assert read_request(wanted.options(), program, before).options() == wanted.options()
    assert prober.verify(captured, climb.best).verified_ps <= most[0]


def test_a_search_in_requests_is_granted_by_the_twin_and_goes_on():
    program = mg.load_program("mlp_train_adam_b512.tpu_v5e")
    game = mg.Game(program)
    imitation = Imitation(program, mg.simulate(program, program.xla_plan).latency_cold_ps, seed=1)
    at = imitation.start
    costs = [imitation.cost(game, at)]
    for _ in range(2):  # the second goes on from the first
        at = imitation.search(program, at, seconds=1.0, chains=2)
        plan, refused = at.plan(game)
        assert not refused and mg.validate(program, plan).ok
        costs.append(imitation.cost(game, at))
    assert costs == sorted(costs, reverse=True) and costs[-1] < costs[0]


def test_what_gives_way_is_no_longer_asked_for():
    program = mg.load_program("mlp_train_adam_b512.tpu_v5e")
    game = mg.Game(program)
    imitation = Imitation(program, 2**62, seed=1)
    at = imitation.search(program, imitation.start, seconds=2.0)
    # Of single changes to what is found many make the twin refuse something else. Most of them need
    # not be given up.
    changed = [imitation._neighbour(at) for _ in range(200)]
    refused = [one for one in changed if one.plan(game)[1]]
    mended = [imitation._granted(game, one) for one in refused]
    kept = [one for one in mended if one is not None]
    assert len(kept) > len(refused) / 2 > 2
    for directives, cost, plan in kept:
        again, still_refused = directives.plan(game)
        assert not still_refused and (again.served_by == plan.served_by).all()
        assert cost == imitation.cost(game, directives)
        asked = [access for one in directives.of.values() for access, _ in one.prefetches]
        assert (plan.served_by[asked] >= 0).all()


def test_several_copies_of_one_buffer_are_asked_for():
    program = mg.load_program("mlp_train_adam_b512.tpu_v5e")
    imitation = Imitation(program, 2**62, seed=1)
    drawn = [one for _ in range(40) for one in imitation.draw(300).of.values()]
    assert any(len(one.prefetches) > 1 for one in drawn)
    for one in drawn:
        accesses = [access for access, _ in one.prefetches]
        assert len(set(accesses)) == len(accesses) and not one.kept & set(accesses)


@pytest.mark.parametrize(
    "name", ["mlp_train_adam_b512.tpu_v5e", "lstm_lm_train_b32_t16.tpu_v4i_16mib"]
)
def test_a_buffer_loses_what_its_accesses_from_main_memory_cost(name):
    program = mg.load_program(name)
    losses, game = Losses(program), mg.Game(program)
    buffers = list(range(len(program.buffers)))
    # With all in main memory one buffer loses most. With that one alone in fast memory, its losses
    # are nearly what the program then gains: nearly, because each access is taken by itself.
    of = program.accesses["buffer"]
    everything, _, _ = plan_like_xla(game, in_main=list(range(len(of))), preloads=[])
    lost = losses.of(everything, buffers)
    most = int(np.argmax(lost))
    one, _, _ = plan_like_xla(game, in_main=list(np.flatnonzero(of != most)), preloads=[])
    report = mg.simulate(program, one)
    gained = report.all_main_ps - report.compute_ps
    assert gained > 0
    assert lost[most] - losses.of(one, [most])[0] == pytest.approx(gained, rel=0.05)
    in_main = set(of[program.xla_plan.served_by < 0])
    served = [buffer for buffer in buffers if buffer not in in_main]
    assert served and not any(losses.of(program.xla_plan, served))


def test_a_search_in_requests_also_begins_near_a_plan():
    program = mg.load_program("mlp_train_adam_b512.tpu_v6e")
    game = mg.Game(program)
    askable = mg.Game(program, hardware=program.hardware.replace(askable=True))
    plan = mg.solve(askable, "portfolio", seconds=0, evaluations=4000).plan
    imitation = Imitation(program, mg.simulate(program, program.xla_plan).latency_cold_ps, seed=1)
    start = imitation.cost(game, imitation.start)
    near = imitation.near(game, plan)
    made, refused = near.plan(game)
    assert not refused and near.of and imitation.cost(game, near) < start
    # What is asked for beside XLA's own plan is what the plan has.
    kept = [access for one in near.of.values() for access in one.kept]
    assert (plan.served_by[kept] < 0).all() and (made.served_by[kept] < 0).all()
    for access, begin in (copy for one in near.of.values() for copy in one.prefetches):
        copies = plan.copies[plan.copies["residence"] == plan.served_by[access]]
        assert begin == max(1, copies["begin"][0])
    # It ends in time, and then asks for nothing more than XLA does.
    assert imitation.near(game, plan, until=time.monotonic()) == imitation.start
    for chains in (1, 2):
        found = imitation.search(program, imitation.start, 2.0, chains, plan)
        assert not found.plan(game)[1] and imitation.cost(game, found) < start


def test_what_the_compiler_makes_less_of_than_the_twin_is_no_start(captured):
    start = like_xla(captured.program)
    overrated, other = (Directives({buffer: Directive(pinned=True)}) for buffer in (0, 1))
    expected = {id(start): 100.0, id(overrated): 80.0, id(other): 85.0}
    begun, asked = [], []

    class Twin:
        def __init__(self) -> None:
            self.start = start

        def settled(self, *_: object) -> Directives:
            return start

        def cost(self, _: mg.Game, directives: Directives) -> float:
            return expected[id(directives)]

        def search(self, _: mg.Program, begin: Directives, *__: object) -> Directives:
            begun.append(begin)
            return other

    def follow(_: Directives, target: Directives, __: float) -> Directives:
        asked.append(target)
        return target

    best = types.SimpleNamespace(cost=95.0, request=types.SimpleNamespace(settings={}))
    climb = types.SimpleNamespace(best=best, follow=follow)
    tuning = object.__new__(_Tuning)
    tuning.search = types.SimpleNamespace(capture=captured)
    tuning._imitation, tuning._directives = Twin(), overrated
    prober = types.SimpleNamespace(jobs=1)
    tuning._climb_to_a_request(climb, prober, time.monotonic() + 0.5, 1, None)
    assert begun[0] is start and asked[0] is other
    # What the compiler makes as much of is gone on from, and is not asked for again.
    best.cost, tuning._directives = 80.0, overrated
    begun.clear(), asked.clear()
    tuning._climb_to_a_request(climb, prober, time.monotonic() + 0.5, 1, None)
    assert begun == [overrated] and not asked


def test_near_a_plan_loops_are_entered_with_what_is_brought_just_before():
    program = mg.load_program("lstm_lm_train_b32_t16.tpu_v4i_16mib")
    game = mg.Game(program)
    askable = mg.Game(program, hardware=program.hardware.replace(askable=True))
    plan = mg.solve(askable, "portfolio", seconds=0, evaluations=4000, seed=1).plan
    cold_ps = mg.simulate(program, program.xla_plan).latency_cold_ps
    trusted = {name: [value] for name, value in (WHOLE_COPIES | SHORT_WINDOWS).items()}
    imitation = Imitation(program, cold_ps, seed=1, settings=trusted)
    near = imitation.near(game, plan)
    assert near.settings == WHOLE_COPIES | SHORT_WINDOWS and not near.plan(game)[1]
    # The compiler carries out nearly all that the plan gains, but not if little must hide a copy.
    start, wanted = imitation.cost(game, imitation.start), cost_ps(mg.simulate(program, plan))
    gained = (start - imitation.cost(game, near)) / (start - wanted)
    untrusted = Imitation(program, cold_ps, seed=1)
    hidden = (start - untrusted.cost(game, untrusted.near(game, plan))) / (start - wanted)
    assert hidden < 0.75 < gained
    kinds, ticks = program.accesses["kind"], program.accesses["tick"]
    regions = program.instructions["region"]
    asked = [copy for one in near.of.values() for copy in one.prefetches]
    loops = [(access, begin) for access, begin in asked if kinds[access] == LOOP_ENTRY]
    assert loops
    for access, begin in loops:
        assert begin <= ticks[access] - 2 and regions[begin] == regions[ticks[access]]
    # So are those that a search draws, also for what is allocated without being written.
    drawn = [imitation.draw(200).of for _ in range(5)]
    brought = [
        (buffer, access)
        for of in drawn
        for buffer, one in of.items()
        for access, _ in one.prefetches
    ]
    assert any(
        kinds[access] == LOOP_ENTRY and program.buffers["origin"][buffer] == UNDEFINED
        for buffer, access in brought
    )


def test_near_a_plan_operands_of_replaced_copies_may_be_prefetched():
    program = mg.load_program("llama_3b_paged_decode_4l_b16_kv1024.tpu_v5e")
    game = mg.Game(program)
    askable = mg.Game(program, hardware=program.hardware.replace(askable=True))
    plan = mg.solve(askable, "portfolio", seconds=0, evaluations=4000).plan
    replaced = {int(tick) for tick in plan.copies["replaces"] if tick >= 0}
    near = Imitation(program, 2**62, seed=1).near(game, plan)
    kept = [access for one in near.of.values() for access in one.kept]
    assert replaced and kept and not replaced & set(program.accesses["tick"][kept])


def test_a_gain_of_nearly_nothing_is_not_paid_with_cold_preloads(captured, compiler):
    probe = Prober(captured, compiler).ask(captured, as_xla_does(captured.program))
    assert probe.cost == cost_ps(probe.report)

    def cost(latency_ps: int, latency_cold_ps: int) -> float:
        return cost_ps(
            types.SimpleNamespace(latency_ps=latency_ps, latency_cold_ps=latency_cold_ps)
        )

    assert cost(100, 120) == 110
    assert cost(1000, 1000) < cost(999, 1070)
    assert cost(1000, 1000) > cost(930, 1001)


def test_settings_are_part_of_a_search_in_requests():
    program = mg.load_program("llama_3b_paged_decode_4l_b16_kv1024.tpu_v6e")
    imitation = Imitation(program, mg.simulate(program, program.xla_plan).latency_cold_ps, seed=1)
    game, (_, name, *_) = mg.Game(program), IMITATED
    asked = imitation.start.with_settings({name: "2"})
    plan, refused = asked.plan(game)
    latency_ps = mg.simulate(program, plan).latency_ps
    by_itself_ps = mg.simulate(program, imitation.start.plan(game)[0]).latency_ps
    assert not refused and latency_ps != by_itself_ps and asked.of == imitation.start.of
    assert asked.with_those_of(imitation.start, []).settings == {}

    def drawn():
        return {one for _ in range(20) for one in imitation.draw(100).settings.items()}

    assert drawn() == set(WHOLE_COPIES.items())
    imitation.trust(game, name, "2", by_itself_ps * 2)  # the twin was wrong
    assert not imitation.settled(asked, {name: "2"}).settings
    imitation.trust(game, name, "2", latency_ps)
    assert drawn() == {*WHOLE_COPIES.items(), (name, "2")}
    settled = imitation.settled(imitation.start, {name: "2", IMITATED[2]: "2", PRELOADS: "2"})
    assert settled == dataclasses.replace(imitation.start, settings={name: "2"})
    # A setting by which XLA preloads nothing can be said by the request itself.
    assert imitation.start.preloads and not imitation.settled(settled, {PRELOADS: "0"}).preloads


def test_the_compiler_does_with_a_request_what_its_twin_does(captured, compiler):
    program, prober, game = captured.program, Prober(captured, compiler), mg.Game(captured.program)
    start = like_xla(program)
    fast = captured.xla_plan.served_by >= 0
    for buffer in np.unique(program.accesses["buffer"][fast])[:4]:
        kept = np.flatnonzero(program.accesses["buffer"] == buffer)
        directives = Directives({int(buffer): Directive(frozenset(kept.tolist()))}, start.preloads)
        probe = prober.ask(captured, directives.request(program, captured.default.before))
        plan, refused = directives.plan(game)
        assert not refused and not probe.refusals
        assert (probe.plan.served_by[kept] < 0).all() and (plan.served_by[kept] < 0).all()
        same = (probe.plan.served_by >= 0) == (plan.served_by >= 0)
        assert same.mean() >= 0.8


def test_directives():
    one = Directives({1: Directive(frozenset({3})), 2: Directive(turn=-1.0)}, (7,))
    other = Directives({2: Directive(turn=-2.0), 4: Directive(pinned=True), 5: Directive()})
    assert one.differing(other) == [1, 2, 4] and one.differing(one) == []
    mixed = one.with_those_of(other, [2, 4])
    assert mixed.differing(one) == [2, 4] and mixed.differing(other) == [1]
    assert mixed.preloads == () and mixed.order == (2,)
