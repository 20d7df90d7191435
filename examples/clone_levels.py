"""From good plans to a policy that plays one game of a level, to a judged submission.

A network learns to decide as annealing's plans do, in a game that asks about one run at a time.

    .ci/setup agents && .ci/setup benchmark
    python examples/clone_levels.py FOLDER [--seed 0] [--split validation] [--games 1]
"""

import argparse
import dataclasses
import multiprocessing
import pathlib
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import torch
from torch.nn import Linear, ReLU
from torch.nn.functional import cross_entropy
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import mallocgame as mg
from mallocgame.observation import COMPACT

MODES = 5  # the actions; the last numbers of an observation say which are legal
TEMPERATURE = 1.0  # of modes that are drawn


def demonstrate(level: mg.Level, games: int = 1000) -> list[np.ndarray]:
    """Returns observations [decisions, size] and modes [decisions] of the best plan found."""
    result = mg.solve(level.game(mg.FINE_GAME), "anneal", 0.0, evaluations=games)
    state, modes = result.game.initial_state(), {}
    for action in result.actions.tolist():  # of a game that shows several runs
        modes[state.asked_about()[action // MODES]] = action % MODES
        state.apply(action)
    state = level.game(mg.FINE_GAME).initial_state()
    observer, rows, chosen = mg.observation.Observer(state.game, COMPACT), [], []
    while not state.is_terminal():
        # Runs are placed in another order here, so that a place may be taken.
        late, split, skip = mg.Mode.LATE, mg.Mode.SPLIT, mg.Mode.SKIP
        wanted = (modes.get(state.asked_about()[0], late), late, split, skip)
        mode = next(mode for mode in wanted if mode in state.legal_actions())
        if len(state.legal_actions()) > 1:
            rows.append(observer.observe(state))
            chosen.append(mode)
        state.apply(mode)
    return [np.array(rows, np.float16), np.array(chosen)]


def demonstrations(path: pathlib.Path, every: int) -> list[np.ndarray]:
    """Returns observations and modes of all decisions, the number of each one's level, and names.

    They are from the file, if it is there.
    """
    if not path.exists():
        scored = mg.levels("train", scored=True)[::every]
        with multiprocessing.Pool() as pool:
            found = pool.map(demonstrate, scored, chunksize=1)
        numbers = np.repeat(np.arange(len(found)), [len(modes) for _, modes in found])
        names = [level.name for level in scored]
        np.savez(path, *map(np.concatenate, zip(*found, strict=True)), numbers, names)
    return list(np.load(path).values())


def logits(policy: torch.nn.Module, observations: torch.Tensor) -> torch.Tensor:
    return torch.where(observations[:, -MODES:] > 0, policy(observations), -1e9)


def network(size: int) -> torch.nn.Sequential:
    layers = [(Linear(*two), ReLU()) for two in pairwise((size, 256, 256, 256))]
    return torch.nn.Sequential(*sum(layers, ()), Linear(256, MODES))


def load_policy(path: pathlib.Path) -> torch.nn.Sequential:
    weights = torch.load(path)
    policy = network(weights["0.weight"].shape[1])
    policy.load_state_dict(weights)
    return policy


def clone(
    data: list[np.ndarray],
    without: str = "",
    epochs: int = 6,
    batch: int = 512,
    watch: Callable[[int, torch.nn.Module], object] = lambda epoch, policy: None,
) -> torch.nn.Module:
    """Returns a policy, whose weights are averages over the last steps.

    without: levels that have this in their name are left out. watch: is called after each epoch.
    """
    kept = np.array([not without or without not in name for name in data[3].tolist()])
    rows, modes, numbers = (torch.from_numpy(part[kept[data[2]]]) for part in data[:3])
    weights = family_weights(data[3][kept], data[3][numbers])
    policy = network(rows.shape[1])
    average = AveragedModel(policy, multi_avg_fn=get_ema_multi_avg_fn(0.997))
    optimizer = torch.optim.AdamW(policy.parameters())
    steps = epochs * -(-len(rows) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps)
    for epoch in range(1, epochs + 1):
        losses = []
        for some in torch.multinomial(weights, len(rows), replacement=True).split(batch):
            optimizer.zero_grad()
            loss = cross_entropy(logits(policy, rows[some].float()), modes[some])
            loss.backward()
            optimizer.step()
            schedule.step()
            average.update_parameters(policy)
            losses.append(loss.item())
        print(f"epoch {epoch}: loss {np.mean(losses):.4f}", flush=True)
        watch(epoch, average.module)
    return average.module


def family_weights(levels: np.ndarray, decisions: np.ndarray) -> torch.Tensor:
    """Returns a weight for each decision: a family counts by its levels, however long their games.

    levels, and of each decision its level: names.
    """
    family = {level.name: level.family for level in mg.levels("train")}
    own = [family[name] for name in decisions.tolist()]
    count, length = Counter(family[name] for name in levels.tolist()), Counter(own)
    return torch.tensor([count[one] / length[one] for one in own])


@torch.no_grad()
def play(
    policy: torch.nn.Module, games: Sequence[mg.Game], temperature: float = 0.0, seed: int = 0
) -> list[mg.State]:
    """Plays games side by side, and returns their ends.

    temperature: 0: each mode is the most likely one; else modes are drawn.
    """
    chance = np.random.default_rng(seed)
    ends = [game.initial_state() for game in games]
    observers = [mg.observation.Observer(game, COMPACT) for game in games]
    while playing := [number for number, end in enumerate(ends) if not end.is_terminal()]:
        rows = np.array([observers[number].observe(ends[number]) for number in playing])
        worth = logits(policy, torch.from_numpy(rows)).numpy()
        if temperature:
            worth = worth + temperature * chance.gumbel(size=worth.shape)
        for number, mode in zip(playing, worth.argmax(axis=1).tolist(), strict=True):
            ends[number].apply(mode)
    return ends


def play_several(
    policy: torch.nn.Module, level: mg.Level, count: int, seed: int = 0
) -> list[mg.State]:
    """Plays the fine game, then games with drawn modes and a drawn order; returns their ends."""
    drawn = drawn_orders(level, count - 1, seed)
    first = play(policy, [level.game(mg.FINE_GAME)])
    return first + play(policy, drawn, TEMPERATURE, seed)


def drawn_orders(level: mg.Level, count: int, seed: int) -> list[mg.Game]:
    """Returns fine games in which the order of runs is drawn."""
    chance = np.random.default_rng(seed)
    weights = [(max(0.0, chance.uniform(-0.5, 0.5)), chance.uniform(0.25, 1)) for _ in range(count)]
    return [
        level.game(dataclasses.replace(mg.FINE_GAME, bytes_weight=of_bytes, time_weight=of_time))
        for of_bytes, of_time in weights
    ]


def write_plans(
    policy: torch.nn.Module, folder: pathlib.Path, splits: list[str], games: int = 1, seed: int = 0
) -> None:
    """Writes the policy, and the best plan of so many games of each level."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(policy.state_dict(), folder / "policy.pt")
    for split in splits:
        for level in mg.levels(split):
            ends = play_several(policy, level, games, seed)
            plan = min(ends, key=lambda state: state.latency_ps).plan()
            mg.save_plan(plan, level.load_program(), folder / f"{level.name}.json")
        print(f"mallocgame benchmark --submission {folder} --split {split}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path, help="for plans and policy")
    parser.add_argument("--demonstrations", type=pathlib.Path, default="demonstrations.npz")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--split", action="append", help="to play: validation, whole-test ...")
    parser.add_argument("--every", type=int, default=1, help="of so many levels of train")
    parser.add_argument("--without", default="", help="levels with this in their name: no training")
    parser.add_argument("--games", type=int, default=1, help="of each level; the best is kept")
    options = parser.parse_args()
    torch.set_num_threads(1)  # The network is small, so threads would wait for each other.
    torch.manual_seed(options.seed)
    policy = clone(demonstrations(options.demonstrations, options.every), options.without)
    write_plans(
        policy, options.folder, options.split or ["validation"], options.games, options.seed
    )
