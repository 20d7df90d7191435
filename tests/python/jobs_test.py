"""Processes that work side by side never outlive the one that began them."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from mallocgame._jobs import run_jobs

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
    deadline = time.monotonic() + 60
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
    deadline = time.monotonic() + 30
    while any(map(lives, begun)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(map(lives, begun))


def test_who_wants_no_more_does_not_wait_for_the_rest(tmp_path):
    begin = time.monotonic()
    jobs = [(str(tmp_path), 0.0), (str(tmp_path), 300.0)]
    with contextlib.closing(run_jobs(wait_for, jobs, 2)) as finished:
        (_, seconds), _ = next(finished)
        assert seconds == 0.0
    assert time.monotonic() - begin < 150
    deadline = time.monotonic() + 30
    while any(map(lives, children(tmp_path, 1))) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(map(lives, children(tmp_path, 1)))
