"""Everything that environments take as program=: names, levels, programs, games, lists of them."""

import dataclasses
import json
import pickle

import numpy as np
import pytest

import mallocgame as mg
from mallocgame import games
from mallocgame.experiments import score
from mallocgame.playables import played

gymnasium = pytest.importorskip(
    "gymnasium", reason="Gymnasium isn't installed: pip install 'mallocgame[gym]'"
)

from gymnasium.vector import AutoresetMode

NAME = "wavernn_64steps_b8.tpu_v4i"
LEVELS = mg.levels("validation", scored=True)[:3]


def first(info) -> int:
    return int(np.flatnonzero(info["action_mask"])[0])


def played_out(env, seed: int = 0) -> tuple[float, dict]:
    """Plays one game at random; returns its return and its last info."""
    _, info = env.reset(seed=seed)
    total, ended = 0.0, False
    chance = np.random.default_rng(seed)
    while not ended:
        action = chance.choice(np.flatnonzero(info["action_mask"]))
        _, reward, ended, _, info = env.step(int(action))
        total += reward
    return total, info


def test_the_fine_game():
    env = mg.MallocGameEnv(LEVELS[0], observation="compact", game=mg.FINE_GAME)
    game = env.unwrapped.game
    assert game.options == mg.FINE_GAME
    named = gymnasium.make("mallocgame/FineGame-v0", program=LEVELS[0].name)
    assert named.unwrapped.game.options == mg.FINE_GAME and named.action_space.n == 5
    assert LEVELS[0].game("fine").options == mg.Game(game.program, game="fine").options
    of_four = mg.Game(game.program, game="fine", candidates=4)
    assert of_four.options == dataclasses.replace(mg.FINE_GAME, candidates=4)
    # The same is asked in the same order of a game that is made by hand.
    other = LEVELS[0].game(
        game="priority", candidates=1, min_buffer_bytes=512, bytes_weight=0.0, time_weight=0.5
    )
    states = [game.initial_state(), other.initial_state()]
    while not states[0].is_terminal():
        assert states[0].asked_about() == states[1].asked_about()
        for state in states:
            state.apply(state.legal_actions()[-1])
    assert states[1].is_terminal() and env.observation_space.shape == (128,)


@pytest.mark.parametrize("by", ["level", "name", "game"])
def test_a_level_has_its_own_hardware(by):
    level = next(one for one in mg.levels("train") if one.name.endswith("@c20b50"))
    given = {"level": level, "name": level.name, "game": level.game()}[by]
    env = gymnasium.make("mallocgame/MallocGame-v0", program=given)
    _, info = env.reset(seed=0)
    assert env.unwrapped.game.hardware == level.hardware()
    expected = level.load_program().name if by == "game" else level.name
    assert info["program"] == expected


def test_levels_programs_and_games_are_mixed():
    several = [NAME, LEVELS[0], LEVELS[1].name, mg.Game(mg.load_program(NAME))]
    found = played(several)
    assert [one.name for one in found] == [NAME, LEVELS[0].name, LEVELS[1].name, found[3].name]
    env = mg.VectorEnv(4, several, assign="fixed")
    _, info = env.reset(seed=0)
    assert list(info["program"]) == [one.name for one in found]


def test_the_game_of_the_name_is_the_priority_game_too():
    env = gymnasium.make("mallocgame/PriorityGame-v0", program=LEVELS[0].name)
    assert env.unwrapped.game.kind == "priority"
    assert env.unwrapped.game.hardware == LEVELS[0].hardware()
    given = LEVELS[0].game(game="priority", candidates=3)
    env = gymnasium.make("mallocgame/PriorityGame-v0", program=given)
    assert env.action_space.n == 15


@pytest.mark.parametrize(
    ("program", "settings", "message"),
    [
        (LEVELS[0], {"hardware": "tpu_v5e"}, "but level .* has its own"),
        (LEVELS[0].name, {"hardware": "tpu_v5e"}, "but level .* has its own"),
        (LEVELS[0].game(), {"hardware": "tpu_v5e"}, "hardware: found 'tpu_v5e', but the Game"),
        (LEVELS[0].game(), {"candidates": 5}, "candidates: found 5 for the time game"),
        (LEVELS[0].game(), {"game": "priority"}, "game: found 'priority', but the Game"),
        (
            LEVELS[0].game(mg.PriorityGame()),
            {"game": mg.PriorityGame(candidates=5)},
            "candidates: found 5, but the Game",
        ),
        ("perceptron_999.tpu_v5e@c20", {}, "neither a bundled program nor a file"),
        (NAME, {"reward": "score"}, "'score' is of levels, found"),
        (NAME, {"reward": "points"}, "reward: found 'points'"),
    ],
)
def test_what_would_be_forgotten_is_refused(program, settings, message):
    for make in (mg.MallocGameEnv, lambda *a, **s: mg.VectorEnv(2, *a, **s)):
        with pytest.raises(mg.InvalidInputError, match=message):
            make(program, **settings)


