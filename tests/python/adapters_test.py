"""The libraries that people train with, on our environments.

They are sb3-contrib, TorchRL, OpenSpiel and PyTorch Geometric (pip install 'mallocgame[rl]'). Each
is skipped where it is not installed.
"""

import warnings

import numpy as np
import pytest

import mallocgame as mg

gymnasium = pytest.importorskip(
    "gymnasium", reason="Gymnasium isn't installed: pip install 'mallocgame[gym]'"
)

IDS = {"time": "mallocgame/MallocGame-v0", "order": "mallocgame/OrderGame-v0"}
ID = IDS["time"]
both_games = pytest.mark.parametrize("kind", IDS)
PROGRAM = "wavernn_64steps_b8.tpu_v4i"


def need(name: str):
    """The library, or skip. What it warns of when it is imported is its own affair."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(
            name, reason=f"{name} isn't installed: pip install 'mallocgame[rl]'"
        )


def random_returns(count: int, kind: str = "time") -> list[float]:
    game = mg.Game(mg.load_program(PROGRAM), game=kind)
    chance, found = np.random.default_rng(0), []
    for _ in range(count):
        state = game.initial_state()
        while not state.is_terminal():
            state.apply(int(chance.choice(state.legal_actions())))
        found.append(1 - state.latency_ps / game.all_main_ps)
    return found


@pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)
def test_maskable_ppo_learns():
    need("torch").set_num_threads(1)
    ppo = need("sb3_contrib").MaskablePPO
    make_vec_env = need("stable_baselines3.common.env_util").make_vec_env
    envs = make_vec_env(
        ID, n_envs=8, seed=0, env_kwargs={"program": PROGRAM, "observation": "compact"}
    )
    model = ppo(
        "MlpPolicy",
        envs,
        n_steps=64,
        batch_size=128,
        n_epochs=4,
        learning_rate=1e-3,
        seed=0,
        device="cpu",
    )
    model.learn(3072)
    env = gymnasium.make(ID, program=PROGRAM, observation="compact")
    observation, info = env.reset(seed=0)
    total, terminated = 0.0, False
    while not terminated:
        action, _ = model.predict(observation, action_masks=info["action_mask"], deterministic=True)
        observation, reward, terminated, _, info = env.step(int(action))
        total += reward
    assert total > np.mean(random_returns(100))


@pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)
@pytest.mark.parametrize("observation", ["dict"])
@both_games
def test_torchrl_rolls_out_legal_actions(observation, kind):
    envs = need("torchrl.envs")
    env = envs.GymWrapper(
        gymnasium.make(IDS[kind], program=PROGRAM, observation=observation),
        categorical_action_encoding=True,
    )
    env = envs.TransformedEnv(env, envs.ActionMask())
    rollout = env.rollout(1000)
    masks, actions = rollout["action_mask"].numpy(), rollout["action"].numpy()
    assert masks[np.arange(len(actions)), actions].all()
    assert rollout["next", "terminated"][-1].item() and not rollout["next", "terminated"][:-1].any()
    state = mg.Game(mg.load_program(PROGRAM), game=kind).initial_state()
    rewards = [state.apply(int(action)) for action in actions]
    assert state.is_terminal()
    np.testing.assert_allclose(
        rollout["next", "reward"].numpy()[:, 0], rewards, rtol=1e-5, atol=1e-7
    )


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@both_games
def test_the_mcts_of_openspiel_plays(kind):
    pyspiel = need("pyspiel")
    mcts = need("open_spiel.python.algorithms.mcts")
    import mallocgame.openspiel  # noqa: F401

    game = pyspiel.load_game("mallocgame", {"program": PROGRAM, "game": kind})
    state = game.new_initial_state()
    assert game.num_distinct_actions() == {"time": 4, "order": 20}[kind]
    assert state.legal_actions() == state.state.legal_actions()
    chance = np.random.RandomState(0)
    bot = mcts.MCTSBot(game, 1.0, 40, mcts.RandomRolloutEvaluator(1, chance), random_state=chance)
    while not state.is_terminal():
        clone = state.clone()
        state.apply_action(bot.step(state))
        assert clone.state.num_decisions == state.state.num_decisions - 1
    plan = state.state.plan()
    program = mg.load_program(PROGRAM)
    assert mg.validate(program, plan).ok
    report = mg.simulate(program, plan)
    assert state.returns() == [1 - report.latency_ps / report.all_main_ps]
    assert state.returns()[0] > np.mean(random_returns(100, kind))


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("settings", "actions"), [({"actions": "paper"}, 3), ({"game": "order", "candidates": 2}, 10)]
)
def test_openspiel_replays_a_game_from_its_history(settings, actions):
    pyspiel = need("pyspiel")
    import mallocgame.openspiel  # noqa: F401

    game = pyspiel.load_game("mallocgame", {"program": PROGRAM, **settings})
    assert game.num_distinct_actions() == actions
    state = game.new_initial_state()
    while not state.is_terminal():
        state.apply_action(state.legal_actions()[-1])
    again = game.new_initial_state()
    for action in state.history():
        again.apply_action(action)
    assert again.returns() == state.returns() and str(again) == str(state)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@both_games
def test_openspiels_own_test_plays_at_random(kind):
    pyspiel = need("pyspiel")
    import mallocgame.openspiel  # noqa: F401

    game = pyspiel.load_game("mallocgame", {"program": PROGRAM, "game": kind})
    pyspiel.random_sim_test(game, num_sims=3, serialize=False, verbose=False)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@both_games
def test_openspiels_observer_prints_the_state(kind):
    pyspiel = need("pyspiel")
    make_observation = need("open_spiel.python.observation").make_observation
    import mallocgame.openspiel  # noqa: F401

    game = pyspiel.load_game("mallocgame", {"program": PROGRAM, "game": kind})
    state = game.new_initial_state()
    observation = make_observation(game)
    assert observation.string_from(state, 0) == state.state.to_string()
    state.apply_action(state.legal_actions()[0])
    assert observation.string_from(state, 0) == state.state.to_string()


def test_pytorch_geometric_batches_the_graph():
    torch = need("torch")
    data, loader = need("torch_geometric.data"), need("torch_geometric.loader")
    game = mg.Game(mg.load_program(PROGRAM))
    graph = mg.ProgramGraph(game)
    item = data.Data(
        x=torch.from_numpy(graph.node_features),
        edge_index=torch.from_numpy(graph.edge_index).long(),
        edge_attr=torch.from_numpy(graph.edge_features),
    )
    assert item.validate(raise_on_error=True) and item.is_directed() and not item.has_self_loops()
    batch = next(iter(loader.DataLoader([item, item], batch_size=2)))
    assert batch.num_nodes == 2 * item.num_nodes == 2 * (graph.num_instructions + graph.num_buffers)
    assert batch.edge_index[:, item.num_edges :].equal(item.edge_index + item.num_nodes)
    # An edge ends in an instruction (a read, or the next tick) or in the buffer that it writes.
    reads = item.edge_index[0] >= graph.num_instructions
    assert reads.any() and (item.edge_index[1][reads] < graph.num_instructions).all()
