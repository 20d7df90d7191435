"""The page: a document of data.py, set into the template with its style and script."""

import html
import json
import os
import re
from importlib import resources

from mallocgame._core import GameLog, Hardware, Plan, Program, write_file
from mallocgame.errors import InvalidInputError
from mallocgame.viewer.data import Subject, document

# In this order they are one script; each file may use what stands before it.
_SCRIPTS = (
    "model.js",
    "axis.js",
    "panels.js",
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
    """HTML text of the page.

    shown: a plan, or a game, whose decisions can then be played. against: another plan or game of
    the same program, to be compared. hardware: None is that of the game that is shown, else the
    program's own. bound: as mallocgame.bound's. label, against_label: names of the two on the page;
    None: the game's solver, "XLA" for the program's xla_plan, else "plan".

    InvalidInputError: a plan or game of another program or hardware, or a game that doesn't replay
    as logged.
    """
    if hardware is None:
        hardware = shown.hardware if isinstance(shown, GameLog) else program.hardware
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
    path: str | os.PathLike[str], shown: Plan | GameLog, program: Program, **settings
) -> int:
    """Write make_page's text to a file, all or nothing; returns its bytes. FileAccessError names
    the path.
    """
    data = make_page(shown, program, **settings).encode()
    write_file(os.fsencode(path), data)
    return len(data)


def _subject(
    shown: Plan | GameLog, program: Program, hardware: Hardware, label: str | None
) -> Subject:
    log = shown if isinstance(shown, GameLog) else None
    if log is not None and log.hardware != hardware:
        raise InvalidInputError(
            f"game on hardware '{log.hardware.name}', but the page is about '{hardware.name}'"
        )
    plan = shown if log is None else log.plan
    if label is None:
        label = (
            (log.solver or "game")
            if log is not None
            else "XLA"
            if plan == program.xla_plan
            else "plan"
        )
    return Subject(label, plan, log)


def _fill(data: dict, title: str) -> str:
    folder = resources.files(__package__)

    def text(name: str) -> str:
        return (folder / name).read_text(encoding="utf-8")

    # "<" could end the script element that the data lies in; its escape means the same to JSON.
    parts = {
        "title": html.escape(title),
        "style": text("page.css"),
        "data": json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c"),
        "script": "(() => {\n'use strict';\n" + "\n".join(map(text, _SCRIPTS)) + "})();",
    }
    # One pass over the template: marks inside of what is set in are left alone.
    return re.sub(r"\{\{(\w+)\}\}", lambda mark: parts[mark[1]], text("page.html"))
