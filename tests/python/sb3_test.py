"""SB3VecEnv: what Stable-Baselines3's own DummyVecEnv makes of our single environments."""

import numpy as np
import pytest

import mallocgame as mg

pytestmark = pytest.mark.full

pytest.importorskip(
    "sb3_contrib", reason="sb3_contrib isn't installed: pip install 'mallocgame[rl]'"
)

from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from mallocgame.envs.sb3 import SB3VecEnv

LEVELS = mg.levels("validation", scored=True)[:2]


def test_it_does_what_dummy_vec_env_does():
    settings = {"observation": "compact", "game": "priority"}
    theirs = DummyVecEnv([lambda: Monitor(mg.MallocGameEnv(LEVELS, **settings)) for _ in range(3)])
    ours = SB3VecEnv(3, LEVELS, **settings)
    theirs.seed(4)
    ours.seed(4)
    assert (theirs.reset() == ours.reset()).all()
    assert [info["program"] for info in theirs.reset_infos] == [
        info["program"] for info in ours.reset_infos
    ]
    chance = np.random.default_rng(0)
    ends = 0
    for _ in range(200):
        masks = get_action_masks(ours)
        assert (masks == get_action_masks(theirs)).all()
        actions = np.array([chance.choice(np.flatnonzero(mask)) for mask in masks])
        expected, found = theirs.step(actions), ours.step(actions)
        for a, b in zip(expected[:3], found[:3], strict=True):
            assert a.dtype == b.dtype and (a == b).all()
        for one, other, ended in zip(expected[3], found[3], expected[2], strict=True):
            if not ended:
                continue
            ends += 1
            assert (one["terminal_observation"] == other["terminal_observation"]).all()
            assert one["latency_ps"] == other["latency_ps"]
            assert one["program"] == other["program"]
            assert one["episode"]["l"] == other["episode"]["l"]
            assert one["episode"]["r"] == pytest.approx(other["episode"]["r"], abs=1e-5)
    assert ends > 5


def test_what_libraries_ask_of_it():
    env = SB3VecEnv(4, LEVELS, render_mode="rgb_array")
    env.reset()
    assert is_masking_supported(env) and get_action_masks(env).shape == (4, 4)
    assert env.env_is_wrapped(Monitor) == [True] * 4
    assert env.get_attr("render_mode", [0, 2]) == ["rgb_array"] * 2
    assert [state.game.kind for state in env.env_method("state", indices=[1])] == ["time"]
    assert env.get_images()[0].ndim == 3
    with pytest.raises(mg.InvalidInputError, match="set_attr: 'copy'"):
        env.set_attr("copy", True)
    with pytest.raises(AttributeError, match="allowed: action_masks, state"):
        env.env_method("undo")
    with pytest.raises(mg.InvalidInputError, match="autoreset_mode"):
        SB3VecEnv(2, LEVELS, autoreset_mode="NextStep")
    env.close()


def test_maskable_ppo_learns_in_it():
    env = SB3VecEnv(8, LEVELS, game="priority", reward="score")
    model = MaskablePPO(
        "MlpPolicy", env, n_steps=16, batch_size=64, gamma=1.0, device="cpu", seed=0
    )
    model.learn(512)
    observations = env.reset()
    actions, _ = model.predict(observations, action_masks=get_action_masks(env))
    assert get_action_masks(env)[np.arange(8), actions].all()
