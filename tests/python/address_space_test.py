"""A library that would abort or hang for want of address space is not even loaded."""

import re
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("library", "megabytes", "code"),
    [
        ("JAX", 1500, "from mallocgame.xla.lowering import lower; lower(abs, 1.0)"),
        ("SciPy", 400, "from mallocgame.experiments.intervals import load_rliable; load_rliable()"),
        pytest.param(
            "Torch",
            600,
            "from mallocgame.agents import muzero_settings; muzero_settings()",
            marks=pytest.mark.full,
        ),
    ],
)
def test_too_little_address_space_for_a_library_is_told(library, megabytes, code):
    with_limit = ["prlimit", f"--as={megabytes * 10**6}", sys.executable, "-c", code]
    ended = subprocess.run(with_limit, capture_output=True, text=True, timeout=600)
    said = rf"MallocGameError: {library} needs \d+ MiB of address space, .* is \d+ MiB"
    assert ended.returncode == 1 and re.search(said, ended.stderr)
