"""What all Python tests share.

That is the installed package, the command line as a process, one small bundled program, and the
compiler with two small programs of JAX.
"""

import importlib
import json
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

import mallocgame as mg

# In the root of the repository `import mallocgame` finds the C++ sources as a namespace package,
# which has no file.
assert mg.__file__, "run pytest from outside of the repository's root, with mallocgame installed"

# Has the command that follows heed Ctrl-C: a shell that runs the tests in the background has them
# ignore it. Popen's preexec_fn could do that too, but a fork may wait for ever for a lock that one
# of Torch's threads held.
HEEDING = ["env", "--default-signal=INT"]
SOURCE_ROOT = pathlib.Path(__file__).resolve().parents[2]
SMALL = "mlp_train_adam_b512.tpu_v4i"
OTHER = "gcn_dense_2048.tpu_v4i"


@pytest.fixture(scope="session")
def program() -> mg.Program:
    return mg.load_program(SMALL)


@pytest.fixture(scope="session")
def compiler(tmp_path_factory):
    """The compiler for v4i, with a cache of its own."""
    xla = importlib.import_module("mallocgame.xla")
    with xla.Compiler(
        xla.find_target("tpu_v4i"), seconds=300, cache=tmp_path_factory.mktemp("cache")
    ) as shared:
        yield shared


@pytest.fixture(scope="session")
def captured(compiler):
    """Six dense layers as captured for v4i."""
    programs = importlib.import_module("xla_programs")
    return importlib.import_module("mallocgame.xla").capture(
        programs.layers, *programs.LAYERS, compiler=compiler
    )


@pytest.fixture(scope="session")
def captured_loop(compiler):
    """A loop whose weights XLA leaves in main memory, as captured for v4i."""
    programs = importlib.import_module("xla_programs")
    return importlib.import_module("mallocgame.xla").capture(
        programs.loop, *programs.LOOP, compiler=compiler
    )


@pytest.fixture
def run(tmp_path):
    """run(argument...) -> CompletedProcess of `python -m mallocgame`, in an empty folder."""

    def call(*arguments: object) -> subprocess.CompletedProcess:
        command = [sys.executable, "-W", "error", "-m", "mallocgame", *map(str, arguments)]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )

    return call


@pytest.fixture
def run_json(run):
    """run_json(argument...) -> the JSON document of a command that succeeds."""

    def call(*arguments: object) -> dict:
        done = run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return call


def again(value):
    """What comes back from another process."""
    return pickle.loads(pickle.dumps(value))


def half_played(game):
    """The position of a game after ten decisions at random."""
    state = game.initial_state()
    choose = np.random.default_rng(1)
    for _ in range(10):
        state.apply(int(choose.choice(state.legal_actions())))
    return state
