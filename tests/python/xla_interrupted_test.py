"""What is kept where a limit, Ctrl-C or a full disk ends the work early, without a compiler."""

import contextlib
import dataclasses
import gzip
import json
import pathlib
import types
from collections.abc import Callable

import numpy as np
import pytest
from conftest import SOURCE_ROOT

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame._cli import xla as commands
from mallocgame._cli.main import main
from mallocgame.xla import captures, dumps, negotiate, profiling, tuning
from mallocgame.xla.modules import Compiled
from mallocgame.xla.option_folders import Key
from mallocgame.xla.overrides import Request, as_xla_does
from mallocgame.xla.probe import Prober

FOLDER = SOURCE_ROOT / "benchmarks/programs/hlo/core/tpu_v4i/mlp_train_adam_b512"
NOTHING = Request((), ())
TOO_LONG = mgx.CompilerLimitError("no answer within 60 s")


def unpacked(path: pathlib.Path) -> bytes:
    return gzip.decompress(path.with_suffix(".hlo.pb.gz").read_bytes())


@pytest.fixture(scope="module")
def capture() -> mgx.Capture:
    return dataclasses.replace(mgx.load_capture(FOLDER), module="module {}")


@pytest.fixture(scope="module")
def less(capture) -> Compiled:
    """What the compiler made of the same program with 16 MiB of fast memory."""
    assigned, priced = unpacked(FOLDER / "post_msa_cap16"), unpacked(FOLDER / "codegen_cap16")
    return Compiled(capture.default.before, assigned, priced)


@pytest.fixture
def compiler(capture) -> types.SimpleNamespace:
    """A compiler that is never asked for a compile."""
    return types.SimpleNamespace(
        target=capture.target,
        abilities=types.SimpleNamespace(takes_plans=True),
        check_takes_plans=lambda: None,
        compiles=0,
        looks=0,
    )


def carried_out(capture: mgx.Capture) -> mgx.CarriedOut:
    """XLA's own plan, in answer to one that has everything in fast memory."""
    asked = types.SimpleNamespace(served_by=np.zeros(capture.program.counts["accesses"], int))
    return mgx.CarriedOut({}, capture.program, capture.default, NOTHING, asked, 0, ())


def ending_after(count: int) -> Callable[[bytes, bytes], None]:
    """In place of write_file(): it writes so many files, and then is interrupted."""
    left = [captures.write_file] * count

    def write(path: bytes, data: bytes) -> None:
        if not left:
            raise KeyboardInterrupt
        left.pop()(path, data)

    return write


def test_prices_stay_where_saving_ends_early(capture, tmp_path, monkeypatch):
    fewer = dataclasses.replace(capture, priced=capture.priced[:2])
    for before, after in ((fewer, capture), (capture, fewer)):
        files = len(after.priced) + 5
        for count in range(files):
            before.save(tmp_path)
            with monkeypatch.context() as ending, pytest.raises(KeyboardInterrupt):
                ending.setattr(captures, "write_file", ending_after(count))
                after.save(tmp_path)
            assert {*mgx.load_capture(tmp_path).priced} >= {*fewer.priced}
        after.save(tmp_path)
        assert mgx.load_capture(tmp_path) == after
        assert len([*tmp_path.iterdir()]) == files


def test_a_capture_without_a_module_leaves_none_of_another(capture, tmp_path):
    capture.save(tmp_path)
    without = dataclasses.replace(capture, module=None)
    without.save(tmp_path)
    assert mgx.load_capture(tmp_path) == without


@pytest.mark.parametrize("end", [TOO_LONG, KeyboardInterrupt()])
def test_rounds_that_are_done_come_back(capture, compiler, monkeypatch, end):
    rounds = [carried_out(capture), carried_out(capture)]

    def carry_out(*_: object) -> mgx.CarriedOut:
        if not rounds:
            raise end
        return rounds.pop()

    solved = types.SimpleNamespace(plan=capture.xla_plan)
    monkeypatch.setattr(tuning, "carry_out", carry_out)
    monkeypatch.setattr(tuning, "solve", lambda *_, **__: solved)
    done = mgx.apply(capture, capture.xla_plan, compiler=compiler)
    assert not rounds and done.plan is not None
    assert done.interrupted == isinstance(end, KeyboardInterrupt)
    # Of the first nothing is there to come back.
    with pytest.raises(type(end)):
        mgx.apply(capture, capture.xla_plan, compiler=compiler)


