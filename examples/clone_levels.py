"""From good plans to a policy that plays one game of a level, to a judged submission.

A network learns to decide as annealing's plans do, in a game that asks about one run at a time.

    .ci/setup agents && .ci/setup benchmark
    python examples/clone_levels.py FOLDER [--seed 0] [--split validation]
"""

import argparse
import multiprocessing
import pathlib
from collections import Counter
from itertools import pairwise

import numpy as np
import torch
from torch.nn import Linear, ReLU
from torch.nn.functional import cross_entropy

import mallocgame as mg
from mallocgame.observation import COMPACT

FINE = {"candidates": 1, "min_buffer_bytes": 512, "bytes_weight": 0.0, "time_weight": 0.5}
MODES = 5  # the actions; the last numbers of an observation say which are legal
HELD_OUT = ("autoencoder", "convolution", "iterative")  # families that say when to stop


def demonstrate(level: mg.Level, games: int = 1000) -> list[np.ndarray]:
    """Returns observations [decisions, size] and modes [decisions] of the best plan found."""
    result = mg.solve(level.game(game="priority", **FINE), "anneal", 0.0, evaluations=games)
    state, modes = result.game.initial_state(), {}
    for action in result.actions.tolist():  # of a game that shows several runs
        modes[state.asked_about()[action // MODES]] = action % MODES
        state.apply(action)
    state = level.game(game="priority", **FINE).initial_state()
    observer, rows, chosen = mg.Observer(state.game, COMPACT), [], []
    while not state.is_terminal():
        # Runs are placed in another order here, so that a place may be taken.
        wanted = (modes.get(state.asked_about()[0], mg.LATE), mg.LATE, mg.SPLIT, mg.SKIP)
        mode = next(mode for mode in wanted if mode in state.legal_actions())
        if len(state.legal_actions()) > 1:
            rows.append(observer.observe(state))
            chosen.append(mode)
        state.apply(mode)
    return [np.array(rows, np.float16), np.array(chosen)]


def demonstrations(path: pathlib.Path, every: int) -> list[np.ndarray]:
    """Returns observations, modes and families of all decisions; from the file, if it is there."""
    if not path.exists():
        scored = mg.levels("train", scored=True)[::every]
        with multiprocessing.Pool() as pool:
            found = pool.map(demonstrate, scored, chunksize=1)
        families = [[level.family] * len(two[1]) for level, two in zip(scored, found, strict=True)]
        np.savez(path, *map(np.concatenate, [*zip(*found, strict=True), families]))
    return list(np.load(path).values())


def logits(policy: torch.nn.Module, observations: torch.Tensor) -> torch.Tensor:
    return torch.where(observations[:, -MODES:] > 0, policy(observations), -1e9)


def clone(data: list[np.ndarray], epochs: int = 6, batch: int = 512) -> torch.nn.Module:
    """Returns the policy of the epoch that fits the held-out families best."""
    held = np.isin(data[2], HELD_OUT)
    # A family counts by its levels, however long their games are.
    levels = Counter(level.family for level in mg.levels("train", scored=True))
    decisions = Counter(data[2].tolist())
    weights = torch.tensor([levels[one] / decisions[one] for one in data[2][~held].tolist()])
    rows, modes = (torch.from_numpy(part[~held]) for part in data[:2])
    held_rows, held_modes = (torch.from_numpy(part[held]) for part in data[:2])
    layers = [(Linear(*two), ReLU()) for two in pairwise((rows.shape[1], 256, 256, 256))]
    policy = torch.nn.Sequential(*sum(layers, ()), Linear(256, MODES))
    optimizer = torch.optim.AdamW(policy.parameters())
    steps = epochs * -(-len(rows) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps)
    best, least = {}, float("inf")
    for epoch in range(1, epochs + 1):
        for some in torch.multinomial(weights, len(rows), replacement=True).split(batch):
            optimizer.zero_grad()
            cross_entropy(logits(policy, rows[some].float()), modes[some]).backward()
            optimizer.step()
            schedule.step()
        loss = cross_entropy(logits(policy, held_rows.float()), held_modes).item()
        print(f"epoch {epoch}: held-out loss {loss:.4f}", flush=True)
        if loss < least:
            best, least = {name: one.clone() for name, one in policy.state_dict().items()}, loss
    policy.load_state_dict(best)
    return policy


@torch.no_grad()
def play(policy: torch.nn.Module, game: mg.Game) -> mg.Plan:
    """Plays one game, in which each mode is the most likely one."""
    state, observer = game.initial_state(), mg.Observer(game, COMPACT)
    while not state.is_terminal():
        state.apply(int(logits(policy, torch.from_numpy(observer.observe(state))[None]).argmax()))
    return state.plan()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path, help="for plans and policy")
    parser.add_argument("--demonstrations", type=pathlib.Path, default="demonstrations.npz")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--split", action="append", choices=("validation", "test"))
    parser.add_argument("--every", type=int, default=1, help="of so many levels of train")
    options = parser.parse_args()
    torch.set_num_threads(1)  # The network is small, so threads would wait for each other.
    torch.manual_seed(options.seed)
    policy = clone(demonstrations(options.demonstrations, options.every))
    options.folder.mkdir(parents=True, exist_ok=True)
    torch.save(policy.state_dict(), options.folder / "policy.pt")
    for split in options.split or ["validation"]:
        for level in mg.levels(split):
            game = level.game(game="priority", **FINE)
            plan = play(policy, game).to_json(game.program)
            (options.folder / f"{level.name}.json").write_text(plan)
        print(f"mallocgame benchmark --submission {options.folder} --split {split}")
