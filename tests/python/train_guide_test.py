"""What docs/train.md and the training examples show runs as it stands."""

import pathlib
import re
import subprocess
import sys

import pytest

import mallocgame as mg
from mallocgame.experiments import judge_submission

pytestmark = pytest.mark.full

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "train.md").read_text(), re.DOTALL)

pytest.importorskip("gymnasium", reason="Gymnasium isn't installed: pip install 'mallocgame[gym]'")


def run(*arguments: str, folder: pathlib.Path) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_are_blocks():
    assert len(BLOCKS) >= 2


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_block(number, tmp_path):
    run("-c", BLOCKS[number], folder=tmp_path)


def test_random_play(tmp_path):
    output = run(
        str(ROOT / "examples" / "gymnasium_random.py"),
        "wavernn_64steps_b8.tpu_v4i",
        folder=tmp_path,
    )
    assert "episode 2: return" in output and "greedy" in output


def test_maskable_ppo(tmp_path):
    pytest.importorskip(
        "sb3_contrib", reason="sb3_contrib isn't installed: pip install 'mallocgame[rl]'"
    )
    output = run(
        str(ROOT / "examples" / "sb3_maskable_ppo.py"),
        "wavernn_64steps_b8.tpu_v4i",
        "2560",
        folder=tmp_path,
    )
    assert "after 3072 steps" in output  # It learns after each 1024.


@pytest.mark.weekly
@pytest.mark.parametrize("script", ["sb3_levels.py", "sb3_dqn_levels.py"])
def test_from_levels_to_a_judged_submission(script, tmp_path):
    pytest.importorskip(
        "sb3_contrib", reason="sb3_contrib isn't installed: pip install 'mallocgame[rl]'"
    )
    pytest.importorskip(
        "rliable", reason="rliable isn't installed: pip install mallocgame[benchmark]"
    )
    command = run(str(ROOT / "examples" / script), "plans", "6144", folder=tmp_path)
    name, *arguments = command.split()
    assert name == "mallocgame"
    table = run("-m", "mallocgame", *arguments, folder=tmp_path)
    assert "plans" in table and "no plan" in table


@pytest.mark.weekly
@pytest.mark.parametrize(
    ("script", "short", "longer"),
    [
        ("muzero_levels.py", ["--seconds", "1"], ["--search"]),
        ("egrl_levels.py", ["--train-levels", "4", "--train-maps", "40"], ["--maps", "64"]),
    ],
)
def test_an_agent_plays_levels_it_has_not_seen(script, short, longer, tmp_path):
    pytest.importorskip("torch", reason="Torch isn't installed: pip install 'mallocgame[agents]'")
    path = str(ROOT / "examples" / script)
    run(path, "first", *short, folder=tmp_path)
    (agent,) = (tmp_path / "first").glob("agent.*")
    run(path, "second", "--agent", str(agent), *longer, folder=tmp_path)
    first, second = (latencies(tmp_path / name) for name in ("first", "second"))
    assert len(first) == len(second) == len(mg.levels("validation"))
    assert sum(second) <= sum(first)  # A second of training alone may leave both at greedy.


def latencies(folder: pathlib.Path) -> list[int]:
    levels = mg.levels("validation")
    return [run.latency_ps for run in judge_submission(folder, levels) if not run.problem]


def cloned(name: str, folder: pathlib.Path, *more: str) -> str:
    """Writes the policy and its plans to the folder's `name`; of the same demonstrations."""
    pytest.importorskip("torch", reason="Torch isn't installed: pip install 'mallocgame[agents]'")
    script, kept = str(ROOT / "examples" / "clone_levels.py"), ["--demonstrations", "kept.npz"]
    return run(script, name, *kept, "--every", "800", *more, folder=folder)


def test_from_plans_to_a_judged_submission(tmp_path):
    pytest.importorskip(
        "rliable", reason="rliable isn't installed: pip install mallocgame[benchmark]"
    )
    output = cloned("first", tmp_path)
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", output)]
    assert min(losses) < losses[0]
    name, *arguments = output.splitlines()[-1].split()
    assert name == "mallocgame"
    table = run("-m", "mallocgame", *arguments, folder=tmp_path)
    assert "first" in table and "no plan" in table


@pytest.mark.weekly
def test_what_a_policy_learns_from_its_own_games_is_another_one(tmp_path):
    cloned("first", tmp_path)
    finetune = str(ROOT / "examples" / "finetune_levels.py")
    kept = ["--demonstrations", "kept.npz"]
    output = run(finetune, "better", "first/policy.pt", *kept, "--rounds", "1", folder=tmp_path)
    assert "round 1: score" in output
    assert latencies(tmp_path / "better") != latencies(tmp_path / "first")


@pytest.mark.weekly
def test_the_same_demonstrations_give_the_same_plans(tmp_path):
    for name in ("first", "again"):
        cloned(name, tmp_path)
    plans = sorted(path.name for path in (tmp_path / "first").glob("*.json"))
    assert plans
    assert all(
        (tmp_path / "first" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
        for name in plans
    )
    # The best of several games is nowhere slower than the first.
    cloned("best", tmp_path, "--games", "4")
    several = [latencies(tmp_path / name) for name in ("first", "best")]
    assert all(best <= first for first, best in zip(*several, strict=True))
    assert sum(several[1]) < sum(several[0])


def test_graph_network(tmp_path):
    pytest.importorskip(
        "torch_geometric", reason="torch_geometric isn't installed: pip install 'mallocgame[rl]'"
    )
    output = run(
        str(ROOT / "examples" / "pyg_graph.py"), "wavernn_64steps_b8.tpu_v4i", "2", folder=tmp_path
    )
    losses = [float(loss) for loss in re.findall(r"epoch \d: loss (\S+)", output)]
    assert len(losses) == 2 and losses[1] < losses[0]
    assert re.search(r"network 0\.\d+, greedy 0\.\d+", output)


@pytest.mark.parametrize("name", ["gymnasium_random.py", "sb3_maskable_ppo.py", "pyg_graph.py"])
def test_examples_are_short(name):
    assert len((ROOT / "examples" / name).read_text().splitlines()) <= 150
