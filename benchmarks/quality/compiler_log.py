"""What the compiler's log says while a script of this folder has it compile for a chip."""

import inspect
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from mallocgame.xla.compiler_process import NO_CHIP
from mallocgame.xla.targets import Target

FOLDER = pathlib.Path(__file__).parent
LOG = {"TPU_STDERR_LOG_LEVEL": "0", "TPU_MIN_LOG_LEVEL": "0"}


def logged(
    function: Callable[..., None], *arguments: str, levels: str
) -> subprocess.CompletedProcess[str]:
    """Calls a function of a script in a process of its own, as the log is one of a process.

    levels: of the compiler's modules, such as "algorithm=3". What the function prints is stdout of
    the answer, and the log is stderr. SystemExit: the function failed.
    """
    module = pathlib.Path(inspect.getfile(function)).stem
    code = f"import sys, {module}; {module}.{function.__name__}(*sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=os.environ | LOG | NO_CHIP | {"TPU_VMODULE": levels},
        cwd=FOLDER,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)}: {done.stderr[-1000:]}")
    return done


def device_of(target: Target) -> Any:
    """Returns the sharding of arguments on one device of the target."""
    import jax
    from jax.experimental import topologies

    config = {} if target.config is None else {"chip_config_name": target.config}
    description = topologies.get_topology_desc(
        platform="tpu", topology_name=target.topology, **config
    )
    return jax.sharding.SingleDeviceSharding(description.devices[0])
