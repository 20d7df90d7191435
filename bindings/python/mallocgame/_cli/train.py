"""`mallocgame train`: an agent that learns, in a folder."""

import argparse
from collections.abc import Sequence

import mallocgame as mg
from mallocgame import games, plots
from mallocgame._cli import console, parser
from mallocgame._cli.folders import working_in
from mallocgame._cli.rows import print_json
from mallocgame._cli.train_egrl import EgrlTraining
from mallocgame._cli.train_muzero import MuZeroTraining
from mallocgame._cli.training import Training, settings
from mallocgame._core import Hierarchy
from mallocgame._torch import AGENTS
from mallocgame.agents.muzero import PRICES
from mallocgame.errors import InvalidInputError

_EGRL_EVALUATIONS = 4000
_MUZERO_SECONDS = 600.0

# Options that only one agent takes.
_OF_MUZERO = ("tuned_from", "most_stale", "prices")
_OF_EGRL = ("hierarchy", "one_agent", "evaluations")


def register(commands: parser.Commands) -> None:
    """Adds the command of this module."""
    command = commands.add(
        "train",
        _train,
        "train an agent on programs; writes checkpoints, plans and games to a folder",
    )
    command.add_argument("agent", metavar="AGENT", choices=AGENTS, help=f"{' or '.join(AGENTS)}")
    command.add_argument(
        "programs", metavar="PROGRAM", nargs="*", help=f"{parser.PROGRAM}; muzero takes a level too"
    )
    command.add_argument("--out", metavar="DIR", required=True, help="the folder to write to")
    command.add_argument(
        "--resume",
        action="store_true",
        help="go on with the checkpoint in the folder, if there is one",
    )
    command.add_argument(
        "--seconds",
        type=parser.seconds,
        metavar="S",
        help=f"wall time (muzero {_MUZERO_SECONDS:g}, egrl 0); 0: no limit, "
        "so that muzero goes on until Ctrl-C, which writes the results too",
    )
    command.add_argument(
        "--seed", type=parser.count, metavar="N", help="seed of what is random (0)"
    )
    command.add_argument(
        "--plot",
        type=parser.output_file,
        metavar="FILE",
        help="draw how it has learned as PNG (needs matplotlib)",
    )
    command.add_argument(
        "--config",
        metavar="KEY=VALUE",
        nargs="+",
        action="extend",
        default=[],
        help="settings, see docs/muzero.md and docs/egrl.md",
    )
    parser.add_hardware(command)
    command.add_argument(
        "--game",
        choices=games.NAMES,
        help="the game that it plays (priority); fine is priority with one segment at a time and "
        "exact stalls; egrl takes time or priority, without --hierarchy",
    )
    command.add_argument(
        "--tuned-from",
        metavar="CHECKPOINT",
        help="muzero: a trained agent, with whose networks and settings the training begins",
    )
    command.add_argument(
        "--prices",
        choices=PRICES,
        help="muzero: by which plans are compared: both sets, the compiler's and calibrated ones, "
        "or the compiler's alone (both, but for programs that can't have calibrated ones and with "
        "--game schedule)",
    )
    command.add_argument(
        "--actors",
        type=parser.positive,
        metavar="N",
        help="processes that play while this one learns: for muzero the setting groups, "
        "too, unless --config has it; for egrl with --one-agent",
    )
    command.add_argument(
        "--ray",
        type=parser.ray_address,
        metavar="ADDRESS",
        help=f"the same by a Ray cluster: {parser.ADDRESSES} (docs/ray.md)",
    )
    command.add_argument(
        "--most-stale",
        type=parser.count,
        metavar="UPDATES",
        help="muzero: actors don't wait for each other, and games are dropped that networks "
        "searched which are older by more updates; without it steps are the same as on one machine",
    )
    command.add_argument(
        "--hierarchy",
        metavar="NAME",
        help=f"egrl: memories to place tensors in ({', '.join(Hierarchy.preset_names())}, "
        "or a JSON file); without it the TPU game is played",
    )
    command.add_argument(
        "--one-agent",
        action="store_true",
        help="egrl: train one agent on all programs, instead of one on each",
    )
    command.add_argument(
        "--evaluations",
        type=parser.positive,
        metavar="N",
        help=f"egrl: maps to grade of each program ({_EGRL_EVALUATIONS})",
    )


def _train(options: argparse.Namespace) -> int:
    if not options.programs:
        raise InvalidInputError(f"train: {options.agent} needs a program to learn on")
    if options.agent == "egrl":
        _refuse(options, _OF_MUZERO, "muzero's")
    else:
        _refuse(options, _OF_EGRL, "egrl's")
    if options.plot is not None:
        plots.check()
    with working_in(options.out), console.working("training") as work:
        run = _training(options)
        finished = run.run(work)
        rows = run.finish(finished, work)
        if options.plot is not None and run.steps > 0:
            run.plot(options.plot)
    if options.json:
        print_json({"results": rows, "folder": options.out, f"{run.columns[1]}s": run.steps})
    else:
        run.show(rows)
        if not finished:
            console.print_line("Interrupted; --resume goes on with the last checkpoint.")
    if not finished:
        return parser.INTERRUPTED
    return parser.OK if all(row["valid"] for row in rows) else parser.CHECK_FAILED


def _refuse(options: argparse.Namespace, names: Sequence[str], whose: str) -> None:
    """Refuses options that the agent doesn't take. InvalidInputError names the first given one."""
    for name in names:
        value = getattr(options, name)
        if value is not None and value is not False:  # 0 is given, though it equals False.
            option = name.replace("_", "-")
            raise InvalidInputError(f"--{option}: is {whose}, found the agent {options.agent}")


def _hardware(options: argparse.Namespace) -> mg.Hardware | None:
    """The hardware that the options name for all programs; None means each program's own."""
    if options.hardware is None and options.preloads is None:
        return None
    first, *others = [mg.load_program(name).hardware for name in options.programs]
    if options.hardware is None and any(other != first for other in others):
        raise InvalidInputError("--preloads: the programs' hardware differs; give --hardware too")
    return parser.hardware_of(options, first)


def _training(options: argparse.Namespace) -> Training:
    config = settings(options.config)
    hardware = _hardware(options)
    if options.agent == "egrl":
        return EgrlTraining(
            options.programs,
            options.out,
            options.resume,
            options.seed,
            config,
            hardware,
            options.hierarchy,
            options.game,
            options.one_agent,
            options.evaluations or _EGRL_EVALUATIONS,
            options.seconds or 0.0,
            options.actors,
            options.ray,
        )
    if options.most_stale is not None and options.actors is None and options.ray is None:
        raise InvalidInputError("--most-stale: is of actors; give --actors or --ray too")
    return MuZeroTraining(
        options.programs,
        options.out,
        options.resume,
        options.seed,
        config,
        hardware,
        options.game,
        options.prices,
        _MUZERO_SECONDS if options.seconds is None else options.seconds,
        options.tuned_from,
        options.actors,
        options.ray,
        options.most_stale,
    )
