"""MaskablePPO of sb3-contrib on one program, against random play and the greedy solver.

.ci/setup rl
python examples/sb3_maskable_ppo.py [PROGRAM] [STEPS] [SEED]
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.env_util import make_vec_env

import mallocgame as mg

ID = "mallocgame/MallocGame-v0"


Choose = Callable[[np.ndarray, np.ndarray], Any]  # an action from an observation and what is legal


def play(env: gymnasium.Env, choose: Choose) -> float:
    """Plays one game and returns its return."""
    observation, info = env.reset(seed=0)
    total, terminated = 0.0, False
    while not terminated:
        action = choose(observation, info["action_mask"])
        observation, reward, terminated, _, info = env.step(int(action))
        total += float(reward)
    return total


def main() -> None:
    program = sys.argv[1] if len(sys.argv) > 1 else "wavernn_64steps_b8.tpu_v4i"
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 20_000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    torch.set_num_threads(1)  # The network is small, so threads would wait for each other.
    settings: dict[str, Any] = {"program": program, "observation": "compact"}
    env = gymnasium.make(ID, **settings)

    chance = np.random.default_rng(0)
    random = [play(env, lambda _, mask: chance.choice(np.flatnonzero(mask))) for _ in range(100)]
    report = mg.solve(mg.load_program(program), solver="greedy").report
    greedy = 1 - report.latency_ps / report.all_main_ps
    print(
        f"{program}: random {np.mean(random):.4f} (best of 100 {max(random):.4f}), "
        f"greedy {greedy:.4f}"
    )

    # The return is undiscounted and a prefetch pays off where it is booked: gamma 1, rewards as
    # they are.
    model = MaskablePPO(
        "MlpPolicy",
        make_vec_env(ID, n_envs=8, seed=seed, env_kwargs=settings),
        n_steps=128,
        batch_size=256,
        gamma=1.0,
        gae_lambda=0.95,
        learning_rate=5e-4,
        ent_coef=0.01,
        seed=seed,
        device="cpu",
    )
    seconds = 0.0
    for tenth in range(1, 11):
        begin = time.process_time()
        # It learns after every 1024 steps, and so stops at a multiple of these.
        model.learn(max(0, tenth * steps // 10 - model.num_timesteps), reset_num_timesteps=False)
        seconds += time.process_time() - begin
        found = play(
            env,
            lambda observation, mask: model.predict(
                observation, action_masks=mask, deterministic=True
            )[0],
        )
        print(
            f"after {model.num_timesteps} steps, {seconds:.0f} s of one core: {found:.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
