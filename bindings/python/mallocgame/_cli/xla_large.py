"""`mallocgame xla large`."""

import argparse
import sys

from mallocgame._cli import console, parser
from mallocgame._cli.rows import print_json
from mallocgame._cli.xla_shared import add_limits
from mallocgame.errors import InvalidInputError, MallocGameError
from mallocgame.experiments.plan_rows import Row
from mallocgame.programs import LARGE, large_file, large_manifest, made_folder, suite
from mallocgame.xla.compiler import Compiler
from mallocgame.xla.whole_models import make, target_of


def register(actions: parser.Commands) -> None:
    """Adds `large` to the commands of `xla`."""
    command = actions.add(
        "large", _large, "make the programs of the suite large; run again, it goes on"
    )
    command.takes(
        "programs PROGRAM",
        "names of the suite (all of them, the smallest first); what is there is left as it is",
        nargs="*",
    )
    add_limits(command)


def _large(options: argparse.Namespace) -> int:
    known = large_manifest()
    for name in options.programs:
        if name not in known:
            raise InvalidInputError(
                f"program: found '{name}', allowed: one of `mallocgame programs --suite large`"
            )
    wanted = options.programs or sorted(suite(LARGE), key=lambda name: known[name]["accesses"])
    missing = [name for name in wanted if large_file(name) is None]
    rows, failed = [], {}
    with console.working("making", len(missing)) as work:
        for name in missing:
            work.tell(f"{name}, about {known[name]['seconds']:,} s of a core")
            try:
                rows.append(_made(name, options, work))
            except MallocGameError as error:
                failed[name] = str(error)
                print(f"mallocgame xla large: {name}: {error}", file=sys.stderr)
            work.advance()
    if options.json:
        print_json({"folder": made_folder(), "made": rows, "failed": failed})
    else:
        here = len(wanted) - len(missing)
        console.print_line(f"{here} were there, {len(rows)} made in {made_folder()}.")
    return parser.CHECK_FAILED if failed else parser.OK


def _made(name: str, options: argparse.Namespace, work: console.Work) -> Row:
    def tell(said: str) -> None:
        work.tell(f"{name}: {said}")

    memory = int(options.memory_gib * 2**30)
    with Compiler(target_of(name), options.compile_seconds, memory) as compiler:
        program = make(name, compiler, tell)
    return {"program": name, "accesses": program.counts["accesses"]}
