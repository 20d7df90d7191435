"""Wrong arguments are refused: by entry points in words, else by pybind11, with the signature."""

import numpy as np
import pytest

import mallocgame as mg
from mallocgame import _arguments, _core, mcts

PROGRAM = "mlp_train_adam_b512.tpu_v4i"
FAR = 2**70


@pytest.fixture(scope="module")
def program():
    return mg.load_program(PROGRAM)


@pytest.fixture(scope="module")
def game(program):
    return mg.Game(program)


def refused(call, *words, error=mg.InvalidInputError):
    """The message of a refusal, which has these words and nothing of pybind11's or NumPy's."""
    with pytest.raises(error) as told:
        call()
    message = str(told.value)
    for word in (*words, "found", "allowed"):
        assert word in message
    for foreign in ("incompatible", "supported", "Invoked", "SupportsInt", "_core", "::"):
        assert foreign not in message
    return message


def refused_by_pybind11(call, *words):
    """Its TypeError names the arguments and their types, shows the call, and no type of C++."""
    with pytest.raises(TypeError) as told:
        call()
    for word in (*words, "supported", "Invoked with"):
        assert word in str(told.value)
    assert "::" not in str(told.value)


NO_COUNT = (1.25, float("nan"), None, "3", False, np.float64(2), np.array([2]), [2], b"2", 1j)


@pytest.mark.parametrize("count", [*NO_COUNT, -3, 0, 2**20 + 1, 2**31, FAR, np.int8(-1)])
def test_numbers_of_environments(count):
    pytest.importorskip("gymnasium")
    refused(lambda: mg.VectorEnv(count, PROGRAM), "num_envs")


@pytest.mark.parametrize("count", [*NO_COUNT, -1, 1025, 2**31, FAR])
def test_numbers_of_threads(count):
    pytest.importorskip("gymnasium")
    refused(lambda: mg.VectorEnv(2, PROGRAM, threads=count), "threads")


def test_integers_of_numpy_are_counts():
    pytest.importorskip("gymnasium")
    for count in (np.int16(2), np.uint64(2), np.array(2)):
        envs = mg.VectorEnv(count, PROGRAM, threads=count)
        assert envs.num_envs == 2 and type(envs.num_envs) is int
        assert len(envs.reset(seed=0)[1]["action_mask"]) == 2


NO_SEED = (0.5, -2, 2**64, FAR, "s", True, b"", {}, np.float32(1), np.array([1, 2, 3]))


@pytest.mark.parametrize("seed", NO_SEED)
def test_seeds(seed, program):
    gymnasium = pytest.importorskip("gymnasium")
    vector = mg.VectorEnv(2, PROGRAM)
    env = gymnasium.make("mallocgame/MallocGame-v0", program=PROGRAM)
    placed = gymnasium.make("mallocgame/Placement-v0", program=PROGRAM)
    for one in (vector, env, env.unwrapped, placed):
        refused(lambda one=one: one.reset(seed=seed), "seed")
    if (dm_env := pytest.importorskip("dm_env")) is not None:
        from mallocgame.envs.dm_env import Environment

        assert dm_env is not None
        refused(lambda: Environment(PROGRAM, seed=seed), "seed")
    refused(lambda: mg.solve(program, "greedy", seed=seed), "seed")
    if not isinstance(seed, bool | np.float32):  # which pybind11 takes as integers
        refused_by_pybind11(lambda: mg.Game(program, seed=seed), "seed")
    if not isinstance(seed, bool | np.float32 | np.ndarray):  # or as one seed for each root
        refused_by_pybind11(lambda: mcts.search(1, 4).run(_Nothing(), seed=seed), "seed")


class _Nothing:
    num_actions = 4


def test_lists_of_seeds():
    pytest.importorskip("gymnasium")
    envs = mg.VectorEnv(3, PROGRAM)
    assert "seed[1]" in refused(lambda: envs.reset(seed=[1, 1.5, 2]))
    assert "seed[2]" in refused(lambda: envs.reset(seed=(1, None, -1)))
    refused(lambda: envs.reset(seed=[1, 2]), "3")
    refused(lambda: envs.reset(seed=np.zeros((3, 1), np.int64)), "seed[0]")
    first = envs.reset(seed=[5, 6, 7])[1]["action_mask"].tolist()
    for seeds in (np.array([5, 6, 7]), (np.int8(5), 6, np.uint64(7)), 5, np.int64(5)):
        assert envs.reset(seed=seeds)[1]["action_mask"].tolist() == first
    envs.reset(seed=[None, 2**64 - 1, None])


NO_ACTION = (np.array([1]), 0.0, float("nan"), None, "Drop", [0], True, np.zeros((1, 1), int), b"0")
NOT_AN_ACTION = (-1, 4, 2**31, FAR, -FAR, np.int8(-3))


