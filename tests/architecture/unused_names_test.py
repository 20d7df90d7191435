"""What clang-tidy can't say of sources that it reads together (tests/lint.sh)."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = sorted(
    path
    for folder in ("mallocgame", "agents", "bindings", "tests", "benchmarks", "examples")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".h", ".cc")
)
# A using declaration or the alias of a namespace; what brings a type's constructors or members
# into a class is indented.
BROUGHT = re.compile(r"^(?:using (?:[\w:]+::)?(\w+);|namespace (\w+) = )", re.MULTILINE)
C_HEADER = re.compile(
    r"#\s*include\s+<(assert|ctype|errno|float|limits|locale|math|setjmp|signal|stdarg|stddef"
    r"|stdint|stdio|stdlib|string|time|wchar)\.h>"
)
C_INTERFACE = ROOT / "bindings/c/mallocgame.h"  # It is read by C too.
COMMENT = re.compile(r"//[^\n]*")


def unused_names(text: str) -> list[str]:
    code = COMMENT.sub("", text)
    names = [name or alias for name, alias in BROUGHT.findall(code)]
    return [name for name in names if len(re.findall(rf"\b{name}\b", BROUGHT.sub("", code))) == 0]


def test_names_that_nothing_uses_are_found():
    text = "using a::b::Used;\nusing c::Unused;  // Unused\nnamespace n = m;\nUsed x;\n"
    assert unused_names(text) == ["Unused", "n"]
    assert unused_names("using a::f;\nnamespace n = m;\nint x = f() + n::y;\n") == []


def test_there_are_sources():
    assert len(SOURCES) > 300


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_are_used_and_headers_are_those_of_cpp(path):
    text = path.read_text(encoding="utf-8")
    # A header's names are used where it is included too.
    if path.suffix == ".cc":
        assert unused_names(text) == []
    if path != C_INTERFACE:
        assert C_HEADER.findall(text) == []
