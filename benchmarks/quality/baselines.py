"""Plays levels of the split validation with the methods that one tries first, and draws curves.

    python benchmarks/quality/baselines.py FOLDER [--levels 6] [--seconds 20] [--seeds 3] [--jobs 2]
                                           [--ray ADDRESS]

Each method has one core for each level and seed; the best plan so far counts. PPO (sb3-contrib's,
masked), DQN (Stable-Baselines3's, masked here) and MuZero learn on the level itself, in that time.
Cloning has learned before, from annealing's games on levels of train, where the styles of `styles`
were chosen. Each run is a file FOLDER/METHOD/SEED/LEVEL.json with its settings and what it found
when, so that it can be interrupted and goes on where it stopped. All machines of --ray must see
FOLDER, where cloning keeps its networks. Prints the table of docs/results/baselines.md, and writes
FOLDER/baselines.png. Needs mallocgame[rl,agents,benchmark,plot].
"""

import argparse
import contextlib
import dataclasses
import json
import math
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

import matplotlib
import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

import mallocgame as mg
from mallocgame import agents, offline
from mallocgame._cli.parser import add_workers, workers
from mallocgame._jobs import run_jobs
from mallocgame._levels import Level, evenly
from mallocgame._levels.scores import interquartile_mean, load_rliable, score
from mallocgame.observation import COMPACT
from mallocgame.offline.making import make_dataset
from mallocgame.plots import style

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
    "cloning": {"levels": 150, "behaviour": "anneal:1000", "steps": 3000},
}  # fmt: skip
TIMES = 24  # points of a curve
FIRST = 0.01  # seconds


@dataclasses.dataclass(frozen=True)
class Run:
    """A method on a level."""

    folder: pathlib.Path
    method: str
    level: Level
    seed: int
    seconds: float

    @property
    def path(self) -> pathlib.Path:
        return self.folder / self.method / str(self.seed) / f"{self.level.name}.json"

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "seconds": self.seconds,
            "program": self.level.features["fingerprint"],
            **SETTINGS.get(self.method, {}),
        }


class Found:
    """Games as they end: when, and their latencies."""

    def __init__(self, seconds: float) -> None:
        self._begin, self._seconds = time.monotonic(), seconds
        self.games: list[tuple[float, int]] = []  # of solvers only those that were the best so far
        self.count = 0

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._begin

    @property
    def over(self) -> bool:
        return self.elapsed >= self._seconds

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


def environments(run: Run, count: int) -> Any:
    return make_vec_env(
        "mallocgame/MallocGame-v0",
        n_envs=count,
        seed=run.seed,
        env_kwargs={
            "program": run.level.load_program(),
            "hardware": run.level.hardware(),
            "observation": "compact",
        },
    )


def train_ppo(run: Run, found: Found) -> None:
    settings = dict(SETTINGS["PPO"])
    several = environments(run, settings.pop("n_envs"))
    model = MaskablePPO("MlpPolicy", several, seed=run.seed, device="cpu", **settings)
    model.learn(10**9, callback=Watch(found))


def train_dqn(run: Run, found: Found) -> None:
    settings = dict(SETTINGS["DQN"])
    share, least = settings.pop("explore_share"), settings.pop("explore_least")
    several = environments(run, settings.pop("n_envs"))
    model = MaskedDQN(MaskedDQNPolicy, several, seed=run.seed, device="cpu", **settings)
    model.exploration_schedule = lambda _: max(least, 1 - found.elapsed / (share * run.seconds))
    model.learn(10**9, callback=Watch(found))


def train_muzero(run: Run, found: Found) -> None:
    program, hardware = run.level.load_program(), run.level.hardware()
    config = SETTINGS["MuZero"]
    trainer = agents.begin_muzero(program, run.seconds, config, run.seed, 1, hardware)
    share = 1 - agents.POLISH_SHARE
    trainer.train(share * run.seconds, lambda step: found.add(int(step["best_ps"][0])))
    found.add(trainer.polish(seconds=max(0.001, run.seconds - found.elapsed)).report.latency_ps)


@torch.no_grad()
def play_cloning(run: Run, found: Found) -> None:
    """One game of the most likely actions, then games that are drawn."""
    model = cloned(run.folder, run.seed)
    game = run.level.game()
    observer, rng = mg.Observer(game, COMPACT), np.random.default_rng(run.seed)
    while not found.over:
        state = game.initial_state()
        while not state.is_terminal():
            logits = model(torch.from_numpy(observer.observe(state))).numpy()
            noise = rng.gumbel(size=len(logits)) if found.games else 0
            state.apply(int(np.where(state.legal_mask(), logits + noise, -np.inf).argmax()))
        found.add(state.latency_ps)


def cloned(folder: pathlib.Path, seed: int) -> torch.nn.Module:
    """The network of a seed, from its file, or trained and kept there."""
    path = folder / "cloning" / str(seed) / "network.pt"
    if not path.exists():
        torch.manual_seed(seed)
        model = clone(list(offline.read_numpy(folder / "data")), SETTINGS["cloning"]["steps"])
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save(model, path)
    loaded: torch.nn.Module = torch.load(path, weights_only=False)
    return loaded


def solve(run: Run, found: Found) -> None:
    seconds = 0.0 if run.method == "greedy" else run.seconds
    result = mg.solve(run.level.game(), run.method, seconds, run.seed)
    found.games = [(at, ps) for at, ps, _ in result.curve]
    found.games.append((result.seconds, result.report.latency_ps))
    found.count = result.evaluations


