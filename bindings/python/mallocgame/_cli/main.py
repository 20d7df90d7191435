"""The entry point of the command line.

The exit status is 0, 1 (the check that was asked for failed), 2 (bad usage or input, with one line
on standard error) or 130 (Ctrl-C). With --json standard output holds one JSON document and nothing
else; progress goes to standard error.
"""

import argparse
import os
import sys
from collections.abc import Sequence

import mallocgame as mg
from mallocgame._cli import (
    benchmark,
    compare,
    judge,
    lab,
    levels,
    offline,
    offsets,
    programs,
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
    lab,
    levels,
    offline,
    offsets,
    train,
    view,
    xla,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status."""
    options = _parser().parse_args(argv)
    try:
        return options.run(options)
    except BrokenPipeError:  # The reader of the output has read enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        return INTERRUPTED
    except (MallocGameError, OSError) as error:
        print(f"mallocgame {options.command}: {' '.join(str(error).split())}", file=sys.stderr)
        return BAD_INPUT


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