def test_levels_of_train_have_something_to_decide_and_figures():
    found = mg.levels("train")
    assert all(one.greedy_ps and one.best_known_ps for one in found)
    assert all(one.best_known_ps <= one.greedy_ps for one in found)
    for level in found[:: len(found) // 40]:
        game = level.game()
        assert not game.initial_state().is_terminal()
        assert mg.solve(game, "greedy", seconds=0).report.latency_ps == level.greedy_ps
    scored = mg.levels("train", scored=True)
    assert 0 < len(scored) < len(found) and all(one.has_score for one in scored)


@pytest.mark.parametrize("game", ["time", "priority"])
def test_a_return_is_the_score(game):
    env = mg.MallocGameEnv(LEVELS, reward="score", game=game, observation="compact")
    names = {level.name: level for level in LEVELS}
    for seed in range(6):
        total, info = played_out(env, seed)
        assert total == pytest.approx(score(names[info["program"]], info["latency_ps"]))


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_vectors_have_the_same_scores_and_names(mode):
    settings = {"reward": "score", "observation": "compact"}
    theirs = gymnasium.vector.SyncVectorEnv(
        [lambda: mg.MallocGameEnv(LEVELS, **settings) for _ in range(5)], autoreset_mode=mode
    )
    ours = mg.VectorEnv(5, LEVELS, autoreset_mode=mode, **settings)
    _, expected = theirs.reset(seed=1)
    _, found = ours.reset(seed=1)
    assert list(expected["program"]) == list(found["program"])
    chance = np.random.default_rng(0)
    ends = 0
    for step in range(400):
        if step == 200:
            ours = pickle.loads(pickle.dumps(ours))
        masks = ours.action_masks()
        actions = np.array([chance.choice(np.flatnonzero(m)) if m.any() else 0 for m in masks])
        _, rewards, ended, _, expected = theirs.step(actions)
        _, others, _, _, found = ours.step(actions)
        assert rewards == pytest.approx(others), step
        assert ("program" in expected) == ("program" in found)
        if "program" in found:
            assert list(expected["program"]) == list(found["program"]), step
            assert (expected["_program"] == found["_program"]).all()
        if "final_info" in found:
            finals = (expected["final_info"]["program"], found["final_info"]["program"])
            assert list(finals[0]) == list(finals[1])
        ends += ended.sum()
        if mode == AutoresetMode.DISABLED and ended.any():
            for env in (theirs, ours):
                env.reset(options={"reset_mask": ended.copy()})
    assert ends > 5


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_no_mask_is_ever_empty(mode):
    env = mg.VectorEnv(6, LEVELS, autoreset_mode=mode, observation="compact")
    _, info = env.reset(seed=0)
    env.action_space.seed(0)
    ends = 0
    for _ in range(300):
        assert info["action_mask"].any(axis=1).all()
        assert env.action_masks().any(axis=1).all()
        _, _, ended, _, info = env.step(env.action_space.sample())
        ends += ended.sum()
    assert ends > 5


def test_samples_take_masks_as_arrays():
    env = mg.MallocGameEnv(LEVELS[0])
    env.reset(seed=0)
    env.action_space.seed(0)
    masks = env.action_masks()
    assert masks.dtype == np.bool_
    assert {int(env.action_space.sample(masks)) for _ in range(50)} <= set(np.flatnonzero(masks))
    many = mg.VectorEnv(3, LEVELS)
    _, info = many.reset(seed=0)
    many.action_space.seed(0)
    for mask in (info["action_mask"], many.action_masks(), None):
        for _ in range(30):
            actions = many.action_space.sample(mask)
            assert many.action_masks()[np.arange(3), actions].all()
    with pytest.raises(mg.InvalidInputError, match=r"mask: found .*, allowed: an array of shape"):
        many.action_space.sample(np.ones((2, 4)))


def test_an_environment_is_recovered_from_its_spec():
    env = gymnasium.make("mallocgame/PriorityGame-v0", program=LEVELS[0].name, observation="flat")
    text = env.spec.to_json()
    json.loads(text)
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(text))
    assert again.unwrapped.game.hardware == env.unwrapped.game.hardware
    assert again.observation_space == env.observation_space


def test_openspiel_plays_levels():
    pyspiel = pytest.importorskip("pyspiel", reason="open_spiel isn't installed")
    import mallocgame.envs.openspiel  # noqa: F401

    game = pyspiel.load_game("mallocgame", {"program": LEVELS[0].name})
    assert game.game.hardware == LEVELS[0].hardware()


def test_small_buffers_are_asked_about_where_they_count():
    """In levels only if that is said, because their scores count from greedy without them."""
    small = mg.load_program("wavernn_64steps_b8.tpu_v6e")
    for kind in ("time", "priority", "schedule"):
        assert mg.Game(small, game=kind).min_buffer_bytes == 512
        assert mg.Game(small, game=kind, min_buffer_bytes=4096).min_buffer_bytes == 4096
    assert mg.Game(mg.load_program("wavernn_64steps_b8.tpu_v4i")).min_buffer_bytes == 16384
    level = next(one for one in mg.levels("validation") if one.name == "mixer_002.tpu_v6e@c40")
    assert mg.Game(level.load_program(), hardware=level.hardware()).min_buffer_bytes == 512
    (by_name,) = played(level.name)
    for game in (level.game(), level.game(game="priority"), by_name.game):
        assert game.min_buffer_bytes == 16384
    assert level.game(min_buffer_bytes=512).min_buffer_bytes == 512


def test_the_default_time_game_reaches_what_xla_reaches():
    program = mg.load_program("wavernn_64steps_b8.tpu_v6e")
    xla_ps = mg.simulate(program, program.xla_plan).latency_ps
    with_large = mg.solve(mg.Game(program, min_buffer_bytes=16384), "exact", seconds=0)
    assert with_large.status == "optimal" and with_large.report.latency_ps > xla_ps
    assert mg.solve(program, "greedy", seconds=0).report.latency_ps < 0.7 * xla_ps


def test_a_game_without_a_program_knows_the_version_of_its_rules():
    versions = {name: game.rules_version for name, game in games.GAMES.items()}
    assert versions == {
        "time": mg.actions.RULES_VERSION,
        "priority": mg.actions.PRIORITY_RULES_VERSION,
        "schedule": mg.actions.SCHEDULE_RULES_VERSION,
    }
