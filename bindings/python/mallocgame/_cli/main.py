"""The entry point of the command line.

The exit status is 0, 1 (the check that was asked for failed), 2 (bad usage or input, or something
that the command needs and can't have, with one line on standard error) or 130 (Ctrl-C, SIGTERM).
With --json standard output holds one JSON document and nothing
else; progress goes to standard error.
"""

import argparse
import os
import sys
import warnings
from collections.abc import Sequence

import mallocgame as mg
from mallocgame._cli import (
    benchmark,
    compare,
    console,
    judge,
    levels,
    offline,
    offsets,
    programs,
    report,
    solve,
    train,
    view,
    xla,
)
from mallocgame._cli.parser import BAD_INPUT, INTERRUPTED, OK, Commands, Parser
from mallocgame.errors import MallocGameError

# The modules of commands, in the order in which `mallocgame --help` lists them.
_MODULES = (
    programs,
    solve,
    compare,
    benchmark,
    judge,
    levels,
    offline,
    offsets,
    train,
    report,
    view,
    xla,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status."""
    command = "mallocgame"
    try:
        with console.sigterm_interrupts(), warnings.catch_warnings():
            warnings.showwarning = _warn
            options = _parser().parse_args(argv)
            command = f"mallocgame {options.command}"
            status: int = options.run(options)
            sys.stdout.flush()  # Here its failure is told; at the end of Python it has a traceback.
            return status
    except BrokenPipeError:  # The reader of the output has read enough.
        _forget_output()
        return OK
    except KeyboardInterrupt:
        return INTERRUPTED
    except MemoryError as error:
        return _told(command, f"out of memory {error}".rstrip())
    except (MallocGameError, OSError, ImportError) as error:  # A library that can't be loaded.
        return _told(command, str(error))


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """Says a warning in one line, without the line of code that it came from."""
    print(f"mallocgame: warning: {message}", file=sys.stderr)


def _told(command: str, message: str) -> int:
    """Says in one line why a command ended, and returns its exit status."""
    print(f"{command}: {' '.join(message.split())}", file=sys.stderr)
    try:
        sys.stdout.flush()
    except OSError:  # This may be what was told.
        _forget_output()
    return BAD_INPUT


def _forget_output() -> None:
    """Leaves nothing on standard output that Python would fail to write when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    """Makes the parser of all commands."""
    top = Parser(
        prog="mallocgame", description="Memory mapping of TPU programs: solve, judge, replay."
    )
    top.add_argument("--version", action="version", version=f"mallocgame {mg.__version__}")
    commands = Commands(top, dest="command")
    for module in _MODULES:
        module.register(commands)
    return top


if __name__ == "__main__":
    sys.exit(main())
