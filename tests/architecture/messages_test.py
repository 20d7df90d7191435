"""No code decides by the words of an error: refusals are data (mallocgame/base/refusal.h)."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("mallocgame", "agents", "bindings", "benchmarks", "examples")
# What asks a message for words, on one line or over several.
READS = re.compile(
    r"Str(?:Contains\w*|artsWith|str)\([^;]*?\bmessage\(\)"
    r"|\b(?:Starts|Ends)With\([^;{]*?\bmessage\(\)"
    r"|\bmessage\(\)\.(?:find|starts_with|ends_with|substr|compare)\b"
    r"|\bmessage\(\) [=!]="
    r"|\bin str\((?:error|exc\w*|e|refus\w*)\)(?!\.)"
    r"|\bstr\((?:error|exc\w*|e|refus\w*)\)\.(?:startswith|endswith|find|index)\b"
    r"|\bstr\((?:error|exc\w*|e|refus\w*)\) [=!]="
    r"|\.(?:search|match|fullmatch|findall|finditer)\((?:[^()]*, )?str\((?:error|exc\w*|e)\)"
)
SOURCES = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".cc", ".h", ".py")
)


def test_no_code_reads_the_words_of_an_error():
    assert len(SOURCES) > 500
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in SOURCES
        for match in READS.finditer(path.read_text(errors="replace"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line",
    [
        'absl::StrContains(status.message(), "schedule")',
        'status.message().find("bytes") != npos',
        "absl::StrContains(status.message(),\n                module_.Where(i))",
        "if f\"'{name}'\" in str(error)",
        "found = _USED.search(str(error))",
        'str(error).startswith("rule ")',
    ],
)
def test_what_would_be_found(line):
    assert READS.search(line)
