"""Writes the reference of commands, settings, columns, Python names, programs, chips, headers and
examples into its pages.

    python docs/make_reference.py [--check]

A page has a pair of marks around what is made here, `<!-- made by make_reference.py: TOPIC -->` and
`<!-- end -->`, so that it is read without building anything. With --check nothing is written, and
the exit status says whether a page is stale. Settings need an installation with Torch.
"""

import argparse
import ast
import csv
import enum
import importlib
import inspect
import itertools
import json
import pathlib
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import mallocgame
from mallocgame import observation
from mallocgame.programs import suite

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SUITES = ROOT / "benchmarks/quality/tables/suites.csv"
PROGRAMS = ROOT / "bindings/python/mallocgame/programs"

# The Python reference: the names of a module by topic. Other public names of `mallocgame` come
# last, so that nothing is left out.
TOPICS: dict[str, list[str]] = {
    "Programs and hardware": [
        "load_program",
        "program_names",
        "import_hlo",
        "save_program",
        "hardware",
        "Program",
        "Hardware",
    ],
    "Levels": ["levels", "Level"],
    "The game": ["Game", "State", "Action", "Mode"],
    "Games without a program": ["TimeGame", "PriorityGame", "ScheduleGame"],
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
    "Environments": ["MallocGameEnv", "VectorEnv", "PlacementEnv"],
}
# Classes of which only these members are ours to document.
MEMBERS = {
    "MallocGameEnv": ["reset", "step", "action_masks", "state", "game"],
    "VectorEnv": ["reset", "step"],
    "PlacementEnv": ["reset", "step"],
}
# Modules with a section of their own: its title, and its names where they aren't `__all__`.
MODULES: dict[str, tuple[str, list[str]]] = {
    "level_sets": ("Sets of levels", ["find_level", "of_level", "has_score"]),
    "actions": ("Actions", []),
    "calibration": ("Calibrated prices", []),
    "files": ("Plans and game logs in files", []),
    "records": ("Records of arrays", []),
    "observation": ("Parts and columns of an observation", []),
    "bounds": ("Bounds", []),
    "offsets": ("Offsets", []),
    "placement": ("The placement problem", []),
    "mcts": ("Tree search", ["Model", "Predictions", "Search", "search"]),
    "offline": ("Offline data", []),
    "experiments": ("Experiments", []),
    "agents": ("Learning agents", []),
    "viewer": ("The viewer", ["write_page", "make_page"]),
    "plots": ("Pictures", ["save_comparison", "save_curves", "save_speed_ups", "save_maps"]),
    "xla": ("The compiler", []),
    "errors": ("Errors", []),
}


def table(rows: Sequence[Sequence[object]], right: Iterable[int] = ()) -> str:
    """Returns a table in Markdown. The first row is its header; columns of `right` are numbers."""
    lines = [
        "| " + " | ".join(" ".join(str(cell).split()).replace("|", "\\|") for cell in row) + " |"
        for row in rows
    ]
    bars = ["--:" if i in set(right) else "---" for i in range(len(rows[0]))]
    return "\n".join([lines[0], "| " + " | ".join(bars) + " |", *lines[1:]])


# Commands

OPTION = re.compile(r"(`[^`]*`)|(?<![\w-])(--[a-z][a-z-]*)")  # in a help text


def parsers() -> dict[str, argparse.ArgumentParser]:
    """Returns the parsers of all commands that do something, by name."""
    found: dict[str, argparse.ArgumentParser] = {}

    def look(name: str, parser: argparse.ArgumentParser) -> None:
        below = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
        if not below:
            found[name] = parser
        for action in below:
            for command, child in action.choices.items():
                look(f"{name} {command}", child)

    look("mallocgame", importlib.import_module("mallocgame._cli.main")._parser())
    return found


def _as_code(match: re.Match) -> str:
    return match[1] or f"`{match[2]}`"


def of_command(name: str, parser: argparse.ArgumentParser) -> str:
    """Returns the section of a command: what it does, and a table of its arguments.

    Not what `--help` prints, because each version of Python lays that out in its own way.
    """
    formatter = parser._get_formatter()
    rows = [
        (_spelled(action), OPTION.sub(_as_code, formatter._expand_help(action)))
        for action in parser._actions
        if action.help != argparse.SUPPRESS and not isinstance(action, argparse._HelpAction)
    ]
    said = " ".join(f"{text[0].upper()}{text[1:]}".rstrip(".") + "."
                    for text in (parser.description, parser.epilog) if text)  # fmt: skip
    return f"## {name}\n\n{_prose(said)}\n\n" + table([("argument", "meaning"), *rows])


