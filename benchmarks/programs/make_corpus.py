"""Make the bundled corpus: program files (.mgp) and manifest.json, from captured modules.

    python benchmarks/programs/make_corpus.py [--captured CAPTURED] [--output PROGRAMS]

CAPTURED (benchmarks/programs/hlo) is laid out as benchmarks/programs/README.md says. PROGRAMS is
the package's folder. The same input gives the same files, byte for byte.
"""

import gzip
import hashlib
import json
import pathlib
import tarfile

import mallocgame as mg
from mallocgame import experiments as ex
from mallocgame.xla.targets import bundled_target

CAPTURED = pathlib.Path(__file__).resolve().parent / "hlo"
BUNDLED = pathlib.Path(__file__).resolve().parents[2] / "bindings/python/mallocgame/programs"
PACKED = ".tar.xz"
_LIMITED = "post_msa_cap16.hlo.pb"


def modules(source: pathlib.Path) -> dict[str, bytes]:
    """Returns the unpacked files of one capture, a folder of .gz files or a .tar.xz."""
    if source.is_dir():
        paths = sorted(source.iterdir())
        return {
            path.name.removesuffix(".gz"): gzip.decompress(path.read_bytes())
            if path.suffix == ".gz"
            else path.read_bytes()
            for path in paths
        }
    found = {}
    with tarfile.open(source) as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member)
            assert file is not None, "pack() of capture_corpus.py writes files only"
            found[member.name] = file.read()
    return found


def names(source: pathlib.Path) -> list[str]:
    """Returns the names of these files."""
    if source.is_dir():
        return [path.name.removesuffix(".gz") for path in source.iterdir()]
    with tarfile.open(source) as archive:
        return archive.getnames()


def entries(captured: pathlib.Path) -> dict[str, tuple]:
    """Name of each program file to make -> what `make` takes for it."""
    found = {}
    for source in sorted(captured.glob("*/*/*")):
        suite, target = source.parts[-3:-1]
        model = source.name.removesuffix(PACKED)
        found[f"{model}.{target}"] = (source, suite, target, "post_msa.hlo.pb")
        if _LIMITED in names(source):
            found[f"{model}.{target}_16mib"] = (source, suite, f"{target}_16mib", _LIMITED)
    return found


def make(source: pathlib.Path, suite: str, target: str, assigned: str) -> tuple[mg.Program, dict]:
    """The program, and its entry in the manifest but for the file's hash."""
    files = modules(source)
    model = source.name.removesuffix(PACKED)
    meta = json.loads(files["meta.json"])
    versions = meta["versions"]
    origin = f"{model}, {meta['target']}, " + ", ".join(
        f"{name} {versions[name]}" for name in sorted(versions)
    )
    hardware = bundled_target(target).hardware.name  # of several chips, that of one
    program = mg.import_hlo(
        files["pre_msa.hlo.pb"],
        assigned=files[assigned],
        priced=[files[name] for name in sorted(files) if name.startswith("codegen_")],
        profile=files.get("prices.json", files.get("profile.json")),
        hardware=hardware,
        name=f"{model}.{target}",
        origin=origin,
    )
    counts = program.counts
    entry = {
        "suite": suite,
        "model": model,
        "hardware": hardware,
        "origin": versions,
        "fingerprint": program.fingerprint,
        "instructions": counts["instructions"],
        "buffers": counts["buffers"],
        "eligible_buffers": counts["eligible_buffers"],
        "accesses": counts["accesses"],
        "argument_bytes": program.argument_bytes,
    }
    if "off" in meta:  # captures that came with the totals of an independent walk
        walked = meta["cap16" if assigned == _LIMITED else "default"]
        entry["expected_cycles"] = {
            "all_main": meta["off"]["timeline"]["total"],
            "xla": walked["timeline"]["total"],
            "xla_cold": walked["cold_total"],
        }
    entry["source_sha256"] = hashlib.sha256(files["pre_msa.hlo.pb"]).hexdigest()
    return program, entry


def main(*, captured: pathlib.Path = CAPTURED, output: pathlib.Path = BUNDLED) -> None:
    found = entries(captured)
    if not found:
        raise mg.InvalidInputError(f"{captured}: no capture in SUITE/TARGET/MODEL")
    output.mkdir(parents=True, exist_ok=True)
    programs = {}
    for name, arguments in found.items():
        ex.tell(name)
        try:
            program, entry = make(*arguments)
        except (mg.MallocGameError, KeyError, OSError, EOFError) as error:
            raise SystemExit(f"{name}: {error}") from None
        path = output / f"{name}.mgp"
        mg.save_program(program, path)
        programs[name] = entry | {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    for path in output.glob("*.mgp"):
        if path.stem not in programs:
            path.unlink()
    document = {"programs": dict(sorted(programs.items()))}
    (output / "manifest.json").write_text(json.dumps(document, indent=1) + "\n")
    ex.tell(f"{len(programs)} programs in {output}")


if __name__ == "__main__":
    ex.main(main)
