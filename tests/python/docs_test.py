"""Every code block of README.md, CONTRIBUTING.md and docs/ runs, and is fenced.

Python runs by itself, shell commands of a page one after the other, and C++ is compiled. Pages
whose blocks another test runs are named in ELSEWHERE, those that need more than the `test` extra in
NEEDS.
"""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable

import pytest
from conftest import SOURCE_ROOT
from doc_blocks import BLOCK, DOCS, Block, blocks_of

pytestmark = pytest.mark.full

PAGES = [
    *(
        SOURCE_ROOT / name
        for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md")
    ),
    *sorted(DOCS.rglob("*.md")),
]
ELSEWHERE = {"train.md": "train_guide_test.py"}
NEEDS = {
    "README.md": ("gymnasium",),
    "benchmarks.md": ("matplotlib",),
    "bounds.md": ("highspy",),
    "egrl.md": ("torch",),
    "embed.md": ("gymnasium", "jax"),
    "muzero.md": ("torch",),
    "observations.md": ("highspy",),
    "placement.md": ("gymnasium", "highspy"),
    "ppo.md": ("gymnasium", "sb3_contrib"),
    "settings.md": ("torch",),
    "tpu.md": ("jax", "libtpu"),
}

# What compiles with XLA, trains, or plays a benchmark.
LONG = re.compile(
    r"^(\w+=\S+ )*mallocgame (train|xla|benchmark|levels make|offline)\b"
    r"|\bmgx\.|mallocgame\.xla|\.train\(|\.learn\(",
    re.MULTILINE,
)
# A budget of a shell command. Weekly, a page has those that it shows; in full, at most the seconds
# here, in which all of the same code runs.
BUDGET = re.compile(r"(?<=--seconds )\d+")
MOST_SECONDS = 2
RUN = {"python", "sh", "cpp", "c"}
# These kinds are not run.
SHOWN = {
    "",
    "py",  # a signature
    "text",
    "json",
    "bibtex",
    "cmake",
    "csv",
    "{toctree}",
    "{include}",
    "{literalinclude}",
    "{eval-rst}",
}
PROGRAM = SOURCE_ROOT / "bindings/python/mallocgame/programs/resnet50_b1.tpu_v4i.mgp"
BLOCKS = [block for path in PAGES for block in blocks_of(path)]


def runnable(kind: str) -> list[Block]:
    return [
        block
        for block in BLOCKS
        if block.kind == kind and block.reason is None and block.page not in ELSEWHERE
    ]


def with_tiers(things: list, texts: list[str]) -> list:
    """Returns parameters of a test; those that tune or train, by their text, are weekly."""
    return [
        pytest.param(thing, marks=[pytest.mark.weekly] if LONG.search(text) else [])
        for thing, text in zip(things, texts, strict=True)
    ]


def name(block: Block) -> str:
    return f"{block.page}:{block.line}"


def require_shown(block: Block, output: str) -> None:
    """Requires that a block printed what the page shows right behind it, if anything."""
    place = BLOCKS.index(block) + 1
    if place < len(BLOCKS) and BLOCKS[place].is_output_of(block):
        assert [line.rstrip() for line in output.splitlines()] == BLOCKS[place].text.splitlines()


def need(page: str) -> None:
    for module in NEEDS.get(page, ()):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{page} needs {module}, which isn't installed")


def check(command: list[str], folder: pathlib.Path, seconds: float = 600) -> str:
    environment = os.environ | {
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    }
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_blocks_are_found_and_of_known_kinds():
    assert len(runnable("python")) >= 8 and len(runnable("sh")) >= 4 and runnable("cpp")
    for block in BLOCKS:
        allowed = RUN | SHOWN
        assert block.kind in allowed, (
            f"{name(block)}: a block of kind '{block.kind}'; allowed: {', '.join(sorted(allowed))}"
        )
    for path in PAGES:  # an unclosed block would hide all others
        assert len(re.findall(r"^```", path.read_text(), re.MULTILINE)) == 2 * len(
            blocks_of(path)
        ), path.name


def test_all_code_is_fenced():
    """An indented block has no kind, so nothing would run it or say why not."""
    for path in PAGES:
        text = BLOCK.sub("", path.read_text())
        indented = re.search(r"(?:\A|\n)[ \t]*\n( {4,}(?![-*] |\d+\. )\S.*)", text)
        assert indented is None, f"{path.name}: fence '{indented[1].strip()}'"


PYTHON = runnable("python")


@pytest.mark.parametrize("block", with_tiers(PYTHON, [block.text for block in PYTHON]), ids=name)
def test_python(block, tmp_path):
    need(block.page)
    output = check([sys.executable, "-W", "error", "-c", block.text], tmp_path)
    require_shown(block, output)


SHELL_PAGES = sorted({block.page for block in runnable("sh")})
SHELL_TEXTS = [
    "".join(block.text for block in runnable("sh") if block.page == page) for page in SHELL_PAGES
]


def within_budget(text: str) -> str:
    return BUDGET.sub(lambda seconds: str(min(int(seconds[0]), MOST_SECONDS)), text)


@pytest.mark.parametrize("page", with_tiers(SHELL_PAGES, SHELL_TEXTS))
def test_shell(page, request, tmp_path):
    weekly = request.node.get_closest_marker("weekly")
    run_page(page, tmp_path, str if weekly else within_budget)


SHORTENED = [
    page
    for page, text in zip(SHELL_PAGES, SHELL_TEXTS, strict=True)
    if within_budget(text) != text and not LONG.search(text)
]