def _spelled(action: argparse.Action) -> str:
    if action.metavar is not None:
        value = action.metavar if isinstance(action.metavar, str) else " ".join(action.metavar)
    elif action.choices is not None:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    else:
        value = action.dest.upper() if action.option_strings else action.dest
    if action.nargs in ("+", "*"):
        value += " ..."
    if action.nargs in ("?", "*"):
        value = f"[{value}]"
    if not action.option_strings:
        return f"`{value}`"
    given = action.option_strings
    negated = {f"--no-{name.removeprefix('--')}" for name in given}
    names = [name for name in given if name not in negated]
    return ", ".join(f"`{name}`" if action.nargs == 0 else f"`{name} {value}`" for name in names)


def commands() -> str:
    """Every command, with all of its arguments."""
    return "\n\n".join(of_command(name, parser) for name, parser in parsers().items())


# Settings and columns


def settings(agent: str) -> str:
    """All settings of an agent, with default, range and meaning."""
    agents = importlib.import_module("mallocgame.agents")
    every = {"MuZero": agents.muzero_settings, "EGRL": agents.egrl_settings}[agent]()
    paper = {}
    if agent == "MuZero":
        paper = agents.MuZero("mlp_train_adam_b512.tpu_v4i", {"preset": "paper"}).settings
    rows = []
    for s in every:
        other = paper.get(s.name, s.default)
        default = f"`{s.default}`" + (
            f", paper `{other}`" if s.name != "preset" and other != s.default else ""
        )
        rows.append((f"`{s.name}`", default, s.allowed, s.meaning))
    return table([("setting", "default", "allowed", "meaning"), *rows])


def columns() -> str:
    """Every column of an observation, of all games."""
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
        f"### {title}\n\n" + table([("column", "meaning"), *((f"`{n}`", m) for n, m in features)])
        for title, features in parts
    )


# Python names

_MARKUP = re.compile(r"[*<]|(?<!\w)_|_(?!\w)|\](?=[(\[])")
_OF_MODULE = re.compile(
    r"\b(?:mallocgame|collections|numpy|typing|os|pathlib)\.[\w.]*?(?=\w+\b(?!\.))"
)
_ITEM = re.compile(r"([A-Za-z_]\w*(?:, \w+)*): (.*)")


def markdown(docstring: str) -> str:
    """Returns a docstring of ours as Markdown.

    It is plain text: paragraphs; lines "name: what it means", with what follows on the next lines;
    and indented code.
    """
    done: list[str] = []
    kind = ""  # of the paragraph at hand: text, item, code
    for line in [*docstring.splitlines(), ""]:
        item, text = _ITEM.fullmatch(line), line.strip()
        if not text:
            done += ["```"] * (kind == "code") + [""] * bool(done and done[-1])
            kind = ""
        elif item and kind in ("", "item"):
            kind = "item"
            done.append(f"- `{item[1]}`: {item[2]}")
        elif kind == "item":
            done.append("  " + text)
        elif line.startswith("    ") and kind in ("", "code"):
            done += [] if kind else ["```text"]
            kind = "code"
            done.append(line[4:])
        else:
            kind = "text"
            done.append(text)
    return _prose("\n".join(done).strip())


def _prose(text: str) -> str:
    """Escapes what Markdown would take for markup, outside of code."""
    parts = re.split(r"(```.*?```|`[^`\n]*`)", text, flags=re.DOTALL)
    return "".join(
        part if part.startswith("`") else _MARKUP.sub(r"\\\g<0>", part) for part in parts
    )


def _signature(name: str, value: Any) -> tuple[str, str]:
    """Returns how a function is called, and the rest of its docstring."""
    said = inspect.getdoc(value) or ""
    if not inspect.isfunction(value) and re.match(r"\w+\(", said):  # pybind11's first line
        signature, _, said = said.partition("\n")
        signature = re.sub(r"\(self: [^,)]+(, )?", "(", signature)
        for long, short in (
            ("typing.SupportsInt | typing.SupportsIndex", "int"),
            ("typing.SupportsFloat | typing.SupportsIndex", "float"),
            ("typing.SupportsInt", "int"),
            ("typing.SupportsFloat", "float"),
        ):
            signature = signature.replace(long, short)
        return _plain(signature), said.strip()
    try:
        made = inspect.signature(value)
    except (TypeError, ValueError):
        return f"{name}(...)", said
    own = [one for one in made.parameters.values() if one.name not in ("self", "cls")]
    return _plain(name + str(made.replace(parameters=own))), said


def _plain(signature: str) -> str:
    """Takes out modules and addresses, which say nothing to a reader."""
    signature = _OF_MODULE.sub("", signature)
    signature = re.sub(r"<(\w+)\.(\w+): [^>]*>", r"\1.\2", signature)
    signature = re.sub(r"((?:: |-> |\w\[))'([^']*)'", r"\1\2", signature)  # annotations as text
    return re.sub(r" at 0x[0-9a-f]+", "", signature)


