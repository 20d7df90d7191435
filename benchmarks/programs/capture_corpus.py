"""Captures the modules of the corpus from the workloads (examples/workloads).

It uses the compiler that is installed.

    python benchmarks/programs/capture_corpus.py FOLDER [MODEL ...]

Writes FOLDER/<v4lite|v5e|v6e>/MODEL, laid out as benchmarks/programs/README.md says, for
`make_corpus.py FOLDER`. A folder that is finished is left as it is, so an interrupted run can be
started again. Needs mallocgame[xla], and hours for all.
"""

import argparse
import gzip
import os
import pathlib
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame.programs import manifest
from mallocgame.xla.sources import find_source, workloads

FOLDERS = {"tpu_v4i": "v4lite", "tpu_v5e": "v5e", "tpu_v6e": "v6e"}
LIMITED_MIB = 16


def wanted() -> dict[tuple[str, str], bool]:
    """(model, hardware) of the bundled corpus: is it in there with 16 MiB as well?"""
    entries = {(entry["model"], entry["hardware"]) for entry in manifest().values()}
    whole = sorted((model, hardware) for model, hardware in entries if hardware in FOLDERS)
    return {
        (model, hardware): (model, f"{hardware}_{LIMITED_MIB}mib") in entries
        for model, hardware in whole
    }


def capture(folder: pathlib.Path, model: str, hardware: str, limited: bool, compiles: int) -> None:
    name, function, args = find_source(model)
    target = mgx.find_target(hardware)
    with mgx.Compiler(target) as compiler:
        captured = mgx.capture(function, *args, target=hardware, name=name, compiler=compiler)
        captured, _ = mgx.profile(captured, compiles, compiler=compiler)
        if limited:
            options = mgx.find_target(hardware, LIMITED_MIB).options
            answer = compiler.compile(captured.check_can_compile(), options)
            captured = captured.with_prices([answer])
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"post_msa_cap{LIMITED_MIB}.hlo.pb.gz").write_bytes(
                gzip.compress(answer.assigned, mtime=0)
            )
    captured.save(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("models", nargs="*", help="of the corpus; all of them")
    parser.add_argument(
        "--compiles", type=int, default=8, help="placements to price beside XLA's own (8)"
    )
    options = parser.parse_args()
    todo = {
        key: limited
        for key, limited in wanted().items()
        if key[0] in (options.models or workloads())
    }
    unknown = set(options.models) - {model for model, _ in todo}
    if unknown:
        print(f"not in the corpus: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    failed = False
    for (model, hardware), limited in todo.items():
        folder = options.folder / FOLDERS[hardware] / model
        if (folder / "program.mgp").exists():  # written last
            continue
        print(f"{model} for {hardware}", file=sys.stderr, flush=True)
        try:
            capture(folder, model, hardware, limited, options.compiles)
        except mg.MallocGameError as error:
            print(f"{model} for {hardware}: {error}", file=sys.stderr)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
