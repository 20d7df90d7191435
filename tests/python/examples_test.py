"""The examples are short and run as they stand.

train_guide_test.py runs the training examples, ctest runs embed_cpp.cc.
"""

import json
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest
from conftest import OTHER, SMALL, SOURCE_ROOT

import mallocgame as mg
from mallocgame import offline
from mallocgame.level_sets import level_set

EXAMPLES = SOURCE_ROOT / "examples"


def run(name: str, *arguments: str, folder: pathlib.Path) -> str:
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "path", sorted({*EXAMPLES.glob("*.*")} - {*EXAMPLES.glob("*.md")}), ids=lambda path: path.name
)
def test_short(path):
    lines = path.read_text().splitlines()
    assert len(lines) < 200
    assert lines[0].startswith(('"""', "// ", "/* ", "#!"))  # says what it is


@pytest.mark.full
def test_jax_ppo(tmp_path):
    pytest.importorskip("jax")
    output = run("jax_ppo.py", "wavernn_64steps_b8.tpu_v4i", "20", folder=tmp_path)
    means = [float(found) for found in re.findall(r"mean return ([-\d.]+)", output)]
    assert len(means) == 10 and means[-1] > means[0]
    assert float(output.split("greedily: ")[1]) > means[0]


@pytest.mark.full
def test_play(tmp_path):
    output = run("play.py", folder=tmp_path)
    assert "\nvalid" in output
    log = mg.load_log(tmp_path / "game.mgr")
    assert mg.replay(log) and f"return {sum(log.saved_ps) / log.report.all_main_ps:.4f}" in output
    assert log.report.latency_ps < log.report.all_main_ps


@pytest.mark.full
def test_solve(tmp_path):
    output = run("solve.py", "mlp_train_adam_b512.tpu_v5e", "anneal", "0.5", folder=tmp_path)
    program = mg.load_program("mlp_train_adam_b512.tpu_v5e")
    report = mg.simulate(program, mg.load_plan(tmp_path / "plan.json", program))
    assert f"{report.latency_ps / 1e6:,.2f} us, valid" in output
    assert (tmp_path / "plan.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.full
def test_compare(tmp_path):
    output = run(
        "compare.py", "0.3", "wavernn_64steps_b8.tpu_v4i", "gcn_dense_2048.tpu_v4i", folder=tmp_path
    )
    assert "geomean" in output and (tmp_path / "compare.png").read_bytes()[:4] == b"\x89PNG"
    greedy_ps = mg.solve(
        mg.load_program("wavernn_64steps_b8.tpu_v4i"), solver="greedy"
    ).report.latency_ps
    assert f"{greedy_ps / 1e6:,.1f} us" in output


@pytest.mark.full
def test_offline_rl(tmp_path):
    pytest.importorskip("torch", reason="Torch isn't installed: pip install 'mallocgame[agents]'")
    programs = {name: mg.load_program(name) for name in (SMALL, OTHER)}
    level_set.write_archive(
        tmp_path / level_set.PROGRAMS,
        {f"{name}.mgp": program.to_bytes() for name, program in programs.items()},
        zipfile.ZIP_STORED,
    )
    entries = {
        name: {
            "split": split,
            "family": "dense",
            "hardware": program.hardware.name,
            "peak_bytes": 8 << 20,
            "level": f"{name}@c40",
            "variants": {"c40": {}},
        }
        for (name, program), split in zip(programs.items(), ("train", "validation"), strict=True)
    }
    index = {"format": level_set.FORMAT, "programs": entries, "left_out": {}}
    (tmp_path / level_set.INDEX).write_text(json.dumps(index))
    behaviours = ["rent", "random"]
    offline.make_dataset(mg.levels("train", tmp_path), tmp_path / "data", behaviours, seeds=2)
    arguments = ["data", "--levels", str(tmp_path), "--steps", "300"]
    output = run("offline_rl.py", *arguments, folder=tmp_path)
    for name in ("cloning", "Q"):
        losses = [float(loss) for loss in re.findall(rf"{name}: step .* loss (\S+)", output)]
        assert len(losses) == 5 and losses[-1] < losses[0]
    greedy = mg.solve(mg.levels("validation", tmp_path)[0].game(), "greedy").report
    reached = f"greedy {1 - greedy.latency_ps / greedy.all_main_ps:.4f}"
    assert "mean return on 1 levels: cloning 0." in output and reached in output
