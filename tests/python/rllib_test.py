"""RLlib on both games with masks, and Ray Tune over an agent's settings, on one local Ray.

It stands in a file of its own, because to import RLlib and to start Ray takes seconds each.
"""

import logging
import pickle
import re
import runpy
import signal
import sys
import warnings

import numpy as np
import pytest
from conftest import OTHER, SMALL, SOURCE_ROOT
from small_agents import MUZERO, texts

import mallocgame as mg

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # What they warn of when they are imported is their affair.
    gymnasium = pytest.importorskip("gymnasium", reason="pip install 'mallocgame[rllib]'")
    torch = pytest.importorskip("torch", reason="pip install 'mallocgame[rllib]'")
    pytest.importorskip("ray.rllib", reason="pip install 'mallocgame[rllib]'", exc_type=ImportError)
    import ray
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.rl_module.rl_module import RLModule, RLModuleSpec
    from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

    import mallocgame.envs.rllib
    from mallocgame.envs.rllib import MaskedEnv, MaskedModule, MaskedVectorEnv

# Ray leaves sockets and files of ended processes to the garbage collector. RLlib registers its
# environments twice, and calls itself out of date.
pytestmark = [
    pytest.mark.weekly,
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::UserWarning", "ignore::DeprecationWarning"
    ),
]
both_games = pytest.mark.parametrize("game", ["time", "priority"])
EXAMPLES = SOURCE_ROOT / "examples"
NETWORK = {"fcnet_hiddens": [16], "vf_share_layers": False}


@pytest.fixture(scope="module", autouse=True)
def process():
    """Leaves as it was what RLlib's seeds, the examples and Tune set for the whole process."""
    threads, handler = torch.get_num_threads(), signal.getsignal(signal.SIGINT)
    yield
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(False)
    signal.signal(signal.SIGINT, handler)


@pytest.fixture(autouse=True)
def registered():
    """Other tests of this process may have ended a cluster since the module was imported."""
    mallocgame.envs.rllib.register()


@pytest.fixture(scope="module")
def cluster():
    ray.init(
        "local",
        num_cpus=1,
        include_dashboard=False,
        logging_level=logging.ERROR,
        log_to_driver=False,
    )
    yield
    ray.shutdown()


def config(game: str, mode: str = "vector_entry_point", **settings: object) -> PPOConfig:
    return (
        PPOConfig()
        .environment("mallocgame", env_config={"program": SMALL, "game": game, **settings})
        .env_runners(num_env_runners=0, num_envs_per_env_runner=3, gym_env_vectorize_mode=mode)
        .rl_module(rl_module_spec=RLModuleSpec(module_class=MaskedModule, model_config=NETWORK))
        .debugging(seed=5)
    )


def module(env: MaskedEnv) -> MaskedModule:
    return MaskedModule(
        observation_space=env.observation_space, action_space=env.action_space, model_config=NETWORK
    )


def run_example(name: str, *arguments: object, monkeypatch, capsys) -> str:
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


@both_games
@pytest.mark.parametrize("observation", ["compact", "flat"])
def test_the_mask_stands_beside_what_the_game_shows(game, observation):
    theirs = mg.MallocGameEnv(SMALL, game=game, observation=observation)
    ours = MaskedEnv(SMALL, game=game, observation=observation)
    (shown, info), (seen, _) = theirs.reset(seed=3), ours.reset(seed=3)
    chance, over = np.random.default_rng(0), False
    while not over:
        assert ours.observation_space.contains(seen)
        np.testing.assert_array_equal(seen["observations"], shown)
        np.testing.assert_array_equal(seen["action_mask"], info["action_mask"])
        action = chance.choice(np.flatnonzero(seen["action_mask"]))
        shown, reward, over, _, info = theirs.step(action)
        seen, *others = ours.step(action)
        np.testing.assert_equal(others, [reward, over, False, info])
    assert not seen["action_mask"].any()
    again, _ = pickle.loads(pickle.dumps(ours)).reset(seed=3)
    assert again.keys() == {"observations", "action_mask"}


