"""MallocGameEnv: what Gymnasium asks of an environment, and that it is the game."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import mallocgame as mg

gymnasium = pytest.importorskip(
    "gymnasium", reason="Gymnasium isn't installed: pip install 'mallocgame[gym]'"
)

from gymnasium.utils.env_checker import check_env

from mallocgame.envs.gym import MallocGameEnv
from mallocgame.observation import access_features, action_features, layout, scalar_features

IDS = {"time": "mallocgame/MallocGame-v0", "priority": "mallocgame/PriorityGame-v0"}
PROGRAMS = [
    "wavernn_64steps_b8.tpu_v4i",
    "resnet50_b1.tpu_v4i_16mib",
    "gcn_dense_2048.tpu_v4i",
    "mlp_train_adam_b512.tpu_v5e",
    "muzero_unroll_b32.tpu_v4i",
]
SMALL = PROGRAMS[3]
NUM_ACTIONS = {"time": 4, "priority": 20}
both_games = pytest.mark.parametrize("kind", IDS)


def layout_of(kind: str, **settings: int) -> dict:
    return {part.name: part for part in layout(settings, kind)}


def random_action(mask: np.ndarray, chance: np.random.Generator) -> int:
    return int(chance.choice(np.flatnonzero(mask)))


def same(a, b) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return np.array_equal(a, b)


@pytest.mark.parametrize("observation", ["dict", "flat", "compact"])
@pytest.mark.parametrize("program", PROGRAMS)
@both_games
def test_the_checker_of_gymnasium_has_nothing_to_say(program, observation, kind):
    for render_mode in ("ansi", "rgb_array"):
        env = gymnasium.make(
            IDS[kind], program=program, observation=observation, render_mode=render_mode
        )
        assert env.unwrapped.game.kind == kind
        check_env(env.unwrapped)
        env.close()


@both_games
def test_the_checker_passes_with_several_programs(kind):
    check_env(gymnasium.make(IDS[kind], program=PROGRAMS, render_mode="ansi").unwrapped)


@pytest.mark.parametrize("first", ["mallocgame", "gymnasium"])
def test_importing_registers_without_importing_gymnasium(first):
    second = "gymnasium" if first == "mallocgame" else "mallocgame"
    code = (
        f"import {first}, importlib.util, sys\n"
        "assert importlib.util.find_spec('gymnasium') is not None\n"
        f"assert {first == 'gymnasium'} == ('gymnasium' in sys.modules)\n"
        f"import {second}\n"
        f"for name in {list(IDS.values())}:\n"
        "    assert gymnasium.spec(name).vector_entry_point == 'mallocgame.envs.vector:VectorEnv'\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=600)


@pytest.mark.parametrize(
    ("kind", "settings", "actions"),
    [
        ("time", {}, 4),
        ("time", {"actions": "paper"}, 3),
        ("priority", {}, 20),
        ("priority", {"candidates": 2}, 10),
    ],
)
@pytest.mark.parametrize("program", PROGRAMS)
def test_it_is_the_game(program, kind, settings, actions):
    env = gymnasium.make(IDS[kind], program=program, **settings)
    state = mg.Game(mg.load_program(program), game=kind, **settings).initial_state()
    chance = np.random.default_rng(0)
    observation, info = env.reset(seed=0)
    total, terminated = 0.0, False
    assert env.action_space.n == actions
    while not terminated:
        mask = info["action_mask"]
        assert np.array_equal(mask, state.legal_mask()) and np.array_equal(
            mask, env.unwrapped.action_masks()
        )
        assert mask.dtype == np.int8 and np.array_equal(mask, observation["action_mask"])
        assert np.array_equal(mask, observation["actions"][:, 0])
        assert env.observation_space.contains(observation)
        assert env.action_space.sample() in np.flatnonzero(mask)
        action = random_action(mask, chance)
        observation, reward, terminated, truncated, info = env.step(action)
        assert reward == state.apply(action) and not truncated
        assert list(info) == ["action_mask", "latency_ps", "program"]
        assert (info["latency_ps"], info["program"]) == (state.latency_ps, program)
        total += reward
    assert state.is_terminal() and not info["action_mask"].any()
    report = mg.simulate(env.unwrapped.game.program, env.unwrapped.state.plan())
    assert report.latency_ps == info["latency_ps"] == state.latency_ps
    assert total == pytest.approx(1 - report.latency_ps / report.all_main_ps, abs=1e-9)


@both_games
def test_flat_is_the_parts_one_behind_the_other(kind):
    environments = [
        MallocGameEnv(SMALL, observation=observation, game=kind)
        for observation in ("dict", "flat", "compact")
    ]
    chance = np.random.default_rng(1)
    observations, infos = zip(*(env.reset(seed=0) for env in environments), strict=True)
    compact = layout_of(kind, neighbours=0, ticks_back=0, ticks_ahead=0, address_cells=0)
    # Without neighbours the middle row of the accesses is left, or the candidates themselves.
    first, rows = ("accesses", slice(4, 5)) if kind == "time" else ("candidates", slice(0, 4))
    assert list(observations[0]) == list(layout_of(kind)) and list(compact) == [
        first,
        "actions",
        "scalars",
        "action_mask",
    ]
    terminated = False
    while not terminated:
        named, flat, short = observations
        assert np.array_equal(np.concatenate([part.ravel() for part in named.values()]), flat)
        for name, part in compact.items():
            ours = short[part.offset : part.offset + int(np.prod(part.shape))].reshape(part.shape)
            assert np.array_equal(ours, named[name][rows] if name == first else named[name]), name
        action = random_action(infos[0]["action_mask"], chance)
        observations, _, terminals, _, infos = zip(
            *(env.step(action) for env in environments), strict=True
        )
        terminated = terminals[0]


def test_features_say_what_the_program_says():
    env = MallocGameEnv(SMALL, neighbours=2)
    program, capacity = env.game.program, env.game.hardware.fast_bytes
    columns = {name: i for i, (name, _) in enumerate(access_features())}
    scalars = {name: i for i, (name, _) in enumerate(scalar_features())}
    chance = np.random.default_rng(2)
    observation, info = env.reset(seed=0)
    assert [f"is_{kind}" for kind in ("read", "update", "write", "loop_entry")] == [
        access_features()[i][0] for i in range(1, 5)
    ]
    terminated = False
    while not terminated:
        state = env.state
        access = program.accesses[state.current_access()]
        row = observation["accesses"][2]
        assert row[columns["present"]] == 1 and row[1 + access["kind"]] == 1 and row[1:5].sum() == 1
        assert row[columns["share"]] == np.float32(
            program.buffers["size_bytes"][access["buffer"]]
        ) / np.float32(capacity)
        assert row[columns["distance"]] == 0
        distances = observation["accesses"][:, columns["distance"]][
            observation["accesses"][:, 0] == 1
        ]
        assert (np.diff(distances) >= 0).all()
        saved = 1 - state.latency_ps / env.game.all_main_ps
        assert observation["scalars"][scalars["return"]] == pytest.approx(saved, abs=1e-6)
        plan = state.plan()
        now = int(access["tick"])
        taken = sum(
            int(program.buffers["size_bytes"][r["buffer"]])
            for r in plan.residences
            if r["begin"] <= now < r["end"]
        )
        # The agent's picture of now counts what is taken later too, and rounds up to the alignment.
        assert observation["scalars"][scalars["taken"]] >= taken / capacity - 1e-6
        assert observation["occupancy"][8].mean() == pytest.approx(
            observation["scalars"][scalars["taken"]], abs=1e-5
        )
        assert (np.diff(observation["occupancy"], axis=0) <= 1e-6).all()
        assert (observation["idle"][:, 1] <= observation["idle"][:, 0] + 1e-6).all()
        observation, _, terminated, _, info = env.step(random_action(info["action_mask"], chance))
    assert observation["scalars"][scalars["progress"]] == 1 and not observation["actions"].any()


def test_saved_is_what_a_copy_at_a_read_earns():
    env = MallocGameEnv(SMALL)
    saved = {name: i for i, (name, _) in enumerate(action_features())}["saved"]
    observation, info = env.reset(seed=0)
    seen, terminated = 0, False
    while not terminated:
        state = env.state
        is_read = env.game.program.accesses[state.current_access()]["kind"] == 0
        if info["action_mask"][mg.Action.COPY] and is_read:
            state.apply(mg.Action.COPY)
            # time(x) of the header, with its log2 that is linear between powers of two
            nanoseconds = 1 + abs(state.last_saved_ps) // 1000
            power = nanoseconds.bit_length() - 1
            expected = (power + nanoseconds / 2**power - 1) / 32
            assert observation["actions"][mg.Action.COPY][saved] == pytest.approx(
                np.copysign(expected, state.last_saved_ps), abs=1e-5
            )
            seen += nanoseconds > 1
        observation, _, terminated, _, info = env.step(int(np.flatnonzero(info["action_mask"])[-1]))
    assert seen > 3


def test_a_seed_makes_the_draw_of_programs():
    def episodes(env, seed: int) -> list[str]:
        env.reset(seed=seed)
        names = [env.game.program.name]
        for _ in range(11):
            env.reset()
            names.append(env.game.program.name)
        return names

    one, other = (
        MallocGameEnv(PROGRAMS, observation="compact"),
        MallocGameEnv(PROGRAMS, observation="compact"),
    )
    first = episodes(one, 7)
    assert episodes(other, 7) == first == episodes(one, 7)
    assert len(set(first)) > 2 and any(episodes(other, seed) != first for seed in (8, 9))
    unseeded = [MallocGameEnv(PROGRAMS, observation="compact") for _ in range(8)]
    draws = set()
    for env in unseeded:
        names = []
        for _ in range(6):
            env.reset()
            names.append(env.game.program.name)
        draws.add(tuple(names))
    assert len(draws) > 1


@both_games
def test_refused_steps_change_nothing(kind):
    env = MallocGameEnv(SMALL, game=kind)
    observation, info = env.reset(seed=0)
    for action in (-1, NUM_ACTIONS[kind], *np.flatnonzero(info["action_mask"] == 0)):
        with pytest.raises(mg.errors.InvalidActionError, match=r"legal|allowed"):
            env.step(int(action))
    with pytest.raises(
        mg.errors.InvalidActionError, match="action: found 'Copy', allowed: an integer"
    ):
        env.step("Copy")
    terminated = False
    while not terminated:
        _, _, terminated, _, _ = env.step(0)
    with pytest.raises(mg.errors.GameOverError):
        env.step(0)
    again, info = env.reset(seed=0)
    assert same(observation, again)


@pytest.mark.parametrize(
    "settings",
    [
        {"program": "resnet50_b1.tpu_v4"},
        {"observation": "pixels"},
        {"actions": "all"},
        {"game": "space"},
        {"game": "priority", "candidates": 52},
        {"neighbours": -1},
        {"ticks_per_column": 0},
        {"address_cells": 10**6},
        {"program": []},
        {"render_mode": "human"},
        {"hardware": "tpu_v9"},
    ],
)
def test_bad_settings(settings):
    with pytest.raises(mg.InvalidInputError, match=r"allowed|close|known|preset"):
        MallocGameEnv(**{"program": SMALL, **settings})


@both_games
def test_pictures(kind):
    env = MallocGameEnv(SMALL, render_mode="rgb_array", game=kind)
    env.reset(seed=0)
    empty = env.render()
    assert empty.shape == (256, 512, 3) and empty.dtype == np.uint8
    terminated = False
    while not terminated:
        mask = env.action_masks()
        # Of the priority game's actions one with a residence: Late, Early or Preload of the first
        # run.
        wanted = [a for a in np.flatnonzero(mask) if kind == "time" or a in (1, 2, 3)]
        _, _, terminated, _, _ = env.step(int(wanted[-1] if wanted else np.flatnonzero(mask)[0]))
    assert not np.array_equal(env.render(), empty) and (env.render() < 232).any()
    text = MallocGameEnv(SMALL, render_mode="ansi", game=kind)
    text.reset(seed=0)
    assert text.render() == text.state.to_string() and "legal" in text.render()


def test_other_hardware_and_settings_of_the_observation():
    env = MallocGameEnv(
        "resnet50_b1.tpu_v4i",
        hardware="tpu_v4i_16mib",
        neighbours=1,
        address_cells=10,
        ticks_back=3,
        ticks_ahead=5,
    )
    observation, _ = env.reset(seed=0)
    assert env.game.hardware.name == "tpu_v4i_16mib"
    assert observation["accesses"].shape == (3, len(access_features())) and observation[
        "occupancy"
    ].shape == (8, 10)
    assert observation["actions"].shape == (4, len(action_features())) and observation[
        "scalars"
    ].shape == (len(scalar_features()),)


def test_observations_stay_as_they_were():
    env = MallocGameEnv(SMALL)
    first, info = env.reset(seed=0)
    kept = copy.deepcopy(first)
    for _ in range(5):
        _, _, _, _, info = env.step(int(np.flatnonzero(info["action_mask"])[-1]))
    assert same(first, kept)


def test_the_action_space_survives_copying():
    env = MallocGameEnv(SMALL)
    for space in (copy.deepcopy(env.action_space), pickle.loads(pickle.dumps(env.action_space))):
        assert space == env.action_space and space.n == 4
