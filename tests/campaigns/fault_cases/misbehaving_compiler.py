"""Stands in for the compiler's process: it passes jobs on, and from one job on it misbehaves.

KIND says what it does, FROM_JOB from which job on, REAL_WORKER who answers those before, and
OTHER_PROGRAM is a cache of answers to other jobs. Jobs are phases of a compile.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import zipfile


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
        pathlib.Path(job["outputs"]).mkdir()
        with open(pathlib.Path(job["outputs"]) / "0", "wb") as file:
            while True:
                file.write(b"\0" * (1 << 20))
    elif kind == "gives nothing":
        _answer({"ok": True})
    else:
        given = [b"\x0a\x05\xff\xff\xff\xff\xff"] if kind == "gives garbage" else _of_another()
        _give(pathlib.Path(job["outputs"]), given)


def _of_another() -> list[bytes]:
    """What a compiler has answered to another job."""
    entry = sorted(pathlib.Path(os.environ["OTHER_PROGRAM"]).glob("*.zip"))[-1]
    with zipfile.ZipFile(entry) as archive:
        return [archive.read(name) for name in archive.namelist() if name != "key"]


def _give(folder: pathlib.Path, programs: list[bytes]) -> None:
    folder.mkdir()
    names = [str(number) for number in range(len(programs))]
    for name, program in zip(names, programs, strict=True):
        (folder / name).write_bytes(program)
    _answer({"ok": True, "programs": names})


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
