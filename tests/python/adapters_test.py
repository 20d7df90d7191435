"""The libraries that people train with, on our environments.

They are sb3-contrib, TorchRL, OpenSpiel and PyTorch Geometric (pip install 'mallocgame[rl]'), and
LightZero and PufferLib, which pin old versions of others and need an environment of their own. Each
is skipped where it is not installed.
"""

import copy
import pathlib
import warnings

import numpy as np
import pytest

import mallocgame as mg

gymnasium = pytest.importorskip(
    "gymnasium", reason="Gymnasium isn't installed: pip install 'mallocgame[gym]'"
)

pytestmark = pytest.mark.full

IDS = {"time": "mallocgame/MallocGame-v0", "priority": "mallocgame/PriorityGame-v0"}
EVERY_ID = [*IDS.values(), "mallocgame/ScheduleGame-v0"]
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


@pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)
@pytest.mark.parametrize("observation", ["dict", "compact"])
@pytest.mark.parametrize("id", EVERY_ID)
def test_what_the_checkers_of_the_libraries_say(id, observation):
    made = gymnasium.make(id, program=PROGRAM, observation=observation)
    need("stable_baselines3.common.env_checker").check_env(made.unwrapped)
    envs, utils = need("torchrl.envs"), need("torchrl.envs.utils")
    env = envs.GymWrapper(made, categorical_action_encoding=True)
    if observation == "compact":  # The mask is in the info alone.
        count = int(made.action_space.n)
        mask = need("torchrl.data").Binary(count, dtype=need("torch").int8)
        reader = need("torchrl.envs.libs.gym").default_info_dict_reader(
            ["action_mask"], spec={"action_mask": mask}
        )
        env.set_info_dict_reader(reader)
    utils.check_env_specs(envs.TransformedEnv(env, envs.ActionMask()))


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("kind", ["time", "priority", "schedule"])
def test_what_the_checker_of_lightzero_says(kind):
    check = need("ding.envs.env.env_implementation_check")
    adapter = need("mallocgame.envs.lightzero")

    def make(cfg: dict) -> object:
        return adapter.LightZeroEnv({"program": PROGRAM, "game": kind, "manager": {}} | cfg)

    check.check_all(make({}))
    check.demonstrate_correct_procedure(make)
    env = make({})
    env.seed(3)
    env.reset()
    total, done = 0.0, False
    while not done:
        _, reward, done, info = env.step(env.random_action())
        total += float(reward)
    assert float(info["eval_episode_return"]) == pytest.approx(total, abs=1e-5)
    assert total == pytest.approx(1 - info["latency_ps"] / env._env.game.all_main_ps, abs=1e-5)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("id", EVERY_ID)
@pytest.mark.parametrize("observation", ["dict", "compact"])
def test_pufferlib_emulates_a_whole_game(id, observation):
    emulation = need("pufferlib.emulation")
    env = emulation.GymnasiumPufferEnv(
        env_creator=lambda: gymnasium.make(id, program=PROGRAM, observation=observation).unwrapped
    )
    chance, done = np.random.default_rng(0), False
    env.reset(seed=0)
    while not done:
        legal = np.flatnonzero(env.env.action_masks())
        numbers, _, done, _, info = env.step(int(chance.choice(legal)))  # It checks the spaces.
        assert numbers.dtype == np.float32
    assert info["latency_ps"] == env.env.state.latency_ps


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@both_games
def test_the_mcts_of_openspiel_plays(kind):
    pyspiel = need("pyspiel")
    mcts = need("open_spiel.python.algorithms.mcts")
    import mallocgame.envs.openspiel  # noqa: F401

    game = pyspiel.load_game("mallocgame", {"program": PROGRAM, "game": kind})
    state = game.new_initial_state()
    assert game.num_distinct_actions() == {"time": 4, "priority": 20}[kind]
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
    ("settings", "actions"),
    [({"actions": "paper"}, 3), ({"game": "priority", "candidates": 2}, 10)],
)
def test_openspiel_replays_a_game_from_its_history(settings, actions):
    pyspiel = need("pyspiel")
    import mallocgame.envs.openspiel  # noqa: F401

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
    import mallocgame.envs.openspiel  # noqa: F401

    game = pyspiel.load_game("mallocgame", {"program": PROGRAM, "game": kind})
    pyspiel.random_sim_test(game, num_sims=3, serialize=True, verbose=False)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("observation", ["flat", "compact"])
@both_games
def test_openspiels_tensor_is_gymnasiums_observation(observation, kind):
    pyspiel = need("pyspiel")
    rl_environment = need("open_spiel.python.rl_environment")
    make_observation = need("open_spiel.python.observation").make_observation
    import mallocgame.envs.openspiel  # noqa: F401

    settings = {"program": PROGRAM, "game": kind, "observation": observation}
    game = pyspiel.load_game("mallocgame", settings)
    env = gymnasium.make(IDS[kind], program=PROGRAM, observation=observation)
    named = gymnasium.make(IDS[kind], program=PROGRAM)
    theirs = rl_environment.Environment(game)
    observer = make_observation(game)
    step, (ours, _), (parts, _) = theirs.reset(), env.reset(seed=0), named.reset(seed=0)
    assert game.observation_tensor_shape() == list(env.observation_space.shape)
    assert theirs.observation_spec()["info_state"] == env.observation_space.shape
    chance, total = np.random.default_rng(0), 0.0
    while True:
        state = theirs.get_state
        observer.set_from(state, 0)
        assert np.array_equal(step.observations["info_state"][0], ours)
        assert np.array_equal(state.observation_tensor(0), ours)
        assert np.array_equal(observer.tensor, ours)
        if observation == "flat":
            assert list(observer.dict) == list(parts)
            assert all(np.array_equal(observer.dict[name], parts[name]) for name in parts)
        assert observer.string_from(state, 0) == state.state.to_string()
        if step.last():
            break
        action = int(chance.choice(step.observations["legal_actions"][0]))
        step = theirs.step([action])
        ours, reward, *_ = env.step(action)
        parts = named.step(action)[0]
        total += reward
    assert step.rewards[0] == pytest.approx(total)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@both_games
