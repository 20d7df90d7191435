"""Code has lines of at most 100 columns, whatever formats it."""

import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLUMNS = 100
CODE = {".cc", ".cmake", ".css", ".h", ".html", ".js", ".proto", ".py", ".pyi", ".sh", ".toml"}


def tracked() -> list[pathlib.Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("this is no Git checkout, so nothing says which files are the project's")
    return [pathlib.Path(name) for name in listed.stdout.split("\0") if name]


def is_code(path: pathlib.Path) -> bool:
    return path.suffix in CODE or path.name == "CMakeLists.txt"


def test_no_line_of_code_is_too_long():
    files = [path for path in tracked() if is_code(path) and (ROOT / path).is_file()]
    assert len(files) > 100
    long = [
        f"{path}:{number}: {len(line)} columns"
        for path in files
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1)
        if len(line) > COLUMNS
    ]
    assert not long, f"allowed: {COLUMNS} columns\n" + "\n".join(long)
