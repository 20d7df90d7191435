"""What the installed package consists of."""

import importlib
import importlib.metadata

import pytest

import mallocgame as mg

DIRECT_URL = "direct_url.json"  # where pip writes where a package is from, and how it is installed


def test_contents():
    if "editable" in (importlib.metadata.distribution("mallocgame").read_text(DIRECT_URL) or ""):
        pytest.skip("the package is installed with --editable, so there is no wheel to look into")
    files = {str(file) for file in importlib.metadata.files("mallocgame")}
    ours = {name.removeprefix("mallocgame/") for name in files if name.startswith("mallocgame/")}
    assert {
        "__init__.py",
        "__main__.py",
        "_core.pyi",
        "py.typed",
        "programs/large/manifest.json",
        "programs/manifest.json",
        "viewer/page.html",
    } <= ours
    assert [name for name in ours if name.startswith("_core.") and name.endswith(".so")]
    assert {
        name.removeprefix("programs/").removesuffix(".mgp")
        for name in ours
        if name.endswith(".mgp") and not name.startswith("programs/large/")
    } == set(mg.program_names())
    kinds = {name.rsplit(".", 1)[-1] for name in ours}
    allowed = "py pyc pyi typed so mgp zip json html css js"
    assert kinds <= set(allowed.split()), kinds
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
