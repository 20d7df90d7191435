"""Plays levels of the split validation with the methods that one tries first.

    python benchmarks/quality/baselines.py FOLDER [--levels 6] [--seconds 20] [--seeds 3] [--jobs 2]
                                           [--ray ADDRESS]

Each method has one core for each level and seed; the best plan so far counts. PPO (sb3-contrib's,
masked), DQN (Stable-Baselines3's, masked here) and MuZero learn on the level itself, in that time.
Cloning has learned before, from tree search's games on levels of train, where the styles of
`styles` were chosen. Each run is a file in FOLDER with what it found when, so that it can be
interrupted and goes on where it stopped. All machines of --ray must see FOLDER, where cloning keeps
its networks.
Prints the table of docs/results/baselines.md. Needs mallocgame[rl,agents,benchmark].
"""

import functools
import math
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

import mallocgame as mg
from mallocgame import agents, offline
from mallocgame import experiments as ex
from mallocgame.observation import COMPACT
from mallocgame.offline.making import make_dataset

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples"))
from offline_rl import clone
from sb3_dqn_levels import MaskedDQN, MaskedDQNPolicy

SOLVERS = ("random", "greedy", "rent", "anneal", "styles")
# What follows is kept with each run.
SETTINGS: dict[str, dict[str, Any]] = {
    # The return is undiscounted and a prefetch pays off where it is booked: gamma 1.
    "PPO": {
        "n_envs": 8, "n_steps": 128, "batch_size": 256, "gamma": 1.0, "gae_lambda": 0.95,
        "learning_rate": 5e-4, "ent_coef": 0.01,
    },
    # It explores less and less, until this share of the time is over.
    "DQN": {
        "n_envs": 4, "buffer_size": 50_000, "learning_starts": 1000, "batch_size": 128,
        "gamma": 1.0, "learning_rate": 5e-4, "train_freq": 4, "target_update_interval": 1000,
        "explore_share": 0.5, "explore_least": 0.02,
    },
    "MuZero": {"game": "time"},  # as the others that learn here
    "cloning": {"levels": 150, "behaviour": "mcts:1000", "steps": 3000},
}  # fmt: skip


class Found:
    """Games as they end: when, and their latencies."""

    def __init__(self, seconds: float, folder: pathlib.Path) -> None:
        self.seconds, self.folder = seconds, folder
        self._begin = time.monotonic()
        self.games: list[tuple[float, int]] = []  # of solvers only those that were the best so far
        self.count = 0

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._begin

    @property
    def over(self) -> bool:
        return self.elapsed >= self.seconds

    def add(self, latency_ps: int) -> None:
        self.games.append((self.elapsed, latency_ps))
        self.count += 1


class Watch(BaseCallback):
    """Tells of each finished game, and ends the training in time."""

    def __init__(self, found: Found) -> None:
        super().__init__()
        self._found = found

    def _on_step(self) -> bool:
        for info, done in zip(self.locals["infos"], self.locals["dones"], strict=True):
            if done:
                self._found.add(info["latency_ps"])
        return not self._found.over


def environments(level: mg.Level, seed: int, count: int) -> Any:
    return make_vec_env(
        "mallocgame/MallocGame-v0",
        n_envs=count,
        seed=seed,
        env_kwargs={
            "program": level.load_program(),
            "hardware": level.hardware(),
            "observation": "compact",
        },
    )


def train_ppo(level: mg.Level, seed: int, found: Found) -> None:
    settings = dict(SETTINGS["PPO"])
    several = environments(level, seed, settings.pop("n_envs"))
    model = MaskablePPO("MlpPolicy", several, seed=seed, device="cpu", **settings)
    model.learn(10**9, callback=Watch(found))


def train_dqn(level: mg.Level, seed: int, found: Found) -> None:
    settings = dict(SETTINGS["DQN"])
    share, least = settings.pop("explore_share"), settings.pop("explore_least")
    several = environments(level, seed, settings.pop("n_envs"))
    model = MaskedDQN(MaskedDQNPolicy, several, seed=seed, device="cpu", **settings)
    model.exploration_schedule = lambda _: max(least, 1 - found.elapsed / (share * found.seconds))
    model.learn(10**9, callback=Watch(found))


def train_muzero(level: mg.Level, seed: int, found: Found) -> None:
    program, hardware = level.load_program(), level.hardware()
    config = SETTINGS["MuZero"]
    trainer = agents.begin_muzero(program, found.seconds, config, seed, 1, hardware)
    share = 1 - agents.POLISH_SHARE
    trainer.train(share * found.seconds, lambda step: found.add(int(step["best_ps"][0])))
    left = max(0.001, found.seconds - found.elapsed)
    found.add(trainer.polish(seconds=left).report.latency_ps)


