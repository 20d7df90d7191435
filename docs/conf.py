"""Settings of the documentation site.

sphinx-build docs build/site makes it; that needs `pip install '.[docs]'` and no network.
"""

import argparse
import importlib
import importlib.util
import os
import pathlib
import re

import mallocgame

project = "mallocGame"
version = release = mallocgame.__version__
copyright = "the mallocGame authors"

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["make_pictures.py"]
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

highlight_language = "none"  # of blocks that don't say
# code in docstrings is taken for Python, and needn't be
suppress_warnings = ["misc.highlighting_failure"]
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

# The contents, by what a reader wants (Diátaxis). Pages that are named nowhere are how-to guides.
HOW_TO = "How to"
SECTIONS = {
    "Start": ["faq", "glossary", "related-work"],
    "Tutorials": ["tour", "ppo", "tpu", "add-a-solver"],
    HOW_TO: [
        "train",
        "rllib",
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
        "rules",
        "priority-game",
        "schedule-game",
        "placement",
        "observations",
        "levels",
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
        "schedule",
        "styles",
        "mcts",
        "muzero-method",
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
        "results/xla-heuristic",
        "results/bounds",
        "results/numbers",
        "results/chips",
        "results/size",
        "results/speed",
        "results/growth",
        "results/offsets",
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
    for lists in (
        "mallocgame/CMakeLists.txt",
        "agents/mcts/CMakeLists.txt",
        "bindings/c/CMakeLists.txt",
    ):
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


# The Python reference: names by topic, or lines of reStructuredText. Other names of the package
# come last, so that nothing is left out.
REFERENCE = {
    "Programs and hardware": [
        "load_program",
        "program_names",
        "import_hlo",
        "save_program",
        "hardware",
        "Program",
        "Hardware",
    ],
    "Levels": [
        "levels",
        "Level",
        ".. automodule:: mallocgame.level_sets",
        "   :members: find_level, of_level, has_score",
    ],
    "The game": ["Game", "State", "Action", "Mode"],
    "Plans and judges": [
        "Plan",
        "all_main_plan",
        "load_plan",
        "save_plan",
        "validate",
        "Verdict",
        "simulate",
        "Report",
    ],
    "Solvers": ["solve", "solver_names", "SolveResult"],
    "Logged games": ["record", "save_log", "load_log", "replay"],
    "Games without a program": ["TimeGame", "PriorityGame", "ScheduleGame"],
    "Environments and observations": ["MallocGameEnv", "VectorEnv"],
    "Pictures": [
        ".. automodule:: mallocgame.viewer",
        "   :members: write_page, make_page",
        "   :imported-members:",
        ".. automodule:: mallocgame.plots",
        "   :members: save_comparison, save_curves, save_speed_ups, save_maps",
    ],
}
# Members that are shown where a class has many from elsewhere.
MEMBERS = {"MallocGameEnv": "reset, step, action_masks, state, game", "VectorEnv": "reset, step"}
# Modules with a section of their own.
MODULES = {
    "actions": "Actions",
    "calibration": "Calibrated prices",
    "files": "Plans and game logs in files",
    "records": "Records of arrays",
    "observation": "Parts and columns of an observation",
    "bounds": "Bounds",
    "offsets": "Offsets",
    "placement": "The placement problem",
    "mcts": "Tree search",
    "offline": "Offline data",
    "experiments": "Experiments",
    "agents": "Learning agents",
    "xla": "The compiler",
}


def _directive(line: str) -> list[str]:
    if not line.isidentifier():
        return [line]
    if not isinstance(getattr(mallocgame, line), type):
        return [f".. autofunction:: {line}"]
    return [f".. autoclass:: {line}", f"   :members: {MEMBERS.get(line, '')}".rstrip()]


def _python_reference() -> str:
    shown = {line for lines in REFERENCE.values() for line in lines}

    def missing(name: str) -> bool:
        value = getattr(mallocgame, name)
        error = isinstance(value, type) and issubclass(value, Exception)
        return callable(value) and not error and name not in shown

    names = REFERENCE | {"More": [name for name in mallocgame.__all__ if missing(name)]}
    sections = {
        title: [".. currentmodule:: mallocgame", *(d for line in lines for d in _directive(line))]
        for title, lines in names.items()
        if lines
    }
    for name, title in MODULES.items():
        if importlib.util.find_spec(f"mallocgame.{name}") is not None:
            more = [
                "   :imported-members:",
                "   :inherited-members: int, tuple, ImportError, BaseException",
            ]
            own = hasattr(importlib.import_module(f"mallocgame.{name}"), "__all__")
            sections[title] = [f".. automodule:: mallocgame.{name}", "   :members:", *more * own]
    sections["Errors"] = [".. automodule:: mallocgame.errors", "   :members:"]
    return "\n".join(
        f"## {title}\n\n```{{eval-rst}}\n" + "\n".join(lines) + "\n```\n"
        for title, lines in sections.items()
    )


def _table(rows: list[tuple[str, ...]]) -> str:
    """Returns a table in Markdown. The first row is its header."""
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "| --- " * len(rows[0]) + "|", *lines[1:]])


