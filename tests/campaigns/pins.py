"""Random plans of programs with pinned kernels and started DMAs: none breaks a pin.

    python tests/campaigns/pins.py [--games 100000] [--targets tpu_v5e,...] [--apply 1]

Captures each function below for each target, and plays as many random games of both kinds on all of
them together. Each plan is judged by a rule of its own, which reads the pins and semaphores in the
compiler's module and knows nothing of Access::pin. As many plans of each program as --apply says
are carried out and read back. The exit status is 1 if a pin is broken. Needs mallocgame[xla].
"""

import argparse
import collections
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # this process only traces

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame._core import find_uses
from mallocgame.xla.modules import wire_fields

N = 512
ARRAY = jax.ShapeDtypeStruct((N, N), jnp.float32)
HBM, VMEM = pltpu.HBM((N, N), jnp.float32), pltpu.VMEM((N, N), jnp.float32)
SEMAPHORES = 2  # their memory space


def pinned(x, where):
    return pltpu.with_memory_space_constraint(x, {"hbm": pltpu.HBM, "vmem": pltpu.VMEM}[where])


def kernel(body, *operands, out=ARRAY, aliases=None):
    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    specs = [anywhere if body is halves else pl.BlockSpec(memory_space=pltpu.VMEM)] * len(operands)
    outs = [specs[0]] * len(out) if isinstance(out, tuple) else specs[0]
    staging = [pltpu.VMEM((N // 2, N), jnp.float32)] if body is halves else []
    return pl.pallas_call(
        body,
        out_shape=out,
        in_specs=specs,
        out_specs=outs,
        scratch_shapes=staging,
        input_output_aliases=aliases or {},
    )(*operands)


def halves(x, out, staging):
    for half in (pl.ds(0, N // 2), pl.ds(N // 2, N // 2)):
        pltpu.sync_copy(x.at[half, :], staging)
        pltpu.sync_copy(staging, out.at[half, :])


def square(x, out):
    out[...] = x[...] * x[...]


def sum_and_difference(x, y, total, difference):
    total[...], difference[...] = x[...] + y[...], x[...] - y[...]


def operand_in_hbm(a, b):
    s = jnp.tanh(a @ b)
    return kernel(halves, pinned(s, "hbm")) @ b + s


def result_in_hbm(a, b):
    return kernel(halves, jnp.tanh(a @ b), out=HBM) @ b + jnp.exp(a)


def operand_in_vmem(a, b):
    s = jnp.tanh(a @ b)
    return kernel(square, pinned(s, "vmem")) @ b + s


def parameter_in_vmem(a, b):
    return kernel(square, pinned(a, "vmem")) @ b + a


def result_in_vmem(a, b):
    return kernel(square, jnp.tanh(a @ b), out=VMEM) @ b + jnp.exp(a)


def output_in_vmem(a, b):
    return kernel(square, a @ b, out=VMEM), a + b


def several(a, b):
    total, difference = kernel(
        sum_and_difference, pinned(a @ b, "vmem"), pinned(jnp.tanh(a), "vmem"), out=(VMEM, ARRAY)
    )
    return total @ difference + b


def in_place(a, b):
    s = kernel(square, pinned(jnp.tanh(a @ b), "vmem"), out=VMEM, aliases={0: 0})
    return s @ b


def in_loop(a, b):
    w = jnp.tanh(a)

    def step(_, c):
        return kernel(square, pinned(w, "vmem")) @ kernel(halves, c @ b, out=HBM)

    return jax.lax.fori_loop(0, 5, step, b)


def carried(a, b):
    def step(_, c):
        return kernel(square, pinned(c, "vmem"), out=VMEM)

    return jax.lax.fori_loop(0, 5, step, a) @ b


def in_branch(a, b):
    return jax.lax.cond(
        a[0, 0] > 0,
        lambda x: kernel(square, pinned(jnp.tanh(x), "vmem")) @ b,
        lambda x: kernel(square, x @ b, out=VMEM) + x,
        a,
    )


def started(a, b, space=HBM):
    def start(x, out, semaphore):
        pltpu.make_async_copy(x, out, semaphore).start()

    def wait(x, out, semaphore, same):
        pltpu.make_async_copy(x, out, semaphore).wait()

    x = jnp.tanh(a @ b)
    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    there = pl.BlockSpec(memory_space=pltpu.HBM if space is HBM else pltpu.VMEM)
    semaphore = pl.BlockSpec(memory_space=pltpu.SEMAPHORE)
    out, flag = pl.pallas_call(
        start,
        out_shape=(space, pltpu.SemaphoreType.DMA(())),
        in_specs=[anywhere],
        out_specs=(there, semaphore),
    )(x)
    y = jnp.exp(b @ a)
    done = pl.pallas_call(
        wait,
        out_shape=space,
        in_specs=[anywhere, there, semaphore],
        out_specs=there,
        input_output_aliases={1: 0},
    )(x, out, flag)
    return done @ b + y + x


def started_to_vmem(a, b):
    return started(a, b, VMEM)


FUNCTIONS: tuple[Callable[..., Any], ...] = (
    operand_in_hbm,
    result_in_hbm,
    operand_in_vmem,
    parameter_in_vmem,
    result_in_vmem,
    output_in_vmem,
    several,
    in_place,
    in_loop,
    carried,
    in_branch,
    started,
    started_to_vmem,
)


def kernels(module: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """Gives the names of a module's Pallas calls, and what their configurations say."""
    parts = list(wire_fields(dict(wire_fields(module))[1]))
    payloads = [body for number, body in parts if number == 22]
    for number, computation in parts:
        if number != 3:
            continue
        for kind, instruction in wire_fields(computation):
            if kind != 2:
                continue
            fields = dict(wire_fields(instruction))
            if fields.get(28) == b"tpu_custom_call":
                payload = dict(wire_fields(fields.get(99, b"")))
                config = fields.get(43) or payload.get(1) or payloads[payload.get(2, 0)]
                if b"custom_call_config" in config:
                    yield fields[1].decode(), json.loads(config)["custom_call_config"]


class Judge:
    """The rule of pins, of what the compiler's module says and where a plan serves accesses."""

    def __init__(self, program: mg.Program, module: bytes, fast_space: int) -> None:
        names = program.instruction_names
        uses: dict[str, dict[tuple[int, tuple[int, ...]], int]] = collections.defaultdict(dict)
        self.ticks = program.accesses["tick"].tolist()
        self.buffers = program.accesses["buffer"].tolist()
        for access, operand, index, _ in find_uses(program, module):
            key = (-1 if operand is None else operand, tuple(index))
            uses[names[self.ticks[access]]][key] = access
        self.fast: set[int] = set()
        self.main: set[int] = set()
        self.together: list[tuple[int, int]] = []
        flags: list[str] = []
        for name, config in kernels(module):
            for side in ("input", "output"):
                for entry in config.get(f"{side}_memory_space_colors", ()):
                    operand = int(entry["operand_index"]) if side == "input" else -1
                    key = (operand, tuple(int(k) for k in entry.get("shape_index", ())))
                    color = int(entry["color"])
                    if color == SEMAPHORES:
                        flags.append(name)
                    if key in uses[name]:
                        (self.fast if color == fast_space else self.main).add(uses[name][key])
        # What two neighbouring kernels with a semaphore between them share is in one place.
        for first in dict.fromkeys(flags):
            tick = names.index(first)
            mine = {self.buffers[a]: a for a in uses[first].values()}
            later = [n for n, _ in kernels(module) if names.index(n) > tick]
            waits = min(later, key=names.index, default=None)
            for other in uses[waits].values() if waits else ():
                if self.buffers[other] in mine:
                    self.together.append((mine[self.buffers[other]], other))

    def broken(self, plan: mg.Plan) -> list[str]:
        served = plan.served_by.tolist()
        wrong = [f"access {a} is in main memory" for a in self.fast if served[a] < 0]
        wrong += [f"access {a} is in fast memory" for a in self.main if served[a] >= 0]
        for a, b in self.together:
            if served[a] != served[b]:
                wrong.append(f"accesses {a} and {b} are apart")
        for r in {served[a] for a in self.fast} - {-1}:
            row = plan.residences[r]
            mine = [a for a in self.fast if served[a] == r]
            if any(not row["begin"] <= self.ticks[a] < row["end"] for a in mine):
                wrong.append(f"residence {r} is not there")
        return wrong


def random_plan(program: mg.Program, game: str, rng: np.random.Generator) -> mg.Plan:
    state = mg.Game(program, game=game, min_buffer_bytes=0).initial_state()
    odds = rng.exponential(size=state.game.num_actions)
    while not state.is_terminal():
        legal = state.legal_actions()
        state.apply(int(rng.choice(legal, p=odds[legal] / odds[legal].sum())))
    return state.plan()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--games", type=int, default=100_000)
    parser.add_argument("--targets", default="tpu_v5e,tpu_v6e,tpu_v5p,tpu7x,tpu_v4i,tpu_v4")
    parser.add_argument("--functions", default=",".join(f.__name__ for f in FUNCTIONS))
    parser.add_argument("--apply", type=int, default=1)
    arguments = parser.parse_args()
    wanted = arguments.functions.split(",")
    found, wrong, refused = [], 0, 0
    for target in arguments.targets.split(","):
        chip = mgx.find_target(target)
        with mgx.Compiler(chip, seconds=300) as compiler:
            for function in FUNCTIONS:
                if function.__name__ not in wanted:
                    continue
                name = f"{function.__name__}@{target}"
                try:
                    captured = mgx.capture(function, ARRAY, ARRAY, target=target, compiler=compiler)
                except mg.MallocGameError as error:
                    print(f"{name}: not captured: {str(error)[:160]}", flush=True)
                    continue
                program = captured.program
                judge = Judge(program, captured.before, chip.hardware.fast_memory_space)
                plans = {"XLA": captured.xla_plan, "all main": mg.all_main_plan(program)}
                for solver in ("greedy", "xla-heuristic", "portfolio"):
                    plans[solver] = mg.solve(program, solver, seconds=1).plan
                said = []
                for which, plan in plans.items():
                    verdict = mg.validate(program, plan)
                    broken = judge.broken(plan)
                    wrong += bool(broken) or not verdict.ok
                    if broken or not verdict.ok:
                        print(f"{name}: {which}: {broken} {verdict.message}", flush=True)
                    if which == "all main":
                        continue
                    said.append(f"{which} {mg.simulate(program, plan).latency_ps / 1e6:.1f}")
                applied = [plans["all main"], plans["greedy"]]
                rng = np.random.default_rng(1)
                applied += [random_plan(program, "time", rng) for _ in range(arguments.apply)]
                for plan in applied[: 2 * bool(arguments.apply) + arguments.apply]:
                    if not arguments.apply:
                        break
                    try:
                        done = mgx.apply(captured, plan, compiler)
                        if judge.broken(done.plan):
                            wrong += 1
                            print(f"{name}: carried out with {judge.broken(done.plan)}", flush=True)
                    except mg.MallocGameError as error:
                        refused += 1
                        print(f"{name}: refused: {str(error)[:200]}", flush=True)
                pins = f"{len(judge.fast)} fast, {len(judge.main)} main, {len(judge.together)} held"
                print(f"{name}: {pins}; µs: {', '.join(said)}", flush=True)
                found.append((name, program, judge))
    games = 0
    rng = np.random.default_rng(0)
    while found and games < arguments.games:
        for name, program, judge in found:
            for game in ("time", "priority"):
                plan = random_plan(program, game, rng)
                broken = judge.broken(plan)
                verdict = mg.validate(program, plan)
                games += 1
                if broken or not verdict.ok:
                    wrong += 1
                    print(f"{name}: {game}: {broken} {verdict.message}", flush=True)
    print(f"{games} random plans of {len(found)} programs, {wrong} wrong, {refused} refused")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
