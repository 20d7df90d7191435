"""`mallocgame offsets`: offsets for the intervals of a CSV file, found or judged."""

import argparse

import mallocgame as mg
from mallocgame._cli import console, parser
from mallocgame._cli.rows import print_json
from mallocgame.errors import InvalidInputError
from mallocgame.experiments.plan_rows import Row
from mallocgame.programs import named


def register(commands: parser.Commands) -> None:
    """Adds the command of this module."""
    command = commands.add(
        "offsets",
        _offsets,
        "offsets for intervals of known time and size, as low as possible or within a capacity",
    )
    command.takes(
        "table FILE",
        "MiniMalloc's CSV: columns id, lower, upper, size, and alignment, gaps, offset; "
        "an offset in it is given and stays",
    )
    command.takes(
        "--capacity BYTES",
        "that all must end within (none: the least height is searched)",
        parser.count,
    )
    command.takes(
        "--alignment BYTES",
        "of every offset, in addition to its own (1)",
        parser.positive,
        default=1,
    )
    command.takes("--seconds S", "wall time (10); 0: no limit", parser.seconds, default=10.0)
    command.takes("--check", "only judge the offsets that FILE has: is it a valid solution?")
    command.takes(
        "-o --output FILE", "write the CSV with the offsets, if they fit", parser.output_file
    )


def _offsets(options: argparse.Namespace) -> int:
    if options.check and options.output is not None:
        raise InvalidInputError("-o: nothing is found with --check, so there is nothing to write")
    table = mg.offsets.load(options.table)
    row: Row = {
        "table": options.table,
        "intervals": len(table),
        "capacity": options.capacity,
        "alignment": options.alignment,
    }
    run = _check if options.check else _solve
    status, more, text = named(options.table, lambda: run(options, table))
    row |= more
    if options.json:
        print_json(row)
    else:
        console.print_line(text)
    return status


def _solve(options: argparse.Namespace, table: mg.offsets.OffsetTable) -> tuple[int, Row, str]:
    with console.working(f"{len(table)} intervals"):
        result = mg.offsets.solve(table, options.capacity, options.alignment, options.seconds)
    feasible = result.status == "feasible"
    if feasible and options.output is not None:
        mg.offsets.save(table, options.output, result.offsets)
    row = {
        "given": int((table.given >= 0).sum()),
        "status": result.status,
        "height": result.height,
        "bound": result.bound,
        "nodes": result.nodes,
        "seconds": round(result.seconds, 6),
    }
    text = f"{result.status}: height {result.height:,}"
    if options.capacity is not None:
        note = "" if feasible else ", the lowest found without the limit"
        text += f" of {options.capacity:,}{note}"
    elif result.height == result.bound:
        text += ", the least there is"
    else:
        text += f", the least found; none is below {result.bound:,}"
    text += f"; {result.seconds:.3f} s"
    return parser.OK if feasible else parser.CHECK_FAILED, row, text


def _check(options: argparse.Namespace, table: mg.offsets.OffsetTable) -> tuple[int, Row, str]:
    missing = (table.given < 0).nonzero()[0]
    if len(missing) > 0:
        i = int(missing[0])
        raise InvalidInputError(
            f"line {table.lines[i]}: found no offset of '{table.ids[i]}', "
            "allowed with --check: one in each row, in the column 'offset'"
        )
    verdict = mg.offsets.check(table, table.given, options.capacity, options.alignment)
    row = {
        "valid": verdict.ok,
        "rule": verdict.rule,
        "message": verdict.message,
        "height": verdict.height,
        "ids": [table.ids[i] for i in verdict.intervals],
        "lines": [table.lines[i] for i in verdict.intervals],
        "time": verdict.time,
        "bytes": verdict.bytes,
    }
    limit = "" if options.capacity is None else f" of {options.capacity:,}"
    text = (
        f"valid: height {verdict.height:,}{limit}"
        if verdict.ok
        else f"not valid: {verdict.rule}: {verdict.message}"
    )
    return parser.OK if verdict.ok else parser.CHECK_FAILED, row, text