@both_games
def test_a_plain_loop_samples_the_same_episodes(game):
    def episodes(mode):
        runner = SingleAgentEnvRunner(config=config(game, mode, observation="flat"))
        assert isinstance(runner.env.unwrapped, MaskedVectorEnv) == (mode == "vector_entry_point")
        return runner.sample(num_timesteps=300)

    looped, stepped = episodes("sync"), episodes("vector_entry_point")
    assert len(looped) == len(stepped) > 3
    for one, other in zip(looped, stepped, strict=True):
        np.testing.assert_array_equal(one.actions, other.actions)
        np.testing.assert_array_equal(one.rewards, other.rewards)
        for part in ("observations", "action_mask"):
            np.testing.assert_array_equal(
                one.get_observations()[part], other.get_observations()[part]
            )
    # Episodes of RLlib are games: played again they end with the return that it saw.
    ended = next(one for one in stepped if one.is_terminated)
    state = mg.Game(mg.load_program(SMALL), game=game).initial_state()
    for action in ended.actions:
        state.apply(int(action))
    assert state.is_terminal()
    assert ended.get_return() == pytest.approx(1 - state.latency_ps / state.game.all_main_ps)


def test_each_episode_draws_one_of_several_programs():
    several = config("time", program=[SMALL, mg.load_program(OTHER)])
    lengths = {len(one) for one in SingleAgentEnvRunner(config=several).sample(num_episodes=12)}
    assert len(lengths) > 1


@both_games
def test_an_illegal_action_has_no_probability(game):
    env = MaskedEnv(SMALL, game=game)
    seen, _ = env.reset(seed=0)
    masks = np.stack([seen["action_mask"], np.zeros_like(seen["action_mask"])])
    batch = {
        "obs": {
            "observations": torch.from_numpy(np.stack([seen["observations"]] * 2)),
            "action_mask": torch.from_numpy(masks),
        }
    }
    network = module(env)
    for forward in (network.forward_inference, network.forward_exploration, network.forward_train):
        chances = forward(batch)["action_dist_inputs"].softmax(-1).detach().numpy()
        assert ((chances[0] > 0) == masks[0].astype(bool)).all()
        np.testing.assert_allclose(chances[1], 1 / env.action_space.n)  # The end of a game.
    assert batch["obs"].keys() == {"observations", "action_mask"}
    assert network.compute_values(batch).shape == (2,)


def test_a_module_is_restored(tmp_path):
    network = module(MaskedEnv(SMALL))
    network.save_to_path(tmp_path / "module")
    again = RLModule.from_checkpoint(tmp_path / "module")
    assert isinstance(again, MaskedModule) and again.observation_space == network.observation_space
    for name, weights in network.get_state().items():
        np.testing.assert_array_equal(again.get_state()[name], weights)


def test_bad_settings_are_told():
    with pytest.raises(mg.InvalidInputError, match="found 'dict', allowed: 'flat', 'compact'"):
        MaskedEnv(SMALL, observation="dict")
    with pytest.raises(mg.InvalidInputError, match="autoreset_mode: found 'SameStep', allowed: 'N"):
        MaskedVectorEnv(2, SMALL, autoreset_mode="SameStep")
    with pytest.raises(mg.InvalidInputError, match="no_program"):
        SingleAgentEnvRunner(config=config("time", program="no_program"))
    with pytest.raises(mg.InvalidInputError, match=r"found observations Box.*, allowed: a Dict"):
        MaskedModule(observation_space=gymnasium.spaces.Box(0, 1, (3,)))


@pytest.mark.parametrize(("game", "steps"), [("time", 2000), ("priority", 1000)])
def test_ppo_learns(cluster, monkeypatch, capsys, game, steps):
    program = "wavernn_64steps_b8.tpu_v4i"
    output = run_example(
        "rllib_ppo.py", program, steps, "--game", game, monkeypatch=monkeypatch, capsys=capsys
    )
    random = float(re.search(r"random (0\.\d+)", output)[1])
    returns = [
        float(one) for one in re.findall(r"after \d+ steps, \d+ s of one core: (\S+)", output)
    ]
    assert len(returns) == 10 and returns[-1] > random


def test_tune_tries_settings_on_several_programs(cluster, monkeypatch, capsys, tmp_path):
    pytest.importorskip("mallocgame._agents", reason="pip install 'mallocgame[agents]'")
    arguments = [tmp_path / "tuned", "--trials", 2, "--steps", 2, "--programs", SMALL, OTHER]
    arguments += ["--set", *texts(MUZERO)]
    output, again = (
        run_example("tune_muzero.py", *arguments, monkeypatch=monkeypatch, capsys=capsys)
        for _ in range(2)
    )
    found = re.search(
        r"^mean return (0\.\d+) by .*'learning_rate': \d.*\n.* unseen: 0\.\d+", output, re.M
    )
    assert float(found[1]) > 0 and found[0] in again
    assert len(list(tmp_path.glob("tuned/train_*/checkpoint_*/checkpoint.muzero"))) == 2
