"""`mallocgame train`: an agent that learns, in a folder."""

import argparse
from collections.abc import Sequence

import mallocgame as mg
from mallocgame import games, plots
from mallocgame._cli import console, parser
from mallocgame._cli.folders import working_in
from mallocgame._cli.rows import print_json
from mallocgame._cli.train_egrl import EVALUATIONS, EgrlTraining
from mallocgame._cli.train_muzero import SECONDS, MuZeroTraining
from mallocgame._cli.training import Training, settings
from mallocgame._core import Hierarchy
from mallocgame._torch import AGENTS
from mallocgame.agents.muzero import PRICES
from mallocgame.errors import InvalidInputError

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
    command.takes("agent AGENT", f"{' or '.join(AGENTS)}", choices=AGENTS)
    command.takes("programs PROGRAM", f"{parser.PROGRAM}; muzero takes a level too", nargs="*")
    command.takes("--out DIR", "the folder to write to", required=True)
    command.takes("--resume", "go on with the checkpoint in the folder, if there is one")
    command.takes(
        "--seconds S",
        f"wall time (muzero {SECONDS:g}, egrl 0); 0: no limit, "
        "so that muzero goes on until Ctrl-C, which writes the results too",
        parser.seconds,
    )
    command.takes("--seed N", "seed of what is random (0)", parser.count)
    command.takes(
        "--plot FILE", "draw how it has learned as PNG (needs matplotlib)", parser.output_file
    )
    command.takes(
        "--config KEY=VALUE",
        "settings, see docs/muzero.md and docs/egrl.md",
        nargs="+",
        action="extend",
        default=[],
    )
    parser.add_hardware(command)
    command.takes(
        "--game",
        "the game that it plays (priority); fine is priority with one segment at a time and "
        "exact stalls; egrl takes time or priority, without --hierarchy",
        choices=games.NAMES,
    )
    command.takes(
        "--tuned-from CHECKPOINT",
        "muzero: a trained agent, with whose networks and settings the training begins",
    )
    command.takes(
        "--prices",
        "muzero: by which plans are compared: both sets, the compiler's and calibrated ones, "
        "or the compiler's alone (both, but for programs that can't have calibrated ones and with "
        "--game schedule)",
        choices=PRICES,
    )
    command.takes(
        "--actors N",
        "processes that play while this one learns: for muzero the setting groups, "
        "too, unless --config has it; for egrl with --one-agent",
        parser.positive,
    )
    command.takes(
        "--ray ADDRESS",
        f"the same by a Ray cluster: {parser.ADDRESSES} (docs/ray.md)",
        parser.ray_address,
    )
    command.takes(
        "--most-stale UPDATES",
        "muzero: actors don't wait for each other, and games are dropped that networks "
        "searched which are older by more updates; without it steps are the same as on one machine",
        parser.count,
    )
    command.takes(
        "--hierarchy NAME",
        f"egrl: memories to place tensors in ({', '.join(Hierarchy.preset_names())}, "
        "or a JSON file); without it the TPU game is played",
    )
    command.takes("--one-agent", "egrl: train one agent on all programs, instead of one on each")
    command.takes(
        "--evaluations N", f"egrl: maps to grade of each program ({EVALUATIONS})", parser.positive
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
    config, hardware = settings(options.config), _hardware(options)
    if options.agent == "egrl":
        return EgrlTraining(options, config, hardware)
    if options.most_stale is not None and options.actors is None and options.ray is None:
        raise InvalidInputError("--most-stale: is of actors; give --actors or --ray too")
    return MuZeroTraining(options, config, hardware)
