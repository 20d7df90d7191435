"""What the command line shows to people: progress on standard error, tables on standard output."""

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Literal

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from mallocgame import experiments

_WIDTH_WITHOUT_TERMINAL = 80
_SECONDS_BETWEEN_LINES = 10.0  # of progress, if it is no terminal


class Work:
    """The progress of one command, shown to people while it works."""

    def __init__(self, label: str, total: int | None) -> None:
        self.label = label
        self.total = total
        self.done = 0
        self.text = ""
        self.begin = time.monotonic()

    def tell(self, text: str) -> None:
        """Says what is going on."""
        self.text = text

    def advance(self) -> None:
        """Counts one of `total` things as done."""
        self.done += 1

    def line(self) -> str:
        """All of it as one line."""
        count = f" {self.done}/{self.total}" if self.total else ""
        text = f": {self.text}" if self.text else ""
        return f"{self.label}{count}{text}"


@contextlib.contextmanager
def working(label: str, total: int | None = None) -> Iterator[Work]:
    """Shows the progress of a block on standard error: a bar on a terminal, else a line at times.

    `total` is the number of things to do, if it is known.
    """
    work = Work(label, total)
    stop = threading.Event()
    show = _show_bar if sys.stderr.isatty() else _show_lines
    thread = threading.Thread(target=show, args=(work, stop), daemon=True)
    thread.start()
    try:
        yield work
    finally:
        stop.set()
        thread.join()


@contextlib.contextmanager
def stopping() -> Iterator[Callable[[], bool]]:
    """Makes of the first Ctrl-C or SIGTERM in a block a request to end with what there is.

    It gives the function that says whether that was asked for. The second Ctrl-C interrupts as
    usual.
    """
    asked = False

    def ask(*_: object) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Makes of SIGTERM in a block what Ctrl-C is, so that it too leaves what there is."""
    if threading.current_thread() is not threading.main_thread():  # Only that one may.
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _show_lines(work: Work, stop: threading.Event) -> None:
    while not stop.wait(_SECONDS_BETWEEN_LINES):
        print(f"{work.line()} ({time.monotonic() - work.begin:.0f} s)", file=sys.stderr, flush=True)


def _show_bar(work: Work, stop: threading.Event) -> None:
    if stop.wait(1.0):  # Most work ends before there is anything to show.
        return
    columns: list[ProgressColumn] = [
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
    ]
    if work.total:
        columns += [BarColumn(bar_width=20), MofNCompleteColumn()]
    columns.append(TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(work.line(), total=work.total)
        while not stop.wait(0.2):
            text = f": {work.text}" if work.text else ""
            bar.update(task, description=f"{work.label}{text}", completed=work.done)


def print_table(table: experiments.Table, gap: int = 1) -> None:
    """Prints a table on standard output.

    A left column folds where the terminal is too narrow.
    """
    shown = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    for place, head in enumerate(table.heads):
        left = place < table.left
        justify: Literal["left", "right"] = "left" if left else "right"
        shown.add_column(Text(head), justify=justify, no_wrap=not left, overflow="fold")
    for row in table.rows:
        shown.add_row(*[Text(str(cell)) for cell in row])
    _stdout().print(shown)


def print_line(text: str = "") -> None:
    """Prints a line on standard output, without breaking it."""
    _stdout().print(Text(text), soft_wrap=True)


def print_sentences(*sentences: str | None) -> None:
    """Prints a line for each sentence that there is."""
    for sentence in sentences:
        if sentence is not None:
            print_line(sentence)


def _stdout() -> Console:
    return Console(width=None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL, highlight=False)


def microseconds(picoseconds: int | None) -> str:
    """A time in a table."""
    return "-" if picoseconds is None else f"{picoseconds / 1e6:,.1f}"


def times(ratio: float | None) -> str:
    """A ratio in a table."""
    return "-" if ratio is None else f"{ratio:.3f}x"


def mebibytes(size: int) -> str:
    """A number of bytes in a table."""
    return f"{size / 2**20:,.1f}"
