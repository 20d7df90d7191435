"""The first step: the network learns what demonstrations do with each run. It needs Torch."""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
import torch

from mallocgame._core import LEARNED_SIZES as SIZES
from mallocgame._learned.demonstrations import Demonstration
from mallocgame._learned.weights import Weights

_SKIP, _LATE, _EARLY, _SPLIT = 0, 1, 2, 4  # values of Service, order_state.h
_LEAK = 0.01
_MOST_PRESSURE = 4.0
_BATCH = 16
_RATE, _DECAY = 3e-3, 0.1
_RANK_LOSS = 0.1
# Runs that a demonstration leaves out are decided later than others of their size, by so much.
_SKIPPED_LATER = 4.0


@dataclasses.dataclass(frozen=True)
class _Lesson:
    """A demonstration as tensors."""

    features: torch.Tensor
    # What a run's want adds to each piece of time, and what it reads of them: space, channel.
    adds: tuple[torch.Tensor, torch.Tensor]
    reads: tuple[torch.Tensor, torch.Tensor]
    services: torch.Tensor  # what the demonstration does, of runs that it comes to
    legal: torch.Tensor
    taught: torch.Tensor
    importance: torch.Tensor  # what the network shall add to the importance
    worth: torch.Tensor  # of a run in the loss


class AdviceNetwork(torch.nn.Module):
    """The network of run_network.h, with gradients."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        hidden, features = SIZES["hidden"], SIZES["features"]
        wants = SIZES["space_wants"] + SIZES["channel_wants"]
        second = features + SIZES["state"] + 2 * SIZES["space_wants"] + SIZES["channel_wants"]
        self.layers = torch.nn.ParameterList(
            torch.randn(inputs, outputs, generator=generator) * scale / inputs**0.5
            for inputs, outputs, scale in (
                (features, hidden, 1.0),
                (hidden + 1, SIZES["state"] + wants, 0.5),
                (second, hidden, 1.0),
                (hidden + 1, SIZES["outputs"], 0.3),
            )
        )

    def forward(self, lesson: _Lesson) -> torch.Tensor:
        """[runs, outputs]: before the saving's exponential and the importance's base."""
        states, spaces = SIZES["state"], SIZES["space_wants"]
        first = _dense(lesson.features, self.layers[0], self.layers[1])
        wants = torch.sigmoid(first[:, states:])
        load = lesson.adds[0].T @ wants[:, :spaces]
        demand = lesson.adds[1].T @ wants[:, spaces:]
        space = torch.stack(
            [lesson.reads[0] @ load, lesson.reads[0] @ torch.relu(load - 1)], dim=2
        ).flatten(1)
        pressures = torch.cat([space, lesson.reads[1] @ demand], dim=1).clamp(max=_MOST_PRESSURE)
        inputs = torch.cat([lesson.features, torch.tanh(first[:, :states]), pressures], dim=1)
        return _dense(inputs, self.layers[2], self.layers[3])

    def weights(self) -> Weights:
        """All layers as the C++ network reads them."""
        rows = [layer.detach().numpy().ravel() for layer in self.layers]
        return np.concatenate(rows).astype(np.float32)


def imitate(
    demonstrations: Sequence[Demonstration],
    epochs: int,
    seed: int,
    told: Callable[[int, float], object],
) -> Weights:
    """Returns the network's weights after so many epochs; `told` hears each one's mean loss."""
    network = AdviceNetwork(torch.Generator().manual_seed(seed))
    lessons = [_lesson(one) for one in demonstrations]
    optimizer = torch.optim.AdamW(network.parameters(), lr=_RATE, weight_decay=_DECAY)
    order = np.random.default_rng(seed)
    for epoch in range(epochs):
        for group in optimizer.param_groups:
            group["lr"] = _RATE * (1 - epoch / epochs)
        total = 0.0
        places = order.permutation(len(lessons))
        for i in range(0, len(places), _BATCH):
            batch = [lessons[place] for place in places[i : i + _BATCH]]
            optimizer.zero_grad()
            losses = torch.stack([_loss(network(lesson), lesson) for lesson in batch])
            losses.mean().backward()
            optimizer.step()
            total += float(losses.detach().sum())
        told(epoch + 1, total / len(lessons))
    return network.weights()


def _dense(inputs: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    hidden = torch.nn.functional.leaky_relu(inputs @ first, _LEAK)
    return torch.cat([hidden, torch.ones(len(hidden), 1)], dim=1) @ second


def _loss(advice: torch.Tensor, lesson: _Lesson) -> torch.Tensor:
    saving = torch.exp(advice[:, 5].clamp(-3, 3))
    worths = torch.stack(
        [
            torch.zeros_like(saving),
            advice[:, 1] + saving,
            advice[:, 2] + saving,
            advice[:, 3] + saving,
            advice[:, 4],
        ],
        dim=1,
    ).masked_fill(~lesson.legal, -1e9)
    taught = lesson.taught
    service = torch.nn.functional.cross_entropy(
        worths[taught], lesson.services[taught], reduction="none"
    )
    rank = torch.nn.functional.smooth_l1_loss(
        advice[taught, 0] / 4, lesson.importance[taught] / 4, reduction="none"
    )
    worth = lesson.worth[taught]
    return ((service + _RANK_LOSS * rank) * worth).sum() / worth.sum()


def _lesson(one: Demonstration) -> _Lesson:
    game, columns = one.game, one.game.columns
    legal, parents = game.services, game.parents
    services = game.services_of(one.plan).astype(np.int64)
    # A plan's copy may begin where the game has no service of its own for it.
    services = np.where((services == _EARLY) & ~legal[:, _EARLY], _LATE, services)
    services = np.where(
        (services == _LATE) & ~legal[:, _LATE], np.where(legal[:, _EARLY], _EARLY, _SKIP), services
    )
    taught = legal[np.arange(len(legal)), services] & _come_to(parents, services)
    begin, end = columns["begin"], columns["end"]
    fetch, need = columns["fetch_begin"], columns["need"]
    space, channel = _cover(begin, end), _cover(fetch, need)
    per_piece = columns["copy"] * SIZES["pieces"] / (need - fetch)
    # What is packed first is large and long, as in XLA's own repacker.
    area = np.clip(columns["log_bytes"] + np.log((end - begin) / SIZES["pieces"]), -16, 2)
    saving = np.exp(columns["log_saving"].astype(np.float64))
    mean = saving[taught].mean() if taught.any() else 1.0
    return _Lesson(
        features=torch.tensor(game.features),
        adds=(_tensor(space * columns["bytes"][:, None]), _tensor(channel * per_piece[:, None])),
        reads=(_tensor(space / (end - begin)[:, None]), _tensor(channel / (need - fetch)[:, None])),
        services=torch.tensor(services),
        legal=torch.tensor(legal),
        taught=torch.tensor(taught),
        importance=_tensor(
            area - columns["log_importance"] - np.where(services == _SKIP, _SKIPPED_LATER, 0)
        ),
        worth=_tensor(np.clip(saving / (mean + 1e-12), 0.1, 8)),
    )


def _come_to(parents: np.ndarray, services: np.ndarray) -> np.ndarray:
    """Whether all that a run is a part of is split. Parts have larger ids than their wholes."""
    come_to = parents < 0
    for run in np.flatnonzero(parents >= 0):
        come_to[run] = come_to[parents[run]] and services[parents[run]] == _SPLIT
    return come_to


def _cover(begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """[runs, pieces]: how much of each piece of time an interval covers."""
    piece = np.arange(SIZES["pieces"])[None]
    until = np.minimum(end[:, None], piece + 1)
    return np.clip(until - np.maximum(begin[:, None], piece), 0, None)


def _tensor(values: np.ndarray) -> torch.Tensor:
    return torch.tensor(np.ascontiguousarray(values, dtype=np.float32))