@pytest.mark.parametrize(("interrupted", "status"), [(True, 130), (False, 0)])
def test_the_command_says_that_rounds_were_interrupted(
    capture, monkeypatch, capsys, interrupted, status
):
    done = dataclasses.replace(carried_out(capture), interrupted=interrupted)
    monkeypatch.setattr(commands, "open_compiler", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(commands, "apply", lambda *_: done)
    command = ["xla", "apply", str(FOLDER), "xla-assigned"]
    assert main(command) == status
    assert ("Interrupted: this is the best so far." in capsys.readouterr().out) == interrupted
    assert main([*command, "--json"]) == status
    assert json.loads(capsys.readouterr().out)["interrupted"] == interrupted


def test_a_plan_stays_carried_out_where_asking_without_its_order_fails(
    capture, less, compiler, monkeypatch
):
    answers = iter([(NOTHING, less, ())])

    def ask(*_: object) -> tuple[Request, Compiled, tuple[()]]:
        for answer in answers:
            return answer
        raise TOO_LONG

    monkeypatch.setattr(negotiate, "negotiate", ask)
    said = []
    done = mgx.carry_out(capture, capture.program, capture.xla_plan, compiler, said.append)
    assert done.honoured < 0.99 and said[-1] == str(TOO_LONG)


def test_prices_stay_where_a_placement_takes_too_long(capture, compiler, monkeypatch):
    outcome = mgx.Outcome({}, capture.program, capture.default, NOTHING)
    richer = dataclasses.replace(capture)

    def lessons(*_: object):
        yield richer, types.SimpleNamespace(outcome=outcome)
        raise TOO_LONG

    monkeypatch.setattr(tuning, "lessons", lessons)
    said = []
    search = tuning._Tuning(capture, compiler, 0, said.append, tuning.forget)
    search._price(6, 0.0)
    assert search.search.capture is richer
    assert said == [f"no more placements are priced: {TOO_LONG}"]


@pytest.fixture
def rewritten(less) -> Compiled:
    """An answer with other instructions, so that no plan of the program can be read from it."""
    return dataclasses.replace(less, assigned=unpacked(FOLDER.parent / "gcn_dense_2048/post_msa"))


def test_a_placement_that_cannot_be_read_is_left_out(capture, compiler, rewritten, monkeypatch):
    monkeypatch.setattr(profiling, "negotiate", lambda *_: (NOTHING, rewritten, ()))
    said = []
    lesson = profiling._learn(capture, "random", NOTHING, compiler, said.append, 0.0)
    assert lesson is None and said[0].startswith("random: left out: ")


def test_a_compile_that_cannot_be_read_is_an_error_of_the_compiler(capture, rewritten):
    prober = object.__new__(Prober)
    compiler = types.SimpleNamespace(compile=lambda *_: rewritten)
    prober.target, prober._lookers = capture.target, [types.SimpleNamespace(compiler=compiler)]
    probe = types.SimpleNamespace(
        request=NOTHING, plan=None, refusals=(), report=types.SimpleNamespace(latency_ps=0)
    )
    with pytest.raises(mgx.CompilerError, match="the answer is no plan of it"):
        prober.verify(capture, probe)


OTHERS = {"xla_tpu_msa_tensor_overrides": "what another version writes"}
NO_SIZE = {
    "xla_tpu_msa_sort_order_overrides": "overrides { hlo_position_matcher { "
    'instruction_name_regex: "fusion" } override_options { assign_value: -1 } }'
}


@pytest.mark.parametrize("kept", [OTHERS, NO_SIZE, {}])
def test_kept_options_that_cannot_be_read_are_left_out(capture, compiler, monkeypatch, kept):
    shelf = types.SimpleNamespace(start=kept, keep=lambda _: None)
    monkeypatch.setattr(tuning, "Shelf", lambda *_: shelf)
    monkeypatch.setattr(tuning._Tuning, "run", lambda *_: None)
    said = []
    assert mgx.tune_capture(capture, 1, compiler=compiler, tell=said.append).options == {}
    assert [one.partition(":")[0] for one in said] == ["what was found before is left out"] * (
        kept != {}
    )
    if kept:  # Those that a user gives are an error.
        with pytest.raises(mg.InvalidInputError, match=r"^options: "):
            mgx.tune_capture(capture, 1, compiler=compiler, start=kept)


@pytest.fixture
def options(capture) -> dict[str, str]:
    """Options that tune() may give."""
    return capture.target.options | as_xla_does(capture.program).options()


def test_an_answer_to_options_that_cannot_be_read_is_left_out(
    capture, compiler, options, rewritten, monkeypatch
):
    compiler.compile = lambda *_: rewritten
    monkeypatch.setattr(tuning._Tuning, "run", lambda *_: None)
    said = []
    tuned = mgx.tune_capture(capture, 1, compiler=compiler, tell=said.append, start=options)
    assert tuned.options == {} and tuned.capture is capture
    assert "the answer is no plan of it" in said[-1]


def test_kept_options_that_can_be_read_are_gone_on_from(capture, compiler, options, monkeypatch):
    shelf = types.SimpleNamespace(start=options, keep=lambda _: None)
    started = []
    monkeypatch.setattr(tuning, "Shelf", lambda *_: shelf)
    monkeypatch.setattr(tuning._Tuning, "run", lambda *_: None)
    monkeypatch.setattr(tuning._Tuning, "go_on_from", lambda _, start: started.append(start))
    mgx.tune_capture(capture, 1, compiler=compiler)
    assert started == [options]


@pytest.fixture
def run_of_a_user(monkeypatch):
    """Three programs of a run, each as long as the others."""
    versions = {"jax": "1", "jaxlib": "1", "libtpu": "1"}

    def modules(*_: object):
        for name in "abc":
            key = Key(name, "tpu_v4i", None, versions, {})
            yield dumps._Module(name, f"module @{name} {{}}", key, 10, [])

    monkeypatch.setattr(dumps, "_modules", modules)


def test_ctrl_c_while_a_program_is_captured_keeps_those_before(
    run_of_a_user, compiler, tmp_path, monkeypatch
):
    def capture_module(module: str, *_: object) -> object:
        if module == "module @b {}":
            raise KeyboardInterrupt
        return types.SimpleNamespace(program=types.SimpleNamespace(instruction_names=[]))

    tuned = types.SimpleNamespace(interrupted=False)
    monkeypatch.setattr(dumps, "capture_module", capture_module)
    monkeypatch.setattr(dumps, "tune_capture", lambda *_, **__: tuned)
    told = []
    results = mgx.tune_dumps(tmp_path, tmp_path, compiler=compiler, report=told.append)
    assert told == results
    assert [(one.name, one.interrupted) for one in results] == [("a", False), ("b", True)]
    assert results[0].tuned is tuned


def test_kept_options_that_cannot_be_read_are_left_out_of_a_run(capture, compiler, monkeypatch):
    given = []

    def tune_capture(*_: object, start: object, **__: object) -> object:
        given.append(start)
        return types.SimpleNamespace(interrupted=False)

    monkeypatch.setattr(dumps, "capture_module", lambda *_: capture)
    monkeypatch.setattr(dumps, "tune_capture", tune_capture)
    module = dumps._Module("a", "module {}", None, 10, [])
    task = dumps._Task(module, 7.0, OTHERS, 1.0)
    said = []
    result = dumps._tune(compiler, None, 0, said.append, None, 1, task)
    assert result.why_not is None and given == [None]
    assert "left out" in said[-1]
