"""Make the bundled corpus: program files (.mgp) and manifest.json, from captured modules.

    python benchmarks/programs/make_corpus.py [CAPTURED] [-o bindings/python/mallocgame/programs]

CAPTURED (benchmarks/programs/hlo) has one folder a target and program, laid out as
benchmarks/programs/README.md says. Needs mallocgame installed. The same input gives the same files,
byte for byte.
"""

import argparse
import gzip
import hashlib
import json
import pathlib
import sys

import mallocgame as mg

TARGETS = {"v4lite": "tpu_v4i", "v5e": "tpu_v5e", "v6e": "tpu_v6e"}
CAPTURED = pathlib.Path(__file__).resolve().parent / "hlo"
BUNDLED = pathlib.Path(__file__).resolve().parents[2] / "bindings/python/mallocgame/programs"


def variants(folder: pathlib.Path, hardware: str):
    """Returns what each program file to make of a folder is made of.

    That is its hardware, the module with XLA's assignment, and a key in meta.json.
    """
    yield hardware, folder / "post_msa.hlo.pb.gz", "default"
    limited = folder / "post_msa_cap16.hlo.pb.gz"
    if limited.exists():
        yield f"{hardware}_16mib", limited, "cap16"


def entries(captured: pathlib.Path) -> dict[str, tuple]:
    """Name of each program file to make -> what `make` takes for it."""
    return {
        f"{folder.name}.{hardware_name}": (folder, hardware_name, assigned, key)
        for target, hardware in TARGETS.items()
        for folder in sorted((captured / target).glob("*"))
        if (folder / "pre_msa.hlo.pb.gz").exists()
        for hardware_name, assigned, key in variants(folder, hardware)
    }


def make(
    folder: pathlib.Path, hardware_name: str, assigned: pathlib.Path, key: str
) -> tuple[mg.Program, dict]:
    """The program, and its entry in the manifest but for the file's hash."""
    meta = json.loads((folder / "meta.json").read_text())
    module = folder / "pre_msa.hlo.pb.gz"
    profile = folder / "profile.json.gz"
    versions = meta["versions"]
    origin = f"{folder.name}, {meta['target']}, " + ", ".join(
        f"{name} {versions[name]}" for name in sorted(versions)
    )
    program = mg.import_hlo(
        module,
        assigned=assigned,
        priced=sorted(folder.glob("codegen_*.hlo.pb.gz")),
        profile=profile if profile.exists() else None,
        hardware=hardware_name,
        name=f"{folder.name}.{hardware_name}",
        origin=origin,
    )
    counts = program.counts
    entry = {
        "model": folder.name,
        "hardware": hardware_name,
        "origin": versions,
        "fingerprint": program.fingerprint,
        "instructions": counts["instructions"],
        "buffers": counts["buffers"],
        "eligible_buffers": counts["eligible_buffers"],
        "accesses": counts["accesses"],
        "argument_bytes": program.argument_bytes,
    }
    if "off" in meta:  # captures that came with the totals of an independent walk
        entry["expected_cycles"] = {
            "all_main": meta["off"]["timeline"]["total"],
            "xla": meta[key]["timeline"]["total"],
            "xla_cold": meta[key]["cold_total"],
        }
    entry["source_sha256"] = hashlib.sha256(gzip.decompress(module.read_bytes())).hexdigest()
    return program, entry


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("captured", type=pathlib.Path, nargs="?", default=CAPTURED)
    parser.add_argument("-o", "--output", type=pathlib.Path, default=BUNDLED)
    options = parser.parse_args()
    found = entries(options.captured)
    if not found:
        print(f"{options.captured}: no */*/pre_msa.hlo.pb.gz", file=sys.stderr)
        return 2
    options.output.mkdir(parents=True, exist_ok=True)
    programs = {}
    for name, arguments in found.items():
        print(name, file=sys.stderr, flush=True)
        try:
            program, entry = make(*arguments)
        except mg.MallocGameError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
        path = options.output / f"{name}.mgp"
        mg.save_program(program, path)
        programs[name] = entry | {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    for path in options.output.glob("*.mgp"):
        if path.stem not in programs:
            path.unlink()
    document = {"programs": dict(sorted(programs.items()))}
    (options.output / "manifest.json").write_text(json.dumps(document, indent=1) + "\n")
    print(f"{len(programs)} programs in {options.output}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
