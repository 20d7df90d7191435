"""Settings of the documentation site: sphinx-build docs build/site (needs `pip install '.[docs]'`, no network)."""

import pathlib
import re

import mallocgame

project = "mallocGame"
version = release = mallocgame.__version__
copyright = "the mallocGame authors"  # noqa: A001

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["make_pictures.py"]
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

highlight_language = "none"  # of blocks that don't say
default_role = "literal"  # docstrings mark code by single backquotes
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = f"mallocGame {version}"
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0062a8", "color-brand-content": "#0062a8"},
    "dark_css_variables": {"color-brand-primary": "#6cb8f0", "color-brand-content": "#6cb8f0"},
}

# The contents, by section. Pages that are named nowhere are put under "Use".
SECTIONS = {
    "Start": ["tour", "rules", "view"],
    "Use": ["train", "mcts", "muzero", "placement", "tpu", "cpp", "offsets"],
    "Solvers": ["solvers", "add-a-solver", "xla-heuristic", "bounds"],
    "Trust": ["numbers", "predictor", "benchmarks"],
    "Look up": ["files", "architecture", "api-python", "api-cpp"],
}

_ROOT = pathlib.Path(__file__).resolve().parents[1]


def _contents() -> str:
    there = {path.stem for path in (_ROOT / "docs").glob("*.md")} - {"index"}
    named = {page for pages in SECTIONS.values() for page in pages}
    trees = []
    for section, pages in SECTIONS.items():
        shown = [page for page in pages if page in there] + (sorted(there - named) if section == "Use" else [])
        trees.append("\n".join(["```{toctree}", ":hidden:", f":caption: {section}", "", *shown, "```"]))
    return "\n\n".join(trees)


def _link_inside(app, docname: str, source: list[str]) -> None:
    """Pages are read in the repository, too: their links out of docs/ lead to pages of the site here, or become plain names."""

    def target(match: re.Match) -> str:
        text, path, anchor = match[1], match[2], match[3] or ""
        if path == "mallocgame/README.md":
            return f"[{text}](architecture.md{anchor})"
        if path.startswith("docs/"):
            return f"[{text}]({path.removeprefix('docs/')}{anchor})"
        assert (_ROOT / path).exists(), f"{docname}: no file {path}"
        return text if text.strip("`") == path or text.startswith("`") else f"{text} (`{path}`)"

    source[0] = re.sub(r"\[([^\]]+)\]\(\.\./([^)#]+)(#[^)]*)?\)", target, source[0])
    source[0] = source[0].replace("<!-- contents: docs/conf.py -->", _contents())
    # A mark for the test that runs the blocks (tests/python/docs_test.py); nothing to be shown.
    source[0] = re.sub(r"<!-- not run: .*? -->\n", "", source[0])


_ITEM = re.compile(r"([A-Za-z_]\w*(?:, \w+)*): (.*)")


def _plain_docstring(app, what, name, obj, options, lines: list[str]) -> None:
    """Our docstrings are plain text: lines "name: what it means", with what follows indented, become a list."""
    done: list[str] = []
    in_item = False
    for line in lines:
        item = _ITEM.fullmatch(line)
        text = line.replace("*", r"\*").strip()
        if not text:
            in_item = False
            done.append("")
        elif item and not (done and done[-1] and not in_item):  # at the start of a paragraph, or behind another item
            in_item = True
            done.append(f"- `{item[1]}`: " + item[2].replace("*", r"\*"))
        elif in_item:
            done.append("  " + text)
        else:
            done.append(text if not line.startswith("    ") else line)
    lines[:] = [*done, ""]


def _plain_signature(app, what, name, obj, options, signature, returns):
    """pybind11 writes out `self`, and what else than an int would do for one."""
    if signature is None:
        return None
    signature = re.sub(r"\(self: [^,)]+(, )?", "(", signature)
    return signature.replace("SupportsInt | SupportsIndex", "int").replace("SupportsFloat | SupportsIndex", "float"), returns


def setup(app) -> None:
    app.connect("source-read", _link_inside)
    app.connect("autodoc-process-docstring", _plain_docstring)
    app.connect("autodoc-process-signature", _plain_signature)
