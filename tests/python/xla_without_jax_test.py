"""What of the bridge needs no JAX: the child process, overrides, refusals, dumps, option files."""

import contextlib
import subprocess
import sys
import textwrap
import tomllib
import types
from time import monotonic

import numpy as np
import pytest
from conftest import SOURCE_ROOT

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame._cli import xla_tune
from mallocgame._cli.main import main
from mallocgame._core import INSTRUCTION, UPDATE, WRITE
from mallocgame.xla import compiler as compiling
from mallocgame.xla import probe as probing
from mallocgame.xla.abilities import VERSIONS
from mallocgame.xla.modules import Assigned, without_fields
from mallocgame.xla.negotiate import PATIENCE, _Negotiation
from mallocgame.xla.overrides import KEEP, PIN, PREFETCH, Override, Request, request
from mallocgame.xla.probe import Climb, Probe, most_doubtful
from mallocgame.xla.settings import (
    EAGERNESS,
    PRELOADS,
    SETTINGS,
    WHOLE_COPIES,
    read_eagerness,
    read_settings,
)


@pytest.fixture
def child(tmp_path, monkeypatch):
    """child(code) returns a Compiler with another process in place of XLA.

    The process runs the code for each line that it is sent.
    """

    def make(code: str, **settings) -> mgx.Compiler:
        script = tmp_path / "child.py"
        script.write_text(
            "import json, os, sys, time\n"
            "print(json.dumps({'ready': {}}), flush=True)\n"
            "for line in sys.stdin:\n"
            "    job = json.loads(line)\n" + textwrap.indent(textwrap.dedent(code), "    ")
        )
        monkeypatch.setattr(compiling, "_WORKER", str(script))
        monkeypatch.setattr(compiling, "installed_versions", lambda: {"libtpu": "none"})
        return mgx.Compiler(mgx.find_target("tpu_v4i"), **{"cache": tmp_path / "cache"} | settings)

    return make


def test_compiler_that_ends(child):
    compiler = child(
        "sys.stderr.write('F1120 x.cc:7] Check failed: a == b\\n'); sys.stderr.flush(); os.abort()"
    )
    for _ in range(2):  # the second time another process is started
        with pytest.raises(
            mgx.CompilerEndedError, match=r"tpu_v4i ended by SIGABRT: .*Check failed: a == b"
        ):
            compiler.compile("module {}")
    assert compiler.compiles == 2


def test_compiler_that_takes_too_long(child):
    with pytest.raises(mgx.CompilerLimitError, match=r"no answer within 0.3 s"):
        child("time.sleep(60)", seconds=0.3).compile("module {}")


def test_compiler_without_a_limit_of_time(child):
    compiler = child(
        "time.sleep(0.3); print(json.dumps({'ok': False, 'error': 'at last'}), flush=True)",
        seconds=0,
    )
    with compiler, pytest.raises(mgx.CompilerRefusedError, match=r"^at last$"):
        compiler.compile("module {}")


def test_compiler_that_refuses_is_asked_once(child):
    compiler = child(
        "error = 'no room\\n=== Source Location Trace: x'\n"
        "print(json.dumps({'ok': False, 'error': error}), flush=True)"
    )
    for _ in range(2):
        with pytest.raises(mgx.CompilerRefusedError, match=r"^no room$"):
            compiler.compile("module {}")
    assert compiler.compiles == 1
    with pytest.raises(mgx.CompilerRefusedError):
        compiler.compile("module {}", {"other": "options"})
    assert compiler.compiles == 2
    compiler.close()


def test_compiler_that_dumps(child, tmp_path):
    compiler = child("""
        os.mkdir(job["dump"])
        for end, content in (("after_optimizations_before_buffer_assignment", b"a"),
                             ("after_optimizations", b"b"), ("after_codegen", b"c")):
            open(os.path.join(job["dump"], "m." + end + ".hlo.pb"), "wb").write(b"\\x10" + content)
        print(json.dumps({"ok": True}), flush=True)
    """)
    with compiler:
        answer = compiler.compile("module {}")
        assert (answer.before, answer.assigned, answer.priced) == (b"\x10a", b"\x10b", b"\x10c")
        assert compiler.compile("module {}") == answer and compiler.compiles == 1
    (entry,) = (tmp_path / "cache").glob("*.zip")
    entry.write_bytes(b"damaged")
    with compiler:
        assert compiler.compile("module {}") == answer and compiler.compiles == 2


