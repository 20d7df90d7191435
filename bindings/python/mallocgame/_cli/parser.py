"""What the commands share: their parser, the types of arguments, and options that several take."""

import argparse
import contextlib
import math
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import mallocgame as mg
from mallocgame._jobs import Workers, workers_of
from mallocgame._jobs.cluster import ADDRESSES, check_address
from mallocgame._moved import FormerOption
from mallocgame.bounds.bound import BOUNDS
from mallocgame.errors import InvalidInputError

OK, CHECK_FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130  # exit statuses

PROGRAM = "a bundled name (see `mallocgame programs`) or a .mgp file"
HARDWARE = (
    f"{', '.join(mg.Hardware.preset_names())}, one with less fast memory (tpu_v4i_16mib), "
    "or a JSON file"
)

Run = Callable[[argparse.Namespace], int]  # carries a command out and returns the exit status


class Parser(argparse.ArgumentParser):
    """The parser of a command. It reports an error as one line, without the usage."""

    def takes(
        self,
        spelling: str,
        text: str,
        kind: Callable[[str], Any] | None = None,
        former: str | None = None,
        **settings: Any,
    ) -> None:
        """Declares an argument as users write it, with its help and the type of its value.

        spelling: "-o --output FILE" of an option, "program PROGRAM" of an argument by its place,
        and "--json" of a flag, or of an option that has `choices`. former: a name that the option
        had, which warns. settings: more of those of add_argument().
        """
        *names, last = spelling.split()
        if not last.startswith("-"):
            settings["metavar"] = last
        else:
            names.append(last)
            if "choices" not in settings:
                settings["action"] = "store_true"
        if kind is not None:
            settings["type"] = kind
        added = self.add_argument(*names, help=text, **settings)
        if former is not None:
            self.add_argument(
                former,
                dest=added.dest,
                type=kind or str,
                choices=settings.get("choices"),
                action=FormerOption,
                now=names[-1],
            )

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message} (see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(BAD_INPUT)


class Commands:
    """The commands of a parser, to which the modules of commands add their own."""

    def __init__(self, parser: argparse.ArgumentParser, dest: str, note: str = "") -> None:
        """`note` ends the description of each command. `dest` names the chosen command."""
        self._note = note
        self._commands: Any = parser.add_subparsers(
            dest=dest, required=True, metavar="COMMAND", parser_class=Parser
        )

    def add(self, name: str, run: Run, summary: str) -> Parser:
        """Adds a command that `run` carries out, and returns its parser."""
        command: Parser = self._commands.add_parser(
            name, help=summary, description=f"{summary}{self._note}"
        )
        command.takes("--json", "one JSON document on standard output")
        command.set_defaults(run=run)
        return command

    def add_group(self, name: str, dest: str, summary: str, note: str) -> "Commands":
        """Adds a command that has commands of its own."""
        group = self._commands.add_parser(name, help=summary, description=f"{summary}{note}")
        return Commands(group, dest, note)


# Types of arguments. argparse reports what they raise, with the argument's name before it.


def count(text: str) -> int:
    """An integer that is at least 0."""
    return _integer(text, 0)


def positive(text: str) -> int:
    """An integer that is at least 1."""
    return _integer(text, 1)


def seconds(text: str) -> float:
    """A limit of time for work that ends by itself too; 0 means that there is none."""
    return _number(text, "0 (no limit) and above")


def percent(text: str) -> float:
    """A share in per cent."""
    return _number(text, "0 and above")


def gibibytes(text: str) -> float:
    """A limit of memory; 0 means that there is none."""
    return _number(text, "0 (no limit) and above")


def seconds_to_spend(text: str) -> float:
    """The time for work that ends only when its time is over, so that 0 can't mean no limit."""
    value = _number(text, "more than 0")
    if value == 0:
        raise argparse.ArgumentTypeError(
            f"found {text}, allowed: more than 0; it ends only when its time is over, "
            "so it can't go without a limit"
        )
    return value


def loop_trips(text: str) -> tuple[str, int]:
    """NAME=COUNT, of a loop."""
    name, is_given, number = text.rpartition("=")
    if not name or not is_given:
        raise argparse.ArgumentTypeError(f"found {text}, allowed: NAME=COUNT, as in while.3=1000")
    return name, count(number)


def compiler_option(text: str) -> tuple[str, str]:
    """NAME=VALUE, of the compiler."""
    name, is_given, value = text.partition("=")
    if not name or not is_given:
        raise argparse.ArgumentTypeError(
            f"found {text}, allowed: NAME=VALUE, as in xla_tpu_scoped_vmem_limit_kib=32768"
        )
    return name, value


def output_file(text: str) -> str:
    """A path that a file can be written to. It is checked before long work begins."""
    folder = os.path.dirname(text) or "."
    if os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"{text}: is a folder, not a file")
    if not os.path.isdir(folder):
        raise argparse.ArgumentTypeError(f"{text}: there is no folder '{folder}'")
    if not os.access(folder, os.W_OK):
        raise argparse.ArgumentTypeError(f"{text}: no permission to write in '{folder}'")
    return text


