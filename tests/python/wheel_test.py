"""What the installed package consists of."""

import importlib
import importlib.metadata

import pytest

import mallocgame as mg


def test_contents():
    files = {str(file) for file in importlib.metadata.files("mallocgame")}
    ours = {name.removeprefix("mallocgame/") for name in files if name.startswith("mallocgame/")}
    assert {
        "__init__.py",
        "__main__.py",
        "_core.pyi",
        "py.typed",
        "programs/manifest.json",
        "viewer/page.html",
    } <= ours
    assert [name for name in ours if name.startswith("_core.") and name.endswith(".so")]
    assert {
        name.removeprefix("programs/").removesuffix(".mgp")
        for name in ours
        if name.endswith(".mgp")
    } == set(mg.program_names())
    kinds = {name.rsplit(".", 1)[-1] for name in ours}
    assert kinds <= {"py", "pyc", "pyi", "typed", "so", "mgp", "json", "html", "css", "js"}, kinds
    outside = {name for name in files if not name.startswith(("mallocgame/", "mallocgame-"))}
    assert {name.rsplit("/", 1)[-1] for name in outside} <= {"mallocgame"}, outside


def test_metadata():
    metadata = importlib.metadata.metadata("mallocgame")
    assert metadata["Version"] == mg.__version__
    required = {
        line.split(">")[0].split(";")[0].strip()
        for line in metadata.get_all("Requires-Dist")
        if "extra" not in line
    }
    assert required == {"numpy", "rich"}


@pytest.mark.parametrize("module", ["_core", "_agents"])
def test_stubs_name_what_there_is(module):
    import ast
    import pathlib

    if module == "_agents":
        pytest.importorskip("torch")  # its libraries
    _core = importlib.import_module(f"mallocgame.{module}")
    tree = ast.parse((pathlib.Path(mg.__file__).parent / f"{module}.pyi").read_text())
    stubs: dict[str, set[str]] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            stubs[node.name] = {
                f.name
                for f in node.body
                if isinstance(f, ast.FunctionDef) and not f.name.startswith("_")
            }
        elif isinstance(node, ast.FunctionDef):
            stubs[node.name] = set()
        elif isinstance(node, ast.AnnAssign):
            stubs[node.target.id] = set()
    assert set(stubs) == {name for name in dir(_core) if not name.startswith("_")}
    for name, members in stubs.items():
        if isinstance(getattr(_core, name), type):
            assert members == {m for m in dir(getattr(_core, name)) if not m.startswith("_")}, name