def test_compiler_that_is_stopped_early(child):
    """A look takes what was dumped until the main memory did not suffice.

    A refusal stays one, and nothing is kept.
    """
    compiler = child("""
        if "refused" in job["options"]:
            answer = {"ok": False, "error": "no room"}
        else:
            os.mkdir(job["dump"])
            for end in ("after_optimizations_before_buffer_assignment", "after_optimizations"):
                with open(os.path.join(job["dump"], "m." + end + ".hlo.pb"), "wb") as file:
                    file.write(b"\\x10" + end[-1:].encode())
            mib = job["options"]["xla_tpu_max_hbm_size_mib"]
            error = "E1000: CompileTimeHbmOom: 9M exceeds available HBM " + mib
            answer = {"ok": False, "error": error}
        print(json.dumps(answer), flush=True)
    """)
    with compiler:
        for _ in range(2):
            look = compiler.look("module {}", {}, main_mib=7)
            assert type(look) is Assigned and (look.before, look.assigned) == (b"\x10t", b"\x10s")
        with pytest.raises(mgx.CompilerRefusedError, match=r"^no room$"):
            compiler.look("module {}", {"refused": ""}, main_mib=7)
        assert (compiler.looks, compiler.compiles) == (3, 0)
        # A caller who wants it whole gets an error.
        with pytest.raises(mgx.CompilerRefusedError, match=r"HBM 7$"):
            compiler.compile("module {}", {"xla_tpu_max_hbm_size_mib": "7"})


def test_extra_that_is_missing():
    code = (
        "import sys, importlib.metadata as m\n"
        "real = m.version\n"
        "def version(name):\n"
        "    if name == 'libtpu': raise m.PackageNotFoundError(name)\n"
        "    return '1'\n"
        "m.version = version\n"
        "import mallocgame.xla as mgx\n"
        "try: mgx.Compiler(mgx.find_target('tpu_v4i'))\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "mallocgame.xla needs libtpu: pip install 'mallocgame[xla]'", (
        done.stderr
    )


def test_import_needs_no_jax():
    heavy = {"jax", "jaxlib", "libtpu"}
    code = f"import sys, mallocgame.xla; print(sorted(sys.modules.keys() & {heavy}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize(
    ("override", "text"),
    [
        (
            Override(KEEP, 0, (), "fusion.7", None, ()),
            r'overrides { hlo_position_matcher { instruction_name_regex: "fusion\\.7" } '
            "keep_in_default_memory {} }",
        ),
        (
            Override(PIN, 0, (), "a-b", None, (0, 1)),
            'overrides { hlo_position_matcher { instruction_name_regex: "a-b" '
            "tuple_index { index: 0 index: 1 } } pin_in_alternate_memory {} }",
        ),
        (
            Override(PREFETCH, 0, (), "while", 0, (3,), time=5),
            'overrides { hlo_operand_filter { instruction_name_regex: "while" operand_number: 0 '
            "tuple_index { index: 3 } } prefetch { logical_time: 5 strict_timing: true } }",
        ),
        (
            Override(KEEP, 0, (), "f", 1, (), size=64),
            'overrides { hlo_operand_filter { instruction_name_regex: "f" operand_number: 1 '
            "size_gte: 64 size_lte: 64 } keep_in_default_memory {} }",
        ),
    ],
)
def test_override_text(override, text):
    assert override.text() == text


def negotiation(program, *overrides, patience=PATIENCE):
    return _Negotiation(Request(overrides, ()), program, patience)