def test_openspiels_states_go_elsewhere(kind):
    pyspiel = need("pyspiel")
    import mallocgame.envs.openspiel  # noqa: F401

    game = pyspiel.load_game("mallocgame", {"program": PROGRAM, "game": kind})
    state = game.new_initial_state()
    for _ in range(3):
        state.apply_action(state.legal_actions()[-1])
    text = state.serialize()
    assert len(text) < 1000  # its actions, without the program
    for other in (
        state.clone(),
        game.deserialize_state(text),
        game.deserialize_state(game.deserialize_state(text).serialize()),
        pyspiel.deserialize_game_and_state(pyspiel.serialize_game_and_state(game, state))[1],
    ):
        assert other.history() == state.history() and str(other) == str(state)
        assert np.array_equal(other.observation_tensor(), state.observation_tensor())
        other.apply_action(other.legal_actions()[0])
        assert other.state.num_decisions == state.state.num_decisions + 1 == 4
    with pytest.raises(mg.MallocGameError, match=r"clone\(\)"):
        state.undo_action(0, state.history()[-1])
    with pytest.raises(mg.errors.InvalidActionError, match="allowed"):
        state.apply_action(game.num_distinct_actions())


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_openspiels_observers_of_the_history():
    pyspiel = need("pyspiel")
    make_observation = need("open_spiel.python.observation").make_observation
    import mallocgame.envs.openspiel  # noqa: F401

    game = pyspiel.load_game("mallocgame", {"program": PROGRAM})
    state = game.new_initial_state()
    state.apply_action(state.legal_actions()[0])
    recalls = make_observation(game, pyspiel.IIGObservationType(perfect_recall=True))
    assert recalls.string_from(state, 0) == state.history_str()
    with pytest.raises(mg.InvalidInputError, match="parameters"):
        make_observation(game, None, {"columns": 3})


@pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)
@both_games
def test_the_dqn_of_openspiel_learns(kind):
    need("torch").set_num_threads(1)
    pyspiel = need("pyspiel")
    rl_environment = need("open_spiel.python.rl_environment")
    dqn = need("open_spiel.python.pytorch.dqn")
    import mallocgame.envs.openspiel  # noqa: F401

    settings = {"program": PROGRAM, "game": kind, "observation": "compact"}
    env = rl_environment.Environment(pyspiel.load_game("mallocgame", settings))
    agent = dqn.DQN(
        0,
        env.observation_spec()["info_state"][0],
        env.action_spec()["num_actions"],
        hidden_layers_sizes=(32,),
        batch_size=32,
        learning_rate=0.01,
        optimizer_str="adam",
        replay_buffer_capacity=2000,
        min_buffer_size_to_learn=100,
        update_target_network_every=100,
        epsilon_decay_duration=1500,
    )

    def episode(learns: bool) -> float:
        step = env.reset()
        while not step.last():
            step = env.step([agent.step(step, is_evaluation=not learns).action])
        if learns:
            agent.step(step)
        return step.rewards[0]

    for _ in range(100):
        episode(learns=True)
    assert episode(learns=False) > np.mean(random_returns(100, kind)) + 0.02


def test_pytorch_geometric_batches_the_graph(monkeypatch):
    need("torch")
    loader = need("torch_geometric.loader")
    monkeypatch.syspath_prepend(str(pathlib.Path(__file__).parents[2] / "examples"))
    import pyg_graph

    game = mg.Game(mg.load_program(PROGRAM))
    ticks, buffers = game.program.ticks, len(game.program.buffers)
    item = pyg_graph.Position(game).data(game.initial_state())
    assert item.validate(raise_on_error=True) and item.is_directed() and not item.has_self_loops()
    batch = next(iter(loader.DataLoader([item, item], batch_size=2)))
    assert batch.num_nodes == 2 * item.num_nodes == 2 * (ticks + buffers)
    # An edge ends in an instruction (a read, or the next tick) or in the buffer that it writes.
    reads = item.edge_index[0] >= ticks
    assert reads.any() and (item.edge_index[1][reads] < ticks).all()


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "name", ["plain.mgp", "a,b=(c).mgp", "a,candidates=9.mgp", "100%.mgp", "a%2Cb.mgp", "-1.5", "3"]
)
def test_openspiels_text_of_a_game_holds_any_name(name, tmp_path, monkeypatch):
    pyspiel = need("pyspiel")
    import mallocgame.envs.openspiel  # noqa: F401

    monkeypatch.chdir(tmp_path)
    mg.save_program(mg.load_program(PROGRAM), name)
    game = pyspiel.load_game("mallocgame", {"program": name, "candidates": 3, "game": "priority"})
    again = pyspiel.load_game(str(game))
    assert str(again) == str(game) and again.num_distinct_actions() == 15
    assert again.game.program.fingerprint == game.game.program.fingerprint
    state = game.new_initial_state()
    state.apply_action(state.legal_actions()[0])
    saved = pyspiel.serialize_game_and_state(game, state)
    assert pyspiel.deserialize_game_and_state(saved)[1].history() == state.history()
    assert copy.deepcopy(game) is game
