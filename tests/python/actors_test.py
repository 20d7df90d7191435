"""Actors of MuZero in processes of this machine; ray_test.py has those of a cluster."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
import small_agents

import mallocgame as mg
from mallocgame import agents

pytest.importorskip("torch", reason="pip install 'mallocgame[agents]'")

pytestmark = pytest.mark.full

PROGRAMS = ["gcn_dense_2048.tpu_v4i", "wavernn_64steps_b8.tpu_v4i"]
STEPS = 5


def trainer(**settings: int) -> agents.MuZero:
    return agents.MuZero(PROGRAMS, small_agents.MUZERO | settings, seed=3, threads=1)


def saved(training: agents.MuZero, path: pathlib.Path) -> bytes:
    training.save(path)
    return path.read_bytes()


def children() -> list[int]:
    """The processes of this one that work; Python has one more that cleans up."""
    mine = pathlib.Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    lines = {int(one): pathlib.Path(f"/proc/{one}/cmdline").read_bytes() for one in mine}
    return [one for one, line in lines.items() if b"spawn_main" in line]


def test_steps_are_those_of_one_machine_although_an_actor_is_killed(tmp_path):
    here, there = trainer(groups=3), trainer(groups=3)
    for _ in range(STEPS):
        expected = here.step()
    with there.actors(2):
        for number in range(STEPS):
            found = there.step()
            if number in (1, 2):
                os.kill(children()[0], signal.SIGKILL)
    timed = {"play_seconds": 0, "learn_seconds": 0}
    assert repr(found | timed) == repr(expected | timed)  # NaN is not equal to itself
    assert saved(there, tmp_path / "there") == saved(here, tmp_path / "here")
    assert not children()


def test_games_of_old_networks_are_dropped(tmp_path):
    learning = trainer(groups=3)
    dropped = 0
    with learning.actors(2, most_stale=3):
        for number in range(12):
            progress = learning.step()
            assert progress["iteration"] == number
            assert progress["staleness"] <= 3
            dropped += progress["stale"]
    assert dropped > 0 and progress["updates"] == 11 * small_agents.MUZERO["updates"]
    learning.save(tmp_path / "agent")
    again = agents.MuZero.load(tmp_path / "agent", PROGRAMS)
    assert again.step()["iteration"] == 12
    assert again.best(0).report.latency_ps <= learning.best(0).report.latency_ps


def test_what_cannot_be_is_refused():
    for workers, stale, said in (
        (0, None, "found 0 actors, allowed: 1 and more"),
        (1, -1, "found most_stale -1, allowed: 0 and more"),
        ("mars", None, "found 'mars', allowed: local, auto, HOST:PORT"),
    ):
        with pytest.raises(mg.InvalidInputError, match=said), trainer().actors(workers, stale):
            pass


def train(folder: pathlib.Path, *more: object) -> list[str]:
    settings = small_agents.texts(small_agents.MUZERO)
    arguments = ["train", "muzero", *PROGRAMS, "--out", folder, "--seed", 3, *more]
    return [*map(str, arguments), "--config", *settings]


def test_a_learner_that_is_killed_goes_on(tmp_path, run):
    curve = tmp_path / "curve.csv"
    with subprocess.Popen(
        [sys.executable, "-m", "mallocgame", *train(tmp_path, "--seconds", 0, "--actors", 2)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        deadline = time.monotonic() + 600
        while time.monotonic() < deadline and running.poll() is None:
            if curve.exists() and curve.read_text().count("\n") > 6:
                break
            time.sleep(0.02)
        running.kill()
        _, err = running.communicate(timeout=600)
    assert running.returncode == -signal.SIGKILL, err
    steps = agents.MuZero.load(tmp_path / "checkpoint.muzero", PROGRAMS).iterations
    done = run(*train(tmp_path, "--resume", "--seconds", 0.2, "--actors", 2))
    assert done.returncode == 0, done.stderr
    # The whole is the same as without an interruption, and as on one machine.
    resumed = agents.MuZero.load(tmp_path / "checkpoint.muzero", PROGRAMS)
    assert resumed.iterations > steps
    straight = trainer()
    while straight.iterations < resumed.iterations:
        straight.step()
    assert [straight.best_game(i).report.latency_ps for i in (0, 1)] == [
        resumed.best_game(i).report.latency_ps for i in (0, 1)
    ]


def test_options_that_do_not_go_together(tmp_path, run):
    for more, said in (
        (["--most-stale", 4], "--most-stale: is of actors; give --actors or --ray too"),
        (["--most-stale", -1, "--actors", 2], "--most-stale"),
    ):
        done = run(*train(tmp_path, *more))
        assert done.returncode == 2 and said in done.stderr
