"""What the command line understands: `mallocgame COMMAND` with its arguments. main.py carries
them out.
"""

import argparse
import sys
from collections.abc import Callable, Mapping

import mallocgame as mg
from mallocgame._bounds.bound import BOUNDS
from mallocgame._cli import xla as xla_commands
from mallocgame._solve import AGENTS
from mallocgame.programs import SUITES

BAD_INPUT = 2  # exit status
DEFAULT_SOLVERS = "greedy,beam,xla-assigned"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str):
        print(f"{self.prog}: {message} (see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(BAD_INPUT)


def _limited(kind: type, least: float, text: str):
    value = kind(text)
    if not least <= value < 2**63:
        raise argparse.ArgumentTypeError(f"found {text}, allowed: {least} and above")
    return value


def _seconds(text: str) -> float:
    return _limited(float, 0, text)


def _count(text: str) -> int:
    return _limited(int, 0, text)


def _positive(text: str) -> int:
    return _limited(int, 1, text)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seconds",
        type=_seconds,
        default=10.0,
        metavar="S",
        help="wall time of a solver (10); 0: no limit",
    )
    parser.add_argument(
        "--seed", type=_count, default=0, metavar="N", help="seed of what is random (0)"
    )
    parser.add_argument(
        "--evaluations",
        type=_count,
        default=0,
        metavar="N",
        help="games a solver may look at (0: no limit)",
    )
    parser.add_argument(
        "--checkpoint",
        metavar="FILE",
        help=f"of a trained agent: the solver {' or '.join(AGENTS)}, and a member of portfolio",
    )


def _add_bound(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bound",
        choices=BOUNDS,
        default="no-contention",
        help="what no plan can beat: no-contention takes no time, lp up to a minute (needs highspy)",
    )


