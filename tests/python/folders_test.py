"""A folder belongs to one command at a time."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

import mallocgame as mg
from mallocgame._cli.folders import working_in, writing

WORKS = """
import sys, time
from mallocgame._cli.folders import working_in, writing

with working_in(sys.argv[1]):
    print("ready", flush=True)
    time.sleep(3600)
"""


@pytest.fixture
def other(tmp_path):
    """Another process that works in a folder, and the folder."""
    folder = str(tmp_path / "run")
    command = [sys.executable, "-c", WORKS, folder]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        yield process, folder
        process.kill()


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(
            ["benchmark", "--split", "validation", "--players", "greedy", "-o"],
            marks=pytest.mark.full,
        ),
        ["offline", "--limit", "1", "-o"],
        ["levels", "make"],
        pytest.param(
            ["train", "egrl", "resnet50_b1.tpu_v4i", "--hierarchy", "nnp_i", "--out"],
            marks=pytest.mark.full,
        ),
    ],
    ids=lambda command: command[0],
)
def test_the_second_command_is_told(other, command):
    process, folder = other
    done = subprocess.run(
        [sys.executable, "-m", "mallocgame", *command, folder],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert f"{folder}: process {process.pid} works in it; wait for its end" in done.stderr
    assert done.stderr.count("\n") == 1 and os.listdir(folder) == [".lock"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_that_is_killed_leaves_the_folder_free(other, number):
    process, folder = other
    process.send_signal(number)
    process.wait()
    with working_in(folder):
        second = working_in(folder)
        with pytest.raises(mg.InvalidInputError, match=f"process {os.getpid()} works"):
            second.__enter__()
    assert os.listdir(folder) == []


def test_a_folder_on_a_full_disk_is_held(tmp_path):
    """A limit of file sizes stands for the disk: who works there can't be written, only held."""
    folder = str(tmp_path / "run")
    command = ["prlimit", "--fsize=0", sys.executable, "-c", WORKS, folder]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        with (
            pytest.raises(mg.InvalidInputError, match="process unknown works in it"),
            working_in(folder),
        ):
            pass
        process.kill()


def test_a_folder_that_vanishes_hides_no_error(tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(ZeroDivisionError), working_in(str(folder)):
        shutil.rmtree(folder)
        raise ZeroDivisionError


def test_a_file_is_written_by_one_process(tmp_path):
    path = str(tmp_path / "table.csv")
    with writing(path), writing(None):
        with pytest.raises(mg.InvalidInputError, match=f"{path}: process {os.getpid()} writes it"):
            writing(path).__enter__()
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "mallocgame",
                "compare",
                "gcn_dense_2048.tpu_v4i",
                "--csv",
                path,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2 and f"process {os.getpid()} writes it" in done.stderr
    assert os.listdir(tmp_path) == []


def test_a_file_is_no_folder(tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(mg.InvalidInputError, match="is no folder"), working_in(str(path)):
        pass
