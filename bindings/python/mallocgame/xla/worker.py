"""The child process in which XLA:TPU runs: it aborts on some inputs, and must take nobody with it.

It is run as a file, because it needs nothing of mallocgame:

    python worker.py TOPOLOGY CONFIG MEMORY_BYTES

CONFIG is the chip's configuration; an empty one is the default.

Each line on standard input is a JSON object: {"module": file with StableHLO text, "options":
{name: value}, "dump": folder}; file and folder lie in a folder of that job alone. For each a line
goes out on standard output: {"ok": true}, {"ok": false, "error": text} where XLA refuses, or
{"failed": text} where something else went wrong. The first line out says {"ready": versions}.
Everything that the compiler prints goes to standard error.
"""

import json
import os
import resource
import select
import shutil
import sys
import threading
from typing import Any


def _limit_memory(size: int) -> None:
    if size > 0:
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def _versions() -> dict[str, str]:
    import jax
    import jaxlib
    import libtpu

    return {"jax": jax.__version__, "jaxlib": jaxlib.__version__, "libtpu": libtpu.__version__}


class _Compiler:
    """Compiles for one chip, or for several, that needn't be there."""

    def __init__(self, topology: str, config: str) -> None:
        from jax.errors import JaxRuntimeError
        from jax.experimental import topologies
        from jaxlib import xla_client

        settings: dict[str, Any] = {"chip_config_name": config} if config else {}
        # Before 0.0.50.1 libtpu takes one chip for a part of a host.
        if topology.endswith((":1x1", ":1x1x1")):
            settings["chips_per_host_bounds"] = [1, 1, 1]
        description = topologies.get_topology_desc(
            platform="tpu", topology_name=topology, **settings
        )
        self.refusal: type[Exception] = JaxRuntimeError  # what XLA itself says
        self._list = xla_client.DeviceList
        self._devices: list[Any] = list(description.devices)
        self._client = self._devices[0].client

    def __call__(self, module: str, options: dict[str, str], dump: str) -> None:
        # This is what jax.jit(...).lower(...).compile(compiler_options=...) does, for a module that
        # was lowered elsewhere.
        import numpy as np
        from jax._src import compiler
        from jax._src.interpreters import mlir
        from jaxlib.mlir import ir

        overrides: Any = {**options, "xla_dump_to": dump, "xla_dump_hlo_as_proto": True}
        with mlir.make_ir_context():
            parsed = ir.Module.parse(module)
            attributes: Any = parsed.operation.attributes
            partitions = "mhlo.num_partitions"
            count = attributes[partitions].value if partitions in attributes else 1
            # One partition on each device, in the order of the topology.
            several: Any = {"device_assignment": np.arange(count).reshape(1, count)}
            settings = compiler.get_compile_options(
                num_replicas=1,
                num_partitions=count,
                env_options_overrides=overrides,
                **(several if count > 1 else {}),
            )
            devices = self._list(tuple(self._devices[:count]))
            self._client.compile(parsed, devices, settings)


def _answer(compile_module: _Compiler, job: dict[str, Any]) -> dict[str, object]:
    """Does a job, and returns what goes out for it.

    What is no refusal of XLA's, such as too little memory, may go well another time.
    """
    try:
        with open(job["module"], encoding="utf-8") as file:
            compile_module(file.read(), job["options"], job["dump"])
    except compile_module.refusal as error:
        return {"ok": False, "error": str(error)}
    except Exception as error:  # The parent tells its user, whatever it is.
        return {"failed": f"{type(error).__name__}: {error}"}
    return {"ok": True}


def _end_with_parent(job: dict[str, Any]) -> None:
    """Ends this process as soon as nobody can send it jobs, also in the midst of a compile.

    A parent that was killed can't remove the folder of the job.
    """
    hangup = select.poll()
    hangup.register(sys.stdin.fileno(), 0)  # With no events asked for it waits for the hang-up.
    hangup.poll()
    if "module" in job:
        shutil.rmtree(os.path.dirname(job["module"]), ignore_errors=True)
    os._exit(1)


def main() -> int:
    """Compiles until standard input ends."""
    topology, config, memory_bytes = sys.argv[1], sys.argv[2], int(sys.argv[3])
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # libtpu prints to standard output too.
    job: dict[str, Any] = {}  # the last one
    threading.Thread(target=_end_with_parent, args=[job], daemon=True).start()
    _limit_memory(memory_bytes)
    compile_module = _Compiler(topology, config)
    print(json.dumps({"ready": _versions()}), file=answers)
    for line in sys.stdin:
        job.update(json.loads(line))
        print(json.dumps(_answer(compile_module, job)), file=answers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
