"""Observations, without Gymnasium."""

import numpy as np
import pytest

import mallocgame as mg
from mallocgame.observation import (
    COMPACT,
    action_features,
    candidate_features,
    layout,
    scalar_features,
)


@pytest.mark.parametrize("kind", ["time", "priority"])
def test_observer_writes_what_the_layout_says(program, kind):
    game = mg.Game(program, game=kind)
    observer = mg.observation.Observer(game, {"neighbours": 2})
    parts = layout({"neighbours": 2}, kind)
    last = parts[-1]
    assert observer.size == last.offset + int(np.prod(last.shape))
    state = game.initial_state()
    while not state.is_terminal():
        numbers = observer.observe(state)
        assert numbers.dtype == np.float32 and numbers.shape == (observer.size,)
        assert np.array_equal(numbers[last.offset :], state.legal_mask())
        state.apply(state.legal_actions()[-1])
    assert mg.observation.Observer(game, COMPACT).size < observer.size
    with pytest.raises(mg.InvalidInputError, match="another Game"):
        observer.observe(mg.Game(program, game=kind).initial_state())
    with pytest.raises(mg.InvalidInputError, match="allowed: neighbours"):
        mg.observation.Observer(game, {"rows": 2})
    with pytest.raises(mg.InvalidInputError, match="allowed: 0 to"):
        mg.observation.Observer(game, {"neighbours": -2})


def test_features_of_the_priority_game(program):
    parts = {part.name: part for part in layout({}, "priority")}
    assert list(parts) == [
        "candidates",
        "actions",
        "occupancy",
        "idle",
        "demand",
        "scalars",
        "action_mask",
    ]
    assert parts["candidates"].shape == (8, len(candidate_features()))
    assert parts["actions"].shape == (20, len(action_features("priority")))
    assert parts["scalars"].shape == (len(scalar_features("priority")),)
    with pytest.raises(mg.InvalidInputError, match="allowed: 'time', 'priority'"):
        action_features("space")


def time_scale(ps):
    """time(x) of the header: the logarithm is linear between powers of two."""
    x = abs(ps) // 1000 + 1
    power = x.bit_length() - 1
    scaled = min(1.0, (power + (x - 2**power) / 2**power) / 32)
    return -scaled if ps < 0 else scaled


@pytest.mark.parametrize("kind", ["time", "priority"])
@pytest.mark.parametrize("name", ["resnet50_b1.tpu_v4i_16mib", "muzero_unroll_b32.tpu_v4i"])
def test_what_actions_save_is_their_reward(name, kind):
    game = mg.Game(mg.load_program(name), game=kind)
    observer = mg.observation.Observer(game, COMPACT)
    (part,) = [p for p in layout(COMPACT, game.options) if p.name == "actions"]
    columns = {feature: i for i, (feature, _) in enumerate(action_features(kind))}
    state, random = game.initial_state(), np.random.default_rng(0)
    while not state.is_terminal():
        numbers = observer.observe(state)[part.offset :][: np.prod(part.shape)]
        saved = numbers.reshape(part.shape)[:, columns["saved"]]
        for action in state.legal_actions():
            clone = state.clone()
            before = clone.latency_ps
            clone.apply(action)
            if kind == "time" or not clone.is_terminal():
                assert saved[action] == pytest.approx(time_scale(before - clone.latency_ps))
        state.apply(random.choice(state.legal_actions()))


def test_backlog_reaches_to_the_end_of_the_last_booked_copy():
    """As its text says: it is 0 before a copy is booked, and more right after."""
    assert "end of the last booked copy" in dict(scalar_features())["backlog"]
    game = mg.Game(mg.load_program("mlp_train_adam_b512.tpu_v5e"))
    names = [feature for feature, _ in scalar_features()]
    observer, state = mg.observation.Observer(game), game.initial_state()
    (scalars,) = [part for part in layout({}, game.options) if part.name == "scalars"]
    at = scalars.offset + names.index("backlog")
    assert observer.observe(state)[at] == 0
    while not observer.observe(state)[at]:
        copies = len(state.plan().copies)
        state.apply(mg.Action.COPY if mg.Action.COPY in state.legal_actions() else mg.Action.DROP)
    assert len(state.plan().copies) > copies


@pytest.mark.parametrize("kind", ["time", "priority"])
def test_prices(program, kind):
    game = mg.Game(program, game=kind)
    prices = mg.bounds.Prices(np.full(program.ticks, 1e-3), np.full(program.ticks, 0.5))
    plain, priced = mg.observation.Observer(game), mg.observation.Observer(game, {}, prices)
    assert plain.size == priced.size
    parts = {part.name: part for part in layout({}, game.options)}
    actions = [feature for feature, _ in action_features(kind)]
    about = [actions.index(name) for name in ("space_rent", "channel_rent", "profit")]
    rows = slice(parts["actions"].offset, parts["actions"].offset + np.prod(parts["actions"].shape))
    scalars = [feature for feature, _ in scalar_features(kind)]
    known = parts["scalars"].offset + scalars.index("priced")
    state = game.initial_state()
    seen = []
    while not state.is_terminal():
        with_, without = priced.observe(state), plain.observe(state)
        assert (with_[known], without[known]) == (1, 0)
        assert not without[rows].reshape(parts["actions"].shape)[:, about].any()
        seen.append(with_[rows].reshape(parts["actions"].shape)[:, about])
        state.apply(state.legal_actions()[-1])
    seen = np.concatenate(seen)
    assert seen[:, :2].min() >= 0 and (seen.max(axis=0) > 0).all() and seen[:, 2].min() < 0
    assert np.abs(seen).max() <= 1
    with pytest.raises(mg.InvalidInputError, match="prices: space_ps_per_byte: found 1 numbers"):
        mg.observation.Observer(game, {}, mg.bounds.Prices([1.0]))
