"""Stands in for the compiler's process: it passes jobs on, and from one job on it misbehaves.

KIND says what it does, FROM_JOB from which job on, REAL_WORKER who answers those before, and
OTHER_PROGRAM is a cache of answers for another program.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import zipfile

_ENDS = ("after_optimizations_before_buffer_assignment", "after_optimizations", "after_codegen")
_FIELDS = ("before", "assigned", "priced")


def _misbehave(kind: str, job: dict) -> None:
    if kind == "hangs":
        time.sleep(600)
    elif kind == "dies":
        os.abort()
    elif kind == "is killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif kind == "prints garbage":
        os.write(1, b"\xff\x00 no JSON\n")
    elif kind == "answers with a number":
        _answer(7)
    elif kind == "prints no end of a line":
        while True:
            os.write(1, b"x" * (1 << 16))
    elif kind == "fills the disk":
        pathlib.Path(job["dump"]).mkdir()
        with open(pathlib.Path(job["dump"]) / "m.after_codegen.hlo.pb", "wb") as file:
            while True:
                file.write(b"\0" * (1 << 20))
    elif kind == "dumps nothing":
        _answer({"ok": True})
    else:
        _dump(pathlib.Path(job["dump"]), kind == "dumps garbage")
        _answer({"ok": True})


def _dump(folder: pathlib.Path, garbage: bool) -> None:
    folder.mkdir()
    entries = sorted(pathlib.Path(os.environ["OTHER_PROGRAM"]).glob("*.zip"))
    for end, field in zip(_ENDS, _FIELDS, strict=True):
        data = b"\x0a\x05\xff\xff\xff\xff\xff"
        if not garbage:
            with zipfile.ZipFile(entries[-1]) as entry:
                # The name of the module is at its beginning, with its length before it.
                data = entry.read(field).replace(b"jit_", b"Jit_")
        (folder / f"m.{end}.hlo.pb").write_bytes(data)


def _answer(answer: object) -> None:
    print(json.dumps(answer), flush=True)


def main() -> int:
    kind, first = os.environ["KIND"], int(os.environ["FROM_JOB"])
    if kind.endswith("at its start"):
        _misbehave(kind.removesuffix(" at its start"), {})
    real = subprocess.Popen(
        [sys.executable, os.environ["REAL_WORKER"], *sys.argv[1:]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert real.stdin is not None and real.stdout is not None
    os.write(1, real.stdout.readline())
    for number, line in enumerate(sys.stdin.buffer, 1):
        if number >= first:
            _misbehave(kind, json.loads(line))
            continue
        real.stdin.write(line)
        real.stdin.flush()
        os.write(1, real.stdout.readline())
    return 0


if __name__ == "__main__":
    sys.exit(main())
