"""The page: a document of data.py, put into the template with its style and script."""

import html
import json
import os
import re
from importlib import resources
from typing import Any

from mallocgame._core import GameLog, Hardware, Plan, Program, write_file
from mallocgame.errors import InvalidInputError
from mallocgame.viewer.data import Document, Subject, document

# In this order the files are one script; each may use what stands before it.
_SCRIPTS = (
    "model.js",
    "axis.js",
    "raster.js",
    "panels.js",
    "groups.js",
    "picture.js",
    "details.js",
    "film.js",
    "differences.js",
    "main.js",
)


def make_page(
    shown: Plan | GameLog,
    program: Program,
    against: Plan | GameLog | None = None,
    hardware: Hardware | None = None,
    bound: str = "no-contention",
    label: str | None = None,
    against_label: str | None = None,
) -> str:
    """Makes the HTML text of the page.

    shown: a plan, or a game, whose decisions can then be played; of a schedule game the end.
    against: another plan or game of the same program, to be compared.
    hardware: None is that of the game that is shown, else the program's own.
    bound: as mallocgame.bounds.bound's.
    label, against_label: the names of the two on the page; None is the game's solver, "XLA" for the
    program's xla_plan, else "plan".

    InvalidInputError: a plan or game is of another program or hardware, or the game does not replay
    as logged.
    """
    if hardware is None:
        hardware = shown.hardware if isinstance(shown, GameLog) else program.hardware
    if isinstance(shown, GameLog) and shown.order is not None:
        # Decisions about the order have no picture: its end is shown.
        if against is not None:
            raise InvalidInputError(
                "view: found a schedule game against another plan, allowed: the game alone; they "
                "are of different orders of instructions"
            )
        label = label or shown.solver or "game"
        program, shown = program.reordered(shown.order), shown.plan
    subjects = [_subject(shown, program, hardware, label)]
    if against is not None:
        subjects.append(_subject(against, program, hardware, against_label))
        if subjects[0].label == subjects[1].label:
            subjects = [
                Subject(f"{one.label} ({mark})", one.plan, one.log)
                for one, mark in zip(subjects, "AB", strict=True)
            ]
    return _fill(document(program, hardware, subjects, bound), program.name)


def write_page(
    path: str | os.PathLike[str], shown: Plan | GameLog, program: Program, **settings: Any
) -> int:
    """Writes make_page's text to a file, all or nothing, and returns the number of its bytes.

    settings: as make_page's. FileAccessError names the path.
    """
    data = make_page(shown, program, **settings).encode()
    write_file(path, data)
    return len(data)


def _subject(
    shown: Plan | GameLog, program: Program, hardware: Hardware, label: str | None
) -> Subject:
    plan, log = (shown.plan, shown) if isinstance(shown, GameLog) else (shown, None)
    if log is not None and log.hardware != hardware:
        raise InvalidInputError(
            f"game on hardware '{log.hardware.name}', but the page is about '{hardware.name}'"
        )
    if label is None:
        label = (
            (log.solver or "game")
            if log is not None
            else "XLA"
            if plan == program.xla_plan
            else "plan"
        )
    return Subject(label, plan, log)


def _fill(data: Document, title: str) -> str:
    """Puts a document into the template."""
    folder = resources.files(__package__)

    def text(name: str) -> str:
        return (folder / name).read_text(encoding="utf-8")

    # A "<" could end the script element that the data lies in; its escape is the same in JSON.
    parts = {
        "title": html.escape(title),
        "style": text("page.css"),
        "data": json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c"),
        "script": "(() => {\n'use strict';\n" + "\n".join(map(text, _SCRIPTS)) + "})();",
    }
    # There is one pass over the template, so that marks in what is put in are left alone.
    return re.sub(r"\{\{(\w+)\}\}", lambda mark: parts[mark[1]], text("page.html"))
