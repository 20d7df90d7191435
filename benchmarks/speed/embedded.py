"""How fast the ways into other programs are, beside VectorEnv from Python, in the same run.

    python benchmarks/speed/embedded.py BUILD PROGRAM [--open-spiel FOLDER] [--envpool PYTHON]

BUILD is a build folder of C++ (build/cpp), FOLDER that of bindings/open_spiel, and PYTHON another
interpreter that has EnvPool and JAX. 64 environments with compact observations take the highest
legal action. Figures are steps a second of CPU time, the best of five rounds; OpenSpiel's own
benchmark counts moves a second of games at random, and C++'s draws actions too.
"""

import json
import pathlib
import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
from python_env import many
from rates import best

import mallocgame as mg
from mallocgame import experiments as ex

COUNT = 64
PROGRAMS = pathlib.Path(mg.__file__).parent / "programs"


def highest(masks):
    return masks.shape[1] - 1 - jnp.argmax(masks[:, ::-1], axis=1).astype(jnp.int32)


def in_scan(env, steps: int, choose) -> float:
    """Steps a CPU second of an env.xla(), all in one compiled loop."""
    handle, reset, step = env

    @jax.jit
    def run(handle):
        handle, (_, info) = reset(handle, 0)

        def body(carry, _):
            handle, masks, total = carry
            handle, (_, reward, _, _, info) = step(handle, choose(masks))
            return (handle, info["action_mask"], total + reward.sum()), None

        start = (handle, info["action_mask"], 0.0)
        return jax.lax.scan(body, start, None, steps // COUNT)[0][2]

    return best(lambda: run(handle).block_until_ready(), steps)


ENVPOOL = """
import time, envpool, jax, jax.numpy as jnp
env = envpool.make_gymnasium("CartPole-v1", num_envs=64, num_threads=1, seed=0)
handle, recv, send, step = env.xla()
env.async_reset()
handle, _ = recv(handle)
@jax.jit
def run(handle):
    def body(handle, i):
        handle, (_, reward, *_) = step(handle, jnp.zeros(64, jnp.int32) + i % 2)
        return handle, reward.sum()
    return jax.lax.scan(body, handle, jnp.arange(STEPS // 64))
def seconds():
    start = time.process_time()
    jax.block_until_ready(run(handle))
    return time.process_time() - start
seconds()
print(STEPS / min(seconds() for _ in range(5)))
"""


def show(name: str, rate: float) -> None:
    print(f"{name:58}{rate / 1e3:8.0f} k steps/s", flush=True)


def main(
    build: pathlib.Path,
    program: str,
    *,
    steps: int = 400_000,
    open_spiel: pathlib.Path | None = None,
    envpool: pathlib.Path | None = None,
) -> None:
    make = partial(mg.VectorEnv, COUNT, program, observation="compact")
    show("VectorEnv from Python, new arrays", many(make(), steps))
    show("VectorEnv from Python, the same arrays", many(make(copy=False), steps))
    show("xla() inside scan", in_scan(make().xla(), steps, highest))
    path = PROGRAMS / f"{program}.mgp"
    # A process of its own: the library and our extension module can't share a libprotobuf.
    alone = [sys.executable, str(pathlib.Path(__file__).parent / "c_interface.py")]
    alone += [str(build / "bindings/c/libmallocgame_c.so"), str(path), str(steps)]
    printed = subprocess.run(alone, check=True, capture_output=True, text=True).stdout
    show("C interface, through ctypes", float(printed))
    command = [str(build / "benchmarks/speed/mallocgame_speed"), "--benchmark_format=json"]
    command.append(f"--benchmark_filter=^64_environments/{program.partition('.')[0]}$")
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for row in json.loads(printed)["benchmarks"]:
        show(f"C++, {row['name']}", row["items_per_second"])
    if open_spiel:
        game = f"--game=mallocgame(observation=compact,program={program})"
        command = [str(open_spiel / "tests/benchmark_game"), game, "--sims=2000", "--attempts=5"]
        print(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    if envpool:
        text = ENVPOOL.replace("STEPS", str(steps))
        done = subprocess.run([envpool, "-c", text], capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"EnvPool: {done.stderr.splitlines()[-1]}")
        else:
            show("EnvPool CartPole, xla() inside scan", float(done.stdout))


if __name__ == "__main__":
    ex.main(main)
