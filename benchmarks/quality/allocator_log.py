"""Compares the decisions of XLA's allocator, as its log tells them, with those of `xla-heuristic`.

    python benchmarks/quality/allocator_log.py PROGRAM [--buffer NAME]

PROGRAM is WORKLOAD.HARDWARE, as the bundled ones are called. It prints in which order the two go
through the buffers, as far as they differ, with what XLA says that each is worth. Then come the
buffers that the two place otherwise, in the order of decision: the first is where they part, and
others may follow from it. --buffer prints what the log says of one buffer's turn. So it is found
out what the compiler does and the solver doesn't. Needs mallocgame[xla] and no TPU.
"""

import re

import numpy as np
from compiler_log import device_of, logged  # type: ignore[import-not-found]

import mallocgame as mg
from mallocgame import experiments as ex
from mallocgame._core import plan_like_xla
from mallocgame.xla.sources import find_source
from mallocgame.xla.targets import bundled_target

LEVELS = "algorithm=3,prefetch_interval_picker=5"
SHOWN = 20  # rows of each kind
_TURN = re.compile(r"Processing buffer: <\d+ ([^>]+)>")
_WORTH = re.compile(r'\] \d+,"<\d+ ([^>]+)>",([^,]+),\d+,')
_PREFIX = re.compile(r"^[IW]\d{4} \S+ +\d+ ")


def compile_program(name: str) -> None:
    """Has the compiler place the buffers of a program, and log to standard error."""
    import jax

    workload, hardware = name.split(".")
    target = bundled_target(hardware)
    _, function, shapes = find_source(workload)
    device = device_of(target)
    arguments = jax.tree.map(
        lambda one: jax.ShapeDtypeStruct(one.shape, one.dtype, sharding=device), shapes
    )
    jax.jit(function).lower(*arguments).compile(compiler_options=dict(target.options))


def print_turn(log: str, buffer: str) -> None:
    """Prints the log from a buffer's last turn to the next one's."""
    turns = list(_TURN.finditer(log))
    mine = [k for k, turn in enumerate(turns) if turn[1] == buffer]
    if not mine:
        raise SystemExit(f"{buffer}: the log has no turn of it")
    end = turns[mine[-1] + 1].start() if mine[-1] + 1 < len(turns) else len(log)
    for line in log[turns[mine[-1]].start() : end].splitlines()[:-1]:
        print(_PREFIX.sub("", line))


def compare(name: str, log: str) -> None:
    program = mg.load_program(name)
    names = program.buffer_names
    plan, decided = plan_like_xla(mg.Game(program))
    own = [names[buffer] for buffer in decided]
    theirs = list(dict.fromkeys(turn[1] for turn in _TURN.finditer(log)))
    both = set(own) & set(theirs)
    own, theirs = [one for one in own if one in both], [one for one in theirs if one in both]
    worth = {found[1]: found[2] for found in _WORTH.finditer(log)}
    turns = [turn for turn in range(len(own)) if own[turn] != theirs[turn]]
    print(f"{len(both)} buffers have a turn in both; {len(turns)} turns are of another buffer.")
    for turn in turns[:SHOWN]:
        one, other = own[turn], theirs[turn]
        print(f"turn {turn}: {one} (worth {worth.get(one)}); XLA: {other} ({worth.get(other)})")
    assert program.xla_plan is not None, "every bundled program has XLA's own plan"
    differs = (plan.served_by >= 0) != (program.xla_plan.served_by >= 0)
    buffers = program.accesses["buffer"]
    print(f"{differs.sum()} of {len(differs)} accesses are served from the other memory.")
    apart = [buffer for buffer in decided if (differs & (buffers == buffer)).any()]
    for buffer in apart[:SHOWN]:
        ticks = program.accesses["tick"][np.flatnonzero(differs & (buffers == buffer))]
        size = int(program.buffers["size_bytes"][buffer])
        print(f"{names[buffer]}, {size:,} bytes, at ticks {', '.join(map(str, ticks))}")


def main(program: str, *, buffer: str | None = None) -> None:
    log = logged(compile_program, program, levels=LEVELS).stderr
    if buffer is None:
        compare(program, log)
    else:
        print_turn(log, buffer)


if __name__ == "__main__":
    ex.main(main)
