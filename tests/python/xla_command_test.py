"""`mallocgame xla capture|check|apply|tune`, as processes; xla_targets_test.py has `targets`.

Skipped, with the reason, where JAX or libtpu is missing.
"""

import json
import signal
import subprocess
import sys
import warnings

import pytest
from conftest import HEEDING
from xla_programs import LOOP

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame.xla.tuned_folders import Key, TunedFolder

pytestmark = pytest.mark.full

MINE = f"""
import jax
def made():
    shapes = [jax.ShapeDtypeStruct(shape, "bfloat16") for shape in {[one.shape for one in LOOP]}]
    def loop(weight, x):
        return jax.lax.fori_loop(0, 50, lambda _, state: jax.numpy.tanh(state @ weight), x)
    return loop, shapes
"""


@pytest.fixture(scope="module")
def cache(answers):
    return "--cache", answers


@pytest.fixture
def folder(captured_loop, tmp_path):
    captured_loop.save(tmp_path / "folder")
    return tmp_path / "folder"


def kept(captured: mgx.Capture, path) -> object:
    return TunedFolder(path).find(Key.of(captured))


def test_capture(run, run_json, cache, captured_loop, tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    row = run_json("xla", "capture", "mine:made", "-o", "mine", *cache)
    assert row["program"] == "made" and row["valid"] is True
    assert row["xla_ps"] == row["latency_ps"] == row["default_ps"] < row["all_main_ps"]
    own = mg.simulate(captured_loop.program, captured_loop.xla_plan)
    assert row["latency_ps"] == own.latency_ps
    assert "not a measurement" in row["estimate"]
    assert mgx.load_capture(tmp_path / "mine").program.fingerprint
    assert mg.load_program(tmp_path / "mine" / "program.mgp").name == "made"
    said = run("xla", "capture", "mine", "-o", "again")
    assert said.returncode == 0 and "not a measurement on a chip" in said.stdout
    for wrong, message in (("mine:nothing", "has no 'nothing'"), ("resnet50", "no workload")):
        failed = run("xla", "capture", wrong, "-o", "mine")
        # Progress may stand above it.
        assert failed.returncode == 2 and message in failed.stderr.splitlines()[-1], failed.stderr


@pytest.mark.weekly
def test_check(run, run_json, cache, folder):
    pytest.importorskip("highspy", reason="needs highspy: pip install 'mallocgame[milp]'")
    row = run_json("xla", "check", folder, "--seconds", 30, *cache)
    assert row["bound_ps"] < row["default_ps"] and row["priced"] > 0
    assert row["left"] == pytest.approx(row["default_ps"] / row["bound_ps"] - 1)
    said = run("xla", "check", folder, "--seconds", 30, *cache)
    assert said.returncode == 0 and "XLA leaves about" in said.stdout
    assert "no limit" in row["headroom"] and row["headroom"] in " ".join(said.stdout.split())
    assert row["waiting"] == 0 and "Prices are kept" not in said.stdout
    hurried = run("xla", "check", folder, "--seconds", 0.001, *cache)
    assert hurried.returncode == 0 and "Prices are kept" in hurried.stdout


def test_apply(run, run_json, cache, captured_loop, folder, tmp_path):
    solved = run_json("solve", folder / "program.mgp", "--solver", "greedy", "-o", "plan.json")
    command = ("xla", "apply", folder, "plan.json", "-o", "tuned", *cache)
    row = run_json(*command, "--plan-output", "exact.json")
    assert row["predicted_ps"] == solved["latency_ps"] and row["exact"] > 0.99
    assert row["speedup"] == pytest.approx(row["default_ps"] / row["latency_ps"])
    found = kept(captured_loop, tmp_path / "tuned")
    assert len(found.executable()) == row["executable_bytes"]
    program = mg.load_program(tmp_path / "exact.mgp")
    exact = mg.simulate(program, mg.load_plan(tmp_path / "exact.json", program))
    assert exact.latency_ps == row["latency_ps"] and exact.predicted_ps == 0
    said = run("xla", "apply", folder, "xla-assigned", *cache)
    assert said.returncode == 0 and "1.000x" in said.stdout, said.stderr
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        other = run("xla", "apply", folder, "plan.json", "--cache", folder / "meta.json")
    assert other.returncode == 0 and "can't be kept" in other.stderr


def test_apply_a_plan_of_another_program(run, run_json, folder):
    run_json("solve", "gcn_dense_2048.tpu_v4i", "--solver", "greedy", "-o", "other.json")
    refused = run("xla", "apply", folder, "other.json")
    assert refused.returncode == 2 and "fingerprint" in refused.stderr


@pytest.mark.weekly
@pytest.mark.parametrize("more", [(), ("--order",)], ids=["placement", "order"])
def test_tune(run, run_json, cache, captured_loop, folder, tmp_path, more):
    command = ("xla", "tune", folder, "--seconds", 10, *more, *cache)
    row = run_json(*command, "-o", "tuned")
    assert row["better"] is True and row["speedup"] > 1 and row["speedup_cold"] > 1
    assert row["plans"] > 0 and row["refused"] == [] and row["interrupted"] is False
    assert row["latency_ps"] == kept(captured_loop, tmp_path / "tuned").about["latency_ps"]


@pytest.mark.weekly
def test_tune_says_that_nothing_is_better(run, cache, folder):
    done = run("xla", "tune", folder, "--seconds", 0.001, *cache)
    assert done.returncode == 0, done.stderr
    assert "Nothing better than XLA's default was found." in done.stdout


def test_ctrl_c_keeps_the_best_so_far(cache, captured_loop, folder, tmp_path):
    command = [*HEEDING, sys.executable, "-m", "mallocgame", "xla", "tune", str(folder)]
    running = subprocess.Popen(
        [*command, "-o", "tuned", "--seconds", "200", "--json", *map(str, cache)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while "plan " not in (line := running.stderr.readline()):
            assert line, "it ended before its first plan"
        running.send_signal(signal.SIGINT)
        row = json.loads(running.communicate(timeout=600)[0])
    finally:
        running.kill()
    assert running.returncode == 130 and row["interrupted"]
    assert row["speedup"] > 1 and kept(captured_loop, tmp_path / "tuned") is not None