def _members(name: str, kind: type) -> Iterator[tuple[str, Any]]:
    """The public members that a class has of its own or of a base of ours."""
    ours = [base for base in reversed(kind.__mro__) if base.__module__.startswith("mallocgame")]
    found = {member: value for base in ours for member, value in vars(base).items()}
    names = MEMBERS.get(name) or [member for member in found if not member.startswith("_")]
    for member in names:
        value = found.get(member, inspect.getattr_static(kind, member, None))
        value = getattr(value, "__func__", value)
        if inspect.getdoc(value) and (callable(value) or inspect.isdatadescriptor(value)):
            yield member, value


def of_name(name: str, value: Any) -> str:
    """Returns the entry of a public name."""
    if not callable(value):
        if isinstance(value, int | str | float):
            return f"- `{name}` = `{value!r}`"
        said = f"an instance of `{type(value).__name__}`"
        return f"- `{name}`: {said}"
    if not isinstance(value, type):
        signature, said = _signature(name, value)
        return f"### {name}\n\n```py\n{signature}\n```\n\n{markdown(said)}"
    if issubclass(value, enum.Enum) or not inspect.getdoc(value):
        listed = ", ".join(f"`{one}`" for one in getattr(value, "__members__", {}))
        return f"### {name}\n\n{markdown(inspect.getdoc(value) or '')}\n\n{listed}".rstrip()
    lines = [f"### {name}", "", markdown(inspect.getdoc(value) or "")]
    rows = []
    for member, of in _members(name, value):
        if callable(of) and not isinstance(of, property):
            called, said = _signature(member, of)
        else:
            called, said = member, inspect.getdoc(of) or ""
        rows.append((f"`{called}`", _prose(said)))
    members = ["", table([("member", "meaning"), *rows])] if rows else []
    return "\n".join(lines + members)


def _section(title: str, names: Sequence[str], module: Any) -> str:
    values = [(name, getattr(module, name)) for name in names]
    plain = [of_name(*one) for one in values if not callable(one[1])]
    called = [of_name(*one) for one in values if callable(one[1])]
    return "\n\n".join([f"## {title}", *(["\n".join(plain)] if plain else []), *called])


def python_names() -> str:
    """Every public name, by topic and then by module."""
    shown = {name for names in TOPICS.values() for name in names}
    of_module = {
        name: names or [one for one in getattr(importlib.import_module(f"mallocgame.{name}"),
                                               "__all__", []) if one not in shown]
        for name, (_, names) in MODULES.items()
    }  # fmt: skip
    errors = importlib.import_module("mallocgame.errors")
    of_module["errors"] = [name for name, value in vars(errors).items()
                           if isinstance(value, type) and issubclass(value, Exception)]  # fmt: skip
    known = shown | {name for names in of_module.values() for name in names}
    more = [name for name in mallocgame.__all__
            if name not in known and not inspect.ismodule(getattr(mallocgame, name))]  # fmt: skip
    parts = [_section(title, names, mallocgame) for title, names in TOPICS.items()]
    parts += [_section("More", more, mallocgame)] if more else []
    for name, (title, _) in MODULES.items():
        module = importlib.import_module(f"mallocgame.{name}")
        said = markdown(inspect.getdoc(module) or "")
        made = _section(f"{title}: mallocgame.{name}", of_module[name], module)
        heading, _, rest = made.partition("\n\n")
        parts.append(f"{heading}\n\n{said}\n\n{rest}")
    return "\n\n".join(parts)


# Programs


def programs() -> str:
    """The models of the bundled programs, with what XLA's own plan leaves on each chip."""
    known = json.loads((PROGRAMS / "manifest.json").read_text(encoding="utf-8"))["programs"]
    with SUITES.open(encoding="utf-8") as file:
        left = {row["program"]: row["XLA over milp"] for row in csv.DictReader(file)}
    contended = set(suite("contended"))
    models: dict[str, list[str]] = {}
    for name, one in known.items():
        models.setdefault(one["model"], []).append(name)
    rows = []
    for model, names in models.items():
        chips = [
            f"`{name.removeprefix(f'{model}.')}`&nbsp;{left[name].replace(' ', '&nbsp;')}"
            + r"\*" * (name in contended)
            for name in names
        ]
        rows.append(
            (
                f"`{model}`",
                ", ".join(sorted({known[name]["suite"] for name in names})),
                _range(known[name]["accesses"] for name in names),
                _range(len(mallocgame.load_program(name).loops) for name in names),
                "; ".join(chips),
            )
        )
    head = ("model", "suites", "accesses", "loops", "chips, and what XLA leaves there")
    return table([head, *rows], right=(2, 3))


