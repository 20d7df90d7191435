"""Pages say what they promise: a page of results says command, date and machine, and files that a
page names are there. No page has a limit of length; all of them together have one.
"""

import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PROOFS = {"lp-proof"}

GUIDES = sorted(DOCS.glob("*.md"))
RESULTS = sorted(page for page in (DOCS / "results").glob("*.md") if page.stem not in PROOFS)
# A name in backquotes that is a path inside the repository, not a command or a pattern.
PATH = re.compile(r"`((?:mallocgame|agents|bindings|tests|benchmarks|examples|docs)/[\w./-]+)`")


MADE = re.compile(r"<!-- made by .*?<!-- end -->", re.DOTALL)
# Words as `wc -w` counts them, bars of tables and code included, without what scripts make of the
# code (lists of commands, settings, columns, Python names, programs, chips, headers and examples;
# notebooks) and what is for developers of a release.
MOST_WORDS = 38_000
NOT_COUNTED = {"CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}


def test_pages_are_not_too_many_words():
    tracked = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True)
    counted = [ROOT / name for name in tracked.stdout.split() if name not in NOT_COUNTED]
    assert len(counted) > 60
    words = sum(len(MADE.sub("", path.read_text()).split()) for path in counted)
    assert words <= MOST_WORDS, f"{words:,} words"


@pytest.mark.parametrize("page", [ROOT / "README.md", *GUIDES], ids=lambda page: page.name)
def test_a_page_begins_with_its_title(page):
    assert page.read_text().startswith("# ")


@pytest.mark.parametrize("page", [*GUIDES, *RESULTS], ids=lambda page: page.stem)
def test_tables_are_whole(page):
    """A row behind an empty line is no part of the table above, and is shown as text with bars."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    tables = [part.strip().splitlines() for part in text.split("\n\n") if part.startswith("|")]
    assert not [rows[0] for rows in tables if not re.fullmatch(r"[| :-]+", (*rows, "")[1])]


@pytest.mark.parametrize("page", RESULTS, ids=lambda page: page.name)
def test_results_say_command_date_and_machine(page):
    text = page.read_text()
    for what in ("command", "date"):
        assert re.search(rf"^\| {what} \| .+ \|$", text, re.MULTILINE), f"{page.name}: no {what}"
    assert re.search(r"^\| machine \| .+ \|$|[Mm]achine of all tables", text, re.MULTILINE), (
        f"{page.name}: no machine"
    )


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", *(f"docs/{page.name}" for page in GUIDES)])
def test_files_that_a_page_names_are_there(page):
    text = (ROOT / page).read_text()
    named = {path.rstrip("/.") for path in PATH.findall(text)}
    missing = [
        path
        for path in sorted(named)
        if not (ROOT / path).exists() and not re.search(r"NAME|TOPIC|FOLDER|-v0$", path)
    ]
    assert not missing, f"{page} names {', '.join(missing)}"


@pytest.mark.parametrize("folder", ["mallocgame", "agents"])
def test_headers_that_a_map_names_are_there(folder):
    headers = re.findall(r"`([\w/]+\.(?:h|cc))`", (ROOT / folder / "README.md").read_text())
    missing = [header for header in headers if not (ROOT / folder / header).exists()]
    assert headers and not missing, f"{folder}/README.md names {', '.join(missing)}"
