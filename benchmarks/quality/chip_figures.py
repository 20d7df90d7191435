"""Asks the compiler what it reckons with on each chip.

    python benchmarks/quality/chip_figures.py [TARGET...]

For each chip it prints a row of docs/hardware.md: the bytes that memory space assignment may
use, by the compiler's log and by what a program with much to place was given, the bandwidth of main
memory, and transcendental functions in a second, by the cost analysis of two small programs. Needs
mallocgame[xla] and no TPU.
"""

import os
import re
import tempfile
from typing import Any

from compiler_log import device_of, logged  # type: ignore[import-not-found]

from mallocgame import experiments as ex
from mallocgame.xla.targets import TARGETS, find_target


def ask(target: str) -> None:
    """Compiles three programs for a chip, and prints what the cost analyses say."""
    import jax

    chip = find_target(target)
    device = device_of(chip)

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


def main(*targets: str) -> None:
    heads = ("", "bytes, by the log", "given", "GB/s", "functions, 10⁹/s", "a cycle")
    table = ex.Table(heads)
    for target in targets or TARGETS:
        done = logged(ask, target, levels="memory_space_assignment_util=5")
        said = dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)
        found = re.search(r"bytes_for_msa_to_allocate: (\d+)", done.stderr + done.stdout)
        bandwidth, functions = float(said["bandwidth"]), float(said["functions"])
        table.add(
            target,
            f"{int(found[1]):,}" if found else "–",
            f"{int(said['given']):,}",
            f"{bandwidth / 1e9:,.0f}",
            f"{functions / 1e9:,.1f}",
            f"{functions / find_target(target).hardware.clock_hz:,.1f}",
        )
    print(table)


if __name__ == "__main__":
    ex.main(main)