def parser(run: Mapping[str, Callable]) -> argparse.ArgumentParser:
    """run: by command, what carries it out; stands in the parsed options as `run`."""
    top = _Parser(
        prog="mallocgame", description="Memory mapping of TPU programs: solve, judge, replay."
    )
    top.add_argument("--version", action="version", version=f"mallocgame {mg.__version__}")
    commands = top.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=_Parser
    )
    known_program = "a bundled name (see `mallocgame programs`) or a .mgp file"
    known_hardware = f"{', '.join(mg.Hardware.preset_names())}, one with less fast memory (tpu_v4i_16mib), or a JSON file"

    def add(name: str, summary: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=summary, description=summary)
        command.add_argument(
            "--json", action="store_true", help="one JSON document on standard output"
        )
        command.set_defaults(run=run[name])
        return command

    add("programs", "list the bundled programs")

    command = add("import", "make a program file of a scheduled HLO module")
    command.add_argument(
        "module", metavar="MODULE", help="HloProto before memory space assignment, .pb or .pb.gz"
    )
    command.add_argument(
        "--assigned", metavar="FILE", help="HloProto after memory space assignment: XLA's own plan"
    )
    command.add_argument(
        "--priced",
        metavar="FILE",
        nargs="+",
        action="extend",
        default=[],
        help="HloProtos after code generation, with estimated cycles",
    )
    command.add_argument("--profile", metavar="FILE", help="JSON table of cycles by placement")
    command.add_argument("--hardware", metavar="NAME", required=True, help=known_hardware)
    command.add_argument(
        "--name", metavar="NAME", default="", help="of the program (that of the output file)"
    )
    command.add_argument(
        "--origin", metavar="TEXT", default="", help="kept in the file, such as compiler versions"
    )
    command.add_argument(
        "-o", "--output", metavar="FILE", required=True, help="the .mgp file to write"
    )

    command = add("solve", "find a plan and compare it with XLA's")
    command.add_argument("program", metavar="PROGRAM", help=known_program)
    command.add_argument(
        "--solver",
        metavar="NAME",
        default="greedy",
        choices=[*mg.solver_names(), *AGENTS],
        help=f"{', '.join(mg.solver_names())}; with Torch egrl, and with --checkpoint muzero",
    )
    command.add_argument("--hardware", metavar="NAME", help=known_hardware)
    _add_limits(command)
    _add_bound(command)
    command.add_argument("-o", "--output", metavar="PLAN", help="write the plan as JSON")
    command.add_argument("--log", metavar="GAME", help="write the game, to be replayed (.mgr)")
    command.add_argument(
        "--plot", metavar="FILE", help="draw the best latency over time as PNG (needs matplotlib)"
    )

    command = add("compare", "solvers against each other and XLA, as a table")
    command.add_argument("programs", metavar="PROGRAM", nargs="*", help=known_program)
    command.add_argument(
        "--suite",
        choices=SUITES,
        help="bundled programs: all, or those where XLA's own plan leaves 3 %% or more to gain",
    )
    command.add_argument(
        "--solvers", metavar="A,B", help=f"of {', '.join(mg.solver_names())} ({DEFAULT_SOLVERS})"
    )
    command.add_argument("--hardware", metavar="NAME", help=known_hardware)
    _add_limits(command)
    _add_bound(command)
    command.add_argument("--csv", metavar="FILE", help="write the results as CSV")
    command.add_argument(
        "--plot", metavar="FILE", help="draw the results as PNG (needs matplotlib)"
    )

    for name, summary in (
        ("validate", "is the plan one that the hardware can carry out?"),
        ("simulate", "what does the plan cost?"),
    ):
        command = add(name, summary)
        command.add_argument("program", metavar="PROGRAM", help=known_program)
        command.add_argument("plan", metavar="PLAN", help="JSON, as `solve -o` writes it")
        command.add_argument("--hardware", metavar="NAME", help=known_hardware)

    command = add("offsets", "offsets for intervals of known time and size, within a capacity")
    command.add_argument(
        "table",
        metavar="FILE",
        help="CSV with the columns id,lower,upper,size, as MiniMalloc has it",
    )
    command.add_argument(
        "--capacity", type=_count, required=True, metavar="BYTES", help="that all must end within"
    )
    command.add_argument(
        "--alignment", type=_positive, default=1, metavar="BYTES", help="of every offset (1)"
    )
    command.add_argument(
        "--seconds", type=_seconds, default=10.0, metavar="S", help="wall time (10); 0: no limit"
    )
    command.add_argument(
        "-o", "--output", metavar="FILE", help="write the CSV with a column offset, if they fit"
    )

    command = add(
        "train", "train an agent on programs; writes checkpoints, plans and games to a folder"
    )
    command.add_argument("agent", metavar="AGENT", choices=AGENTS, help=" or ".join(AGENTS))
    command.add_argument("programs", metavar="PROGRAM", nargs="+", help=known_program)
    command.add_argument("--out", metavar="DIR", required=True, help="the folder to write to")
    command.add_argument(
        "--resume",
        action="store_true",
        help="go on with the checkpoint in the folder, if there is one",
    )
    command.add_argument(
        "--seconds", type=_seconds, metavar="S", help="wall time (muzero 600, egrl 0); 0: no limit"
    )
    command.add_argument("--seed", type=_count, metavar="N", help="seed of what is random (0)")
    command.add_argument(
        "--config",
        metavar="KEY=VALUE",
        nargs="+",
        action="extend",
        default=[],
        help="settings, see docs/muzero.md and docs/egrl.md",
    )
    command.add_argument("--hardware", metavar="NAME", help=known_hardware)
    command.add_argument(
        "--hierarchy",
        metavar="NAME",
        help=f"egrl: memories to place tensors in ({', '.join(mg.Hierarchy.preset_names())}, or a JSON file); "
        "without it the TPU game is played",
    )
    command.add_argument(
        "--evaluations",
        type=_positive,
        metavar="N",
        help="egrl: maps to grade of each program (4000)",
    )

    command = add("replay", "play a logged game again; does it come out the same?")
    command.add_argument("log", metavar="GAME", help="as `solve --log` writes it")
    command.add_argument(
        "--program", metavar="PROGRAM", help="of the game, where it is no bundled one"
    )

    command = add("view", "a page that shows a plan, a game, or two of them side by side")
    command.add_argument(
        "shown",
        metavar="GAME|PLAN",
        help="a game (.mgr), a plan (JSON), or xla: the compiler's own plan",
    )
    command.add_argument("--against", metavar="GAME|PLAN", help="compare with this one; likewise")
    command.add_argument(
        "--program",
        metavar="PROGRAM",
        help="of the plan, where it is no bundled one or xla alone is shown",
    )
    command.add_argument("--hardware", metavar="NAME", help=known_hardware)
    _add_bound(command)
    command.add_argument(
        "-o", "--output", metavar="PAGE", required=True, help="the HTML file to write"
    )

    xla_commands.register(commands, _Parser)
    return top
