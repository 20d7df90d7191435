"""How fast the environments are from Python, per CPU second, beside their peers in the same run.

    python benchmarks/speed/python_env.py [--game priority|fine|schedule] [PROGRAM ...]

Needs mallocgame[gym]; EnvPool (pip install envpool) for the last peer. One process, one thread (the
vector environment of 64 steps in place, EnvPool gets one worker thread); CPU time of the whole
process, so EnvPool's worker counts. Each figure is the best of five rounds. Actions are drawn
beforehand or read off the mask: what is timed is the environment.
"""

from typing import Literal

import gymnasium
import numpy as np
from rates import best

import mallocgame as mg
from mallocgame import experiments as ex

PROGRAMS = [
    "wavernn_64steps_b8.tpu_v4i",
    "resnet50_b1.tpu_v4i_16mib",
    "llama_1b_decode_8l_b4_kv1024.tpu_v4i",
    "transformer_train_4l_b8_s256.tpu_v4i",
]
IDS = {
    "time": "mallocgame/MallocGame-v0",
    "priority": "mallocgame/PriorityGame-v0",
    "fine": "mallocgame/FineGame-v0",
    "schedule": "mallocgame/ScheduleGame-v0",
}


def games(program: str, kind: str, count: int = 20) -> list[list[int]]:
    """Actions of random games."""
    state = mg.Game(mg.load_program(program), game=kind).initial_state()
    plays, chance = [], np.random.default_rng(0)
    for _ in range(count):
        clone = state.clone()
        while not clone.is_terminal():
            clone.apply(int(chance.choice(clone.legal_actions())))
        plays.append(clone.actions.tolist())
    return plays


def one(env, plays: list[list[int]], steps: int) -> float:
    """Steps a CPU second of a single environment, its resets included."""

    def run() -> None:
        left = steps
        while left > 0:
            for play in plays:
                env.reset()
                for action in play:
                    env.step(action)
                left -= len(play)
                if left <= 0:
                    break

    run()
    return best(run, steps)


def cartpole(steps: int) -> float:
    env = gymnasium.make("CartPole-v1")

    def run() -> None:
        env.reset(seed=0)
        for step in range(steps):
            _, _, terminated, truncated, _ = env.step(step & 1)
            if terminated or truncated:
                env.reset()

    return best(run, steps)


def many(env, steps: int) -> float:
    """Steps a CPU second, environments counted, of a batch that plays the last legal action."""

    def run() -> None:
        _, info = env.reset(seed=0)
        for _ in range(steps // env.num_envs):
            _, _, _, _, info = env.step(highest(info["action_mask"]))

    run()
    return best(run, steps)


def highest(mask: np.ndarray) -> np.ndarray:
    """The highest legal action of each row."""
    if mask.shape[1] > 8:
        return mask.shape[1] - 1 - mask[:, ::-1].argmax(axis=1)
    # By table, which is much quicker than argmax along an axis.
    return _HIGHEST[np.packbits(mask, axis=1, bitorder="little")[:, 0]]


_HIGHEST = np.array([max(bits.bit_length() - 1, 0) for bits in range(256)], np.int64)


def envpool_cartpole(count: int, steps: int) -> float | None:
    try:
        import envpool
    except ImportError:
        return None
    env = envpool.make_gymnasium("CartPole-v1", num_envs=count, num_threads=1, seed=0)
    actions = np.random.default_rng(0).integers(0, 2, (1000, count)).astype(np.int32)

    def run() -> None:
        env.reset()
        for step in range(steps // count):
            env.step(actions[step % 1000])

    run()
    return best(run, steps)


def low_level(program: str, kind: str, plays: list[list[int]]) -> dict[str, float]:
    """Returns the microseconds of a call.

    They are of apply with its check of legality, and of clone 20 decisions into the game.
    """
    start = mg.Game(mg.load_program(program), game=kind).initial_state()
    count = sum(map(len, plays))
    walked = [start.clone() for _ in plays]
    for state, play in zip(walked, plays, strict=True):
        for action in play[:20]:
            state.apply(action)

    def apply() -> None:
        for play in plays:
            take = start.clone().apply
            for action in play:
                take(action)

    def clone() -> None:
        for state in walked:
            copy = state.clone
            for _ in range(1000):
                copy()

    return {"apply": 1e6 / best(apply, count), "clone": 1e6 / best(clone, 1000 * len(walked))}


def main(
    *programs: str,
    steps: int = 100_000,
    game: Literal["time", "priority", "fine", "schedule"] = "time",
) -> None:
    print(f"{'one Gymnasium CartPole':58}{cartpole(steps) / 1e3:8.0f} k steps/s")
    pool = envpool_cartpole(64, 10 * steps)
    print(
        f"{'64 EnvPool CartPole':58}"
        + ("EnvPool isn't installed" if pool is None else f"{pool / 1e3:8.0f} k steps/s")
    )
    for program in programs or PROGRAMS:
        plays = games(program, game)
        micros = low_level(program, game, plays)
        print(f"{program}: apply {micros['apply']:.2f} us, clone {micros['clone']:.2f} us")
        for observation in ("dict", "flat", "compact"):
            env = gymnasium.make(IDS[game], program=program, observation=observation)
            print(f"{'  one, ' + observation:58}{one(env, plays, steps) / 1e3:8.0f} k steps/s")
        for observation in ("dict", "flat", "compact"):
            for copy in (True, False):
                envs = mg.VectorEnv(64, program, observation=observation, copy=copy, game=game)
                name = (
                    f"  64, {observation}, {'new arrays each step' if copy else 'the same arrays'}"
                )
                print(f"{name:58}{many(envs, 4 * steps) / 1e3:8.0f} k steps/s")


if __name__ == "__main__":
    ex.main(main)
