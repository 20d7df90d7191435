"""VectorEnv: step by step what Gymnasium's own SyncVectorEnv makes of our single environments."""

import numpy as np
import pytest

import mallocgame as mg

gymnasium = pytest.importorskip(
    "gymnasium", reason="Gymnasium isn't installed: pip install 'mallocgame[gym]'"
)

from gymnasium.vector import AutoresetMode, SyncVectorEnv

from mallocgame.envs.gym import MallocGameEnv
from mallocgame.envs.vector import VectorEnv

PROGRAMS = ["wavernn_64steps_b8.tpu_v4i", "gcn_dense_2048.tpu_v4i", "mlp_train_adam_b512.tpu_v5e"]
LOADED = [mg.load_program(name) for name in PROGRAMS]


def assert_same(a, b, where="") -> None:
    assert type(a) is type(b), where
    if isinstance(a, dict):
        assert a.keys() == b.keys(), where
        for key in a:
            assert_same(a[key], b[key], f"{where}.{key}")
    elif isinstance(a, tuple) or (isinstance(a, np.ndarray) and a.dtype == object):
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_same(x, y, f"{where}[{i}]")
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype and a.shape == b.shape, (
            where,
            a.dtype,
            b.dtype,
            a.shape,
            b.shape,
        )
        assert np.array_equal(a, b), where
    else:
        assert a == b, where