def test_refusals(program):
    names = program.buffer_names
    first, second = names.index("params_1_.1"), names.index("m_0_.1")
    pin = Override(PIN, first, (3,), "params_1_.1", None, ())
    fetch = Override(PREFETCH, second, (4,), "fusion.2", 1, (), time=20)
    talk = negotiation(program, pin, fetch)
    talk.refused(
        "MSA strict override failed for instruction 'fusion.9' operand 0, shape (s32[], "
        "/*index=1*/bf16[8]), defining instruction 'params_1_.1': Out of alternate memory "
        "(requested schedule time: n/a)"
    )
    assert talk.request.overrides == (fetch,)
    assert (
        talk.refusals[0].buffer == "params_1_.1"
        and talk.refusals[0].reason == "Out of alternate memory"
    )

    talk.refused(
        "MSA strict timing override unsatisfied for instruction 'fusion.2' operand 1, shape "
        "f32[8]: scheduled prefetch time (12) does not match requested prefetch time (20)"
    )
    assert [o.time for o in talk.request.overrides] == [12] and talk.request.overrides[0].strict
    short = (
        "MSA strict override failed for instruction 'fusion.2' operand 1, shape f32[8], "
        "defining instruction 'm_0_.1': "
    )
    for time in (10, 6, 0):
        talk.refused(
            short + "Live range too short / dependency ordering (requested schedule time: 1)"
        )
        assert [o.time for o in talk.request.overrides] == [time]
    talk.refused(short + "Live range too short / dependency ordering (requested schedule time: 1)")
    assert [o.strict for o in talk.request.overrides] == [False]
    talk.refused(short + "Live range too short / dependency ordering (requested schedule time: 1)")
    assert talk.request.overrides == () and [one.accesses for one in talk.refusals] == [(3,), (4,)]


NO_SPACE = (
    "MSA strict override failed for instruction '{}' operand 1, shape f32[8], "
    "defining instruction '{}': Out of alternate memory (requested schedule time: n/a)"
)


def test_a_pinned_buffer_that_overstays_goes_first(program):
    """It is pinned until its last use, though the plan has it leave before."""
    ticks, buffers = program.accesses["tick"], program.accesses["buffer"]
    made = next(
        buffer
        for buffer in range(program.counts["buffers"])
        if program.buffers[buffer]["origin"] == INSTRUCTION and np.ptp(ticks[buffers == buffer]) > 4
    )
    first, *_, last = np.flatnonzero(buffers == made)
    pin = Override(PIN, made, (int(first),), program.buffer_names[made], None, ())
    other = next(
        access
        for access in range(program.counts["accesses"])
        if ticks[first] < ticks[access] <= ticks[last] and buffers[access] != made
    )
    fetched = int(buffers[other])
    fetch = Override(PREFETCH, fetched, (other,), "use", 1, (), time=20)
    refusal = NO_SPACE.format("use", program.buffer_names[fetched].partition("{")[0])
    talk = negotiation(program, pin, fetch)
    talk.refused(refusal)
    assert talk.request.overrides == (fetch,)
    assert [one.buffer for one in talk.refusals] == [program.buffer_names[made]]
    talk.refused(refusal)
    assert talk.request.overrides == ()


@pytest.mark.parametrize(
    ("patience", "first"),
    [(PATIENCE, [1, 1, 1, 1, 2, 2, 2, 2]), (2, [1, 2, 0, 4]), (0, [0, 1, 2, 4])],
)
def test_groups_are_taken_back_where_space_is_short(program, patience, first):
    """One by one it would take as many compiles as there are buffers too many."""
    asked = [
        Override(PREFETCH, buffer, (0,), "use", buffer, (), time=20)
        for buffer in range(program.counts["buffers"])
    ]
    talk = negotiation(program, *asked, patience=patience)
    taken = []
    while talk.request.overrides:
        before = len(talk.request.overrides)
        one = talk.request.overrides[-1]
        defined = program.buffer_names[one.buffer].partition("{")[0]
        message = NO_SPACE.format(one.instruction, defined)
        talk.refused(message.replace("operand 1,", f"operand {one.operand},"))
        taken.append(before - len(talk.request.overrides))
    assert taken[: len(first)] == first and len(taken) < 25
    assert len(talk.refusals) == len(asked) == sum(taken) > 50


