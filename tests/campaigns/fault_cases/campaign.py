"""Runs cases one after the other, keeps what came of each try, and writes the report."""

import collections
import dataclasses
import json
import os
import pathlib
import random
import shutil
import time
import traceback
from collections.abc import Callable

TRIES = "tries"  # the folder of their folders
SURVIVED, TOLD, LOST, BAD = "survived", "told", "lost", "ended badly"


@dataclasses.dataclass(frozen=True)
class Try:
    """What came of one try."""

    outcome: str
    note: str = ""
    seconds: float = 0.0


@dataclasses.dataclass(frozen=True)
class Case:
    """One fault that happens to one command."""

    fault: str
    command: str
    tries: int
    # Does a try in an empty folder. The numbers are its own, the same in each campaign.
    attempt: Callable[[pathlib.Path, int, random.Random], Try]

    @property
    def name(self) -> str:
        return f"{self.fault}/{self.command}".replace(" ", "-")


class Campaign:
    """The cases, and a folder of results."""

    def __init__(self, out: pathlib.Path, cases: list[Case]) -> None:
        self._out = out
        self._cases = cases
        self._kept = out / "results.json"
        self._results: dict[str, list[dict]] = {}
        if self._kept.exists():
            self._results = json.loads(self._kept.read_text())

    def run(self) -> int:
        """Does the tries that are missing. Returns the exit status."""
        for number, case in enumerate(self._cases, 1):
            done = self._results.setdefault(case.name, [])
            for index in range(len(done), case.tries):
                found = self._attempt(case, index)
                done.append(dataclasses.asdict(found))
                self._write()
                note = f": {found.note}" if found.note else ""
                print(
                    f"{time.strftime('%H:%M:%S')} case {number} of {len(self._cases)}: {case.name} "
                    f"{index + 1}/{case.tries} {found.outcome}{note}",
                    flush=True,
                )
        self._write()
        bad = [one for tries in self._results.values() for one in tries if _is_bad(one)]
        total = sum(map(len, self._results.values()))
        print(f"{total} tries, {len(bad)} lost something or ended badly: {self._out / 'report.md'}")
        return 1 if bad else 0

    def _attempt(self, case: Case, index: int) -> Try:
        folder = self._out / TRIES / case.name.replace("/", "-") / str(index)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        begin = time.monotonic()
        try:
            found = case.attempt(folder, index, random.Random(f"{case.name} {index}"))
        except Exception:  # One broken try must not end a campaign of hours. It counts as bad.
            found = Try(BAD, traceback.format_exc())
        found = dataclasses.replace(found, seconds=round(time.monotonic() - begin, 1))
        if not _is_bad(dataclasses.asdict(found)):  # The folder of others is the evidence.
            shutil.rmtree(folder, ignore_errors=True)
        return found

    def _write(self) -> None:
        for path, text in (
            (self._kept, json.dumps(self._results, indent=1) + "\n"),
            (self._out / "report.md", self._report()),
        ):
            part = path.with_suffix(".part")
            part.write_text(text)
            os.replace(part, path)

    def _report(self) -> str:
        lines = [
            "# The fault campaign",
            "",
            "| fault | command | tries | survived | told, exit 2 or 130 | lost | ended badly | s |",
            "| --- | --- | --: | --: | --: | --: | --: | --: |",
        ]
        sums: collections.Counter[str] = collections.Counter()
        for name, tries in self._results.items():
            fault, _, command = name.partition("/")
            counts = collections.Counter(one["outcome"] for one in tries)
            seconds = sum(one["seconds"] for one in tries)
            sums += counts
            row = f"| {fault} | {command} | {len(tries)} | {_cells(counts)} | {seconds:.0f} |"
            lines.append(row)
        lines.append(f"| all | | {sums.total()} | {_cells(sums)} | |")
        notes = collections.Counter(
            f"{name}: {one['outcome']}: {' '.join(one['note'].split())}"
            for name, tries in self._results.items()
            for one in tries
            if one["note"]
        )
        lines += ["", "## What was said", ""]
        lines += [f"- {count} times {note[:400]}" for note, count in notes.items()]
        return "\n".join(lines) + "\n"


def _is_bad(found: dict) -> bool:
    return found["outcome"] in (LOST, BAD)


def _cells(counts: collections.Counter[str]) -> str:
    return " | ".join(str(counts[outcome]) for outcome in (SURVIVED, TOLD, LOST, BAD))
