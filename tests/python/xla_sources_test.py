"""What users name as MODULE:NAME, and what is told of their own mistakes."""

import pytest

import mallocgame as mg
from mallocgame.xla.sources import find_source

MODULE = """
import sys
def f(x): return x
def fine(): return f, [1, 2]
def of_a_tuple(): return f, (1,)
pair = (f, [1])
def raises():
    inner()
def inner(): raise RuntimeError("my own\\nmistake")
def ends(): sys.exit("usage: me")
def in_a_library(): import json; json.loads("{")
def takes(x): return f, [x]
def three(): return f, [1], {}
def alone(): return f
def single(): return f, 1
def named(): return f, {"x": 1}
def generator(): return f, (x for x in [1])
def uncallable(): return 3, [1]
async def coroutine(): return f, [1]
"""


@pytest.fixture(autouse=True)
def modules(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [str(tmp_path), *__import__("sys").path])
    for name, text in {
        "sources_of_a_user": MODULE,
        "broken_of_a_user": "\nimport json\nimport does_not_exist_here\n",
        "raising_of_a_user": "def f(): pass\n1 / 0\n",
        "unfinished_of_a_user": "def f(:\n",
        "script_of_a_user": "import sys\nsys.exit(2)\n",
    }.items():
        (tmp_path / f"{name}.py").write_text(text)


@pytest.mark.parametrize(("name", "count"), [("fine", 2), ("of_a_tuple", 1), ("pair", 1)])
def test_found(name, count):
    found, function, arguments = find_source(f"sources_of_a_user:{name}")
    assert (found, function(5), len(arguments)) == (name, 5, count)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("raises", r"RuntimeError: my own \(.*sources_of_a_user.py, line 9\)$"),
        ("ends", r"SystemExit: usage: me \(.*sources_of_a_user.py, line 10\)$"),
        ("in_a_library", r"JSONDecodeError: .*sources_of_a_user.py, line 11\)$"),
        ("takes", "argument: 'x', allowed: a function that returns a pair .* without arguments"),
        ("three", r"found tuple of 3, allowed: a function that returns a pair \(function, argum"),
        ("alone", "found function, allowed: a function that returns a pair"),
        ("single", "found int for the arguments, allowed: a tuple or list"),
        ("named", "found dict for the arguments, .* functools.partial gives those"),
        ("generator", "found generator for the arguments, allowed: a tuple or list"),
        ("uncallable", "found int for the function, allowed: one that can be called"),
        ("coroutine", "found coroutine, allowed: a function that returns a pair"),
        ("absent", "module 'sources_of_a_user' has no 'absent'"),
        ("", "allowed: MODULE:NAME"),
    ],
)
def test_told(name, says):
    with pytest.raises(mg.InvalidInputError, match=says) as told:
        find_source(f"sources_of_a_user:{name}")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("module", "says"),
    [
        ("broken", r"ModuleNotFoundError: No module named 'does_not.*' \(.*broken_of.*, line 3\)$"),
        ("raising", r"ZeroDivisionError: division by zero \(.*raising_of.*, line 2\)$"),
        ("unfinished", r"SyntaxError: .* \(.*unfinished_of_a_user.py, line 1\)$"),
        ("script", r"SystemExit: 2 \(.*script_of_a_user.py, line 2\)$"),
        ("absent", r"ModuleNotFoundError: No module named 'absent_of_a_user'$"),
    ],
)
def test_modules_that_fail(module, says):
    with pytest.raises(mg.InvalidInputError, match=f"can't import '{module}_of_a_user': {says}"):
        find_source(f"{module}_of_a_user:f")
