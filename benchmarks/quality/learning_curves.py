"""Writes how learners improve: MaskablePPO on three levels, cloning, and learning from own games.

    python benchmarks/quality/learning_curves.py DEMONSTRATIONS [--ppo-steps 20480] [--epochs 6]
        [--rounds 120] [--seeds 3] > benchmarks/quality/tables/learning_curves.csv

PPO learns on a level of `validation` in the fine game, with 16 environments; its score is that of
one game of the most likely actions. The levels are those with 2 % of headroom, as far apart in the
list as they can be. Cloning is examples/clone_levels.py on DEMONSTRATIONS, its file, and fine-tuned
is examples/finetune_levels.py from there; their score is the interquartile mean on levels of
`validation` with 2 % of headroom. `greedy` is greedy in the same game. Needs
mallocgame[rl,agents,benchmark].
"""

import contextlib
import functools
import pathlib
import sys
from collections.abc import Callable

import numpy as np
import torch
from one_game import EXAMPLES, with_headroom  # type: ignore[import-not-found]
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback

import mallocgame as mg
from mallocgame import experiments as ex
from mallocgame.envs.sb3 import SB3VecEnv

sys.path.insert(0, str(EXAMPLES))
from clone_levels import clone, play
from finetune_levels import finetune

EVERY, EVERY_ROUND = 2048, 10  # steps of PPO, and rounds, between two scores


def row(*cells: object) -> None:
    print(*cells, sep=",", flush=True)


class Watch(BaseCallback):
    """Prints the score of the most likely game, each EVERY steps."""

    def __init__(self, level: mg.Level, seed: int) -> None:
        super().__init__()
        self._level, self._seed = level, seed
        self._env = mg.MallocGameEnv(level, observation="compact", game=mg.FINE_GAME)

    def _on_step(self) -> bool:
        if self.num_timesteps % EVERY == 0:
            self.tell()
        return True

    def tell(self) -> None:
        """Prints the score now."""
        observation, info = self._env.reset(seed=0)
        over, model = False, self.model
        assert isinstance(model, MaskablePPO)
        while not over:
            mask = self._env.action_masks()
            action, _ = model.predict(observation, action_masks=mask, deterministic=True)
            observation, _, over, _, info = self._env.step(int(action))
        found = ex.score(self._level, info["latency_ps"])
        row("PPO", self._level.name, self._seed, self.num_timesteps, f"{found:.4f}")


def ppo(level: mg.Level, seed: int, steps: int) -> None:
    model = MaskablePPO(
        "MlpPolicy",
        SB3VecEnv(16, level, game=mg.FINE_GAME),
        learning_rate=1e-3,
        n_steps=64,
        batch_size=256,
        n_epochs=5,
        gamma=1.0,
        gae_lambda=1.0,
        seed=seed,
        device="cpu",
    )
    model.learn(steps, callback=Watch(level, seed))


def main(
    demonstrations: pathlib.Path,
    *,
    ppo_steps: int = 20_480,
    epochs: int = 6,
    rounds: int = 120,
    seeds: tuple[int, ...] = (0, 1, 2),
) -> None:
    torch.set_num_threads(1)
    levels = with_headroom("validation", 2.0)
    games = [level.game(mg.FINE_GAME) for level in levels]
    row("learner", "level", "seed", "steps_epochs_or_rounds", "score")

    greedy = [mg.solve(game, "greedy", seconds=0).report.latency_ps for game in games]
    scores = [ex.score(level, ps) or 0.0 for level, ps in zip(levels, greedy, strict=True)]
    row("greedy", "all", 0, 0, f"{ex.middle_mean(np.array(scores)):.4f}")
    three = ex.evenly(levels, 3)
    for level in three:
        row("greedy", level.name, 0, 0, f"{scores[levels.index(level)]:.4f}")
        for seed in seeds:
            ppo(level, seed, ppo_steps)

    data = list(np.load(demonstrations).values())
    for seed in seeds:

        def tell(name: str, number: int, policy: torch.nn.Module, seed: int = seed) -> None:
            told = zip(levels, play(policy, games), strict=True)
            found = [ex.score(level, end.latency_ps) or 0.0 for level, end in told]
            mean = ex.middle_mean(np.array(found))
            print(f"{name},all,{seed},{number},{mean:.4f}", file=sys.__stdout__, flush=True)

        def watch(number: int, policy: torch.nn.Module, tell: Callable = tell) -> None:
            if number % EVERY_ROUND == 0:
                tell("fine-tuned", number, policy)

        torch.manual_seed(seed)
        with contextlib.redirect_stdout(sys.stderr):
            policy = clone(data, epochs=epochs, watch=functools.partial(tell, "cloning"))
            finetune(policy, data, seed, rounds, watch)


if __name__ == "__main__":
    ex.main(main)
