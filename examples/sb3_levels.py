"""From levels to MaskablePPO to a judged submission.

.ci/setup rl && .ci/setup benchmark
python examples/sb3_levels.py [FOLDER] [STEPS] [SEED] [SPLIT ...]
"""

import pathlib
import sys
from typing import Any

import torch
from sb3_contrib import MaskablePPO

import mallocgame as mg
from mallocgame.envs.sb3 import SB3VecEnv

folder, steps, seed, *splits = [*sys.argv[1:], *["ppo_plans", "900000", "0"][len(sys.argv) - 1 :]]
settings: dict[str, Any] = {"game": mg.FINE_GAME, "observation": "compact"}
torch.set_num_threads(1)  # The network is small, so threads would wait for each other.

envs = SB3VecEnv(64, mg.levels("train", scored=True), **settings)
model = MaskablePPO(
    "MlpPolicy",
    envs,
    learning_rate=1e-3,
    n_steps=64,
    batch_size=512,
    n_epochs=5,
    gamma=1.0,  # A return is no discounted one, and stalls are charged at the end of a game.
    gae_lambda=1.0,
    seed=int(seed),
    device="cpu",
)
model.learn(int(steps))

pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
for split in splits or ["validation"]:
    for level in mg.levels(split):
        env = mg.MallocGameEnv(level, **settings)
        observation, info = env.reset(seed=0)
        over = False
        while not over:
            mask = env.action_masks()
            action = model.predict(observation, action_masks=mask, deterministic=True)[0]
            observation, _, over, _, info = env.step(int(action))
        plan = env.state.plan().to_json(level.load_program())
        (pathlib.Path(folder) / f"{level.name}.json").write_text(plan)
    print(f"mallocgame benchmark --submission {folder} --split {split}")
