"""`mallocgame levels`: the levels there are, and new sets of them."""

import argparse
import os
import statistics
from typing import Any

from mallocgame import plots
from mallocgame._cli import console, parser
from mallocgame._cli.folders import working_in
from mallocgame._cli.rows import print_json
from mallocgame.experiments import Table
from mallocgame.level_sets import making
from mallocgame.level_sets.level_set import BUNDLED, bundled_folder, load_level_set
from mallocgame.level_sets.splits import SCHEDULE, SPLITS, WHOLE_SPLITS, drafts

_SET = "a folder of `mallocgame levels make` (the bundled set)"


def register(commands: parser.Commands) -> None:
    """Adds the commands of this module."""
    group = commands.add_group(
        "levels", "levels_command", "programs to learn on and to be judged on", ", in three splits"
    )
    command = group.add("list", _list, "the families of a set of levels, by split")
    add_set(command)
    command.takes(
        "--split",
        "only those of a split; schedule, where the order of instructions counts, and those "
        "of whole models are listed only so",
        choices=[*SPLITS, SCHEDULE, *WHOLE_SPLITS],
    )
    command.takes("--free-order", "only levels whose instructions may stand in another order")
    command.takes("--names", "the name of each level instead of the families")
    command.takes(
        "--plot FILE",
        "draw how far XLA's plans are above the bound as PNG (needs matplotlib)",
        parser.output_file,
    )
    command = group.add(
        "make", _make, "draw, compile and describe a set of levels; run again, it goes on"
    )
    command.takes("folder FOLDER", "where the set is written")
    parser.add_seed(command)
    command.takes(
        "--share X",
        "of the bundled set's number of programs in each family (1)",
        _share,
        default=1.0,
    )
    command.takes("--whole", "the splits of whole models instead of the others")
    parser.add_workers(
        command, os.cpu_count() or 1, "programs made side by side (one for each processor)"
    )


def add_set(command: parser.Parser) -> None:
    """Adds the option that names a set of levels."""
    command.takes("--levels FOLDER", _SET, default=str(BUNDLED))


def set_of(given: str, split: str | None) -> str:
    """Returns the folder of the option --levels: of the bundled sets the one that has a split."""
    return str(bundled_folder(split)) if given == str(BUNDLED) and split else given


def _share(text: str) -> float:
    value = parser.seconds(text)
    if not 0 < value <= 100:
        raise argparse.ArgumentTypeError(f"found {text}, allowed: more than 0, at most 100")
    return value


def _list(options: argparse.Namespace) -> int:
    known = load_level_set(set_of(options.levels, options.split))
    if options.free_order:
        known = known.with_free_order()
    splits = [
        split
        for split in ([options.split] if options.split else (*SPLITS, *WHOLE_SPLITS))
        if _of(known.programs, split)
    ]
    if options.plot is not None:
        plots.save_gaps(
            options.plot,
            {
                split: [gap for one in _of(known.programs, split) if (gap := _gap(one))]
                for split in splits
            },
        )
    if options.names:
        names = {split: known.names(split) for split in splits}
        if options.json:
            return print_json({"levels": names})
        for split in splits:
            for name in names[split]:
                console.print_line(name)
        return parser.OK
    rows = [
        _family_row(split, family, [one for one in of_split if one["family"] == family])
        for split in splits
        for of_split in [_of(known.programs, split)]
        for family in dict.fromkeys(one["family"] for one in of_split)
    ]
    if options.json:
        return print_json({"families": rows, "left_out": known.index["left_out"]})
    heads = ("programs", "loops", "branches", "free", "instr", "use", "over")
    table = Table(("split and family", *heads))
    for split in splits:
        of_split = [row for row in rows if row["split"] == split]
        table.add(split, *_cells(_family_row(split, "", _of(known.programs, split))))
        for row in of_split:
            table.add(f"  {row['family']}", *_cells(row))
    console.print_table(table)
    console.print_line(
        "loops, branches: programs with them; free: with another order of instructions."
    )
    console.print_line(
        "The others are medians: instructions, use: bytes needed at once, of fast memory;"
    )
    console.print_line("over: XLA's plan above the bound.")
    return parser.OK


def _of(programs: dict[str, dict[str, Any]], split: str) -> list[dict[str, Any]]:
    return [entry for entry in programs.values() if entry["split"] == split]


def _gap(entry: dict[str, Any]) -> float | None:
    """XLA's latency over the bound's; None where XLA's plan is not known."""
    return entry["xla_ps"] / entry["bound_ps"] if entry["xla_ps"] and entry["bound_ps"] else None


def _family_row(split: str, family: str, entries: list[dict[str, Any]]) -> dict[str, Any]:
    gaps = [gap for one in entries if (gap := _gap(one))]
    uses = [one["peak_bytes"] / one["fast_bytes"] for one in entries]
    return {
        "split": split,
        "family": family,
        "programs": len(entries),
        "with_loops": sum(one["loops"] > 0 for one in entries),
        "with_branches": sum(one["branches"] > 0 for one in entries),
        "with_free_order": sum(one.get("free_pairs", 0) > 0 for one in entries),
        "median_instructions": statistics.median(one["instructions"] for one in entries),
        "median_use": statistics.median(uses),
        "median_gap": statistics.median(gaps) - 1 if gaps else None,
    }


def _cells(row: dict[str, Any]) -> list[str]:
    gap = row["median_gap"]
    return [
        str(row["programs"]),
        str(row["with_loops"]),
        str(row["with_branches"]),
        str(row["with_free_order"]),
        f"{row['median_instructions']:.0f}",
        f"{row['median_use']:.0%}",
        "-" if gap is None else f"{gap:.1%}",
    ]


def _make(options: argparse.Namespace) -> int:
    wanted = drafts(options.seed, options.share, options.whole)
    programs = os.path.join(options.folder, "programs")
    with working_in(options.folder), parser.workers(options) as workers:
        for label, stage in (
            ("making programs", making.make_programs),
            ("describing programs", making.describe_programs),
        ):
            with console.working(label, len(wanted)) as work:

                def done(name: str, reason: str | None, work: console.Work = work) -> None:
                    work.tell(name if reason is None else f"{name} is left out: {reason}")
                    work.advance()

                stage(programs, wanted, workers, done)
        with console.working("packing"):
            index = making.pack(options.folder, wanted, options.seed)
    if options.json:
        return print_json(
            {"folder": options.folder, "programs": len(index["programs"])}
            | {"left_out": index["left_out"]}
        )
    console.print_line(f"{len(index['programs'])} programs in {options.folder}")
    for name, reason in index["left_out"].items():
        console.print_line(f"left out: {name}: {reason}")
    return parser.OK
