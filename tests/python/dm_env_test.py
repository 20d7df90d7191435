"""The dm_env adapter: the same games as the Gymnasium environment.

The library's own test of its contract runs, too.
"""

import unittest

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="Gymnasium isn't installed: pip install 'mallocgame[gym]'")
dm_env = pytest.importorskip(
    "dm_env", reason="dm_env isn't installed: pip install 'mallocgame[rl]'"
)
test_utils = pytest.importorskip("dm_env.test_utils")

from mallocgame.envs.dm_env import Environment
from mallocgame.envs.gym import MallocGameEnv

PROGRAM = "wavernn_64steps_b8.tpu_v4i"


class TestContract(test_utils.EnvironmentTestMixin, unittest.TestCase):
    observation, game = "dict", "time"

    def make_object_under_test(self):
        return Environment(PROGRAM, observation=self.observation, game=self.game)

    def make_action_sequence(self):
        # Drop, or Skip for the first candidate, is always legal; longer than two games.
        for _ in range(2 * self.environment.env.game.max_decisions + 4):
            yield 0


class TestFlatContract(TestContract):
    observation = "flat"


class TestOrderContract(TestContract):
    game = "priority"


@pytest.mark.parametrize("game", ["time", "priority"])
def test_plays_the_same_games(game):
    programs, chance = [PROGRAM, "gcn_dense_2048.tpu_v4i"], np.random.default_rng(0)
    ours, theirs = Environment(programs, seed=7, game=game), MallocGameEnv(programs, game=game)
    for episode in range(6):
        step = ours.reset()
        observation, info = theirs.reset(seed=7 if episode == 0 else None)
        assert step.first()
        terminated = False
        while not terminated:
            np.testing.assert_equal(step.observation, observation)
            action = chance.choice(np.flatnonzero(step.observation["action_mask"]))
            step = ours.step(action)
            observation, reward, terminated, _, info = theirs.step(action)
            assert (
                step.reward == reward
                and step.last() == terminated
                and step.discount == 1 - terminated
            )
        assert ours.env.state.latency_ps == info["latency_ps"]


def test_the_former_name_is_the_same_module():
    import mallocgame.dm_env

    assert mallocgame.dm_env.Environment is Environment
