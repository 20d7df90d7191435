"""Wrong arguments are refused in the words of the caller: what it is, found, and allowed."""

import types

import numpy as np
import pytest

import mallocgame as mg
from mallocgame import _arguments, _core, _refusals, mcts

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
        from mallocgame.dm_env import Environment

        assert dm_env is not None
        refused(lambda: Environment(PROGRAM, seed=seed), "seed")
    if not isinstance(seed, bool | np.float32):  # which pybind11 takes as integers
        refused(lambda: mg.Game(program, seed=seed), "seed")
        refused(lambda: mg.solve(program, "greedy", seed=seed), "seed")
        refused(lambda: mcts.search(1, 4).run(_Nothing(), seed=seed), "seed")


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
        refused(lambda call=call: call(action), "action", error=mg.InvalidActionError)
    assert state.num_decisions == env.state.num_decisions == 0
    refused(lambda: mg.record(game, [action]), "action")


@pytest.mark.parametrize("action", [*NO_ACTION, *NOT_AN_ACTION])
def test_actions_of_adapters(action):
    pytest.importorskip("dm_env")
    from mallocgame.dm_env import Environment

    timed = Environment(PROGRAM)
    timed.reset()
    refused(lambda: timed.step(action), "action", error=mg.InvalidActionError)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("action", [*NO_ACTION, *NOT_AN_ACTION])
def test_actions_of_openspiel(action):
    pytest.importorskip("pyspiel")
    from mallocgame.openspiel import MallocGame

    state = MallocGame({"program": PROGRAM}).new_initial_state()
    refused(lambda: state.apply_action(action), "action", error=mg.InvalidActionError)
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
    refused(lambda: env.step(given), "action", error=mg.InvalidActionError)
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
        from mallocgame.dm_env import Environment
    except ImportError:
        pass
    else:
        makers.append(Environment)
    for maker in makers:
        with pytest.raises(mg.InvalidInputError) as told:
            maker(**{"program": PROGRAM, "game": "priority", **settings})
        assert "incompatible" not in str(told.value) and "NoneType" not in str(told.value)


@pytest.mark.parametrize(
    "settings", [{"assign": 7}, {"assign": None}, {"autoreset_mode": 7}, {"autoreset_mode": "Now"}]
)
def test_settings_of_vector_environments(settings):
    pytest.importorskip("gymnasium")
    refused(lambda: mg.VectorEnv(2, PROGRAM, **settings), next(iter(settings)))


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("settings", [*SETTINGS[:2], *SETTINGS[6:9], {"candidates": FAR}], ids=str)
def test_settings_of_openspiel(settings):
    pytest.importorskip("pyspiel")
    from mallocgame.openspiel import MallocGame

    refused(lambda: MallocGame(settings), next(iter(settings)))


@pytest.mark.weekly
def test_settings_of_rllib():
    pytest.importorskip("ray", reason="pip install 'mallocgame[rllib]'")
    rllib = pytest.importorskip("mallocgame.rllib", exc_type=ImportError)
    for config in ({"program": 7}, {"program": PROGRAM, "num_envs": 1.5}):
        refused(lambda config=config: rllib.make_env(config))


def test_games_and_solvers(program, game):
    plan = mg.all_main_plan(program)
    for words, call in {
        ("program", "load_program"): lambda: mg.Game(PROGRAM),
        ("hardware", "'tpu_v4i'"): lambda: mg.Game(program, "tpu_v4i"),
        ("forbidden", "a list"): lambda: mg.Game(program, forbidden=2),
        ("forbidden[1]", "'2'"): lambda: mg.Game(program, forbidden=[1, "2"]),
        ("forbidden[0]", "2147483647"): lambda: mg.Game(program, forbidden=[2**40]),
        ("program", "a Game"): lambda: mg.solve(PROGRAM),
        ("solver",): lambda: mg.solve(program, None),
        ("seconds", "a number"): lambda: mg.solve(program, seconds="10"),
        ("evaluations",): lambda: mg.solve(program, evaluations=0.5),
        ("progress", "a function"): lambda: mg.solve(program, progress="yes"),
        ("stop", "a function"): lambda: mg.solve(program, stop=True),
        ("extra_solvers[0]",): lambda: mg.solve(program, extra_solvers=["mine"]),
        ("prices",): lambda: mg.solve(program, "rent", prices=[1.0]),
        ("plan",): lambda: mg.simulate(program, "plan"),
        ("hardware",): lambda: mg.validate(program, plan, "tpu_v4i"),
        ("settings['neighbours']",): lambda: mg.Observer(game, {"neighbours": "4"}),
        ("state",): lambda: mg.Observer(game).observe(game),
        ("levels[0]", "a tuple of 3"): lambda: mg.placement.Hierarchy("a", [("b", 1)], 3),
        ("space_ps_per_byte[1]",): lambda: mg.bounds.Prices([1, "2"]),
        ("map", "an array"): lambda: mg.placement.problem(program, "nnp_i").evaluate([0]),
        ("intervals", "int64"): lambda: _core.solve_offsets([[0, 1, "x"]], 4),
        ("capacity",): lambda: _core.solve_offsets([[0, 1, 2]], 4.5),
        ("roots",): lambda: mcts.search("many", 4),
        ("settings['c_visit']",): lambda: mcts.search(1, 4, settings={"c_visit": "50"}),
        ("path",): lambda: mg.load_log(7),
        ("log",): lambda: mg.replay("game.mgr"),
        ("program",): lambda: mg.bounds.bound(PROGRAM),
        ("problem",): lambda: mg.placement.optimal_map(PROGRAM),
        ("hierarchy",): lambda: mg.placement.problem(program, 7),
    }.items():
        refused(call, *words)


