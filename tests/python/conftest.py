"""What all Python tests share.

That is the installed package, the command line as a process, one small bundled program, and the
compiler with two small programs of JAX.
"""

import contextlib
import fcntl
import functools
import importlib
import json
import os
import pathlib
import pickle
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from typing import IO

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
ANSWERS = SOURCE_ROOT / "tests/python/answers"
SMALL = "mlp_train_adam_b512.tpu_v4i"
OTHER = "gcn_dense_2048.tpu_v4i"


@contextlib.contextmanager
def one_at_a_time(path: pathlib.Path) -> Iterator[None]:
    """Waits until no other process is in here for the same path."""
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def program() -> mg.Program:
    return mg.load_program(SMALL)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--record-answers",
        action="store_true",
        help=f"keep in {ANSWERS.relative_to(SOURCE_ROOT)} what the compiler answers anew",
    )


@pytest.fixture(scope="session")
def answers(request, tmp_path_factory) -> Iterator[pathlib.Path]:
    """The folder of the compiler's answers that all processes of this test run share.

    It begins with those of tests/python/answers, which spare a compile wherever module, options and
    versions are the same; what has changed is compiled. The weekly tier begins without them.
    """
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "answers"
    with one_at_a_time(folder):
        if not folder.exists():
            folder.mkdir()
            if request.config.getoption("--tier") != "weekly":
                shutil.copytree(ANSWERS, folder, dirs_exist_ok=True)
    yield folder
    if request.config.getoption("--record-answers"):
        for answer in folder.glob("*.zip"):
            shutil.copy(answer, ANSWERS)


@pytest.fixture(scope="session")
def compiler(answers):
    """The compiler for v4i."""
    xla = importlib.import_module("mallocgame.xla")
    with xla.Compiler(xla.find_target("tpu_v4i"), seconds=300, cache=answers) as shared:
        yield shared


def captured_by(compiler, answers: pathlib.Path, name: str):
    """What is captured of a function of xla_programs. One process asks, the others are answered."""
    programs, xla = map(importlib.import_module, ("xla_programs", "mallocgame.xla"))
    with one_at_a_time(answers / name):
        function, arguments = getattr(programs, name), getattr(programs, name.upper())
        return xla.capture(function, *arguments, compiler=compiler)


@pytest.fixture(scope="session")
def captured(compiler, answers):
    """Six dense layers as captured for v4i."""
    return captured_by(compiler, answers, "layers")


@pytest.fixture(scope="session")
def captured_loop(compiler, answers):
    """A loop whose weights XLA leaves in main memory, as captured for v4i."""
    return captured_by(compiler, answers, "loop")


@contextlib.contextmanager
def outputs_to(out: IO[str], err: IO[str]) -> Iterator[None]:
    """Sends to two files what Python and C++ write to standard output and standard error."""
    kept = os.dup(1), os.dup(2)
    os.dup2(out.fileno(), 1), os.dup2(err.fileno(), 2)
    try:
        with (
            open(1, "w", closefd=False) as stdout,
            open(2, "w", buffering=1, closefd=False) as stderr,
            contextlib.redirect_stdout(stdout),
            contextlib.redirect_stderr(stderr),
        ):
            yield
    finally:
        for number, one in enumerate(kept, 1):
            os.dup2(one, number)
            os.close(one)


def command(*arguments: object, folder: pathlib.Path) -> subprocess.CompletedProcess:
    """Runs `mallocgame argument...` in the folder.

    It is done in this process, as to import everything anew takes longer than most commands.
    """
    main = importlib.import_module("mallocgame._cli.main").main
    texts = [*map(str, arguments)]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        with contextlib.chdir(folder), outputs_to(out, err):
            try:
                status = main(texts)
            except SystemExit as end:  # argparse ends so
                status = end.code
        out.seek(0), err.seek(0)
        return subprocess.CompletedProcess(texts, status, out.read(), err.read())


@pytest.fixture
def run(tmp_path):
    """run(argument...) -> CompletedProcess of `mallocgame argument...`, in an empty folder."""
    return functools.partial(command, folder=tmp_path)


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


@pytest.fixture(scope="module")
def browser():
    """Chromium, run by Playwright; skips where one of them is missing."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="Playwright isn't installed: pip install 'mallocgame[test]'"
    )
    executable = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if executable is None:
        pytest.skip("Chromium isn't installed: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser):
    """open_page(path) returns the page in a new window.

    At the end nothing may have gone wrong in it, nor left the machine.
    """
    wrong, asked, windows = [], [], []

    def call(path, width=1280, height=800, scheme="light"):
        window = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        windows.append(window)
        window.on(
            "console",
            lambda message: (
                wrong.append(message.text) if message.type in ("error", "warning") else None
            ),
        )
        window.on("pageerror", lambda error: wrong.append(str(error)))
        window.on("request", lambda request: asked.append(request.url))
        window.goto(path.as_uri())
        window.wait_for_function("document.getElementById('seen').value !== ''")
        return window

    yield call
    for window in windows:
        window.close()
    assert not wrong
    assert all(url.startswith(("file:", "data:")) for url in asked) and len(
        [url for url in asked if url.startswith("file:")]
    ) == len(windows)
