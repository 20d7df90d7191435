"""From levels to a DQN that takes legal actions only, to a judged submission.

.ci/setup rl && .ci/setup benchmark
python examples/sb3_dqn_levels.py [FOLDER] [STEPS] [SEED] [SPLIT ...]
"""

import pathlib
import sys
from typing import Any

import numpy as np
import torch
from stable_baselines3 import DQN
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork

import mallocgame as mg
from mallocgame.envs.sb3 import SB3VecEnv


class MaskedQNetwork(QNetwork):
    """Illegal actions are worth less than all others. The mask is the observation's last part."""

    def forward(self, obs: Any) -> torch.Tensor:
        values = super().forward(obs)
        return values.masked_fill(obs[:, -values.shape[1] :] < 0.5, -1e9)


class MaskedDQNPolicy(DQNPolicy):
    """Of a MaskedQNetwork."""

    def make_q_net(self) -> MaskedQNetwork:
        return MaskedQNetwork(**self._update_features_extractor(self.net_args, None)).to(
            self.device
        )


class MaskedDQN(DQN):
    """Explores legal actions only."""

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        actions, state = super().predict(observation, state, episode_start, deterministic=True)
        if deterministic:
            return actions, state
        for row in range(len(actions)):
            if np.random.random() < self.exploration_rate:
                mask = observation[row, -self.q_net.action_space.n :]
                actions[row] = np.random.choice(np.flatnonzero(mask))
        return actions, state

    def _sample_action(self, learning_starts, action_noise=None, n_envs=1):
        return super()._sample_action(0, action_noise, n_envs)


def main() -> None:
    given = sys.argv[1:]
    folder, steps, seed, *splits = [*given, *["dqn_plans", "300000", "0"][len(given) :]]
    settings: dict[str, Any] = {"game": mg.FINE_GAME, "observation": "compact"}
    torch.set_num_threads(1)  # The network is small, so threads would wait for each other.

    model = MaskedDQN(
        MaskedDQNPolicy,
        SB3VecEnv(64, mg.levels("train", scored=True), **settings),
        learning_rate=5e-4,
        buffer_size=200_000,
        learning_starts=5_000,
        batch_size=256,
        gamma=1.0,  # A return is no discounted one.
        train_freq=1,  # of all environments
        gradient_steps=4,
        target_update_interval=5_000,
        exploration_fraction=0.5,
        exploration_final_eps=0.02,
        seed=int(seed),
        device="cpu",
    )
    model.learn(int(steps))

    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    for split in splits or ["validation"]:
        for level in mg.levels(split):
            env = mg.MallocGameEnv(level, **settings)
            observation, _ = env.reset(seed=0)
            over = False
            while not over:
                action = model.predict(observation[None], deterministic=True)[0][0]
                observation, _, over, _, _ = env.step(int(action))
            plan = env.state.plan()
            mg.save_plan(plan, level.load_program(), pathlib.Path(folder) / f"{level.name}.json")
        print(f"mallocgame benchmark --submission {folder} --split {split}")


if __name__ == "__main__":
    main()
