"""Captures the modules of the corpus from the workloads (examples/workloads).

It uses the compiler that is installed.

    python benchmarks/programs/capture_corpus.py FOLDER [SUITE/TARGET/MODEL ...]

Writes FOLDER/SUITE/TARGET/MODEL.tar.xz, laid out as benchmarks/programs/README.md says, for
`make_corpus.py --captured FOLDER`. TARGET is that of `mallocgame xla capture` with _ for the colon.
Without names it captures what is in the corpus. A file that is there is left as it is, so an
interrupted run can be started again. Needs mallocgame[xla], and hours for all.
"""

import gzip
import io
import os
import pathlib
import sys
import tarfile
import tempfile
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame import experiments as ex
from mallocgame.programs import manifest
from mallocgame.xla.sources import find_source, workloads
from mallocgame.xla.targets import bundled_target

LIMITED_MIB = 16
_LIMITED = f"_{LIMITED_MIB}mib"


def bundled() -> list[str]:
    """Returns SUITE/TARGET/MODEL of all captures of which the corpus was made."""
    found = {
        f"{entry['suite']}/{name.removeprefix(entry['model'] + '.').removesuffix(_LIMITED)}/"
        f"{entry['model']}"
        for name, entry in manifest().items()
    }
    return sorted(found)


def capture(folder: pathlib.Path, model: str, target: str, seconds: float) -> None:
    """Writes to `folder` what is known of a model, with 16 MiB as well if the corpus has that."""
    name, function, args = find_source(model)
    chip = bundled_target(target)
    with mgx.Compiler(chip) as compiler:
        captured = mgx.capture(function, *args, target=chip.title, name=name, compiler=compiler)
        with mgx.emitting.Emitter(captured, compiler) as emitter:
            emitter.explore(time.monotonic() + seconds)
            captured = emitter.capture
    if f"{model}.{target}{_LIMITED}" in manifest():
        less = mgx.find_target(chip.title, LIMITED_MIB)
        with mgx.Compiler(less) as compiler:
            there = mgx.capture(
                function, *args, target=chip.title, fast_mib=LIMITED_MIB, name=name,
                compiler=compiler,
            )  # fmt: skip
        captured = captured.with_prices(there.prices)
        limited = folder / f"post_msa_cap{LIMITED_MIB}.hlo.pb.gz"
        limited.write_bytes(gzip.compress(there.assigned, mtime=0))
    captured.save(folder)
    (folder / "program.mgp").unlink()  # make_corpus.py makes it again


def pack(folder: pathlib.Path, path: pathlib.Path) -> None:
    """Packs the unpacked files into one archive: what they have in common is packed once."""
    partial = path.with_suffix(".partial")
    with tarfile.open(partial, "w:xz", preset=9) as archive:
        for file in sorted(folder.iterdir()):
            data = file.read_bytes()
            if file.suffix == ".gz":
                data = gzip.decompress(data)
            member = tarfile.TarInfo(file.name.removesuffix(".gz"))
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    partial.rename(path)


def main(folder: pathlib.Path, *captures: str, seconds: float = 60) -> int:
    wanted = captures or [one for one in bundled() if one.split("/")[2] in workloads()]
    for one in wanted:
        if one.count("/") != 2 or one.split("/")[2] not in workloads():
            allowed = "SUITE/TARGET/MODEL with a model of the workloads"
            raise mg.InvalidInputError(f"found {one}, allowed: {allowed}")
    failed = False
    for one in wanted:
        path = folder / f"{one}.tar.xz"
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        print(one, file=sys.stderr, flush=True)
        _, target, model = one.split("/")
        try:
            with tempfile.TemporaryDirectory() as made:
                capture(pathlib.Path(made), model, target, seconds)
                pack(pathlib.Path(made), path)
        except mg.MallocGameError as error:
            print(f"{one}: {error}", file=sys.stderr)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    ex.main(main)