@pytest.mark.parametrize("patience", [PATIENCE, 1, 0])
def test_strict_times_are_given_up_at_once(program, patience):
    """After some copies were asked for at another time all others lose theirs."""
    asked = [
        Override(PREFETCH, 0, (0,), f"fusion.{number}", 1, (), time=20) for number in range(20)
    ]
    talk = negotiation(program, *asked, patience=patience)
    for number in range(patience + 1):
        assert talk.request.overrides[-1].strict
        talk.refused(
            f"MSA strict timing override unsatisfied for instruction 'fusion.{number}' operand 1, "
            "shape f32[8]: scheduled prefetch time (12) does not match requested prefetch time (20)"
        )
    assert not any(one.strict for one in talk.request.overrides)
    times = [one.time for one in talk.request.overrides]
    assert times == [12] * patience + [20] * (20 - patience)
    assert not talk.refusals


def test_other_errors_are_no_refusals(program):
    with pytest.raises(mgx.CompilerRefusedError, match="RESOURCE_EXHAUSTED"):
        negotiation(program).refused("RESOURCE_EXHAUSTED: out of HBM")


def test_request_options():
    keep = Override(KEEP, 0, (), "a", None, ())
    options = Request((keep,), ("p.1",), WHOLE_COPIES).options()
    assert (
        options["xla_max_cross_program_prefetches"] == "1"
        and r"p\\.1" in options["xla_tpu_msa_sort_order_overrides"]
    )
    assert (
        options["xla_tpu_sliced_prefetch_max_slices"] == "0"
        and options["xla_tpu_msa_tensor_overrides"] == keep.text()
    )
    assert Request((), ()).options() == {"xla_max_cross_program_prefetches": "0"}


def test_settings_of_a_request():
    name, other = "xla_msa_max_repacks", "xla_msa_min_overlap_to_async_copy_ratio"
    two = Request((), ("p.1",)).having(name, "0").having(other, "2")
    assert two.settings == {name: "0", other: "2"} and two.preloads == ("p.1",)
    assert two.options().items() >= {(PRELOADS, "1"), (name, "0"), (other, "2")}
    assert two.having(name, None).settings == {other: "2"}
    assert read_settings({name: "8", "another": "1"}) == {name: "8"}
    for wrong in (lambda: two.having(name, "3"), lambda: read_settings({name: "3"})):
        with pytest.raises(mg.InvalidInputError, match=f"{name}: found '3', allowed: 0, 8"):
            wrong()
    with pytest.raises(mg.InvalidInputError, match=f"setting: found 'x', allowed: .*, {name}, "):
        two.having("x", "1")


def test_settings_about_preloads_let_xla_choose():
    """They would do nothing where the request names what is preloaded."""
    named = Request((), ("p.1", "p.2"))
    chosen = named.having("xla_msa_cross_program_prefetch_permissive_mode", "true")
    assert chosen.preloads == () and chosen.options()[PRELOADS] == "2"
    assert "xla_tpu_msa_sort_order_overrides" not in chosen.options()
    assert named.having(PRELOADS, "0").options() == {PRELOADS: "0"}


def test_copies_for_single_uses():
    """They come before what holds for all others, and are read back."""
    others = SETTINGS[EAGERNESS][1]
    wanted = Request((), ()).having(EAGERNESS, others).hurrying(("fusion.3", 1), "0.5")
    wanted = wanted.hurrying(("copy-done.1", 0), "0").hurrying(("add", 0), "1")
    wanted = wanted.hurrying(("add", 0), None)
    text = wanted.options()[EAGERNESS]
    assert r'instruction_name_regex: "fusion\\.3" operand_number: 1 }' in text
    assert text.endswith(others) and text.count("overrides { ") == 3
    assert read_eagerness(text) == (wanted.eagerness, others)
    assert read_eagerness("") == ({}, None) and read_eagerness(others) == ({}, others)
    with pytest.raises(mg.InvalidInputError, match=f"{EAGERNESS}: found 'other', allowed"):
        read_eagerness("other")


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


