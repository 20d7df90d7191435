"""Learns from games that others have played, and plays levels that it has not seen.

Behaviour cloning does as the best game of each level did. Offline Q learning predicts the return of
every action, which the data has, so that it needs no bootstrapping.

    .ci/setup agents
    mallocgame offline -o data --limit 400
    python examples/offline_rl.py data [--split validation] [--levels FOLDER] [--steps 3000]
"""

import argparse
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch
from torch.nn import Linear

import mallocgame as mg
from mallocgame import offline
from mallocgame.observation import COMPACT

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # of outputs and rows of the data


def train(name: str, observations: torch.Tensor, actions: int, loss: Loss, steps: int):
    """Returns a network that makes the loss small."""
    widths = [observations.shape[1], 128, 128]
    layers = [part for one in pairwise(widths) for part in (Linear(*one), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers, Linear(widths[-1], actions))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    losses = []
    for step in range(1, steps + 1):
        rows = torch.randint(len(observations), (256,))
        found = loss(model(observations[rows]), rows)
        optimizer.zero_grad()
        found.backward()
        optimizer.step()
        schedule.step()
        losses.append(found.item())
        if step % max(1, steps // 5) == 0:
            print(f"{name}: step {step}, loss {np.mean(losses):.4f}", flush=True)
            losses.clear()
    return model


def tensors(episodes: list[offline.Episode], *names: str) -> list[torch.Tensor]:
    """Returns arrays of all episodes, at the positions where there is something to decide."""
    asked = np.concatenate([episode.masks.sum(axis=1) > 1 for episode in episodes])
    return [
        torch.from_numpy(np.concatenate([getattr(one, name) for one in episodes])[asked])
        for name in names
    ]


def clone(episodes: list[offline.Episode], steps: int) -> torch.nn.Module:
    best: dict[str, offline.Episode] = {}
    for one in sorted(episodes, key=lambda one: one.total_return):
        best[one.level] = one
    observations, masks, taken = tensors(list(best.values()), "observations", "masks", "actions")

    def loss(logits: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        legal = logits.masked_fill(~masks[rows], -torch.inf)
        return torch.nn.functional.cross_entropy(legal, taken[rows].long())

    return train("cloning", observations, masks.shape[1], loss, steps)


def fit_q(episodes: list[offline.Episode], steps: int) -> torch.nn.Module:
    observations, masks, returns = tensors(episodes, "observations", "masks", "returns")
    # What a position is worth doesn't decide anything: an action is compared with the best there.
    # Most differences are tiny and a few are huge, so beyond a thousandth all are the same.
    worse = returns - returns.nan_to_num(-torch.inf).amax(dim=1, keepdim=True)
    targets = (worse * 1e4).clamp(min=-10)

    def loss(values: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        legal = masks[rows]
        return torch.nn.functional.smooth_l1_loss(values[legal], targets[rows][legal])

    return train("Q", observations, masks.shape[1], loss, steps)


@torch.no_grad()
def play(game: mg.Game, model: torch.nn.Module) -> float:
    """Returns the return of the game in which the network's best legal action is taken."""
    state, observer = game.initial_state(), mg.observation.Observer(game, COMPACT)
    while not state.is_terminal():
        values = model(torch.from_numpy(observer.observe(state))).numpy()
        state.apply(int(np.where(state.legal_mask(), values, -np.inf).argmax()))
    return 1 - state.latency_ps / game.all_main_ps


def solved(game: mg.Game, solver: str) -> float:
    return 1 - mg.solve(game, solver, seconds=0).report.latency_ps / game.all_main_ps


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", help="a folder of `mallocgame offline`")
    parser.add_argument("--split", default="validation", help="whose levels are played")
    parser.add_argument("--levels", help="a folder of `mallocgame levels make`")
    parser.add_argument("--steps", type=int, default=3000)
    options = parser.parse_args()
    torch.set_num_threads(1)  # the networks are small: threads would wait for each other
    torch.manual_seed(0)
    episodes = list(offline.read_numpy(options.data))
    models = {"cloning": clone(episodes, options.steps), "Q": fit_q(episodes, options.steps)}
    games = [level.game() for level in mg.levels(options.split, options.levels)]
    results = {name: [play(game, one) for game in games] for name, one in models.items()}
    for solver in ("greedy", "rent"):
        results[solver] = [solved(game, solver) for game in games]
    reached = ", ".join(f"{name} {np.mean(own):.4f}" for name, own in results.items())
    print(f"mean return on {len(games)} levels: {reached}")


if __name__ == "__main__":
    main()
