"""Tries looks on programs: compiles that end after memory space assignment.

    python benchmarks/quality/looks.py [--target NAME]... [--corpus FOLDER] [WORKLOAD...]

For each workload and target it prints a row of docs/results/tpu.md: the seconds of a compile and of
a look, and whether a look says what the compile does, or why not. A program whose modules are in
FOLDER, laid out as benchmarks/programs/hlo/core, is not compiled whole unless the looks are of
another schedule; then the seconds of the compile are a dash. Needs mallocgame[xla] and no TPU.
Exits 1 if a program has no looks.
"""

import argparse
import gzip
import pathlib
import sys
import time

import numpy as np

from mallocgame.errors import MallocGameError
from mallocgame.xla.captures import Capture
from mallocgame.xla.compiler import Compiler
from mallocgame.xla.lowering import lower
from mallocgame.xla.modules import Compiled
from mallocgame.xla.probe import find_main_memory
from mallocgame.xla.sources import find_source, workloads
from mallocgame.xla.targets import TARGETS, find_target

CORPUS = pathlib.Path(__file__).resolve().parents[1] / "programs" / "hlo" / "core"


def captured(folder: pathlib.Path) -> Compiled | None:
    """Returns what the compiler once answered; None: the corpus has no such program."""
    names = ("pre_msa", "post_msa", "codegen_default")
    files = [folder / f"{name}.hlo.pb.gz" for name in names]
    if not all(file.exists() for file in files):
        return None
    return Compiled(*(gzip.decompress(file.read_bytes()) for file in files))


def row(workload: str, compiler: Compiler, answer: Compiled | None) -> tuple[bool, list[str]]:
    """Returns whether the program has looks, and the cells of its row."""
    name, function, arguments = find_source(workload)
    module = lower(function, *arguments)
    compile_seconds = "–"
    if answer is None:
        begin = time.monotonic()
        answer = compiler.compile(module)
        compile_seconds = f"{time.monotonic() - begin:.1f}"
    capture = Capture(name, compiler.target, module, answer, (answer.priced,), compiler.versions)
    found = find_main_memory(capture, compiler)
    if isinstance(found, str):
        return False, [compile_seconds, "–", f"no: {found}"]
    begin = time.monotonic()
    look = capture.plan_of(compiler.look(module, {}, found))
    look_seconds = f"{time.monotonic() - begin:.1f}"
    same = np.array_equal(look.served_by, capture.xla_plan.served_by)
    return same, [compile_seconds, look_seconds, "yes" if same else "no: the plan is another"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help="all, if none is given")
    parser.add_argument("--target", action="append", choices=TARGETS, help="tpu_v4i, if none is")
    parser.add_argument("--corpus", type=pathlib.Path, default=CORPUS, help=str(CORPUS))
    options = parser.parse_intermixed_args()
    print("| program | compile, s | look, s | has looks |\n| --- | --: | --: | --- |")
    failed = False
    for target in options.target or ["tpu_v4i"]:
        with Compiler(find_target(target), cache=None) as compiler:
            for workload in options.workloads or sorted(workloads()):
                try:
                    answer = captured(options.corpus / target / workload)
                    has, cells = row(workload, compiler, answer)
                    if not has and answer is not None:  # The corpus may hold another program.
                        has, cells = row(workload, compiler, None)
                except MallocGameError as error:
                    has, cells = False, ["–", "–", str(error)]
                failed |= not has
                print(f"| `{workload}.{target}` | {' | '.join(cells)} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
