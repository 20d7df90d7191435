"""Makes the notebooks of the first two tutorials from their pages.

    python docs/make_notebooks.py [--run]

Python blocks of a page become cells, blocks of commands become cells of bash, and everything else
is text; so are blocks that a page marks as not run. With --run cells are run, and their outputs
stored (needs mallocgame[docs,rl]); else the outputs of cells that are the same are kept.
"""

import json
import pathlib
import re
import sys
import tempfile
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = ROOT / "examples/notebooks"
PAGES = {"first_game": "docs/tour.md", "train_ppo": "docs/ppo.md"}
_BLOCK = re.compile(r"(?:<!-- not run:[^>]*-->\n)?```(\w*)\n(.*?)```\n", re.DOTALL)
_STYLE = re.compile(r"\x1b\[[0-9;]*m")  # bold and colours of a terminal
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


def without_outputs(made: dict[str, Any]) -> dict[str, Any]:
    """Returns a notebook as it is before it runs."""
    empty = {"execution_count": None, "outputs": []}
    cells = [cell | (empty if cell["cell_type"] == "code" else {}) for cell in made["cells"]]
    return made | {"cells": cells}


def run(made: dict[str, Any]) -> dict[str, Any]:
    """Returns a notebook with the outputs of its cells, run in a folder of its own."""
    import nbclient
    import nbformat

    read = nbformat.reads(json.dumps(made), as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        where = {"metadata": {"path": folder}}
        nbclient.NotebookClient(read, timeout=600, resources=where, record_timing=False).execute()
    ran: list[dict[str, Any]] = [
        # One text for each stream, whatever pieces it came in.
        cell | ({"outputs": _joined(cell["outputs"])} if cell["cell_type"] == "code" else {})
        for cell in read["cells"]
    ]
    return without_outputs(made) | {
        "cells": [
            old | {key: new[key] for key in ("execution_count", "outputs") if key in new}
            for old, new in zip(made["cells"], ran, strict=True)
        ]
    }


def _joined(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    said = "".join(one["text"] for one in outputs if one.get("name") == "stdout")
    said = "\n".join(line.rstrip() for line in _STYLE.sub("", said).split("\n"))
    others = [dict(one) for one in outputs if one["output_type"] != "stream"]
    stream = {"name": "stdout", "output_type": "stream", "text": said.splitlines(keepends=True)}
    return ([stream] if said else []) + others


def with_outputs_of(old: dict[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    """Returns a notebook with the outputs that the same cells had."""
    had = {"".join(cell["source"]): cell for cell in old["cells"] if cell["cell_type"] == "code"}
    cells = [had.get("".join(cell["source"]), cell) for cell in made["cells"]]
    return made | {
        "cells": [cell | {"id": own["id"]} for cell, own in zip(cells, made["cells"], strict=True)]
    }


def main() -> None:
    """Writes all notebooks."""
    FOLDER.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        path, made = FOLDER / f"{name}.ipynb", notebook(page)
        if "--run" in sys.argv[1:]:
            made = run(made)
        elif path.exists():
            made = with_outputs_of(json.loads(path.read_text(encoding="utf-8")), made)
        text = json.dumps(made, indent=1, ensure_ascii=False) + "\n"
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
