"""The fault campaign: what can go wrong around the command line goes wrong, and nothing is lost.

    python tests/campaigns/faults.py OUT [--kills N] [--only NAME...]

Each case lets one fault happen to one command, again and again at moments drawn from a seed. A try
counts as survived if the command gives what it gives undisturbed, at once or when it is run again;
as told if it ended with exit status 2 and one clear line (130 for a signal), and running it again
gives all of it. Anything else has lost something or ended badly, and the exit status is 1.

Results are kept in OUT, so that an interrupted campaign goes on where it was. It needs root for
mounts, and a C compiler for the file system that fails. Run it outside of the repository's root,
with mallocgame installed.
"""

import argparse
import pathlib
import sys

# What the Python tests use too.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "python"))

from fault_cases import compilers, disks, endings, scarcity
from fault_cases.campaign import Campaign
from fault_cases.commands import References

from mallocgame._cli.folders import working_in


def main() -> int:
    parser = argparse.ArgumentParser(description="Lets faults happen to the command line.")
    parser.add_argument("out", metavar="OUT", type=pathlib.Path, help="folder of the results")
    parser.add_argument("--kills", type=int, default=100, metavar="N", help="of a command (100)")
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="NAME", help="cases whose names begin like this"
    )
    parser.add_argument("--list", action="store_true", help="show the names of the cases")
    options = parser.parse_args()
    out = options.out.resolve()
    references = References(out)
    cases = [
        case
        for module in (compilers, disks, endings, scarcity)
        for case in module.cases(references, options.kills)
        if case.name.startswith(tuple(options.only))
    ]
    if options.list:
        print("\n".join(f"{case.name} ({case.tries})" for case in cases))
        return 0
    with working_in(str(out)):
        return Campaign(out, cases).run()


if __name__ == "__main__":
    sys.exit(main())