OLD_COMPILER = """
options = job["options"]
known = {"xla_max_cross_program_prefetches", "xla_tpu_sliced_prefetch_max_slices"}
memory = {"xla_tpu_max_hbm_size_mib", "xla_tpu_rematerialization_min_size_in_bytes"}
unknown = sorted(set(options) - known - memory)
if unknown:
    error = f"INVALID_ARGUMENT: No such compile option: '{unknown[0]}'"
else:
    error = "RESOURCE_EXHAUSTED: " + WORDS
with open("asked", "a") as file:
    file.write("x")
print(json.dumps({"ok": False, "error": error}), flush=True)
"""


@pytest.mark.parametrize(
    ("words", "early"),
    [("E1000: CompileTimeHbmOom", True), ("Ran out of memory on HBM", True), ("Other", False)],
)
def test_what_the_installed_compiler_can(child, words, early, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    old = OLD_COMPILER.replace("WORDS", repr(words))
    for _ in range(2):  # the second time the answer is kept
        with child(old) as compiler:
            abilities = compiler.abilities
    assert (tmp_path / "asked").read_text() == "xxx"
    assert abilities.ends_early is early
    assert compiler.compiles == compiler.looks == 0
    sentence = abilities.sentence({"jax": "0.10.2", "jaxlib": "1", "libtpu": "0.0.42.1"})
    assert sentence == (
        "libtpu 0.0.42.1 has no option xla_tpu_msa_sort_order_overrides and no "
        "xla_tpu_msa_tensor_overrides, by which plans are asked for: "
        "pip install jaxlib==0.10.2 libtpu==0.0.51"
    )
    with pytest.raises(mgx.MissingOptionError, match="by which plans are asked for: pip install"):
        compiler.check_takes_plans()


def test_a_compiler_that_lacks_nothing_says_nothing():
    assert mgx.Abilities((), True).sentence({"libtpu": "9"}) is None
    slow = mgx.Abilities((), False).sentence(VERSIONS)
    assert slow == "libtpu 0.0.51 doesn't end early, so every look is a whole compile"


def test_versions_are_those_of_the_extra():
    project = tomllib.loads((SOURCE_ROOT / "pyproject.toml").read_text())
    pinned = project["project"]["optional-dependencies"]["xla"]
    assert pinned == [f"{name}=={version}" for name, version in VERSIONS.items()]


@pytest.mark.parametrize(
    ("model", "folder", "hardware"),
    [
        ("lstm_lm_train_b32_t16", "tpu_v4i", "tpu_v4i_16mib"),
        ("transformer_train_4l_b8_s256", "tpu_v5e", "tpu_v5e"),
    ],
)
def test_a_use_kept_in_main_memory_spares_the_results(model, folder, hardware):
    """Without a size it would keep them there too, also where they are fetched later."""
    program = mg.load_program(f"{model}.{hardware}")
    before = SOURCE_ROOT / "benchmarks/programs/hlo/core" / folder / model / "pre_msa.hlo.pb.gz"
    asked = request(program, program.xla_plan, mg._core.read_file(bytes(before)))
    accesses, tick_of = program.accesses, {n: t for t, n in enumerate(program.instruction_names)}
    fast = set(accesses["buffer"][program.xla_plan.served_by >= 0].tolist())
    kept = [one for one in asked.overrides if one.action == KEEP and one.operand is not None]
    without_size = [one for one in kept if one.size is None]
    assert without_size
    for one in without_size:
        made = accesses[accesses["tick"] == tick_of[one.instruction]]
        results = made["buffer"][(made["kind"] == UPDATE) | (made["kind"] == WRITE)]
        assert fast.isdisjoint(results.tolist())


def test_targets():
    target = mgx.find_target("v4 lite:1x1", 16)
    assert target.hardware.name == "tpu_v4i_16mib"
    assert target.options == {"xla_tpu_max_cmem_used_by_memory_space_assignment": "16384"}
    assert (
        mgx.find_target("tpu_v4i", 128) == mgx.find_target("tpu_v4i")
        and mgx.find_target("tpu_v4i").options == {}
    )
    more = mgx.find_target("tpu_v4i", 16, preloads=4)
    assert more.hardware == target.hardware.replace(max_preloads=4)
    assert more.options == target.options and more != target
    with pytest.raises(mg.InvalidInputError, match="found 'tpu_v9', allowed: tpu_v4i, tpu_v4, "):
        mgx.find_target("tpu_v9")
    with pytest.raises(mg.InvalidInputError, match="found 129, allowed: 1 to 128"):
        mgx.find_target("tpu_v4i", 129)


def test_every_chip():
    assert set(mgx.TARGETS) == set(mg.Hardware.preset_names())
    for name in mgx.TARGETS:
        target = mgx.find_target(name)
        assert target.hardware == mg.Hardware.preset(name) and target.options == {}
        assert mgx.find_target(target.topology).topology == target.topology
    # One topology, with and without its two cores as one device.
    one_core, both = mgx.find_target("v4:1x1x1"), mgx.find_target("tpu_v4_megacore")
    assert one_core.name == "tpu_v4" and one_core.topology == both.topology
    assert one_core.config is None and both.config == "megacore"


def test_less_fast_memory_where_kernels_share_it():
    """What memory space assignment doesn't get there is scratch for kernels."""
    for name, shared_kib in (("tpu_v5p", 65472), ("tpu_v5e", 131072), ("tpu_v6e", 131008)):
        small = mgx.find_target(name, 16)
        assert small.options == {"xla_tpu_scoped_vmem_limit_kib": str(shared_kib - 16 * 1024)}
        assert small.hardware.fast_bytes == 16 * 2**20
        assert f"differ from those of {name}" in (small.note or "")
    assert mgx.find_target("tpu_v4", 16).note is None
    # The whole of it isn't a number of MiB.
    with pytest.raises(mg.InvalidInputError, match=r"found 96, allowed: 1 to 95 \(tpu_v6e\)"):
        mgx.find_target("tpu_v6e", 96)
    with pytest.raises(mg.InvalidInputError, match=r"found 16, allowed: all that it has, for want"):
        mgx.find_target("tpu7x", 16)


def test_targets_are_listed(run, run_json):
    rows = {row["target"]: row for row in run_json("xla", "targets")["targets"]}
    assert set(rows) == set(mgx.TARGETS)
    assert rows["tpu_v6e"]["fast_mib"] == [1, 95] and rows["tpu_v6e"]["fast_mib_changes_prices"]
    assert rows["tpu_v4_megacore"]["config"] == "megacore"
    assert rows["tpu7x"]["fast_mib"] is None
    assert "100,597,760" in run("xla", "targets").stdout


def test_option_files(tmp_path):
    path = tmp_path / "options.json"
    mgx.save_options({"a": "1"}, path, program="p")
    assert mgx.load_options(path) == {"a": "1"}
    path.write_text("[]")
    with pytest.raises(mg.InvalidInputError, match=r"options.json: no object compiler_options"):
        mgx.load_options(path)


def test_without_fields():
    inner = b"\x0a\x01x" + b"\x3a\x02yz"  # field 1 = "x", field 7 = "yz"
    message = b"\x08\x05" + b"\x12" + bytes([len(inner)]) + inner  # field 1 = 5, field 2 = inner
    assert without_fields(message, {2: {7: None}}) == b"\x08\x05\x12\x03\x0a\x01x"
    assert without_fields(message, {}) == message
    for damaged in (message[:-1], b"\x0b"):
        with pytest.raises((IndexError, ValueError)):
            without_fields(damaged, {2: {7: None}})


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
