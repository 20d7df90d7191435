"""The notebooks are those of their pages, and run."""

import importlib.util
import json
import os
import sys

import pytest
from conftest import SOURCE_ROOT


def make_notebooks():
    path = SOURCE_ROOT / "docs/make_notebooks.py"
    spec = importlib.util.spec_from_file_location("make_notebooks", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MAKER = make_notebooks()


@pytest.mark.parametrize("name", MAKER.PAGES)
def test_notebooks_are_those_of_their_pages(name):
    text = (MAKER.FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    made = MAKER.without_outputs(json.loads(text))
    assert made == MAKER.notebook(MAKER.PAGES[name]), "python docs/make_notebooks.py --run"


@pytest.mark.parametrize("name", MAKER.PAGES)
def test_notebooks_have_code_and_what_it_prints(name):
    """Where they are shown without being run, readers see what they do."""
    cells = json.loads((MAKER.FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 2 and any(cell["source"][0].startswith("import") for cell in code)
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert all(cell["outputs"] for cell in code if "print" in "".join(cell["source"]))


@pytest.mark.parametrize("name", MAKER.PAGES)
def test_links_of_notebooks_lead_somewhere(name):
    for cell in MAKER.notebook(MAKER.PAGES[name])["cells"]:
        for link in MAKER._LINK.findall("".join(cell["source"])):
            assert (MAKER.FOLDER / link.partition("#")[0]).exists(), link


@pytest.mark.weekly
@pytest.mark.parametrize("name", MAKER.PAGES)
def test_notebooks_run(name, tmp_path):
    nbformat = pytest.importorskip("nbformat", reason=".ci/setup docs")
    client = pytest.importorskip("nbclient", reason=".ci/setup docs")
    notebook = nbformat.read(MAKER.FOLDER / f"{name}.ipynb", as_version=4)
    nbformat.validate(notebook)
    os.environ["PATH"] = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"
    client.NotebookClient(
        notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
