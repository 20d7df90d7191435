"""Random legal play with Gymnasium: one environment, then 64 at once.

.ci/setup gym
python examples/gymnasium_random.py [PROGRAM]
"""

import sys

import gymnasium
import numpy as np

import mallocgame as mg


def main() -> None:
    program = sys.argv[1] if len(sys.argv) > 1 else "resnet50_b1.tpu_v4i_16mib"
    chance = np.random.default_rng(0)

    env = gymnasium.make("mallocgame/MallocGame-v0", program=program)
    for episode in range(3):
        observation, info = env.reset(seed=episode)
        total, terminated = 0.0, False
        while not terminated:
            action = chance.choice(np.flatnonzero(info["action_mask"]))
            observation, reward, terminated, _, info = env.step(action)
            total += float(reward)
        print(f"episode {episode}: return {total:.4f}, latency {info['latency_ps'] / 1e6:.3f} us")
    print("parts of an observation:", {name: part.shape for name, part in observation.items()})

    envs = mg.VectorEnv(64, program, observation="compact", autoreset_mode="SameStep")
    _, info = envs.reset(seed=0)
    latencies = []
    for _ in range(1000):
        mask = info["action_mask"]
        actions = (mask * chance.random(mask.shape)).argmax(axis=1)  # a random legal one each
        _, _, over, _, info = envs.step(actions)
        if over.any():
            latencies.extend(info["final_info"]["latency_ps"][over] / 1e6)
    print(
        f"64 environments: {len(latencies)} games, latency {np.mean(latencies):.3f} us on average, "
        f"best {min(latencies):.3f} us"
    )
    print(
        "greedy: "
        f"{mg.solve(mg.load_program(program), solver='greedy').report.latency_ps / 1e6:.3f} us"
    )


if __name__ == "__main__":
    main()
