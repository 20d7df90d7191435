"""Processes side by side: what they give, what fails, and that none outlives its parent."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

import mallocgame as mg
from mallocgame._jobs import HERE, FailedJobsError, run_jobs
from mallocgame._jobs.processes import Processes

FOR_EVER = 3600.0  # seconds of a job: who waits for it runs into the limit of a test
# A parent whose two processes are at work, and one of which waits for a job when the other ends.
PARENT = """
import sys
from jobs_test import wait_for
from mallocgame._jobs import run_jobs

if __name__ == "__main__":
    for _ in run_jobs(wait_for, [(sys.argv[1], 60.0), (sys.argv[1], 0.0)], 2):
        pass
"""


def wait_for(job: tuple[str, float]) -> int:
    folder, seconds = job
    (pathlib.Path(folder) / str(os.getpid())).touch()
    time.sleep(seconds)
    return os.getpid()


def children(folder: pathlib.Path, number: int) -> list[int]:
    """Waits until so many processes have begun a job."""
    deadline = time.monotonic() + 600
    while len(os.listdir(folder)) < number and time.monotonic() < deadline:
        time.sleep(0.01)
    return [int(name) for name in os.listdir(folder)]


def lives(process: int) -> bool:
    with contextlib.suppress(OSError):
        state = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        return state not in "ZX"
    return False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_they_end_with_their_parent(tmp_path, number):
    script, folder = tmp_path / "parent.py", tmp_path / "pids"
    script.write_text(PARENT)
    folder.mkdir()
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")])
    }
    with subprocess.Popen([sys.executable, script, folder], env=environment) as parent:
        begun = children(folder, 1)
        parent.send_signal(number)
    deadline = time.monotonic() + 600
    while any(map(lives, begun)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(map(lives, begun))


def test_who_wants_no_more_does_not_wait_for_the_rest(tmp_path):
    jobs = [(str(tmp_path), 0.0), (str(tmp_path), FOR_EVER)]
    with contextlib.closing(run_jobs(wait_for, jobs, 2)) as finished:
        (_, seconds), _ = next(finished)
        assert seconds == 0.0
    deadline = time.monotonic() + 600
    while any(map(lives, children(tmp_path, 1))) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(map(lives, children(tmp_path, 1)))


def fail_at_first(job: tuple[str, int, str]) -> int:
    """Returns how often it was tried; it fails so often before."""
    folder, failures, how = job
    tries = len(os.listdir(folder)) + 1
    (pathlib.Path(folder) / str(tries)).touch()
    if tries <= failures:
        if how == "ends":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ValueError(f"no {tries}\nagain")
    return tries


def root(number: int) -> float:
    if number < 0:
        raise mg.InvalidInputError(f"found {number}, allowed: 0 and above")
    return number**0.5


@pytest.mark.parametrize("how", ["raises", "ends"])
def test_what_fails_is_tried_again_twice(tmp_path, how):
    jobs = []
    for failures in (0, 2, 3):
        folder = tmp_path / str(failures)
        folder.mkdir()
        jobs.append((str(folder), failures, how))
    finished = run_jobs(fail_at_first, jobs, 2, name=lambda job: f"job {job[1]}")
    found = {}
    with pytest.raises(FailedJobsError) as raised:
        found.update((job[1], tries) for job, tries in finished)
    assert found == {0: 1, 2: 3}
    assert [len(os.listdir(folder)) for folder, _, _ in jobs] == [1, 3, 3]
    why = "ValueError: no 3 again" if how == "raises" else "its process ended"
    assert str(raised.value) == (f"1 of 3 jobs failed 3 times: job 3: {why}; run it again to go on")


def test_a_process_that_ends_without_a_job_is_replaced():
    with contextlib.closing(Processes(root, 1, pinned=False)) as crew:
        crew.add(0, 4)
        while (found := crew.wait(1)) is None:
            pass
        assert found[1].result == 2
        (process,) = crew._idle[0].pool._processes
        os.kill(process, signal.SIGKILL)
        while not crew._idle[0].pool._broken:
            time.sleep(0.01)
        crew.add(1, 9)
        while (found := crew.wait(1)) is None:
            pass
        assert found[0] == 1 and found[1].result == 3


def test_a_wrong_input_ends_all_at_once():
    with pytest.raises(mg.InvalidInputError, match="found -1, allowed: 0 and above"):
        list(run_jobs(root, [-1, *range(1000)], 1))


def test_here_a_job_is_taken_when_the_one_before_is_done():
    taken, stopped = [], []

    def jobs():
        for number in range(9):
            taken.append(number)
            yield number

    for job, found in run_jobs(root, jobs(), HERE, stop=lambda: bool(stopped)):
        assert taken[-1] == job and found == job**0.5
        if job == 4:
            stopped.append(True)
    assert taken == [0, 1, 2, 3, 4, 5]


def test_a_stop_leaves_the_rest(tmp_path):
    seen = []
    jobs = [(str(tmp_path), 0.0), (str(tmp_path), FOR_EVER)]
    for (_, seconds), _ in run_jobs(wait_for, jobs, 2, stop=lambda: bool(seen)):
        seen.append(seconds)
    assert seen == [0.0]
