"""Programs whose kernels pin arrays and start DMAs: no plan breaks that."""

import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.weekly

CAMPAIGN = pathlib.Path(__file__).parents[1] / "campaigns" / "pins.py"


@pytest.mark.parametrize("target", ["tpu_v5e", "tpu_v5p", "tpu7x"])
def test_no_plan_breaks_a_pin(target, tmp_path):
    said = subprocess.run(
        [sys.executable, CAMPAIGN, "--targets", target, "--games", "500"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stdout + said.stderr
    assert "0 wrong, 0 refused" in said.stdout
