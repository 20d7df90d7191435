"""Asks the compiler what it reckons with on each chip.

    python benchmarks/quality/chip_figures.py [TARGET...]

For each chip it prints a row of docs/hardware.md: the bytes that memory space assignment may
use, by the compiler's log and by what a program with much to place was given, the bandwidth of main
memory, and transcendental functions in a second, by the cost analysis of two small programs. Needs
mallocgame[xla] and no TPU.
"""

import os
import re
import subprocess
import sys
import tempfile
from typing import Any

from mallocgame.xla.compiler_process import NO_CHIP
from mallocgame.xla.targets import TARGETS, find_target

LOG = {
    "TPU_STDERR_LOG_LEVEL": "0",
    "TPU_MIN_LOG_LEVEL": "0",
    "TPU_VMODULE": "memory_space_assignment_util=5",
}


def ask(target: str) -> None:
    """Compiles three programs for a chip, and prints what the cost analyses say."""
    import jax
    from jax.experimental import topologies

    chip = find_target(target)
    config = {} if chip.config is None else {"chip_config_name": chip.config}
    description = topologies.get_topology_desc(
        platform="tpu", topology_name=chip.topology, **config
    )
    device = jax.sharding.SingleDeviceSharding(description.devices[0])

    def compiled(function: Any, *shapes: tuple[int, ...], dump: str | None = None) -> Any:
        options: Any = {} if dump is None else {"xla_dump_to": dump, "xla_dump_hlo_as_text": True}
        args = [jax.ShapeDtypeStruct(shape, "float32", sharding=device) for shape in shapes]
        return jax.jit(function).lower(*args).compile(compiler_options=options)

    def three_times(x: Any, *weights: Any) -> Any:
        for weight in weights * 3:
            x = jax.numpy.tanh(x @ weight)
        return x

    def exponentials(x: Any) -> Any:
        for _ in range(200):
            x = jax.numpy.exp(x)
        return x

    with tempfile.TemporaryDirectory() as dump:
        compiled(three_times, (256, 1024), *[(1024, 512), (512, 1024)] * 70, dump=dump)
        (file,) = (name for name in os.listdir(dump) if name.endswith("buffer-assignment.txt"))
        with open(os.path.join(dump, file), encoding="utf-8") as text:
            space = chip.hardware.fast_memory_space
            found = re.findall(rf"allocation \d+: size (\d+), .*color {space}\b", text.read())
    print("given", max(map(int, found)))
    for what, count, analysis in (
        ("bandwidth", "bytes accessed", compiled(lambda x: -x, (65536, 1024)).cost_analysis()),
        ("functions", "transcendentals", compiled(exponentials, (1024, 1024)).cost_analysis()),
    ):
        print(what, analysis[count] / analysis["optimal_seconds"])


def main() -> None:
    """Prints the rows. Each chip has a process of its own, as the log is one of a process."""
    if sys.argv[1:2] == ["--ask"]:
        ask(sys.argv[2])
        return
    for target in sys.argv[1:] or TARGETS:
        done = subprocess.run(
            [sys.executable, __file__, "--ask", target],
            env=os.environ | LOG | NO_CHIP,
            capture_output=True,
            text=True,
            check=True,
        )
        said = dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)
        logged = re.search(r"bytes_for_msa_to_allocate: (\d+)", done.stderr + done.stdout)
        bandwidth, functions = float(said["bandwidth"]), float(said["functions"])
        clock = find_target(target).hardware.clock_hz
        print(
            f"| {target} | {f'{int(logged[1]):,}' if logged else '–'} | {int(said['given']):,} | "
            f"{bandwidth / 1e9:,.0f} | {functions / 1e9:,.1f} | {functions / clock:,.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
