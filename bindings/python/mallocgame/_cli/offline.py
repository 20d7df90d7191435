"""`mallocgame offline`: games on levels, with the return of every action, to learn from."""

import argparse
import collections
import pathlib

import mallocgame as mg
from mallocgame import offline
from mallocgame._cli import console, parser
from mallocgame._cli.folders import working_in
from mallocgame._cli.levels import add_set
from mallocgame._cli.rows import print_json
from mallocgame.errors import InvalidInputError
from mallocgame.experiments import Table
from mallocgame.experiments.plan_rows import Row
from mallocgame.level_sets.splits import SPLITS
from mallocgame.offline.episodes import OBSERVATIONS
from mallocgame.offline.minari_files import check_minari
from mallocgame.offline.numpy_files import read_about

_USUAL = ",".join(offline.BEHAVIOURS)


def register(commands: parser.Commands) -> None:
    """Adds the command of this module."""
    command = commands.add(
        "offline", _offline, "games with the return of every action, for offline learning"
    )
    command.takes(
        "-o --output FOLDER",
        "where the games are written, as NumPy files; what is there is not played again",
        required=True,
    )
    command.takes("--split", "whose levels are played (train)", choices=SPLITS, default="train")
    add_set(command)
    command.takes("--limit N", "only the first N levels", parser.positive)
    command.takes(
        "--behaviours A,B",
        f"who plays; mcts:N looks at N games, random:N plays N and keeps the best ({_USUAL})",
        _behaviours,
        default=_USUAL,
    )
    command.takes(
        "--seeds N",
        "the seeds 0 to N - 1 of those who have chance in them (1)",
        parser.positive,
        default=1,
    )
    command.takes(
        "--observation",
        "what is seen of a position (compact)",
        choices=OBSERVATIONS,
        default="compact",
    )
    command.takes("--jobs N", "processes that work side by side (1)", parser.positive, default=1)
    command.takes(
        "--minari ID", "write all games of these levels as the Minari dataset NAME-vN too"
    )


def _behaviours(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    try:
        found = [offline.Behaviour.named(name).name for name in names]
    except InvalidInputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not found:
        raise argparse.ArgumentTypeError("found nobody who plays")
    return found


def _offline(options: argparse.Namespace) -> int:
    if options.minari is not None:
        check_minari(options.minari)
    chosen = mg.levels(options.split, options.levels)[: options.limit]
    if not chosen:
        raise InvalidInputError(f"{options.levels}: found no level in the split {options.split}")
    with working_in(options.output), console.working("playing", len(chosen)) as work:

        def done(level: str) -> None:
            work.tell(level)
            work.advance()

        offline.make_dataset(
            chosen,
            options.output,
            options.behaviours,
            options.seeds,
            observation=options.observation,
            jobs=options.jobs,
            done=done,
        )
    names = [level.name for level in chosen]
    if options.minari is not None:
        with console.working("writing the Minari dataset"):
            offline.write_minari(offline.read_numpy(options.output, names), options.minari)
    rows = _rows(options.output, names)
    if options.json:
        return print_json({"folder": options.output, "levels": len(names), "behaviours": rows})
    table = Table(("behaviour", "games", "decisions", "return"))
    for row in rows:
        table.add(row["behaviour"], row["games"], row["decisions"], f"{row['return']:.4f}")
    console.print_table(table, gap=2)
    console.print_line(f"{len(names)} levels in {options.output}. return: the mean over games.")
    if options.minari is not None:
        console.print_line(f"Minari dataset {options.minari}")
    return parser.OK


def _rows(folder: str, names: list[str]) -> list[Row]:
    """What there is of each behaviour on these levels."""
    games: dict[str, list[Row]] = collections.defaultdict(list)
    for name in names:
        path = pathlib.Path(folder, f"{name}.npz")
        if not path.exists():  # Somebody has taken it away while the rest was played.
            raise InvalidInputError(f"{folder}: the games of {name} are gone; run it again")
        for game in read_about(path)["episodes"]:
            games[game["behaviour"]].append(game)
    return [
        {
            "behaviour": behaviour,
            "games": len(own),
            "decisions": sum(game["decisions"] for game in own),
            "return": sum(_return(game) for game in own) / len(own),
        }
        for behaviour, own in games.items()
    ]


def _return(game: Row) -> float:
    return 1 - game["latency_ps"] / game["all_main_ps"] if game["all_main_ps"] else 0.0
