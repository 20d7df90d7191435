"""The build writes stubs of the extension modules, of which every public name has a docstring."""

import ast
import importlib
import pathlib

import pytest


@pytest.fixture(params=["_core", pytest.param("_agents", marks=pytest.mark.full)])
def extension(request):
    if request.param == "_agents":
        pytest.importorskip("torch", exc_type=ImportError)
        pytest.importorskip("mallocgame._agents", exc_type=ImportError)
    return importlib.import_module(f"mallocgame.{request.param}")


def test_every_public_name_has_a_docstring(extension):
    for name, value in vars(extension).items():
        if name.startswith("_") or not callable(value):
            continue
        assert value.__doc__, name
        if isinstance(value, type) and value.__module__ == extension.__name__:
            for member, inner in vars(value).items():
                assert member.startswith("_") or inner.__doc__, f"{name}.{member}"


def test_the_stub_has_types():
    """It says what arrays hold, and names classes that are bound behind what returns them."""
    path = pathlib.Path(importlib.import_module("mallocgame._core").__file__)
    returns = {
        f"{node.name}.{member.name}": ast.unparse(member.returns)
        for node in ast.parse(path.with_name("_core.pyi").read_text()).body
        if isinstance(node, ast.ClassDef)
        for member in node.body
        if isinstance(member, ast.FunctionDef) and member.returns
    }
    assert returns["Plan.copies"] == "numpy.typing.NDArray[numpy.void]"
    assert returns["Plan.served_by"] == "numpy.typing.NDArray[numpy.int32]"
    assert returns["Program.xla_plan"] == "Plan | None"
    assert returns["Game.initial_state"] == "State"
    assert returns["Placement.evaluate"].endswith(".PlacementOutcome")
