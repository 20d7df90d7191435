"""Makes the notebooks of the first two tutorials from their pages.

    python docs/make_notebooks.py

Python blocks of a page become cells, blocks of commands become cells of bash, and everything else
is text; so are blocks that a page marks as not run.
"""

import json
import pathlib
import re
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = ROOT / "examples/notebooks"
PAGES = {"first_game": "docs/tour.md", "ppo_past_greedy": "docs/ppo.md"}
_BLOCK = re.compile(r"(?:<!-- not run:[^>]*-->\n)?```(\w*)\n(.*?)```\n", re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:|#)([^)]+)\)")


def notebook(page: str) -> dict[str, Any]:
    """Returns the notebook of a page of the documentation, in version 4.5 of the format."""
    text = (ROOT / page).read_text(encoding="utf-8")
    above = "../" * FOLDER.relative_to(ROOT).as_posix().count("/") + "../"
    folder = f"{above}{pathlib.PurePosixPath(page).parent}/"
    text = _LINK.sub(lambda link: f"]({folder}{link.group(1)})", text)
    cells: list[dict[str, Any]] = []

    def add(kind: str, source: str) -> None:
        if not source.strip():
            return
        cell = {"cell_type": kind, "id": f"cell-{len(cells)}", "metadata": {}}
        cell["source"] = source.strip("\n").splitlines(keepends=True)
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        cells.append(cell)

    words, end = "", 0
    for block in _BLOCK.finditer(text):
        words += text[end : block.start()]
        end = block.end()
        if block.group().startswith("<!--") or block.group(1) not in ("python", "sh"):
            words += block.group().partition("-->\n")[2] or block.group()
            continue
        add("markdown", words)
        words = ""
        add("code", ("%%bash\n" if block.group(1) == "sh" else "") + block.group(2))
    add("markdown", words + text[end:])
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def main() -> None:
    """Writes all notebooks."""
    FOLDER.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        text = json.dumps(notebook(page), indent=1, ensure_ascii=False) + "\n"
        (FOLDER / f"{name}.ipynb").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