def _integer(text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if not least <= value < 2**63:
        raise argparse.ArgumentTypeError(f"found {text}, allowed: an integer, {least} and above")
    return value


def _number(text: str, allowed: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 2**63:
        raise argparse.ArgumentTypeError(f"found {text}, allowed: {allowed}")
    return value


# Options that several commands take.


def add_hardware(command: Parser, required: bool = False) -> None:
    command.takes("--hardware NAME", HARDWARE, required=required)
    add_preloads(command)


def add_trips(command: Parser) -> None:
    command.takes(
        "--trips NAME=COUNT",
        "how often a loop runs, by the name of its while; before what the module says",
        loop_trips,
        action="append",
        default=[],
    )


def add_preloads(command: Parser) -> None:
    command.takes(
        "--preloads N",
        "parameters that may be in fast memory before the start (as the hardware says: 1)",
        count,
    )


def add_seed(command: Parser) -> None:
    command.takes("--seed N", "seed of what is random (0)", count, default=0)


def add_bound(command: Parser) -> None:
    command.takes(
        "--bound",
        "the proven bound: no-contention takes no time, the others up to a minute; any-order, "
        "lp and milp need highspy",
        choices=BOUNDS,
        default="no-contention",
    )


def add_workers(command: Parser, jobs: int | None, text: str) -> None:
    """Adds what `workers` reads. text: what is done side by side, with the default."""
    group = command.add_mutually_exclusive_group()
    group.add_argument("--jobs", type=positive, default=jobs, metavar="N", help=text)
    group.add_argument(
        "--ray",
        type=ray_address,
        metavar="ADDRESS",
        help=f"on a Ray cluster instead: {ADDRESSES} (docs/ray.md)",
    )


def ray_address(text: str) -> str:
    """Reads an address of --ray."""
    try:
        return check_address(text)
    except InvalidInputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def workers(
    options: argparse.Namespace, here: bool = False
) -> contextlib.AbstractContextManager[Workers]:
    """Gives who does the jobs of a command: --jobs processes, or the cluster of --ray.

    here: whether one process is this one.
    """
    return workers_of(options.jobs, options.ray, here)


def hardware_of(options: argparse.Namespace, own: mg.Hardware) -> mg.Hardware:
    """The hardware that --hardware names, else `own`, changed by --preloads."""
    machine = own if options.hardware is None else mg.hardware(options.hardware)
    if options.preloads is None:
        return machine
    return machine.replace(max_preloads=options.preloads)


def problem_of(options: argparse.Namespace) -> tuple[mg.Program, mg.Hardware]:
    """The program that the options name, with its hardware or that of the options."""
    program = mg.load_program(options.program)
    return program, hardware_of(options, program.hardware)