def random_actions(masks: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """A legal action each; 0 where the game is over."""
    return np.array(
        [chance.choice(np.flatnonzero(mask)) if mask.any() else 0 for mask in masks], np.int64
    )


def sync(
    observation: str, mode: AutoresetMode, count: int, fixed: bool = False, **settings
) -> SyncVectorEnv:
    def make(i: int):
        program = LOADED[i % len(LOADED)] if fixed else LOADED
        return lambda: MallocGameEnv(program, observation=observation, **settings)

    return SyncVectorEnv([make(i) for i in range(count)], autoreset_mode=mode)


@pytest.mark.parametrize("observation", ["dict", "compact"])
@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize(
    ("threads", "copies", "fixed"), [(1, True, False), (3, True, True), (2, False, False)]
)
@pytest.mark.parametrize("game", ["time", "priority"])
def test_it_does_what_sync_vector_env_does(observation, mode, threads, copies, fixed, game):
    count = 7
    theirs = sync(observation, mode, count, fixed, game=game)
    ours = VectorEnv(
        count,
        LOADED,
        observation=observation,
        autoreset_mode=mode,
        threads=threads,
        copy=copies,
        assign="fixed" if fixed else "drawn",
        game=game,
    )
    assert ours.single_observation_space == theirs.single_observation_space
    assert ours.observation_space == theirs.observation_space
    assert (
        ours.action_space == theirs.action_space
        and ours.single_action_space == theirs.single_action_space
    )
    assert ours.metadata["autoreset_mode"] == theirs.metadata["autoreset_mode"] == mode
    chance = np.random.default_rng(0)
    assert_same(theirs.reset(seed=5), ours.reset(seed=5), "reset")
    masks = ours.action_masks()
    ends = 0
    for step in range(150):
        actions = random_actions(masks, chance)
        expected, found = theirs.step(actions), ours.step(actions)
        if mode == AutoresetMode.NEXT_STEP:  # Ours says what to do at an end: anything.
            expected[4]["action_mask"][expected[2], 0] = 1
        assert_same(expected, found, f"step {step}")
        ends += expected[2].sum()
        if mode == AutoresetMode.DISABLED and expected[2].any():
            again = expected[2].copy()
            assert_same(
                theirs.reset(options={"reset_mask": again.copy()}),
                ours.reset(options={"reset_mask": again}),
                f"reset at {step}",
            )
        masks = ours.action_masks()
        if step == 100:
            assert_same(
                theirs.reset(seed=list(range(count))),
                ours.reset(seed=list(range(count))),
                "reset with seeds",
            )
            masks = ours.action_masks()
    assert ends > 10


def test_threads_make_no_difference():
    batches = [
        VectorEnv(300, LOADED, observation="compact", threads=threads, autoreset_mode="SameStep")
        for threads in (0, 1, 5)
    ]
    assert batches[1]._batch.threads == 1 and batches[2]._batch.threads == 5
    chance = np.random.default_rng(3)
    resets = [batch.reset(seed=1) for batch in batches]
    for other in resets[1:]:
        assert_same(resets[0], other)
    for _ in range(60):
        actions = random_actions(batches[0].action_masks(), chance)
        steps = [batch.step(actions) for batch in batches]
        for other in steps[1:]:
            assert_same(steps[0], other)


@pytest.mark.parametrize(
    ("name", "game"),
    [("mallocgame/MallocGame-v0", "time"), ("mallocgame/PriorityGame-v0", "priority")],
)
def test_make_vec(name, game):
    env = gymnasium.make_vec(
        name,
        num_envs=3,
        vectorization_mode="vector_entry_point",
        program=PROGRAMS[1],
        observation="flat",
    )
    assert isinstance(env, VectorEnv) and env.reset(seed=0)[0].shape == env.observation_space.shape
    env.close()
    theirs = gymnasium.make_vec(name, num_envs=3, vectorization_mode="sync", program=PROGRAMS[1])
    ours = mg.VectorEnv(3, PROGRAMS[1], game=game)
    assert_same(theirs.reset(seed=1), ours.reset(seed=1))


@pytest.mark.parametrize("threads", [1, 4])
def test_one_bad_environment_among_many(threads):
    env = VectorEnv(64, PROGRAMS[2], observation="compact", threads=threads)
    twin = VectorEnv(64, PROGRAMS[2], observation="compact", threads=1)
    _, info = env.reset(seed=0)
    twin.reset(seed=0)
    chance = np.random.default_rng(0)
    for _ in range(20):
        actions = random_actions(info["action_mask"], chance)
        for wrong in (np.flatnonzero(info["action_mask"][37] == 0).tolist() or [4]) + [
            -1,
            4,
            2**40,
        ]:
            bad = actions.copy()
            bad[37] = wrong
            with pytest.raises(mg.errors.InvalidActionError, match="environment 37: "):
                env.step(bad)
        found = env.step(actions)
        assert_same(twin.step(actions), found)
        info = found[-1]


def test_a_step_after_the_end():
    env = VectorEnv(2, PROGRAMS[0], autoreset_mode="Disabled")
    env.reset(seed=0)
    terminated = np.zeros(2, np.bool_)
    while not terminated.any():
        _, _, terminated, _, _ = env.step(np.zeros(2, np.int64))
    with pytest.raises(mg.errors.GameOverError, match="environment 0"):
        env.step(np.zeros(2, np.int64))
    env.reset(options={"reset_mask": terminated})
    env.step(np.zeros(2, np.int64))


@pytest.mark.parametrize(
    "actions",
    [
        np.zeros(3, np.int64),
        np.zeros(4),
        np.zeros((4, 1), np.int64),
        [0, 0, 0, "0"],
        np.zeros(4, np.bool_),
        None,
    ],
)
def test_wrong_batches_of_actions(actions):
    env = VectorEnv(4, PROGRAMS[0])
    env.reset(seed=0)
    with pytest.raises(
        mg.InvalidInputError, match=r"actions: found .*allowed: integers of shape \(4,\)"
    ):
        env.step(actions)
    for dtype in (np.int32, np.uint8, np.int64):
        env.step(np.zeros(8, dtype)[::2])


@pytest.mark.parametrize(
    "settings",
    [
        {"num_envs": 0},
        {"num_envs": 2**21},
        {"threads": -1},
        {"threads": 2000},
        {"assign": "cycled"},
        {"program": "wavernn"},
        {"observation": "none"},
        {"render_mode": "human"},
    ],
)
def test_bad_settings(settings):
    with pytest.raises(mg.InvalidInputError, match=r"allowed|close"):
        VectorEnv(**{"num_envs": 2, "program": PROGRAMS[0], **settings})


def test_bad_resets():
    env = VectorEnv(3, PROGRAMS[0])
    with pytest.raises(mg.InvalidInputError):
        env.reset(seed=[1, 2])
    env.reset(seed=0)
    for mask in (np.ones(2, np.bool_), np.ones(3), [True] * 3):
        with pytest.raises(mg.InvalidInputError, match=r"which|reset_mask"):
            env.reset(options={"reset_mask": mask})


def test_pictures_and_states():
    env = VectorEnv(2, PROGRAMS[0], render_mode="rgb_array")
    env.reset(seed=0)
    assert [frame.shape for frame in env.render()] == [(256, 512, 3)] * 2
    assert env.state(1).num_decisions == 0
    with pytest.raises(IndexError):
        env.state(2)


def test_observations_stay_as_they_were_unless_shared():
    for copies in (True, False):
        env = VectorEnv(2, PROGRAMS[0], observation="compact", copy=copies)
        first, info = env.reset(seed=0)
        kept = first.copy()
        second = env.step(random_actions(info["action_mask"], np.random.default_rng(0)))[0]
        assert np.array_equal(first, kept) == copies and (second is first) != copies
