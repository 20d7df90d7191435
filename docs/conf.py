"""Settings of the documentation site.

sphinx-build docs build/site makes it; that needs `pip install '.[docs]'` and no network.
"""

import pathlib
import re
import struct

from docutils import nodes

import mallocgame

project = "mallocGame"
version = release = mallocgame.__version__
copyright = "the mallocGame authors"

extensions = ["myst_parser"]
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

highlight_language = "none"  # of blocks that don't say

html_theme = "furo"
html_title = f"mallocGame {version}"
html_copy_source = False
html_static_path = ["site"]
html_css_files = ["site.css"]
smartquotes = False  # it makes a dash of the two hyphens of an option
pygments_dark_style = "github-dark"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0062a8", "color-brand-content": "#0062a8"},
    "dark_css_variables": {"color-brand-primary": "#6cb8f0", "color-brand-content": "#6cb8f0"},
}

# The contents, by what a reader wants (Diátaxis). Pages that are named nowhere are how-to guides.
HOW_TO = "How to"
SECTIONS = {
    "Start": ["faq", "safety", "glossary", "related-work"],
    "Tutorials": ["tour", "ppo", "tpu", "add-a-solver"],
    HOW_TO: [
        "train",
        "offline",
        "muzero",
        "egrl",
        "tuned-programs",
        "several-chips",
        "kernels",
        "import",
        "view",
        "ray",
        "embed",
        "cpp",
    ],
    "Reference": [
        "environments",
        "rules",
        "priority-game",
        "schedule-game",
        "placement",
        "observations",
        "levels",
        "programs",
        "solvers",
        "offsets",
        "hardware",
        "files",
        "commands",
        "settings",
        "api-python",
    ],
    "Explanation": [
        "numbers",
        "bounds",
        "results/lp-proof",
        "xla-heuristic",
        "tpu-method",
        "both-prices",
        "schedule",
        "mcts",
        "egrl-method",
        "architecture",
        "testing",
    ],
    "Benchmarks": [
        "benchmarks",
        "leaderboard",
        "results/solvers",
        "results/tpu",
        "results/suites",
        "results/measured",
        "results/baselines",
        "results/muzero",
        "results/egrl",
        "results/policy",
        "results/size",
        "results/speed",
        "results/growth",
    ],
}

_ROOT = pathlib.Path(__file__).resolve().parents[1]


def _contents() -> str:
    docs = _ROOT / "docs"
    there = {path.relative_to(docs).with_suffix("").as_posix() for path in docs.rglob("*.md")}
    there.remove("index")
    named = {page for pages in SECTIONS.values() for page in pages}
    trees = []
    for section, pages in SECTIONS.items():
        shown = [page for page in pages if page in there] + (
            sorted(there - named) if section == HOW_TO else []
        )
        trees.append(
            "\n".join(["```{toctree}", ":hidden:", f":caption: {section}", "", *shown, "```"])
        )
    return "\n\n".join(trees)


def _public_headers() -> list[str]:
    """Returns the paths of the headers that CMake installs.

    Those are left out that it says are of no use by themselves.
    """
    headers = []
    for lists in ("mallocgame/CMakeLists.txt", "bindings/c/CMakeLists.txt"):
        file = _ROOT / lists
        text = file.read_text() if file.exists() else ""
        for files in re.findall(r"FILE_SET HEADERS BASE_DIRS \S+ FILES([^#)]*)", text):
            headers += [f"{file.parent.relative_to(_ROOT)}/{header}" for header in files.split()]
    return headers


def _headers() -> str:
    parts, folder = [], None
    for header in _public_headers():
        path = pathlib.PurePosixPath(header)
        if path.parent.name != folder:
            folder = path.parent.name
            parts.append(f"## {folder}")
        parts.append(f"### {header}\n\n```{{literalinclude}} ../{header}\n:language: cpp\n```")
    return "\n\n".join(parts)


def _front() -> str:
    """The README up to the first game, with links as from docs/."""
    text = (_ROOT / "README.md").read_text()
    begin, end = text.index("\n\n"), text.index("\n## A function of your own")
    links = re.sub(r"(\]\()(?!https?:|docs/)", r"\1../", text[begin:end])
    return links.replace("](docs/", "](").strip()


GENERATED = {"front": _front, "contents": _contents, "headers": _headers}


def _link_inside(app, docname: str, source: list[str]) -> None:
    """Makes links out of docs/ lead to pages of the site, or become plain names.

    Pages are read in the repository, too.
    """

    def target(match: re.Match) -> str:
        text, path, anchor = match[1], match[2], match[3] or ""
        file = (_ROOT / "docs" / docname).parent.joinpath(path).resolve()
        assert file.exists(), f"{docname}: no file {path}"
        if file.is_relative_to(_ROOT / "docs"):
            return match[0]
        inside = file.relative_to(_ROOT).as_posix()
        if inside == "mallocgame/README.md":
            return f"[{text}](/architecture.md{anchor})"
        return text if text.strip("`") == inside or text.startswith("`") else f"{text} (`{inside}`)"

    for name, generate in GENERATED.items():
        mark = f"<!-- {name}: docs/conf.py -->"
        if mark in source[0]:
            source[0] = source[0].replace(mark, generate())
    source[0] = re.sub(r"\[([^\]]+)\]\((\.\./[^)#]+)(#[^)]*)?\)", target, source[0])
    # Marks for tests/python/docs_test.py and make_reference.py; nothing to be shown.
    source[0] = re.sub(r"<!-- (not run: .*?|made by .*?|end) -->\n", "", source[0])


def _width(picture: pathlib.Path) -> int:
    head = picture.read_bytes()[:24]
    if head.startswith(b"GIF"):
        return struct.unpack("<H", head[6:8])[0]
    assert head.startswith(b"\x89PNG"), picture
    return struct.unpack(">I", head[16:20])[0]


def _link_pictures(app, doctree: nodes.document) -> None:
    """Gives pictures their width: Sphinx links such ones, and a click shows them in full."""
    for image in doctree.findall(nodes.image):
        image["width"] = f"{_width(pathlib.Path(app.srcdir, image['uri']))}px"


def setup(app) -> None:
    app.connect("source-read", _link_inside)
    app.connect("doctree-read", _link_pictures)
