"""`mallocgame lab`: other pieces of XLA's allocator, judged over programs."""

import argparse
import dataclasses

from mallocgame import laboratory
from mallocgame._cli import console, parser
from mallocgame._cli.rows import print_json
from mallocgame.programs import SUITES, suite

_NAMED = "; ".join(
    f"{piece}={name}{':WEIGHT' if weighted else ''}"
    for piece, name, weighted, _ in laboratory.named_pieces()
    if name != "xla"
)


def register(commands: parser.Commands) -> None:
    """Adds the command of this module."""
    command = commands.add(
        "lab", _lab, "other pieces of XLA's allocator beside its own, over many programs"
    )
    command.add_argument(
        "pieces",
        metavar="PIECES",
        nargs="+",
        help="MODULE:FUNCTION that returns a laboratory.Pieces, or names such as "
        f"order=size,begins=fragmentation:0.5; there are {_NAMED}",
    )
    command.add_argument(
        "--programs", metavar="PROGRAM", nargs="+", default=[], help=parser.PROGRAM
    )
    command.add_argument(
        "--suite", choices=SUITES, help="bundled programs (contended, unless --programs are given)"
    )
    command.add_argument(
        "--baseline", metavar="PIECES", default="", help="what to compare with (XLA's own pieces)"
    )


def _lab(options: argparse.Namespace) -> int:
    baseline = laboratory.find_pieces(options.baseline)
    sets = {text: laboratory.find_pieces(text) for text in options.pieces}
    names = list(options.programs)
    if options.suite is not None or not names:
        names += suite(options.suite or "contended")
    names = list(dict.fromkeys(names))
    trials: dict[str, list[laboratory.Trial]] = {}
    with console.working("planning", len(sets) * len(names)) as work:
        for text, pieces in sets.items():
            trials[text] = []
            for name in names:
                trials[text] += laboratory.judge(pieces, [name], baseline, work.tell)
                work.advance()
    summaries = {text: laboratory.summarize(own) for text, own in trials.items()}
    if options.json:
        return print_json(
            {
                "results": [
                    {"pieces": text, "ratio": trial.ratio, **dataclasses.asdict(trial)}
                    for text, own in trials.items()
                    for trial in own
                ],
                "summary": {text: dataclasses.asdict(one) for text, one in summaries.items()},
            }
        )
    _print_trials(trials)
    _print_summaries(summaries)
    return parser.OK


def _print_trials(trials: dict[str, list[laboratory.Trial]]) -> None:
    columns: list[console.Column] = [("program and pieces", "left")]
    columns += [(title, "right") for title in ("ratio", "copies", "stall µs", "no bytes")]
    columns += [("repacks", "right")]
    cells = []
    for of_program in zip(*trials.values(), strict=True):
        cells.append([of_program[0].program, *[""] * 5])
        for text, trial in zip(trials, of_program, strict=True):
            own, base = trial.counts, trial.baseline_counts
            cells.append(
                [
                    f"  {text}",
                    f"{trial.ratio:.4f}",
                    f"{trial.copies} ({trial.copies - trial.baseline_copies:+})",
                    console.microseconds(trial.stall_ps),
                    f"{own.out_of_memory} ({own.out_of_memory - base.out_of_memory:+})",
                    f"{own.repacked} of {own.repacks}",
                ]
            )
    console.print_table(columns, cells, gap=1)


def _print_summaries(summaries: dict[str, laboratory.Summary]) -> None:
    columns: list[console.Column] = [("pieces", "left")]
    columns += [
        (title, "right") for title in ("ratio", "95 %", "faster", "slower", "programs", "models")
    ]
    console.print_table(
        columns,
        [
            [
                text,
                f"{one.ratio:.4f}",
                f"{one.low:.4f} to {one.high:.4f}",
                str(one.faster),
                str(one.slower),
                str(one.programs),
                str(one.models),
            ]
            for text, one in summaries.items()
        ],
        gap=1,
    )
    console.print_line(
        "ratio: the latency over the baseline's; below 1 is faster. (+n): beside the baseline."
    )
    console.print_line(
        "no bytes: attempts that met a use without; repacks: how many fitted of those tried."
    )
    console.print_line("Static estimates, not measurements on a chip.")
