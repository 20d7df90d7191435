"""From a cloned policy to one that learns from its own games of levels of train, by their latency.

It plays several games of a level, and learns to decide as in those that are faster than their mean.

    python examples/finetune_levels.py FOLDER POLICY [--seed 0] [--split validation] [--rounds 120]

POLICY is the policy.pt of clone_levels.py. Its demonstrations are imitated on beside.
"""

import argparse
import itertools
import pathlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from clone_levels import MODES, family_weights, load_policy, logits, write_plans
from torch.nn.functional import cross_entropy, log_softmax
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import mallocgame as mg
from mallocgame.observation import COMPACT

LEVELS, GAMES, EPOCHS = 48, 8, 2  # in a round: so many levels, games of each, and epochs
TEMPERATURE = 0.5  # of the modes that are drawn
RATE, BATCH, CLIP, IMITATION = 3e-4, 2048, 0.2, 0.2
STAKE = 1.01  # levels on which the best known plan is 1 % faster than greedy's, or more
LONGEST = 700  # accesses; a round waits for its longest game
WORST = -1.0  # A score below it counts as this.


class Decisions(NamedTuple):
    """What was decided, one row each."""

    observations: torch.Tensor
    modes: torch.Tensor
    likelihoods: torch.Tensor  # logarithms
    games: np.ndarray  # which game they are of


def scores(levels: list[mg.Level], ends: list[mg.State]) -> np.ndarray:
    """Returns 0 for greedy's latency, and 1 for the best known."""
    greedy_ps = np.array([level.greedy_ps for level in levels], np.float64)
    gains = np.array([level.gain for level in levels])
    return np.log(greedy_ps / [end.latency_ps for end in ends]) / np.log(gains)


@torch.no_grad()
def play_and_tell(
    policy: torch.nn.Module, games: list[mg.Game], chance: np.random.Generator
) -> tuple[list[mg.State], Decisions]:
    """Plays games side by side with drawn modes, and returns their ends and decisions."""
    ends = [game.initial_state() for game in games]
    observers = [mg.observation.Observer(game, COMPACT) for game in games]
    told = []
    while playing := [number for number, end in enumerate(ends) if not end.is_terminal()]:
        rows = torch.from_numpy(
            np.array([observers[number].observe(ends[number]) for number in playing])
        )
        likely = log_softmax(logits(policy, rows) / TEMPERATURE, 1)
        modes = torch.from_numpy((likely.numpy() + chance.gumbel(size=likely.shape)).argmax(1))
        free = rows[:, -MODES:].sum(1) > 1
        chosen = likely.gather(1, modes[:, None])[:, 0]
        told.append((rows[free], modes[free], chosen[free], np.array(playing)[free.numpy()]))
        for number, mode in zip(playing, modes.tolist(), strict=True):
            ends[number].apply(mode)
    seen, taken, likelihoods, numbers = zip(*told, strict=True)
    return ends, Decisions(
        torch.cat(seen), torch.cat(taken), torch.cat(likelihoods), np.concatenate(numbers)
    )


def finetune(
    policy: torch.nn.Module,
    data: list[np.ndarray],
    seed: int,
    rounds: int,
    watch: Callable[[int, torch.nn.Module], object] = lambda number, policy: None,
) -> torch.nn.Module:
    """Returns a better policy, whose weights are averages over the last steps.

    data: of clone_levels.demonstrations(). watch: is called after each round.
    """
    chance = np.random.default_rng(seed)
    levels = [level for level in mg.levels("train", scored=True) if level.gain >= STAKE]
    levels = [level for level in levels if level.features["accesses"] < LONGEST]
    rows, modes = (torch.from_numpy(part) for part in data[:2])
    weights = family_weights(data[3], data[3][data[2]])
    average = AveragedModel(policy, multi_avg_fn=get_ema_multi_avg_fn(0.99))
    optimizer = torch.optim.AdamW(policy.parameters(), lr=RATE)
    for number in range(rounds):
        for group in optimizer.param_groups:
            group["lr"] = RATE * (1 - number / rounds)
        drawn = [levels[i] for i in chance.choice(len(levels), LEVELS, replace=False)]
        several = [level for level in drawn for _ in range(GAMES)]
        games = [game for level in drawn for game in [level.game(mg.FINE_GAME)] * GAMES]
        ends, told = play_and_tell(policy, games, chance)
        found = scores(several, ends).clip(WORST).reshape(LEVELS, GAMES)
        better = found - found.mean(1, keepdims=True)
        better /= found.std(1, keepdims=True) + 0.05
        # A long game counts more than a short one, but not as much as its decisions are more.
        lengths = np.bincount(told.games, minlength=len(ends))
        worth = better.ravel()[told.games] / np.sqrt(lengths[told.games])
        worth = torch.from_numpy((worth * np.sqrt(lengths.mean())).astype(np.float32))
        batches = [torch.randperm(len(worth)).split(BATCH) for _ in range(EPOCHS)]
        for some in itertools.chain.from_iterable(batches):
            likely = log_softmax(logits(policy, told.observations[some]) / TEMPERATURE, 1)
            now = likely.gather(1, told.modes[some, None])[:, 0]
            ratio = (now - told.likelihoods[some]).exp()
            gain = torch.minimum(ratio * worth[some], ratio.clamp(1 - CLIP, 1 + CLIP) * worth[some])
            few = torch.multinomial(weights, BATCH // 4, replacement=True)
            imitation = cross_entropy(logits(policy, rows[few].float()), modes[few])
            optimizer.zero_grad()
            (IMITATION * imitation - gain.mean()).backward()
            torch.nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            optimizer.step()
            average.update_parameters(policy)
        print(f"round {number + 1}: score {found.mean():.3f}, {len(worth)} decisions", flush=True)
        watch(number + 1, average.module)
    return average.module


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path, help="for plans and policy")
    parser.add_argument("policy", type=pathlib.Path)
    parser.add_argument("--demonstrations", type=pathlib.Path, default="demonstrations.npz")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--split", action="append", help="to play: validation, whole-test ...")
    parser.add_argument("--rounds", type=int, default=120)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    data = list(np.load(options.demonstrations).values())
    given = load_policy(options.policy)
    policy = finetune(given, data, options.seed, options.rounds)
    write_plans(policy, options.folder, options.split or ["validation"])
