"""From levels to MaskablePPO to a judged submission.

.ci/setup rl && .ci/setup benchmark
python examples/sb3_levels.py [FOLDER] [STEPS]
"""

import pathlib
import sys
from typing import Any

import torch
from sb3_contrib import MaskablePPO

import mallocgame as mg
from mallocgame.sb3 import SB3VecEnv

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "ppo_plans")
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 500_000
settings: dict[str, Any] = {"game": "priority", "observation": "compact"}
torch.set_num_threads(1)  # The network is small, so threads would wait for each other.

envs = SB3VecEnv(64, mg.levels("train", scored=True), reward="score", **settings)
model = MaskablePPO("MlpPolicy", envs, n_steps=64, batch_size=512, gamma=1.0, seed=0, device="cpu")
model.learn(steps)

folder.mkdir(parents=True, exist_ok=True)
for level in mg.levels("validation"):
    env = mg.MallocGameEnv(level, **settings)
    observation, info = env.reset(seed=0)
    over = False
    while not over:
        mask = env.action_masks()
        action = model.predict(observation, action_masks=mask, deterministic=True)[0]
        observation, _, over, _, info = env.step(int(action))
    (folder / f"{level.name}.json").write_text(env.state.plan().to_json(level.load_program()))
print(f"mallocgame benchmark --submission {folder} --split validation")