@pytest.mark.parametrize("action", [*NO_ACTION, *NOT_AN_ACTION])
def test_actions(action, game):
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("mallocgame/MallocGame-v0", program=PROGRAM).unwrapped
    env.reset(seed=0)
    state = game.initial_state()
    for call in (env.step, state.apply):
        refused(lambda call=call: call(action), "action", error=mg.errors.InvalidActionError)
    assert state.num_decisions == env.state.num_decisions == 0
    refused(lambda: mg.record(game, [action]), "action")


@pytest.mark.parametrize("action", [*NO_ACTION, *NOT_AN_ACTION])
def test_actions_of_adapters(action):
    pytest.importorskip("dm_env")
    from mallocgame.envs.dm_env import Environment

    timed = Environment(PROGRAM)
    timed.reset()
    refused(lambda: timed.step(action), "action", error=mg.errors.InvalidActionError)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("action", [*NO_ACTION, *NOT_AN_ACTION])
def test_actions_of_openspiel(action):
    pytest.importorskip("pyspiel")
    from mallocgame.envs.openspiel import MallocGame

    state = MallocGame({"program": PROGRAM}).new_initial_state()
    refused(lambda: state.apply_action(action), "action", error=mg.errors.InvalidActionError)
    assert state.history() == [] and state.state.num_decisions == 0
    state.apply_action(np.int64(state.legal_actions()[0]))


def test_integers_of_numpy_are_actions(game):
    for action in (0, np.int8(0), np.uint64(0), np.array(0), np.array(0, np.uint8)):
        state = game.initial_state()
        state.apply(action)
        assert state.actions.tolist() == [0]


@pytest.mark.parametrize(
    "actions",
    [
        [0, None],
        [0, [0]],
        [0.0, 0.0],
        [np.nan, 0],
        [True, False],
        [0, FAR],
        ["0", "0"],
        np.zeros((2, 1), np.int32),
        np.zeros(2, "M8[s]"),
        0,
        None,
        "00",
        {},
    ],
)
def test_batches_of_actions(actions):
    pytest.importorskip("gymnasium")
    envs = mg.VectorEnv(2, PROGRAM)
    envs.reset(seed=0)
    refused(lambda: envs.step(actions), "actions")
    envs.step([np.int8(0), np.array(0)])


@pytest.mark.parametrize("mask", [[True, True], np.ones(2), np.ones(3, bool), 1, "11"])
def test_masks_of_resets(mask):
    pytest.importorskip("gymnasium")
    envs = mg.VectorEnv(2, PROGRAM)
    envs.reset(seed=0)
    refused(lambda: envs.reset(options={"reset_mask": mask}), "options['reset_mask']")


@pytest.mark.parametrize("options", [3, "reset_mask", [1], True])
def test_options_of_resets(options):
    gymnasium = pytest.importorskip("gymnasium")
    placed = gymnasium.make("mallocgame/Placement-v0", program=PROGRAM).unwrapped
    for env in (mg.VectorEnv(2, PROGRAM), mg.MallocGameEnv(PROGRAM), placed):
        refused(lambda env=env: env.reset(options=options), "options")


@pytest.mark.parametrize("levels", ["map", None, 3, "float", "short", "high", "negative", "rows"])
def test_maps(levels):
    pytest.importorskip("gymnasium")
    env = mg.PlacementEnv(PROGRAM)
    env.reset()
    good = np.zeros(env.action_space.shape, np.int64)
    given = {
        "float": good / 1,
        "short": good[:-1],
        "high": good + len(env.placement.level_names),
        "negative": good - 1,
        "rows": good.reshape(-1, 2),
    }.get(levels, levels)
    refused(lambda: env.step(given), "action", error=mg.errors.InvalidActionError)
    for dtype in (np.uint8, np.int64):
        env.step(good.astype(dtype))
        env.reset()
    env.step(good.tolist())


