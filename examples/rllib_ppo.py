"""RLlib's PPO with masked actions on one program, against random play and the greedy solver.

.ci/setup rllib
python examples/rllib_ppo.py [PROGRAM] [STEPS] [--game priority] [--seed N] [--envs N] [--loop]
"""

import argparse
import logging
import time

import numpy as np
import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

import mallocgame as mg
import mallocgame.envs.rllib


def configure(options: argparse.Namespace) -> PPOConfig:
    """The settings of examples/sb3_maskable_ppo.py, with those that RLlib has otherwise."""
    return (
        PPOConfig()
        .environment("mallocgame", env_config={"program": options.program, "game": options.game})
        # All in this process; num_env_runners=N has N others play, here or on other machines.
        .env_runners(
            num_env_runners=0,
            num_envs_per_env_runner=options.envs,
            gym_env_vectorize_mode="sync" if options.loop else "vector_entry_point",
        )
        .rl_module(
            rl_module_spec=RLModuleSpec(
                module_class=mallocgame.envs.rllib.MaskedModule,
                model_config={"fcnet_hiddens": [64, 64], "vf_share_layers": False},
            )
        )
        # The return is undiscounted and a prefetch pays off where it is booked: gamma 1.
        .training(
            gamma=1.0,
            lambda_=0.95,
            lr=5e-4,
            entropy_coeff=0.01,
            train_batch_size_per_learner=1024,
            minibatch_size=256,
            num_epochs=10,
            clip_param=0.2,
            use_kl_loss=False,
            vf_loss_coeff=0.5,
            grad_clip=0.5,
            grad_clip_by="global_norm",
        )
        .evaluation(
            evaluation_interval=10**9,  # Only where it is asked for.
            evaluation_duration=1,
            evaluation_config={"explore": False, "num_envs_per_env_runner": 1},
        )
        .debugging(seed=options.seed, log_level="ERROR")
    )


def play_at_random(env: mallocgame.envs.rllib.MaskedEnv, chance: np.random.Generator) -> float:
    """Plays one game and returns its return."""
    observation, _ = env.reset(seed=0)
    total, over = 0.0, False
    while not over:
        legal = np.flatnonzero(observation["action_mask"])
        observation, reward, over, _, _ = env.step(int(chance.choice(legal)))
        total += reward
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("program", nargs="?", default="wavernn_64steps_b8.tpu_v4i")
    parser.add_argument("steps", nargs="?", type=int, default=20_000)
    parser.add_argument("--game", choices=["time", "priority"], default="time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--envs", type=int, default=8, help="environments that are played at once")
    parser.add_argument("--loop", action="store_true", help="step them one by one, not in C++")
    options = parser.parse_args()

    env, chance = (
        mallocgame.envs.rllib.MaskedEnv(options.program, game=options.game),
        np.random.default_rng(0),
    )
    random = [play_at_random(env, chance) for _ in range(100)]
    report = mg.solve(mg.load_program(options.program), solver="greedy").report
    print(
        f"{options.program}: random {np.mean(random):.4f} (best of 100 {max(random):.4f}), "
        f"greedy {1 - report.latency_ps / report.all_main_ps:.4f}"
    )

    torch.set_num_threads(1)  # The network is small, so threads would wait for each other.
    logging.getLogger("ray.rllib").setLevel(logging.ERROR)
    if not ray.is_initialized():
        ray.init("local", include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
    algorithm = configure(options).build_algo()
    steps, seconds = 0, 0.0
    for tenth in range(1, 11):
        begin = time.process_time()
        while steps < tenth * options.steps / 10:
            steps = int(algorithm.train()["num_env_steps_sampled_lifetime"])
        seconds += time.process_time() - begin
        played = algorithm.evaluate()["env_runners"]["episode_return_mean"]
        print(f"after {steps} steps, {seconds:.0f} s of one core: {played:.4f}", flush=True)
    begin = time.process_time()
    sampled = sum(map(len, algorithm.env_runner.sample(num_timesteps=4096)))
    alone = time.process_time() - begin
    print(f"{steps / seconds:.0f} steps/s, {sampled / alone:.0f} steps/s without learning")
    algorithm.stop()


if __name__ == "__main__":
    main()
