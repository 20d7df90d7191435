"""`mallocgame offsets`: offsets for the intervals of a CSV file."""

import argparse
import os

from mallocgame._cli import console, parser
from mallocgame._cli.rows import print_json
from mallocgame._core import offsets_from_csv, offsets_to_csv, read_file, solve_offsets, write_file
from mallocgame.errors import InvalidInputError


def register(commands: parser.Commands) -> None:
    """Adds the command of this module."""
    command = commands.add(
        "offsets", _offsets, "offsets for intervals of known time and size, within a capacity"
    )
    command.add_argument(
        "table",
        metavar="FILE",
        help="CSV with the columns id,lower,upper,size, as MiniMalloc has it",
    )
    command.add_argument(
        "--capacity",
        type=parser.count,
        required=True,
        metavar="BYTES",
        help="that all must end within",
    )
    command.add_argument(
        "--alignment", type=parser.positive, default=1, metavar="BYTES", help="of every offset (1)"
    )
    command.add_argument(
        "--seconds",
        type=parser.seconds,
        default=10.0,
        metavar="S",
        help="wall time (10); 0: no limit",
    )
    command.add_argument(
        "-o",
        "--output",
        type=parser.output_file,
        metavar="FILE",
        help="write the CSV with a column offset, if they fit",
    )


def _offsets(options: argparse.Namespace) -> int:
    text = read_file(os.fsencode(options.table))
    try:
        ids, intervals = offsets_from_csv(text)
    except InvalidInputError as error:
        raise InvalidInputError(f"{options.table}: {error}") from None
    with console.working(f"{len(ids)} intervals"):
        result = solve_offsets(intervals, options.capacity, options.alignment, options.seconds)
    feasible = result.status == "feasible"
    if feasible and options.output is not None:
        write_file(os.fsencode(options.output), offsets_to_csv(text, result.offsets))
    row = {
        "table": options.table,
        "intervals": len(ids),
        "capacity": options.capacity,
        "alignment": options.alignment,
        "status": result.status,
        "height": result.height,
        "nodes": result.nodes,
        "seconds": round(result.seconds, 6),
    }
    if options.json:
        print_json(row)
    else:
        note = "" if feasible else ", the lowest found without the limit"
        console.print_line(
            f"{result.status}: height {result.height:,} of {options.capacity:,}{note}; "
            f"{result.seconds:.3f} s"
        )
    return parser.OK if feasible else parser.CHECK_FAILED
