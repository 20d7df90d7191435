"""The stubs of the extension modules name what the extensions have, each with a docstring."""

import ast
import importlib
import pathlib

import pytest

import mallocgame as mg

PACKAGE = pathlib.Path(mg.__file__).parent


def in_stub(module: str) -> dict[str, str | None]:
    """The docstrings by name; those of methods and properties as Class.name.

    Plain values have none: their name maps to "".
    """
    found: dict[str, str | None] = {}
    for node in ast.parse((PACKAGE / f"{module}.pyi").read_text()).body:
        if isinstance(node, ast.AnnAssign):
            found[ast.unparse(node.target)] = ""
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = ast.get_docstring(node)
        if isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.FunctionDef):
                    found[f"{node.name}.{member.name}"] = ast.get_docstring(member)
                elif isinstance(member, ast.AnnAssign):
                    found[f"{node.name}.{ast.unparse(member.target)}"] = ""
    return found


def in_extension(module: str) -> set[str]:
    """The public names of the extension module; those of its own classes as Class.name."""
    there = importlib.import_module(f"mallocgame.{module}")
    names = set()
    for name, value in vars(there).items():
        if name.startswith("_"):
            continue
        names.add(name)
        if isinstance(value, type) and value.__module__ == there.__name__:
            names |= {f"{name}.{member}" for member in vars(value) if not member.startswith("_")}
    return names


@pytest.fixture(params=["_core", pytest.param("_agents", marks=pytest.mark.full)])
def module(request):
    if request.param == "_agents":
        pytest.importorskip("torch", exc_type=ImportError)
        pytest.importorskip("mallocgame._agents", exc_type=ImportError)
    return request.param


def test_stub_and_extension_have_the_same_names(module):
    public = {name for name in in_stub(module) if not name.rpartition(".")[2].startswith("_")}
    there = in_extension(module)
    assert sorted(there - public) == [], "in the extension only"
    assert sorted(public - there) == [], "in the stub only"


def test_special_methods_of_the_stub_are_there(module):
    there = importlib.import_module(f"mallocgame.{module}")
    for name in in_stub(module):
        owner, _, member = name.rpartition(".")
        if member.startswith("__"):
            assert hasattr(getattr(there, owner), member), name


def test_every_name_has_a_docstring(module):
    """A docstring is a summary in one line and, behind an empty line, what else there is to say."""
    for name, text in in_stub(module).items():
        assert text is not None, name
        lines = text.splitlines()
        assert len(lines) < 2 or lines[1] == "", name
        assert not lines or lines[0].endswith((".", ":")), name
