"""Every `mallocgame ...` in pages, notebooks, docstrings, comments and messages can be called."""

import argparse
import ast
import re

import pytest
from conftest import SOURCE_ROOT
from documented_commands import MISSING, Shown, all_shown

from mallocgame._cli import main, parser

PLACEHOLDER = re.compile(r"[A-Z][A-Z0-9_,:=]*|\$.*|\{.*\}")


def parsers(of: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """A parser and those of its commands."""
    groups = [one for one in of._actions if isinstance(one, argparse._SubParsersAction)]
    return [of, *(one for group in groups for each in group.choices.values()
                  for one in parsers(each))]  # fmt: skip


def without_required(top: argparse.ArgumentParser) -> argparse.ArgumentParser:
    for each in parsers(top):
        for action in each._actions:
            if not isinstance(action, argparse._SubParsersAction):
                action.required = False
    return top


def named(top: argparse.ArgumentParser, words: list[str]) -> bool:
    """Whether words are the name of a command alone, or with what it is chosen for (an agent)."""
    for i, word in enumerate(words):
        chosen = next((one for one in top._actions if one.choices and not one.option_strings), None)
        if chosen is None or word not in chosen.choices:
            return False
        if not isinstance(chosen, argparse._SubParsersAction):
            return i == len(words) - 1
        top = chosen.choices[word]
    return True


def options_of_scripts() -> list[set[str]]:
    """The options that each script beside the package has."""
    of_python = re.compile(r"add_argument\(\s*(?:\"-\w\",\s*)?\"(--[a-z-]+)\"")
    of_shell = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
    folders = ("benchmarks", "examples", "docs", "tests/campaigns", "tests/fuzz")
    scripts = [path for folder in folders for path in (SOURCE_ROOT / folder).rglob("*.py")]
    shell = [*(SOURCE_ROOT / "tests").glob("*.sh"), *(SOURCE_ROOT / ".ci").glob("*")]
    return [
        *(
            {*of_python.findall(text)} | options_of_benchmark(text)
            for text in (path.read_text(encoding="utf-8") for path in scripts)
        ),
        *({*of_shell.findall(path.read_text(encoding="utf-8"))} for path in shell),
        {"--editable", "--config"},  # of pip and of ruff
    ]


def options_of_benchmark(text: str) -> set[str]:
    """Those that mallocgame.experiments.main() makes of a function's arguments, and its own."""
    if "ex.main(" not in text:
        return set()
    functions = [one for one in ast.parse(text).body if isinstance(one, ast.FunctionDef)]
    names = [
        argument.arg for one in functions for argument in (*one.args.args, *one.args.kwonlyargs)
    ]
    return {"--" + name.replace("_", "-") for name in names} | {
        "--jobs",
        "--ray",
        "--only",
        "--seeds",
    }


class Checker:
    """Parses with the real parser, where a placeholder is any value and no file needs to exist."""

    def __init__(self, capsys) -> None:
        self._capsys = capsys
        self._whole, self._open = main._parser(), without_required(main._parser())
        self._single = [one for one in parsers(self._open) if one._subparsers is None]
        self._scripts = options_of_scripts()

    def error(self, shown: Shown) -> str:
        """Returns what is wrong with a command; empty: nothing."""
        words = [re.sub(r"^\[(.*)\]$", r"\1", word) for word in shown.words]
        words = [word if word == MISSING else word.removesuffix(MISSING) for word in words]
        if shown.is_options:
            return self._error_of_options(words)
        if PLACEHOLDER.fullmatch(words[0]) or (shown.is_line and not named(self._whole, words[:1])):
            return ""
        if MISSING not in words:
            return "" if named(self._whole, words) else self._said(self._whole, words)
        left_out = [word for word in words if word != MISSING]
        filled = ["VALUE" if word == MISSING else word for word in words]
        return self._said(self._open, left_out) and self._said(self._open, filled)

    def _error_of_options(self, words: list[str]) -> str:
        options = {word for word in words if word.startswith("--")}
        having = [one for one in self._single if options <= {*one._option_string_actions}]
        if not having and any(options <= known for known in self._scripts):
            return ""
        if not having:
            return f"no command and no script has {' and '.join(sorted(options))}"
        tried = [self._said(one, words) for one in having]
        return "" if "" in tried or len(words) == 1 else tried[0]

    def _said(self, parser: argparse.ArgumentParser, words: list[str]) -> str:
        try:
            parser.parse_args(words)
        except SystemExit as end:
            return self._capsys.readouterr().err.strip() if end.code else ""
        return ""


@pytest.fixture
def checker(capsys, monkeypatch):
    of_value = argparse.ArgumentParser._get_value
    of_choice = argparse.ArgumentParser._check_value

    def value(self, action, text):
        if PLACEHOLDER.fullmatch(text) or action.type is parser.output_file:
            return text
        return of_value(self, action, text)

    def choice(self, action, given):
        if not (isinstance(given, str) and PLACEHOLDER.fullmatch(given)):
            of_choice(self, action, given)

    monkeypatch.setattr(argparse.ArgumentParser, "_get_value", value)
    monkeypatch.setattr(argparse.ArgumentParser, "_check_value", choice)
    return Checker(capsys)


def test_every_command_is_one(checker):
    shown = all_shown()
    assert sum(not one.is_options for one in shown) > 150
    wrong = {one: said for one in shown if (said := checker.error(one))}
    assert not wrong, "\n".join(
        f"{one.place}: {' '.join(one.words)}\n    {said}" for one, said in wrong.items()
    )


@pytest.mark.parametrize(
    "text, right",
    [
        ("solve PROGRAM --solver packing --seconds 5", True),
        ("solve PROGRAM --solver priority", False),  # was renamed
        ("compare --solvers greedy,priority", False),
        ("benchmark --split test --players styles --seconds 0", False),
        ("train egrl PROGRAM... --one-agent", False),  # needs --out
        ("train egrl PROGRAM... --one-agent ...", True),
        ("benchmark", True),  # its name
        ("--solver priority --seconds 20", False),
        ("--seconds 20 --preloads N", True),
        ("--heaviness", False),
    ],
)
def test_what_counts_as_right(text, right, checker):
    assert (checker.error(Shown("here:1", tuple(text.split()))) == "") == right
