"""`mallocgame train learned`: the network of the solver `learned`, on levels."""

import argparse
import os

from mallocgame._cli import console, parser
from mallocgame._cli.folders import working_in
from mallocgame._cli.rows import print_json
from mallocgame._cli.training import settings
from mallocgame._learned.training import WEIGHTS, Settings, train
from mallocgame.errors import InvalidInputError


def train_learned(options: argparse.Namespace) -> int:
    """Runs the command."""
    if options.programs:
        raise InvalidInputError(
            f"train: learned learns from levels (--levels), found the program {options.programs[0]}"
        )
    config = settings(options.config)
    if options.seed is not None:
        config["seed"] = str(options.seed)
    with working_in(options.out), console.working("training") as work:
        weights = train(
            options.out,
            Settings.of(config),
            options.jobs or 1,
            lambda step, text: work.tell(f"{step}: {text}"),
            options.levels,
        )
    path = os.path.join(options.out, WEIGHTS)
    if options.json:
        return print_json({"weights": path, "numbers": len(weights)})
    console.print_line(f"Wrote {path}, {len(weights)} numbers.")
    console.print_line(
        f"Use them with `mallocgame solve PROGRAM --solver learned --weights {path}`."
    )
    return parser.OK
