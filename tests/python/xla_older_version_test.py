"""The tests of `xla_versions_test.py` with an older libtpu in place of the installed one."""

import os
import subprocess
import sys

import pytest
from conftest import SOURCE_ROOT
from xla_versions_test import OLDER


def test_an_older_version(tmp_path):
    folder = tmp_path / "libtpu"
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-cache-dir"]
    got = subprocess.run(
        [*install, "--target", str(folder), f"libtpu=={OLDER}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if got.returncode != 0:
        pytest.skip(f"libtpu {OLDER} can't be had: {got.stderr.strip()[-200:]}")
    environment = dict(os.environ)
    environment.pop("TPU_LIBRARY_PATH", None)  # Importing libtpu sets it to the installed one.
    before = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join([str(folder), *([before] if before else [])])
    settings = ["-c", str(SOURCE_ROOT / "pyproject.toml"), "--rootdir", str(SOURCE_ROOT)]
    tests = SOURCE_ROOT / "tests" / "python" / "xla_versions_test.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *settings, str(tests)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout
