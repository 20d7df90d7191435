"""Without Gymnasium everything but the environments works, and those say what to install."""

import subprocess
import sys

HIDE = """
import sys
for name in ("gymnasium", "torch", "rich"):
    sys.modules[name] = None
import mallocgame as mg
state = mg.Game(mg.load_program("wavernn_64steps_b8.tpu_v4i")).initial_state()
mg.observation.Observer(state.game).observe(state)
for name in ("MallocGameEnv", "VectorEnv"):
    try:
        getattr(mg, name)
    except ImportError as error:
        assert "pip install 'mallocgame[gym]'" in str(error), error
    else:
        raise AssertionError(name)
try:
    mg.Nothing
except AttributeError:
    pass
else:
    raise AssertionError("an attribute that isn't there")
"""


def test_importing_needs_numpy_alone():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", HIDE],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