@pytest.mark.weekly
@pytest.mark.parametrize("page", SHORTENED)
def test_shell_as_it_stands(page, tmp_path):
    run_page(page, tmp_path, str)


def run_page(page: str, folder: pathlib.Path, edited: Callable[[str], str]) -> None:
    need(page)
    blocks = [block for block in BLOCKS if block.page == page]
    for block in blocks:
        if block.kind == "sh" and block.reason is None:
            output = check(["bash", "-euo", "pipefail", "-c", edited(block.text)], folder)
            require_shown(block, output)


FRAGMENT = """
#include <memory>
#include <string>
#include "mallocgame/game/time/state.h"
#include "mallocgame/plan/offsets.h"
#include "mallocgame/replay/files.h"
#include "mallocgame/replay/program_file.h"
{includes}
void Fragment(const mallocgame::Program& program, const mallocgame::Hardware& hardware,
              mallocgame::Plan plan) {{
  (void)program, (void)hardware, (void)plan;
{text}
}}
"""


@pytest.mark.parametrize("block", runnable("cpp"), ids=name)
def test_cpp_compiles(block, tmp_path):
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ isn't installed")
    text = block.text
    if not re.search(r"^(int main|class |struct |namespace )", text, re.MULTILINE):  # statements
        includes = "\n".join(re.findall(r"^#include.*$", text, re.MULTILINE))
        text = FRAGMENT.format(
            includes=includes, text=re.sub(r"^#include.*$", "", text, flags=re.MULTILINE)
        )
    (tmp_path / "block.cc").write_text(text)
    check([compiler, "-std=c++20", "-fsyntax-only", "-I", str(SOURCE_ROOT), "block.cc"], tmp_path)


@pytest.mark.parametrize("block", runnable("c"), ids=name)
def test_c_runs(block, tmp_path):
    library = SOURCE_ROOT / "build/cpp/bindings/c"
    compiler = shutil.which("cc")
    if compiler is None or not (library / "libmallocgame_c.so").exists():
        pytest.skip("there is no C compiler, or build/cpp has no mallocgame_c")
    checked = re.sub(r"^(mg_\w+\(.*\));$", r"if (\1 != MG_OK) return 1;", block.text, flags=re.M)
    assert checked.count("MG_OK") > 2
    (tmp_path / "block.c").write_text(
        f"#include <mallocgame.h>\nint main(void) {{\n{checked}\nreturn 0; }}\n"
    )
    shutil.copy(PROGRAM, tmp_path)
    include, where = SOURCE_ROOT / "bindings/c", f"-Wl,-rpath,{library}"
    check([compiler, "block.c", f"-I{include}", f"-L{library}", where, "-lmallocgame_c"], tmp_path)
    check(["./a.out"], tmp_path)


def test_links_lead_somewhere():
    for path in PAGES:
        for link, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", text_of(path)):
            if re.match(r"https?:", link):
                continue
            file = path.parent / link if link else path
            assert file.exists(), f"{path.name}: no file {link}"
            assert not anchor or anchor in anchors_of(file), f"{path.name}: no {link}#{anchor}"


def text_of(page: pathlib.Path) -> str:
    return BLOCK.sub("", page.read_text())


def anchors_of(page: pathlib.Path) -> set[str]:
    """Returns the anchors that GitHub and the site give to the headings of a page."""
    titles = re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}


def test_every_example_is_in_the_index():
    index = (SOURCE_ROOT / "examples/README.md").read_text()
    examples = [*(SOURCE_ROOT / "examples").glob("*.*")]
    assert len(examples) > 20
    assert not [
        one.name for one in examples if f"({one.name})" not in index and one.suffix != ".md"
    ]


def test_pages_that_code_names_are_there():
    """In docstrings, which the site shows, in comments and in messages."""
    folders = ("mallocgame", "agents", "bindings", "benchmarks", "examples")
    files = [path for folder in folders for path in (SOURCE_ROOT / folder).rglob("*")
             if path.suffix in (".h", ".cc", ".py", ".pyi")]  # fmt: skip
    named = {page for path in files for page in re.findall(r"docs/[\w/-]+\.md", path.read_text())}
    assert len(named) > 10
    assert not [page for page in sorted(named) if not (SOURCE_ROOT / page).exists()]


@pytest.mark.weekly
def test_the_site_builds(tmp_path):
    for module in ("sphinx", "myst_parser", "furo"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} isn't installed: pip install 'mallocgame[docs]'")
    check(
        [
            sys.executable,
            "-m",
            "sphinx",
            "-q",
            "-W",
            "--keep-going",
            str(SOURCE_ROOT / "docs"),
            "site",
        ],
        tmp_path,
    )
    index = (tmp_path / "site" / "index.html").read_text()
    for page in DOCS.rglob("*.md"):
        name = page.relative_to(DOCS).with_suffix(".html").as_posix()
        assert f'href="{name}"' in index or name == "index.html", (
            f"{name} is on no page of the contents"
        )
    headers = (tmp_path / "site" / "cpp.html").read_text()
    for header in (
        "program/program.h",
        "simulator/simulate.h",
        "game/game.h",
        "solvers/solver.h",
        "hlo/import/import.h",
    ):
        assert f">mallocgame/{header}<" in headers, header
    asked = [
        link
        for page in (tmp_path / "site").glob("*.html")
        for link in re.findall(
            r'(?:src|href)="(https?://[^"]+\.(?:js|css|woff2?))', page.read_text()
        )
    ]
    assert not asked  # nothing is loaded from elsewhere
