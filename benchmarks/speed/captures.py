"""Measures a capture beside JAX's own compile of the same function.

    python benchmarks/speed/captures.py FUNCTION... [--target tpu_v5e]

FUNCTION is a workload of examples/workloads or MODULE:FUNCTION, as for `mallocgame xla capture`.
Each has a fresh process for the compile, then another for the capture, without kept answers and
without a limit of time. Prints Markdown: the seconds of both, their ratio, and those of each stage
of the capture. Needs mallocgame[xla] and no TPU.
"""

import argparse
import concurrent.futures
import math
import multiprocessing
import os
import re
import time
from collections.abc import Callable
from typing import TypeVar

import mallocgame.xla as mgx
from mallocgame import experiments as ex
from mallocgame.xla.phases import StageClock, quiet
from mallocgame.xla.sources import find_source

T = TypeVar("T")


def compile_seconds(function: str, target: str) -> float:
    """Returns the seconds of JAX's compile, without those of tracing."""
    import jax
    from jax.experimental import topologies

    _, made, args = find_source(function)
    chip = mgx.find_target(target)
    config = {} if chip.config is None else {"chip_config_name": chip.config}
    described = topologies.get_topology_desc(platform="tpu", topology_name=chip.topology, **config)
    device = jax.sharding.SingleDeviceSharding(described.devices[0])
    there = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=device), list(args)
    )
    lowered = jax.jit(made).lower(*there)
    begin = time.monotonic()
    lowered.compile()
    return time.monotonic() - begin


def capture_seconds(function: str, target: str) -> tuple[int, dict[str, float]]:
    """Returns the program's accesses, and the seconds of each stage of its capture."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    _, made, args = find_source(function)
    clock = StageClock(quiet)
    with mgx.Compiler(mgx.find_target(target), seconds=0, cache=None) as compiler:
        captured = mgx.capture(
            made, *args, target=target, compiler=compiler, seconds=math.inf, tell=clock
        )
    return len(captured.program.accesses), clock.seconds()


def fresh(work: Callable[..., T], *given: str) -> T:
    """Returns what a process of its own returns."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as process:
        return process.submit(work, *given).result()


def main() -> None:
    """Prints a row for each function."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("functions", nargs="+", metavar="FUNCTION")
    parser.add_argument("--target", default="tpu_v5e")
    options = parser.parse_args()
    table = ex.Table(["function", "accesses", "compile, s", "capture, s", "ratio", "its stages, s"])
    for function in options.functions:
        plain = fresh(compile_seconds, function, options.target)
        accesses, stages = fresh(capture_seconds, function, options.target)
        whole = sum(stages.values())
        parts = "; ".join(
            f"{re.sub('^stage . of ., ', '', name)} {seconds:.1f}"
            for name, seconds in stages.items()
        )
        table.add(
            f"`{function}`",
            f"{accesses:,}",
            f"{plain:.1f}",
            f"{whole:.1f}",
            f"{whole / plain:.2f}",
            parts,
        )
    print(table)


if __name__ == "__main__":
    main()