@torch.no_grad()
def play_cloning(level: mg.Level, seed: int, found: Found) -> None:
    """One game of the most likely actions, then games that are drawn."""
    model = torch.load(network(found.folder, seed), weights_only=False)
    game = level.game()
    observer, rng = mg.observation.Observer(game, COMPACT), np.random.default_rng(seed)
    while not found.over:
        state = game.initial_state()
        while not state.is_terminal():
            logits = model(torch.from_numpy(observer.observe(state))).numpy()
            noise = rng.gumbel(size=len(logits)) if found.games else 0
            state.apply(int(np.where(state.legal_mask(), logits + noise, -np.inf).argmax()))
        found.add(state.latency_ps)


def network(folder: pathlib.Path, seed: int) -> pathlib.Path:
    return folder / f"cloning-{seed}.pt"


def prepare_cloning(bench: ex.Bench, seeds: tuple[int, ...]) -> None:
    """Keeps the network of each seed, trained where it isn't there."""
    missing = [seed for seed in seeds if not network(bench.folder, seed).exists()]
    if not missing:
        return
    data, jobs = SETTINGS["cloning"], bench.workers if isinstance(bench.workers, int) else 1
    several = ex.evenly(mg.levels("train"), data["levels"])
    make_dataset(
        several, bench.folder / "data", [data["behaviour"]], jobs=max(1, jobs), done=ex.tell
    )
    for seed in missing:
        torch.manual_seed(seed)
        model = clone(list(offline.read_numpy(bench.folder / "data")), data["steps"])
        torch.save(model, network(bench.folder, seed))


METHODS: dict[str, Callable[[mg.Level, int, Found], None]] = {
    "PPO": train_ppo,
    "DQN": train_dqn,
    "cloning": play_cloning,
    "MuZero": train_muzero,
}


def measure(
    level: mg.Level, seed: int, method: str, seconds: float, folder: str = ""
) -> dict[str, Any]:
    """Returns [seconds, latency] of the games that were the best so far, and their number."""
    torch.set_num_threads(1)
    found = Found(seconds, pathlib.Path(folder))
    if method in SOLVERS:
        limit = 0.0 if method == "greedy" else seconds
        result = mg.solve(level.game(), method, limit, seed)
        found.games = [(at, ps) for at, ps, _ in result.curve]
        found.games.append((result.seconds, result.report.latency_ps))
        found.count = result.evaluations
    else:
        METHODS[method](level, seed, found)
    best, curve = math.inf, []
    for at, latency_ps in found.games:
        if latency_ps < best:
            best = latency_ps
            curve.append((at, latency_ps))
    return {"games": found.count, "curve": curve}


def inputs(level: mg.Level, seed: int, method: str) -> dict[str, Any]:
    return {"program": level.features["fingerprint"], **SETTINGS.get(method, {})}


def score_at(moment: float, row: ex.Row) -> float:
    """The score of the best plan so far at a time; before the first, of all in main memory."""
    found = [ps for at, ps in row["curve"] if at <= moment]
    latency_ps = min(found, default=row["level"].features["all_main_ps"])
    return ex.score(row["level"], int(latency_ps)) or 0.0


def main(
    bench: ex.Bench, *, levels: int = 6, seconds: float = 20, seeds: tuple[int, ...] = (0, 1, 2)
) -> None:
    torch.set_num_threads(1)  # the networks are small: threads would wait for each other
    chosen = ex.evenly(mg.levels("validation", scored=True), levels)
    grid = ex.Grid(level=chosen, seed=seeds, method=(*SOLVERS, *METHODS))
    prepare_cloning(bench, seeds)
    work = functools.partial(measure, folder=str(bench.folder.resolve()))
    rows = bench.run(work, grid, settings={"seconds": seconds}, inputs=inputs, pinned=True)
    shown = [0.05, 1.0, seconds * 1.05]
    table = ex.Table(["method", "games", *(f"{at:.3g} s" for at in shown)])
    for method, several in ex.grouped(rows, "method").items():
        games = np.median([row["games"] for row in several])

        def scores(moment: float, several: list[ex.Row] = several) -> np.ndarray:
            return ex.array(several, functools.partial(score_at, moment), "seed", "level")

        table.add(method, f"{games:,.0f}", *(ex.interquartile_mean(scores(at)) for at in shown))
    print(table)


if __name__ == "__main__":
    ex.main(main)
