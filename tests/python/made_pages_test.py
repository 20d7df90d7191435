"""What docs/make_reference.py makes is in the pages, complete and current."""

import importlib.util
import re

import pytest
from conftest import SOURCE_ROOT

import mallocgame as mg

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def maker():
    path = SOURCE_ROOT / "docs/make_reference.py"
    spec = importlib.util.spec_from_file_location("make_reference", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "page",
    [
        "commands.md",
        "settings.md",
        "observations.md",
        "api-python.md",
        "programs.md",
        "hardware.md",
        "cpp.md",
        "../agents/README.md",
        "../examples/README.md",
    ],
)
def test_a_page_is_current(maker, page):
    if page == "settings.md":
        pytest.importorskip("torch", reason="settings are those of the agents")
    text = (maker.DOCS / page).read_text(encoding="utf-8")
    assert maker.made(page) == text, "stale: python docs/make_reference.py"


def test_a_stale_page_is_noticed(maker, tmp_path, monkeypatch):
    page = (maker.DOCS / "commands.md").read_text(encoding="utf-8")
    (tmp_path / "commands.md").write_text(page.replace("`--seed N`", "`--sead N`"))
    monkeypatch.setattr(maker, "DOCS", tmp_path)
    assert maker.made("commands.md") == page
    (tmp_path / "commands.md").write_text("no marks")
    with pytest.raises(ValueError, match=r"docs/commands.md: no '<!-- made by"):
        maker.made("commands.md")


def test_every_public_name_has_an_entry(maker):
    text = (maker.DOCS / "api-python.md").read_text(encoding="utf-8")
    entries = {*re.findall(r"^### (\w+)$", text, re.MULTILINE), *re.findall(r"- `(\w+)`", text)}
    modules = {*re.findall(r"^## .*: mallocgame\.(\w+)$", text, re.MULTILINE)}
    assert not {*mg.__all__} - entries - modules
    assert {"MallocGameEnv", "VectorEnv", "PlacementEnv"} <= entries


def test_every_command_has_a_section(maker):
    text = (maker.DOCS / "commands.md").read_text(encoding="utf-8")
    assert len(maker.parsers()) > 15
    assert all(f"\n## {name}\n" in text for name in maker.parsers())


def test_every_page_that_is_made_is_compared(maker):
    assert {*maker.MADE} == {*test_a_page_is_current.pytestmark[0].args[1]}


def test_the_first_sentence_of_a_source(maker, tmp_path):
    def opening(name: str, text: str) -> str:
        (tmp_path / name).write_text(text)
        return maker.opening(tmp_path / name)

    assert opening("a.h", "// One (b.h): a\n// thing. Two.\n#ifndef A\n") == "One (b.h): a thing."
    assert opening("a.c", "/* One\n * *thing*. Two. */\nint a;\n") == "One \\*thing\\*."
    assert opening("a.py", '"""One thing.\n\nTwo.\n"""\n') == "One thing."
    assert opening("a.sh", "#!/bin/sh\n# One thing. Two.\ntrue\n") == "One thing."
    with pytest.raises(ValueError, match=r"a\.h: it doesn't open with a sentence"):
        opening("a.h", "#pragma once\n")


def test_docstrings_become_markdown(maker):
    said = (
        "Makes a plan.\n\nseconds: wall time;\n0 is none. seed: of *_all_*.\n\n    solve(1)\n\nEnd."
    )
    assert maker.markdown(said) == (
        "Makes a plan.\n\n- `seconds`: wall time;\n  0 is none. seed: of \\*\\_all\\_\\*.\n\n"
        "```text\nsolve(1)\n```\n\nEnd."
    )
