"""Search with models written in Python."""

import gc
import importlib.util
import pathlib
import threading

import numpy as np
import pytest

import mallocgame as mg
from mallocgame import mcts

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


class Keys:
    """Random numbers by a key that each step hashes."""

    num_actions = 4

    def __init__(self):
        self.keys = np.zeros(0, np.uint64)
        self.steps = 0
        self.advanced = []

    def reserve(self, slots):
        self.keys = np.resize(self.keys, slots)

    def start(self, roots, slots, out):
        self.describe(roots + 1, slots, out)

    def step(self, roots, parents, actions, slots, out):
        assert roots.dtype == parents.dtype == actions.dtype == slots.dtype == np.int32
        self.steps += len(slots)
        self.describe(self.keys[parents] * 31 + actions.astype(np.uint64) + 1, slots, out)

    def describe(self, keys, slots, out):
        self.keys[slots] = keys
        for i, key in enumerate(self.keys[slots]):
            chance = np.random.default_rng(int(key))
            out.logits[i] = chance.normal(size=4)
            out.values[i] = chance.random()
            out.rewards[i] = chance.random() / 4
            out.legal[i, 1:] = chance.random(3) < 0.7

    def advance(self, root, slot):
        self.advanced.append((root, slot))


@pytest.mark.parametrize("selection", ["gumbel", "puct"])
def test_results_have_shapes_and_agree(selection):
    model = Keys()
    search = mcts.search(5, 4, selection, simulations=30)
    search.run(model, seed=3)
    assert model.steps == 5 * 30 and (search.simulations == 30).all()
    assert search.visits.shape == (5, 4) and (search.visits.sum(axis=1) == 30).all()
    np.testing.assert_allclose(search.policy.sum(axis=1), 1, atol=1e-5)
    illegal = search.priors < 0
    assert illegal.any() and not search.visits[illegal].any() and not search.policy[illegal].any()
    assert (search.visits[np.arange(5), search.actions] == search.visits.max(axis=1)).all()
    mean = (search.model_values + (search.visits * search.q).sum(axis=1)) / 31
    np.testing.assert_allclose(search.values, mean, rtol=1e-5)
    assert search.sample_actions(0).tolist() == search.visits.argmax(axis=1).tolist()
    assert (search.depths >= 2).all() and not search.terminal.any()
    assert (search.roots, search.num_actions, search.slots) == (5, 4, 5 * 31)


def test_same_seed_same_visits_with_any_threads_and_batches():
    visits = []
    for options in ({}, {"threads": 3}, {"max_batch": 2}):
        search = mcts.search(6, 4, simulations=40, leaves=3, **options)
        search.run(Keys(), seed=1)
        visits.append(search.visits)
        search.run(Keys(), seed=list(range(6)))
        visits.append(search.visits)
    assert (visits[0] == visits[2]).all() and (visits[0] == visits[4]).all()
    assert (visits[1] == visits[3]).all() and (visits[1] == visits[5]).all()


def test_advance_keeps_the_subtree():
    model = Keys()
    search = mcts.search(2, 4, "puct", simulations=50, max_nodes=200)
    search.run(model)
    action = int(search.actions[0])
    before = search.visits[0, action]
    assert search.advance(model, 0, action) is True
    assert model.advanced and model.advanced[0][0] == 0
    search.run(model)
    assert search.visits.sum(axis=1).tolist() == [before - 1 + 50, 50]
    search.forget()
    search.run(model)
    assert search.visits.sum(axis=1).tolist() == [50, 50]


def test_errors_of_the_model_come_through():
    class Broken(Keys):
        def step(self, *args):
            raise KeyError("mine")

    class Nan(Keys):
        def describe(self, keys, slots, out):
            super().describe(keys, slots, out)
            out.values[:] = np.nan

    search = mcts.search(2, 4)
    with pytest.raises(KeyError, match="mine"):
        search.run(Broken())
    with pytest.raises(mg.InvalidInputError, match="call run"):
        _ = search.actions
    with pytest.raises(mg.InvalidInputError, match=r"root 0, slot \d+: value: found nan"):
        search.run(Nan())
    with pytest.raises(AttributeError):
        search.run(object())
    search.run(Keys())
    assert (search.actions >= 0).all()


def test_a_running_search_cannot_be_used():
    search = mcts.search(1, 4, simulations=5)

    class Curious(Keys):
        def __init__(self, look):
            super().__init__()
            self.look = look

        def step(self, *args):
            super().step(*args)
            self.look()

    for look in (
        lambda: search.run(Keys()),
        lambda: search.visits,
        search.forget,
        lambda: search.advance(Keys(), 0, 0),
    ):
        with pytest.raises(mg.InvalidInputError, match="running"):
            search.run(Curious(look))
    seen = []

    def other():
        try:
            search.run(Keys())
        except mg.InvalidInputError as error:
            seen.append(str(error))

    def ask():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    search.run(Curious(ask))
    assert len(seen) == 5 and "running" in seen[0]


def test_answers_outlive_the_call():
    class Keeping(Keys):
        def describe(self, keys, slots, out):
            super().describe(keys, slots, out)
            self.kept = getattr(self, "kept", [])
            self.kept.append(out.logits)

    model = Keeping()
    mcts.search(3, 4, simulations=20).run(model)
    gc.collect()
    assert np.isfinite(np.concatenate(model.kept)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"selection": "ucb"}, "allowed: 'gumbel', 'puct'"),
        ({"scaling": "none"}, "allowed: 'tree', 'node', 'known'"),
        ({"simulations": -1}, "simulations: found -1"),
        ({"max_nodes": 3}, "max_nodes: found 3"),
        ({"settings": {"c_init": 1}}, "allowed: c_scale, c_visit, noise_scale"),
        ({"settings": {"considered": float("nan")}}, "considered"),
        ({"selection": "puct", "settings": {"dirichlet_alpha": 0}}, "dirichlet_alpha: found 0"),
        ({"roots": 0}, "roots: found 0"),
    ],
)
def test_bad_settings_are_named(options, message):
    with pytest.raises(mg.InvalidInputError, match=message.replace("(", r"\(")):
        mcts.search(**{"roots": 1, "num_actions": 3, **options})


def test_bad_calls_are_refused():
    search = mcts.search(2, 4)
    with pytest.raises(mg.InvalidInputError, match="seeds"):
        search.run(Keys(), seed=[1, 2, 3])
    with pytest.raises(mg.InvalidInputError, match="call run"):
        _ = search.policy
    search.run(Keys())
    with pytest.raises(mg.InvalidInputError, match="action"):
        search.advance(Keys(), 0, 9)
    with pytest.raises(mg.InvalidInputError, match="temperature"):
        search.sample_actions(-1)
    with pytest.raises(mg.InvalidInputError, match="root"):
        search.forget(5)
    with pytest.raises(mg.InvalidInputError, match="4 actions"):
        mcts.search(1, 5).run(Keys())


def test_tic_tac_toe_is_drawn():
    spec = importlib.util.spec_from_file_location(
        "custom_search_model", EXAMPLES / "custom_search_model.py"
    )
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    assert (example.play_games(games=5, simulations=3000, seed=0) == 0).all()


def test_mcts_is_a_solver(program):
    assert "mcts" in mg.solver_names()
    first, second = (
        mg.solve(program, "mcts", seconds=0, evaluations=200, seed=7) for _ in range(2)
    )
    assert first.plan == second.plan and first.found_by == "mcts"
    assert first.report.latency_ps <= mg.solve(program, "greedy").report.latency_ps
    assert mg.replay(mg.record(first), program).same
