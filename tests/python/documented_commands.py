"""Every `mallocgame ...` that the repository shows or says: in pages, notebooks, code and scripts.

A command is whole, or is marked as a fragment: by `...` where something is missing, by being the
name of a command alone, or by being options alone (`--seconds 5`).
"""

import ast
import io
import json
import pathlib
import re
import shlex
import subprocess
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

from doc_blocks import ROOT

MISSING = "..."  # of a fragment
_SPAN = re.compile(r"(?<!`)`(?!`)([^`]+)`(?!`)")
_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_HEREDOC = re.compile(r"<<'?(\w+)'?.*?\n.*?^\1$", re.DOTALL | re.MULTILINE)
# A line that has a command, behind what may stand before it.
_LINE = re.compile(r"^\s*(?:\$ |\S+=\S+ |python3? -m |\S*/)*(mallocgame +[a-z-].*)$", re.MULTILINE)
_ENDS = re.compile(r"^[|&;<>()]+$")  # a token of the shell that ends a command
_OUTPUT = re.compile(r"^mallocgame[ a-z]*: ")  # what a command says, not how it is called


@dataclass(frozen=True)
class Shown:
    place: str  # file:line
    words: tuple[str, ...]  # behind `mallocgame`, or options alone
    is_line: bool = False  # of a text that may be prose; else it stands in code

    @property
    def is_options(self) -> bool:
        return self.words[0].startswith("-")


def _words(text: str) -> list[str]:
    """The words of a shell line, up to a comment or what ends the command."""
    lexer = shlex.shlex(text.replace("…", MISSING), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = "#"
    words: list[str] = []
    for word in lexer:
        if _ENDS.match(word):
            break
        words.append(word)
    return words


def _in_lines(text: str) -> Iterator[tuple[int, str]]:
    """The commands of shell text, with their places in it."""
    text = _HEREDOC.sub(lambda found: "\n" * found[0].count("\n"), text.replace("\\\n", "  "))
    for found in _LINE.finditer(text):
        yield found.start(1), found[1]


def _in_spans(text: str) -> Iterator[tuple[int, str]]:
    """The commands and options of text in backticks; `a|b` are two commands."""
    for found in _SPAN.finditer(text):
        span = " ".join(found[1].split())
        names, *rest = span.split(" ", 2)
        if names == "mallocgame" and rest:
            path, choice = rest[0], rest[1] if len(rest) > 1 else ""
            if re.fullmatch(r"[a-z]+(\|[a-z]+)+", choice):
                yield from (
                    (found.start(), f"mallocgame {path} {one}") for one in choice.split("|")
                )
            else:
                yield found.start(), span
        elif re.match(r"--[a-z-]+( |$)", span):
            yield found.start(), span


def _shown(
    path: pathlib.Path,
    text: str,
    found: Iterator[tuple[int, str]],
    at: int = 1,
    is_line: bool = False,
) -> list[Shown]:
    shown = []
    for start, command in found:
        if _OUTPUT.match(command):
            continue
        words = _words(command)
        words = words[1:] if words[0] == "mallocgame" else words
        if words:
            line = at + text[:start].count("\n")
            shown.append(Shown(f"{path.relative_to(ROOT)}:{line}", tuple(words), is_line))
    return shown


def _of_page(path: pathlib.Path, text: str) -> list[Shown]:
    """Lines of blocks, fenced and indented, and spans of the rest."""
    prose = _FENCED.sub(lambda block: "\n" * block[0].count("\n"), text)
    return _shown(path, text, _in_lines(text)) + _shown(path, prose, _in_spans(prose))


def _of_comments(path: pathlib.Path, comments: list[tuple[int, str]]) -> list[Shown]:
    """Comments on lines that follow each other are one text."""
    texts: list[tuple[int, list[str]]] = []
    for line, text in comments:
        if texts and texts[-1][0] + len(texts[-1][1]) == line:
            texts[-1][1].append(text)
        else:
            texts.append((line, [text]))
    whole = [(line, "\n".join(lines)) for line, lines in texts]
    return [one for line, text in whole for one in _shown(path, text, _in_spans(text), line)]


def _of_python(path: pathlib.Path, text: str) -> list[Shown]:
    """Strings, in which a formatted value is a placeholder, docstrings and comments."""
    shown = []
    tree = ast.parse(text)
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)
             for part in ast.walk(node) if part is not node}  # fmt: skip
    for node in ast.walk(tree):
        if id(node) in inner:
            continue
        if isinstance(node, ast.JoinedStr):
            said = "".join(
                str(part.value) if isinstance(part, ast.Constant) else "VALUE"
                for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            said = node.value
        else:
            continue
        shown += _shown(path, said, _in_spans(said), node.lineno)
        shown += _shown(path, said, _in_lines(said), node.lineno, is_line=True)
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = [(one.start[0], one.string) for one in tokens if one.type == tokenize.COMMENT]
    return shown + _of_comments(path, comments)


def _of_cpp(path: pathlib.Path, text: str) -> list[Shown]:
    found = re.finditer(r"//(.*)|\"((?:[^\"\\\n]|\\.)*)\"", text)
    parts = [(text[: one.start()].count("\n") + 1, one[1] or one[2] or "") for one in found]
    return _of_comments(path, parts)


def _of_notebook(path: pathlib.Path, text: str) -> list[Shown]:
    cells = ["".join(cell["source"]) for cell in json.loads(text)["cells"]]
    return [one for cell in cells for one in _of_page(path, cell)]


def _of_script(path: pathlib.Path, text: str) -> list[Shown]:
    comments = [(number, line) for number, line in enumerate(text.splitlines(), 1)
                if line.startswith("#")]  # fmt: skip
    return _shown(path, text, _in_lines(text)) + _of_comments(path, comments)


READERS = {
    ".md": _of_page,
    ".py": _of_python,
    ".pyi": _of_python,
    ".h": _of_cpp,
    ".cc": _of_cpp,
    ".ipynb": _of_notebook,
    ".sh": _of_script,
}


def all_shown() -> list[Shown]:
    """All commands of the files that git knows, but for tests, which call wrong ones too."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    shown = []
    for name in listed.stdout.split("\0"):
        path = ROOT / name
        reader = READERS.get(path.suffix)
        if name.startswith("tests/") and path.suffix != ".md":
            continue
        if reader is not None and path.exists():
            shown += reader(path, path.read_text(encoding="utf-8"))
    return shown