def _range(numbers: Iterable[int]) -> str:
    found = sorted(numbers)
    return f"{found[0]:,}" if found[0] == found[-1] else f"{found[0]:,} to {found[-1]:,}"


# Chips, headers and examples


def chips() -> str:
    """The presets of hardware."""
    rows = []
    for name in mallocgame.Hardware.preset_names():
        one = mallocgame.hardware(name)
        rows.append(
            (
                f"`{name}`",
                f"{one.fast_bytes:,}",
                f"{one.main_bytes_per_second / 1e9:,.0f}",
                f"{one.clock_hz / 1e9:g}",
                f"{one.flops_per_second / 1e12:,g}",
            )
        )
    head = ("preset", "fast memory, bytes", "main, GB/s", "clock, GHz", "Tflops")
    return table([head, *rows], right=(1, 2, 3, 4))


def opening(path: pathlib.Path) -> str:
    """Returns the first sentence of a source, which says what it is."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        said = ast.get_docstring(ast.parse(text)) or ""
    else:
        lines = [line for line in text.splitlines() if not line.startswith("#!")]
        comment = itertools.takewhile(lambda line: re.match(r"//|/\*| \*|#", line), lines)
        said = "\n".join(re.sub(r"^(//|/\*| \*/?|#) ?|\*/$", "", line) for line in comment)
    found = re.match(r".*?\.(?=\s|$)", said.partition("\n\n")[0], re.DOTALL)
    if found is None:
        raise ValueError(f"{path}: it doesn't open with a sentence")
    return _prose(" ".join(found[0].split()))


def headers() -> str:
    """The headers that are installed, in the order of the build."""
    lists = (ROOT / "mallocgame/CMakeLists.txt").read_text(encoding="utf-8")
    named = re.findall(r"FILE_SET HEADERS BASE_DIRS \S+ FILES([^#)]*)", lists)
    paths = [path for files in named for path in files.split()]
    rows = [(f"`{path}`", opening(ROOT / "mallocgame" / path)) for path in paths]
    return table([("header", "what it has"), *rows])


def agents(folder: str) -> str:
    """The headers of an agent."""
    paths = sorted((ROOT / "agents" / folder).glob("*.h"))
    rows = [(f"`{folder}/{path.name}`", opening(path)) for path in paths]
    return table([("header", "what it has"), *rows])


def examples() -> str:
    """Every example, and a page that names it."""
    pages = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("results/*.md"))]
    texts = {page: page.read_text(encoding="utf-8") for page in pages}
    rows = []
    for path in sorted((ROOT / "examples").glob("*.*")):
        if path.suffix == ".md":
            continue
        page = next(page for page in pages if f"examples/{path.name}" in texts[page])
        title = texts[page].partition("\n")[0].removeprefix("# ")
        link = f"[{title}](../{page.relative_to(ROOT).as_posix()})"
        rows.append((f"[`{path.name}`]({path.name})", opening(path), link))
    return table([("example", "what it shows", "page"), *rows])


MADE = {
    "commands.md": {"commands": commands},
    "settings.md": {
        "settings of MuZero": lambda: settings("MuZero"),
        "settings of EGRL": lambda: settings("EGRL"),
    },
    "observations.md": {"columns": columns},
    "api-python.md": {"Python names": python_names},
    "programs.md": {"programs": programs},
    "hardware.md": {"chips": chips},
    "cpp.md": {"headers": headers},
    "../agents/README.md": {
        "headers of MuZero": lambda: agents("muzero"),
        "headers of EGRL": lambda: agents("egrl"),
    },
    "../examples/README.md": {"examples": examples},
}


def _marks(topic: str) -> tuple[str, str]:
    return f"<!-- made by make_reference.py: {topic} -->", "<!-- end -->"


def made(page: str) -> str:
    """Returns a page as it should be. ValueError: it lacks a mark."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for topic, make in MADE[page].items():
        begin, end = _marks(topic)
        before, mark, rest = text.partition(begin)
        _, closing, after = rest.partition(end)
        if not mark or not closing:
            raise ValueError(f"docs/{page}: no '{begin}' with '{end}' behind it")
        text = f"{before}{begin}\n\n{make()}\n\n{end}{after}"
    return text


def main() -> None:
    """Writes the pages, or checks them."""
    stale = [page for page in MADE if made(page) != (DOCS / page).read_text(encoding="utf-8")]
    if "--check" in sys.argv[1:]:
        raise SystemExit(f"stale: {', '.join(stale)}" if stale else 0)
    for page in stale:
        (DOCS / page).write_text(made(page), encoding="utf-8")
        print(f"docs/{page}")


if __name__ == "__main__":
    main()
