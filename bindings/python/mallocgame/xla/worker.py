"""The child process in which XLA:TPU runs: it aborts on some inputs, and must take nobody with it.

It is run as a file:

    python worker.py TOPOLOGY CONFIG MEMORY_BYTES

CONFIG is the chip's configuration; an empty one is the default.

Each line on standard input is a JSON object, a job. Its files lie in its "folder", which is of that
job alone. "options" are the compiler's {name: value}, "partitions" the number of devices.

    {"kind": "compile", "module": file with a portable artifact of StableHLO, "dump": folder, ...}
    {"kind": "phase", "phase": its name, "programs": [file with a partial program ...],
     "outputs": folder, ...}

For each a line goes out on standard output: {"ok": true}, {"ok": false, "error": text} where XLA
refuses, or {"failed": text} where something else went wrong. A phase's answer has "programs" too,
the names of the files in "outputs" in XLA's order. The first line out says {"ready": versions}.
Everything that the compiler prints goes to standard error.
"""

import importlib.metadata
import json
import os
import pathlib
import resource
import select
import shutil
import sys
import threading
from typing import Any


def _limit_memory(size: int) -> None:
    if size > 0:
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))


class _Compiler:
    """Compiles for one chip, or for several, that needn't be there."""

    def __init__(self, topology: str, config: str) -> None:
        import libtpu

        from mallocgame import _core
        from mallocgame.errors import MallocGameError

        settings: dict[str, Any] = {"chip_config_name": config} if config else {}
        # Before 0.0.50.1 libtpu takes one chip for a part of a host.
        if topology.endswith((":1x1", ":1x1x1")):
            settings["chips_per_host_bounds"] = [1, 1, 1]
        library = os.environ.get("TPU_LIBRARY_PATH") or libtpu.get_library_path()
        self.refusal: type[Exception] = MallocGameError  # what XLA itself says
        self._options = _core.compile_options
        self._compiler = _core.PjrtCompiler(library, topology, settings)

    @property
    def versions(self) -> dict[str, str]:
        """Of libtpu and of the interface to it."""
        return {"libtpu": importlib.metadata.version("libtpu"), "pjrt": self._compiler.api_version}

    def compile(self, job: dict[str, Any]) -> dict[str, object]:
        """Compiles a module whole. What is asked for are the compiler's dumps."""
        module = pathlib.Path(job["module"]).read_bytes()
        dumping = {"xla_dump_to": job["dump"], "xla_dump_hlo_as_proto": True}
        options = self._options(job["partitions"], {**job["options"], **dumping})
        self._compiler.compile("mlir", module, options)
        return {}

    def phase(self, job: dict[str, Any]) -> dict[str, object]:
        """Runs one phase of a compile."""
        programs = [pathlib.Path(program).read_bytes() for program in job["programs"]]
        options = self._options(job["partitions"], job["options"])
        outputs = self._compiler.run_phase(job["phase"], programs, options)
        folder = pathlib.Path(job["outputs"])
        folder.mkdir()
        names = [str(number) for number in range(len(outputs))]
        for name, output in zip(names, outputs, strict=True):
            (folder / name).write_bytes(output)
        return {"programs": names}


def _answer(compiler: _Compiler, job: dict[str, Any]) -> dict[str, object]:
    """Does a job, and returns what goes out for it.

    What is no refusal of XLA's, such as too little memory, may go well another time.
    """
    kinds = {"compile": compiler.compile, "phase": compiler.phase}
    try:
        return {"ok": True, **kinds[job["kind"]](job)}
    except compiler.refusal as error:
        return {"ok": False, "error": str(error)}
    except Exception as error:  # The parent tells its user, whatever it is.
        return {"failed": f"{type(error).__name__}: {error}"}


def _end_with_parent(job: dict[str, Any]) -> None:
    """Ends this process as soon as nobody can send it jobs, also in the midst of a compile.

    A parent that was killed can't remove the folder of the job.
    """
    hangup = select.poll()
    hangup.register(sys.stdin.fileno(), 0)  # With no events asked for it waits for the hang-up.
    hangup.poll()
    if "folder" in job:
        shutil.rmtree(job["folder"], ignore_errors=True)
    os._exit(1)


def main() -> int:
    """Compiles until standard input ends."""
    topology, config, memory_bytes = sys.argv[1], sys.argv[2], int(sys.argv[3])
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # libtpu prints to standard output too.
    last: dict[str, Any] = {}
    threading.Thread(target=_end_with_parent, args=[last], daemon=True).start()
    _limit_memory(memory_bytes)
    compiler = _Compiler(topology, config)
    print(json.dumps({"ready": compiler.versions}), file=answers)
    for line in sys.stdin:
        job = json.loads(line)
        last.update(job)
        print(json.dumps(_answer(compiler, job)), file=answers)
    return 0


if __name__ == "__main__":
    # Python puts the folder of this file first. The mallocgame that it belongs to must be there.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[2])
    sys.exit(main())