def _columns() -> str:
    """Every column of an observation, of all games."""
    observation = importlib.import_module("mallocgame.observation")
    parts = [
        ("The time game: accesses", observation.access_features()),
        ("The time game: actions", observation.action_features("time")),
        ("The time game: scalars", observation.scalar_features("time")),
        ("The priority game: candidates", observation.candidate_features()),
        ("The priority game: actions", observation.action_features("priority")),
        ("The priority game: scalars", observation.scalar_features("priority")),
        ("The schedule game: units", observation.unit_features()),
        ("The schedule game: scalars", observation.scalar_features("schedule")),
    ]
    return "\n\n".join(
        f"### {title}\n\n" + _table([("column", "meaning"), *((f"`{n}`", m) for n, m in features)])
        for title, features in parts
    )


def _commands_by_name() -> dict[str, argparse.ArgumentParser]:
    """Returns the parsers of all commands that do something."""
    found = {}

    def look(name: str, parser: argparse.ArgumentParser) -> None:
        below = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
        if not below:
            found[name] = parser
        for action in below:
            for command, child in action.choices.items():
                look(f"{name} {command}", child)

    look("mallocgame", importlib.import_module("mallocgame._cli.main")._parser())
    return found


def _commands() -> str:
    """What `--help` prints of each command."""
    os.environ["COLUMNS"] = "100"  # argparse's width
    return "\n\n".join(
        f"## {name}\n\n```text\n{parser.format_help().rstrip()}\n```"
        for name, parser in _commands_by_name().items()
    )


def _settings(agent: str) -> str:
    """All settings of an agent, or that this mallocgame was built without agents."""
    try:
        agents = importlib.import_module("mallocgame.agents")
        settings = {"MuZero": agents.muzero_settings, "EGRL": agents.egrl_settings}[agent]()
    except ImportError:
        return "This site was made without Torch, so the settings are not here."
    rows = [(f"`{s.name}`", f"`{s.default}`", s.allowed, s.meaning) for s in settings]
    return _table([("setting", "default", "allowed", "meaning"), *rows])


GENERATED = {
    "contents": _contents,
    "headers": _headers,
    "python": _python_reference,
    "columns": _columns,
    "commands": _commands,
    "settings of MuZero": lambda: _settings("MuZero"),
    "settings of EGRL": lambda: _settings("EGRL"),
}


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

    source[0] = re.sub(r"\[([^\]]+)\]\((\.\./[^)#]+)(#[^)]*)?\)", target, source[0])
    for name, generate in GENERATED.items():
        mark = f"<!-- {name}: docs/conf.py -->"
        if mark in source[0]:
            source[0] = source[0].replace(mark, generate())
    # A mark for the test that runs the blocks (tests/python/docs_test.py); nothing to be shown.
    source[0] = re.sub(r"<!-- not run: .*? -->\n", "", source[0])


_ITEM = re.compile(r"([A-Za-z_]\w*(?:, \w+)*): (.*)")


def _plain_docstring(app, what, name, obj, options, lines: list[str]) -> None:
    """Turns our docstrings into reStructuredText.

    They are plain text: paragraphs; lines "name: what it means", with what follows indented; and
    indented code.
    """
    done: list[str] = []
    kind = ""  # of the paragraph at hand: text, item, code
    for line in lines:
        item, text = _ITEM.fullmatch(line), line.strip().replace("*", r"\*")
        if not text:
            kind = ""
            done.append("")
        elif item and kind in ("", "item"):
            kind = "item"
            done.append(f"- `{item[1]}`: " + item[2].replace("*", r"\*"))
        elif kind == "item":
            done.append("  " + text)
        elif line.startswith("    ") and kind in ("", "code"):
            done += [line] if kind else [".. code-block:: python", "", line]
            kind = "code"
        else:
            kind = "text"
            done.append(text)
    lines[:] = [*done, ""]


def _plain_signature(app, what, name, obj, options, signature, returns):
    """pybind11 writes out `self`, and what else than an int would do for one."""
    if signature is None:
        return None
    signature = re.sub(r"\(self: [^,)]+(, )?", "(", signature)
    return signature.replace("SupportsInt | SupportsIndex", "int").replace(
        "SupportsFloat | SupportsIndex", "float"
    ), returns


def setup(app) -> None:
    app.connect("source-read", _link_inside)
    app.connect("autodoc-process-docstring", _plain_docstring)
    app.connect("autodoc-process-signature", _plain_signature)