SETTINGS = [
    {"program": 7},
    {"program": None},
    {"program": [PROGRAM, 7]},
    {"program": []},
    {"hardware": 7},
    {"hardware": "tpu_v0"},
    {"game": 7},
    {"game": "chess"},
    {"observation": 7},
    {"observation": None},
    {"observation": ["flat"]},
    {"observation": np.zeros(3)},
    {"actions": 7},
    {"render_mode": 7},
    {"candidates": "4"},
    {"candidates": 2**40},
    {"neighbours": 0.5},
    {"neighbours": FAR},
    {"address_cells": -1},
    {"min_buffer_bytes": 0.5},
    {"min_buffer_bytes": "16 KiB"},
    {"keep_free": "half"},
    {"bytes_weight": None},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_settings_of_environments(settings):
    pytest.importorskip("gymnasium")
    makers = [mg.MallocGameEnv, lambda **kept: mg.VectorEnv(2, **kept)]
    try:
        from mallocgame.envs.dm_env import Environment
    except ImportError:
        pass
    else:
        makers.append(Environment)
    (name,) = settings
    for maker in makers:
        with pytest.raises((mg.InvalidInputError, TypeError)) as told:
            maker(**{"program": PROGRAM, "game": "priority", **settings})
        assert name in str(told.value) and "NoneType" not in str(told.value)


@pytest.mark.parametrize(
    "settings", [{"assign": 7}, {"assign": None}, {"autoreset_mode": 7}, {"autoreset_mode": "Now"}]
)
def test_settings_of_vector_environments(settings):
    pytest.importorskip("gymnasium")
    refused(lambda: mg.VectorEnv(2, PROGRAM, **settings), next(iter(settings)))


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("settings", [*SETTINGS[:2], *SETTINGS[7:9]], ids=str)
def test_settings_of_openspiel(settings):
    pytest.importorskip("pyspiel")
    from mallocgame.envs.openspiel import MallocGame

    refused(lambda: MallocGame(settings), next(iter(settings)))


@pytest.mark.weekly
def test_settings_of_rllib():
    pytest.importorskip("ray", reason="pip install 'mallocgame[rllib]'")
    rllib = pytest.importorskip("mallocgame.envs.rllib", exc_type=ImportError)
    for config in ({"program": 7}, {"program": PROGRAM, "num_envs": 1.5}):
        refused(lambda config=config: rllib.make_env(config))


def test_functions_of_python(program):
    for words, call in {
        ("program", "a Game"): lambda: mg.solve(PROGRAM),
        ("forbidden[1]",): lambda: mg.Game(program, forbidden=[1, "2"]),
        ("extra_solvers[0]",): lambda: mg.solve(program, extra_solvers=["mine"]),
        ("evaluations",): lambda: mg.solve(program, evaluations=0.5),
        ("main_bytes",): lambda: mg.solve(program, order=True, main_bytes=FAR),
        ("path",): lambda: mg.load_log(7),
        ("log",): lambda: mg.replay("game.mgr"),
        ("program",): lambda: mg.bounds.bound(PROGRAM),
        ("problem",): lambda: mg.placement.optimal_map(PROGRAM),
        ("hierarchy",): lambda: mg.placement.problem(program, 7),
    }.items():
        refused(call, *words)


def test_functions_of_the_extension(program, game):
    plan = mg.all_main_plan(program)
    for words, call in {
        ("program: mallocgame._core.Program", repr(PROGRAM)): lambda: mg.Game(PROGRAM),
        ("hardware", "'tpu_v4i'"): lambda: mg.Game(program, "tpu_v4i"),
        ("solver: str", "Invoked with: None"): lambda: mg.solve(program, None),
        ("seconds", "'10'"): lambda: mg.solve(program, seconds="10"),
        ("progress", "Callable", "'yes'"): lambda: mg.solve(program, progress="yes"),
        ("stop", "stop=True"): lambda: mg.solve(program, stop=True),
        ("plan: mallocgame._core.Plan", "'plan'"): lambda: mg.simulate(program, "plan"),
        ("Hardware", "'tpu_v4i'"): lambda: mg.validate(program, plan, "tpu_v4i"),
        ("settings", "'4'"): lambda: mg.observation.Observer(game, {"neighbours": "4"}),
        ("state: mallocgame._core.State",): lambda: mg.observation.Observer(game).observe(game),
        ("levels", "tuple[str"): lambda: mg.placement.Hierarchy("a", [("b", 1)], 3),
        ("capacity", "4.5"): lambda: _core.solve_offsets([[0, 1, 2]], 4.5),
        ("roots", "'many'"): lambda: mcts.search("many", 4),
        ("settings", "'50'"): lambda: mcts.search(1, 4, settings={"c_visit": "50"}),
        ("program",): lambda: mg.Game(actions="full"),
    }.items():
        refused_by_pybind11(call, *words)
    refused(lambda: _core.solve_offsets([[0, 1, "x"]], 4), "intervals")


def test_what_callers_functions_raise_comes_through(program):
    wrong = TypeError("mine(): incompatible function arguments")

    def progress(seconds, latency_ps):
        raise wrong

    with pytest.raises(TypeError) as told:
        mg.solve(program, "anneal", seconds=0, evaluations=5, progress=progress)
    assert told.value is wrong


def test_long_and_strange_values_are_shown_in_short():
    class Strange:
        def __repr__(self):
            raise RuntimeError

    assert "Strange" in _arguments.found(Strange())
    assert _arguments.found(10**5000) == "something"  # that Python doesn't write either
    assert len(_arguments.found("x" * 10_000)) < 80
    assert len(_arguments.found(list(range(10_000)))) < 80
    assert len(_arguments.found(np.zeros((300, 300)))) < 80
