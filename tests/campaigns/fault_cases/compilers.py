"""A compiler that misbehaves, and a cache of its answers that somebody else has written to."""

import functools
import pathlib
import random
import shutil
import zipfile

from fault_cases.campaign import BAD, LOST, Case, Try
from fault_cases.commands import ALL, References
from fault_cases.disks import small_disk
from fault_cases.judging import again, how_it_ended
from fault_cases.processes import Running

_HERE = pathlib.Path(__file__).parent
_LAUNCHER, _CHILD = _HERE / "launcher.py", _HERE / "misbehaving_compiler.py"
# What misbehaving_compiler.py does, at its start or at a job.
_KINDS = (
    "hangs at its start",
    "dies at its start",
    "prints garbage at its start",
    "hangs",
    "dies",
    "is killed",
    "prints garbage",
    "prints no end of a line",
    "answers with a number",
    "fills the disk",
    "gives nothing",
    "gives garbage",
    "gives what belongs to another program",
)
_JOBS = 3  # the first that goes wrong is the 1st, 2nd or 3rd
_TUNE = ALL["xla tune"]


def cases(references: References, kills: int) -> list[Case]:
    """Misbehaving compilers and poisoned caches."""
    return [
        *(
            Case(f"compiler {kind}", "xla tune", _JOBS, functools.partial(_child, references, kind))
            for kind in _KINDS
        ),
        *(
            Case(f"poisoned cache {name}", "xla tune", 1, functools.partial(_cache, references, do))
            for name, do in _POISONS.items()
        ),
    ]


def _child(
    references: References, kind: str, folder: pathlib.Path, index: int, _: random.Random
) -> Try:
    """Puts another process in place of the compiler's. The real one answers the jobs before."""
    scratch = folder / "scratch"
    with small_disk(scratch, 32 << 20):
        environment = {
            "CHILD": str(_CHILD),
            "KIND": kind,
            "FROM_JOB": str(index + 1),
            "OTHER_PROGRAM": str(references.folder(_TUNE) / "cache"),
            "TMPDIR": str(scratch),
        }
        arguments = [*_TUNE.arguments(folder), "--compile-seconds", 30]
        ended = Running(arguments, folder, environment, program=[str(_LAUNCHER)]).end()
        found = how_it_ended(ended)
        left = [path.name for path in scratch.glob("mallocgame-*")]
        if left:
            return Try(BAD, f"it leaves {left[0]} behind")
    return again(_TUNE, references, folder, found)


def _cache(
    references: References, poison: object, folder: pathlib.Path, _: int, draw: random.Random
) -> Try:
    """Changes every entry. The answers of the compiler must then be asked for again."""
    shutil.copytree(references.folder(_TUNE) / "cache", folder / "cache")
    whole = _whole(folder)
    assert callable(poison)
    poison(sorted((folder / "cache").glob("*.zip")))
    found = how_it_ended(Running(_TUNE.arguments(folder), folder).end())
    after = _whole(folder)
    if any(after.get(name, content) != content for name, content in whole.items()):
        return Try(LOST, "an entry has become another answer")
    return found


def _whole(folder: pathlib.Path) -> dict[str, dict[str, bytes]]:
    found = {}
    for path in (folder / "cache").glob("*.zip"):
        if path.is_file():
            with zipfile.ZipFile(path) as entry:
                found[path.name] = {name: entry.read(name) for name in entry.namelist()}
    return found


def _cut(entries: list[pathlib.Path]) -> None:
    for path in entries:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _flip(entries: list[pathlib.Path]) -> None:
    for path in entries:
        data = bytearray(path.read_bytes())
        for at in range(40, len(data), 97):
            data[at] ^= 0x55
        path.write_bytes(bytes(data))


def _encrypt(entries: list[pathlib.Path]) -> None:
    """Says in the flags of each header that what follows is encrypted."""
    for path in entries:
        data = bytearray(path.read_bytes())
        for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            at = data.find(mark)
            while at >= 0:
                data[at + flags] |= 1
                at = data.find(mark, at + 1)
        path.write_bytes(bytes(data))


def _swap(entries: list[pathlib.Path]) -> None:
    contents = [path.read_bytes() for path in entries]
    for path, content in zip(entries, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)


def _bomb(entries: list[pathlib.Path]) -> None:
    for path in entries:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as entry:
            entry.writestr("key", path.stem)
            for name in ("0", "1", "2"):
                with entry.open(name, "w", force_zip64=True) as file:
                    for _ in range(1 << 10):
                        file.write(b"\0" * (1 << 20))


def _folders(entries: list[pathlib.Path]) -> None:
    for path in entries:
        path.unlink()
        path.mkdir()


_POISONS = {
    "cut": _cut,
    "flipped": _flip,
    "encrypted": _encrypt,
    "swapped": _swap,
    "bombs": _bomb,
    "folders": _folders,
}