METHODS: dict[str, Callable[[Run, Found], None]] = {
    **dict.fromkeys(SOLVERS, solve),
    "PPO": train_ppo,
    "DQN": train_dqn,
    "cloning": play_cloning,
    "MuZero": train_muzero,
}


def measure(run: Run) -> dict[str, Any]:
    """A run: its settings and [seconds, latency] of its games that were the best so far."""
    torch.set_num_threads(1)
    found = Found(run.seconds)
    METHODS[run.method](run, found)
    best, curve = math.inf, []
    for at, latency_ps in found.games:
        if latency_ps < best:
            best = latency_ps
            curve.append((at, latency_ps))
    # How games change while it learns: the mean of each twentieth of them, when and latency.
    parts = np.array_split(np.array(found.games, dtype=float), min(20, len(found.games)))
    return {
        "settings": run.settings,
        "games": found.count,
        "curve": curve,
        "means": [part.mean(axis=0).tolist() for part in parts],
    }


def load(run: Run) -> dict[str, Any] | None:
    if not run.path.exists():
        return None
    answer: dict[str, Any] = json.loads(run.path.read_text())
    if answer["settings"] != run.settings:
        raise SystemExit(f"{run.path}: was made with other settings; give another folder")
    return answer


def scores_at(run: Run, answer: dict[str, Any], times: np.ndarray) -> list[float]:
    """The score of the best plan so far at each time; before the first, of all in main memory."""
    all_main_ps = run.level.features["all_main_ps"]
    latencies = [
        min((ps for at, ps in answer["curve"] if at <= moment), default=all_main_ps)
        for moment in times
    ]
    return [float(score(run.level, int(ps)) or 0) for ps in latencies]


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--levels", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    add_workers(parser, 2, "runs side by side, each on a core of its own (2)")
    options = parser.parse_args()
    torch.set_num_threads(1)  # the networks are small: threads would wait for each other
    levels = evenly([one for one in mg.levels("validation") if score(one, 1)], options.levels)
    runs = [
        Run(options.folder, method, level, seed, options.seconds)
        for level in levels
        for seed in range(options.seeds)
        for method in METHODS
    ]
    missing = [run for run in runs if load(run) is None]
    if any(run.method == "cloning" for run in missing):
        data = SETTINGS["cloning"]
        make_dataset(
            evenly(mg.levels("train"), data["levels"]),
            options.folder / "data",
            [data["behaviour"]],
            jobs=options.jobs,
            done=lambda level: print(f"data of cloning: {level}", flush=True),
        )
        for seed in range(options.seeds):
            cloned(options.folder, seed)
    with (
        workers(options) as several,
        contextlib.closing(
            run_jobs(measure, missing, several, pinned=True, name=lambda run: str(run.path))
        ) as finished,
    ):
        for run, answer in finished:
            run.path.parent.mkdir(parents=True, exist_ok=True)
            partial = run.path.with_suffix(".partial")
            partial.write_text(json.dumps(answer) + "\n")
            partial.rename(run.path)
            print(f"{run.method} on {run.level.name}, seed {run.seed}", flush=True)
    times = np.geomspace(FIRST, options.seconds * 1.05, TIMES)
    shown = [0.05, 1.0, options.seconds * 1.05]
    print(f"| method | games | {' | '.join(f'{at:.3g} s' for at in shown)} |")
    print(f"| --- | --: |{' --: |' * len(shown)}")
    curves = {}
    _, metrics = load_rliable()
    for method in METHODS:
        own = [(run, load(run) or {}) for run in runs if run.method == method]
        games = np.median([answer["games"] for _, answer in own])
        table = np.array(
            [scores_at(run, answer, np.append(shown, times)) for run, answer in own]
        ).reshape(len(levels), options.seeds, -1)
        means = [interquartile_mean(table[:, :, i].T) for i in range(len(shown))]
        cells = [f"{one.mean:.3f} ({one.low:.3f} to {one.high:.3f})" for one in means]
        print(f"| {method} | {games:,.0f} | {' | '.join(cells)} |")
        curves[method] = np.array(
            [
                [
                    metrics.aggregate_iqm(table[:, seed, i])
                    for i in range(len(shown), table.shape[2])
                ]
                for seed in range(options.seeds)
            ]
        )
    draw(options.folder / "baselines.png", times, curves)


def draw(path: pathlib.Path, times: np.ndarray, curves: dict[str, np.ndarray]) -> None:
    """Draws the mean over seeds of each method, and between which the seeds are.

    curves: by method interquartile means over levels [seeds, times].
    """
    with matplotlib.rc_context(style.matplotlib_style()):
        figure = matplotlib.figure.Figure(figsize=(8, 4.5), layout="constrained")
        axes = figure.add_subplot()
        for index, (method, means) in enumerate(curves.items()):
            colour = style.CYCLE[index % len(style.CYCLE)]
            lines = "--" if index >= len(style.CYCLE) else "-"
            axes.plot(times, means.mean(axis=0), lines, color=colour, label=method)
            axes.fill_between(
                times, means.min(axis=0), means.max(axis=0), color=colour, alpha=0.15, linewidth=0
            )
        axes.set_xscale("log")
        axes.set_ylim(-1, 1.05)
        axes.set_xlabel("seconds of one core")
        axes.set_ylabel("score: 0 greedy, 1 best known")
        axes.legend(ncols=2, fontsize="small")
        figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