def test_calls_of_another_form_are_pythons_type_errors(program):
    """As of any function: an unknown name, one too many, one too few."""
    for words, call in {
        "Game() has no argument 'hardwar', but program, hardware": lambda: mg.Game(
            program, hardwar=None
        ),
        "simulate() takes 4 arguments, but 5 were given": lambda: mg.simulate(*[program] * 5),
        "Game() lacks the argument 'program'": lambda: mg.Game(actions="full"),
        "simulate() got two values for the argument 'program'": lambda: mg.simulate(
            program, program=program
        ),
    }.items():
        with pytest.raises(TypeError) as told:
            call()
        assert str(told.value).startswith(words)


def test_what_callers_functions_raise_comes_through(program):
    wrong = TypeError("mine(): incompatible function arguments")

    def progress(seconds, latency_ps):
        raise wrong

    with pytest.raises(TypeError) as told:
        mg.solve(program, "anneal", seconds=0, evaluations=5, progress=progress)
    assert told.value is wrong


def test_refusals_show_no_object_that_was_not_made():
    with pytest.raises(mg.InvalidInputError) as told:
        mg.Game("program")
    frames = []
    trace = told.value.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame.f_locals)
        trace = trace.tb_next
    made = [one for frame in frames for one in frame.get("args", ())]
    assert not any(isinstance(one, mg.Game) for one in made)


def pybinds(signature: str):
    """A function that is refused as pybind11 does it."""

    def function(*args, **kwargs):
        raise_it(TypeError("f(): incompatible function arguments. The following"))

    def raise_it(error):
        raise error

    function.__doc__ = signature
    return function


@pytest.mark.parametrize(
    ("signature", "given", "says"),
    [
        ("f(a: int) -> None", "x", "a: found 'x', allowed: an integer"),
        ("f(a: typing.SupportsInt) -> None", 1.5, "a: found 1.5, allowed: an integer"),
        ("f(a: Optional[str] = None) -> int", 3, "a: found 3, allowed: a string or None"),
        ("f(a: str | None = 'x, y') -> int", 3, "a: found 3, allowed: a string or None"),
        ("f(a: List[float]) -> int", [1, None], "a[1]: found None, allowed: a number"),
        ("f(a: Dict[str, int]) -> int", {"k": 0.5}, "a['k']: found 0.5, allowed: an integer"),
        ("f(a: Tuple[int, str]) -> int", (1,), "a: found (1,) (tuple), allowed: a tuple of 2"),
        ("f(a: Callable[[int], int]) -> int", 3, "a: found 3, allowed: a function"),
        ("f(a: bool) -> int", "yes", "a: found 'yes', allowed: True or False"),
        ("f(a: Union[int, str]) -> int", None, "a: found None, allowed: an integer or a string"),
        ("f(a: numpy.ndarray[numpy.float32]) -> int", "x", "allowed: an array of float32"),
        ("f(a: int) -> int", 2**50, "a: found 1125899906842624, allowed: an integer up to 21474"),
        ("f(a: int) -> int", -1, "a: found -1, allowed: an integer from 0 on"),
        ("f(seed: int) -> int", -1, "seed: found -1, allowed: an integer from 0 to 1844674407"),
    ],
)
def test_signatures_of_older_and_newer_pybind11(signature, given, says):
    told = _refusals._explained(pybinds(signature), "f", types.ModuleType("module"), (given,), {})
    assert isinstance(told, mg.InvalidInputError) and says in str(told)


def test_long_and_strange_values_are_shown_in_short():
    class Strange:
        def __repr__(self):
            raise RuntimeError

    assert "Strange" in _arguments.found(Strange())
    assert _arguments.found(10**5000) == "something"  # that Python doesn't write either
    assert len(_arguments.found("x" * 10_000)) < 80
    assert len(_arguments.found(list(range(10_000)))) < 80
    assert len(_arguments.found(np.zeros((300, 300)))) < 80
