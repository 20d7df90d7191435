"""Every class that a user can hold pickles, or its error says what to do instead.

pickle_test.py has what the main ones do behind that.
"""

import copy
import dataclasses
import functools
import importlib
import multiprocessing
import operator
import pathlib
import pickle
import warnings

import numpy as np
import pytest
from conftest import again, half_played

import mallocgame as mg
from mallocgame.playables import played

pytestmark = pytest.mark.full

PROGRAM = "wavernn_64steps_b8.tpu_v4i"


MODULES = (
    "mallocgame",
    "mallocgame._core",
    "mallocgame._agents",
    "mallocgame.agents",
    "mallocgame.envs.dm_env",
    "mallocgame.envs.gym",
    "mallocgame.envs.placement",
    "mallocgame.envs.vector",
    "mallocgame.files",
    "mallocgame.mcts",
    "mallocgame.observation",
    "mallocgame.offline",
    "mallocgame.envs.openspiel",
    "mallocgame.playables",
    "mallocgame.plots",
    "mallocgame.programs",
    "mallocgame.envs.rllib",
    "mallocgame.envs.sb3",
    "mallocgame.xla",
)
# RLlib makes and keeps its module itself, the compiler's process its PjrtCompiler, an Emitter its
# placements, and bound() its ascent; the others are a protocol, and a part of environments.
NOT_HELD = {
    "InstructionPlacement",
    "LagrangianAscent",
    "MaskedModule",
    "Model",
    "Observations",
    "PjrtCompiler",
    "PlacedModule",
}


def imported(name: str):
    """A module, or None where what it needs isn't installed."""
    try:
        if name == "mallocgame._agents":
            from mallocgame._torch import torch_module

            return torch_module()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except ImportError:
        return None


def held_classes() -> set[type]:
    found = set()
    for module in filter(None, map(imported, MODULES)):
        public = [one for one in vars(module) if not one.startswith("_")]
        names = list(getattr(module, "__all__", public))
        for place, moved in getattr(module, "_MOVED", {}).items():
            names += [f"{place}.{one}" for one in moved.split()]
        for value in (operator.attrgetter(one)(module) for one in names):
            ours = isinstance(value, type) and value.__module__.startswith("mallocgame")
            if ours and not issubclass(value, BaseException) and value.__name__ not in NOT_HELD:
                found.add(value)
    return found


class Flat:
    """A model that knows nothing, and keeps what it was to fill in."""

    num_actions = 3

    def reserve(self, slots):
        pass

    def start(self, roots, slots, out):
        out.logits[:] = 0.5
        out.legal[0, 1] = False
        self.kept = out

    def step(self, roots, parents, actions, slots, out):
        pass


def of_the_core() -> list:
    from mallocgame import mcts, observation, offline, reports

    program = mg.load_program(PROGRAM)
    game, order = mg.Game(program), mg.Game(program, game="priority", candidates=3)
    solved = mg.solve(order, "mcts", seconds=0, evaluations=30, seed=4)
    log = mg.record(solved)
    problem = mg.placement.problem(program, "nnp_i")
    prices = mg.bounds.Prices(np.linspace(0, 1, program.ticks), np.ones(program.ticks))
    plan = solved.plan
    wrong = mg.Plan.of(program, program.hardware, plan.residences, plan.copies[:0], plan.served_by)
    model = Flat()
    mcts.search(2, 3, simulations=2).run(model)
    intervals = np.array([[0, 3, 5], [1, 4, 5]])
    maps = np.zeros((2, problem.num_nodes, 2), np.uint8)
    return [
        mg.Action.COPY,
        mg.Mode.LATE,
        reports.WhatIf("p", "tpu_v5e", 1 << 20, (), (), "it has no prices"),
        program,
        program.hardware,
        mg.calibration.PriceLaw.of("tpu_v5e"),
        game,
        half_played(order),
        plan,
        prices,
        solved,
        mg.solve(game, "portfolio", seconds=0, evaluations=50),
        solved.report,
        mg.validate(program, wrong),
        mg.validate(program, plan),
        log,
        mg.replay(log),
        mg.observation.Observer(game, {"neighbours": 2}, prices),
        mg.placement.Hierarchy.preset("nnp_i"),
        problem,
        problem.evaluate(problem.baseline_map),
        problem.evaluate_many(maps),
        problem.search("random", evaluations=4),
        mg.offsets.solve(intervals, 10),
        mg.offsets.OffsetTable.from_csv(
            b"id,lower,upper,size,alignment,gaps,note\na,0,9,8,2,3-5,x\n"
        ),
        mg.offsets.check(intervals, np.array([0, 3])),
        model.kept,
        mg.levels("train")[3],
        mg.bounds.bound(program),
        mg.placement.OptimalMap(maps[0], 5, 4, "optimal", 6),
        observation.layout({})[0],
        mg.games.GameOptions(keep_free=0.5),
        mg.TimeGame(paper_actions=True),
        mg.PriorityGame(candidates=2, forbidden=[1]),
        mg.ScheduleGame(main_bytes=1 << 40),
        offline.Behaviour.named("random:2"),
        offline.play_games(game, ["greedy"])[0],
    ]


def of_environments() -> list:
    if imported("mallocgame.envs.gym") is None:
        return []
    made = [mg.MallocGameEnv(PROGRAM), mg.PlacementEnv(PROGRAM), mg.VectorEnv(3, PROGRAM)]
    for env in made:
        env.reset(seed=1)
    if (dm_env := imported("mallocgame.envs.dm_env")) is not None:
        made.append(dm_env.Environment(PROGRAM, seed=2))
    if (rllib := imported("mallocgame.envs.rllib")) is not None:
        made += [rllib.MaskedEnv(PROGRAM), rllib.MaskedVectorEnv(2, PROGRAM)]
    if (sb3 := imported("mallocgame.envs.sb3")) is not None:
        made.append(sb3.SB3VecEnv(2, PROGRAM))
        made[-1].reset()
    levels = played(mg.levels("validation", scored=True)[:1])
    scores = importlib.import_module("mallocgame.envs.scores").Scores(levels)
    return [*made, made[0].action_space, *levels, scores]


def of_openspiel() -> list:
    if imported("mallocgame.envs.openspiel") is None:
        return []
    pyspiel = imported("pyspiel")
    game = pyspiel.load_game("mallocgame", {"program": PROGRAM, "game": "priority"})
    state = game.new_initial_state()
    for _ in range(4):
        state.apply_action(state.legal_actions()[-1])
    observer = game.make_py_observer()
    observer.set_from(state, 0)
    return [game, state, observer]


def of_xla() -> list:
    from mallocgame.xla.partial_programs import PartialProgram
    from mallocgame.xla.signatures import Signature

    xla = imported("mallocgame.xla")
    program = mg.load_program(PROGRAM)
    report = mg.simulate(program, program.xla_plan)
    target = xla.find_target("tpu_v4i")
    versions = {"jax": "0"}
    prices = {"fusion": {("01", "1"): 5}}
    capture = xla.Capture(PROGRAM, target, None, b"before", b"assigned", versions, (b"1",), prices)
    part = PartialProgram(b"module", name="opt_hlo")
    scheduled = xla.phases.Scheduled({"opt_hlo": part})
    lowered = xla.phases.Lowered((b"code",), frozenset({"hash"}), {"fusion": "hash"}, {"fusion": 5})
    written = xla.emitting.Written(
        program.xla_plan, program, scheduled, lowered, (lowered,), report, report
    )
    tuned = xla.Tuned(capture, report, written, 2, ("refused",), 0.5)
    key = xla.tuned_folders.Key(
        "module", Signature(1, ("f32[2]",), ("f32[2]",), (), ()), "tpu_v4i", versions, {}
    )
    found = [
        capture,
        xla.verifying.Check("outputs", True, "all are XLA's"),
        xla.modules.Compiled(b"before", b"assigned", b"priced"),
        key,
        xla.tuning.Left(capture, report, 5, 7),
        lowered,
        xla.Measured(np.ones(3), np.zeros(3), 1.0, 0.9, 1.1, "TPU"),
        scheduled,
        capture.target,
        tuned,
        xla.TunedFolder("folder"),
        xla.dumps.TunedModule("module", 5, tuned),
        xla.tuned_folders.TunedProgram(pathlib.Path("file"), key, "sha", {"cost_ps": 5.0}),
        xla.Verified((xla.verifying.Check("outputs", True, "all are XLA's"),)),
        written,
        xla.claims.Calibrated(report, report, "the whole program"),
    ]
    if imported("jax") is not None:
        found += [decorated, xla.jit(plain, executables="tuned", static_argnums=(1,))]
    try:
        compiler = xla.Compiler(target, seconds=7.0, cache=None)
        found += [compiler, xla.phases.Crew(compiler, jobs=2), xla.phases.Phases(compiler)]
    except mg.errors.MissingExtraError:
        NOT_HELD.update(("Compiler", "Crew", "Phases"))
    return found


def plain(x, times):
    return x * times


def decorated(x):
    return x + 1


if imported("jax") is not None:
    decorated = importlib.import_module("mallocgame.xla").jit(decorated, executables="tuned")


def of_agents() -> list:
    if imported("mallocgame._agents") is None:
        return []
    from mallocgame import agents

    muzero, egrl = trainers()
    return [muzero.agent(), egrl.agent(), agents.muzero_settings()[0]]


@functools.cache
def trainers() -> tuple:
    from small_agents import EGRL, MUZERO

    from mallocgame import agents

    muzero = agents.MuZero(PROGRAM, MUZERO, seed=1, threads=1)
    egrl = agents.Egrl(mg.placement.problem(PROGRAM, "nnp_i"), EGRL, seed=1, threads=1)
    for trainer in (muzero, egrl):
        trainer.step()
    return muzero, egrl


def that_refuse() -> dict:
    """What can't be pickled, and the word that says what to do instead."""
    from mallocgame import _core, mcts

    one = mg.Game(mg.load_program(PROGRAM))
    refusing = {
        mcts.search(2, 3): "make another",
        _core.Environment([one], {}, False, ["a"]): "MallocGameEnv",
        _core.EnvironmentBatch([one], 1, {}, "NextStep", False, 1): "VectorEnv",
        object.__new__(imported("mallocgame.xla").emitting.Emitter): "make another of its capture",
    }
    if hasattr(_core, "XlaEnvironments"):  # A build beside a jaxlib has it.
        batch = _core.EnvironmentBatch([one], 1, {}, "NextStep", False, 1)
        refusing |= {batch.xla(): "VectorEnv"}
    if imported("mallocgame._agents") is not None:
        muzero, egrl = trainers()
        module = imported("mallocgame._agents")
        problems = [("a", mg.load_program(PROGRAM), None, None)]
        refusing |= {
            muzero: "load",
            egrl: "load",
            muzero._trainer: "load",
            egrl._trainer: "load",
            muzero.agent()._agent: "mallocgame.agents.MuZeroAgent",
            egrl.agent()._agent: "mallocgame.agents.EgrlAgent",
            muzero.agent().solver(): "agent.solver()",
            module.MuZeroActor(problems, muzero._trainer.introduction()): "introduction",
        }
    return refusing


@functools.cache
def examples() -> list:
    return [*of_the_core(), *of_environments(), *of_openspiel(), *of_xla(), *of_agents()]


def test_no_class_is_forgotten():
    """Whoever adds a class says how it goes to another process."""
    shown = {type(one) for one in [*examples(), *that_refuse()]}
    assert not held_classes() - shown


def content(value, depth: int = 0):
    """What can be seen of an object: its properties and fields."""
    if isinstance(value, str | bytes | int | float | type(None)):
        return value
    if depth > 4:
        return type(value)
    if isinstance(value, np.ndarray):
        return (str(value.dtype), repr(value.tolist()))  # NaN is NaN
    if isinstance(value, dict):
        return {key: content(one, depth + 1) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [content(one, depth + 1) for one in value]
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
    elif type(value).__module__ in ("mallocgame._core", "mallocgame._agents"):
        names = [one for one, what in vars(type(value)).items() if isinstance(what, property)]
    elif hasattr(value, "checkpoint"):
        return value.checkpoint
    else:
        says = type(value).__str__ is not object.__str__ or " object at 0x" not in repr(value)
        return str(value) if says else type(value)
    return [(name, content(getattr(value, name), depth + 1)) for name in sorted(names)]


def behaviour(value):
    """What an object does that its content doesn't show."""
    if isinstance(value, mg.observation.Observer):
        state = mg.Game(mg.load_program(PROGRAM)).initial_state()
        with pytest.raises(mg.InvalidInputError, match="another Game"):
            value.observe(state)
        return value.size
    if type(value).__name__ == "Compiler":
        return value.target, value.seconds, value.memory_bytes
    if type(value).__name__ == "MallocGame":
        return str(value.new_initial_state()), value.num_distinct_actions()
    if type(value).__name__ == "MallocState":
        return value.history(), value.observation_tensor(0)
    if type(value).__name__ == "TensorObserver":
        value.tensor[:] += 1  # its parts are the same memory
        found = value.tensor.tolist(), {name: one.tolist() for name, one in value.dict.items()}
        value.tensor[:] -= 1
        return found
    if isinstance(value, mg.State):
        return value.legal_actions(), value.to_string()
    return None


def assert_the_same(one, other):
    assert type(one) is type(other) or type(one).__name__ == "LegalActions"
    assert content(one) == content(other)
    assert behaviour(one) == behaviour(other)


def test_everything_is_the_same_again():
    for one in examples():
        assert_the_same(one, again(one))
        assert_the_same(one, copy.copy(one))
        assert_the_same(one, copy.deepcopy(one))


def test_other_ways_of_pickling():
    """cloudpickle is what Ray, joblib and submitit use."""
    cloudpickle = pytest.importorskip("cloudpickle")
    everything = examples()
    for protocol in (2, 5):
        for one in everything:
            assert_the_same(one, pickle.loads(pickle.dumps(one, protocol)))
    for one in everything:
        assert_the_same(one, cloudpickle.loads(cloudpickle.dumps(one)))


def test_everything_comes_back_from_another_process():
    # What this module defines, and OpenSpiel's games by registered names, need imports there.
    left = ("Jitted", *(type(one).__name__ for one in of_openspiel()))
    sent = [one for one in examples() if type(one).__name__ not in left]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        returned = pool.apply_async(copy.copy, (sent,)).get(timeout=600)
    for one, other in zip(sent, returned, strict=True):
        assert_the_same(one, other)


def test_what_an_observer_sees_is_the_same():
    program = mg.load_program(PROGRAM)
    game = mg.Game(program)
    prices = mg.bounds.Prices(np.linspace(0, 1e-3, program.ticks))
    seen = []
    for one in (None, prices):
        observer = mg.observation.Observer(game, {"neighbours": 1, "address_cells": 7}, one)
        other = again(observer)
        ours, theirs = (half_played(each) for each in (game, again((game, observer))[0]))
        kept_game, kept = again((game, observer))
        seen.append(observer.observe(ours))
        assert np.array_equal(kept.observe(half_played(kept_game)), seen[-1])
        assert other.size == observer.size
        with pytest.raises(mg.InvalidInputError, match="another Game"):
            other.observe(theirs)
    assert not np.array_equal(*seen)


def test_a_result_can_be_recorded_elsewhere():
    program = mg.load_program(PROGRAM)
    result = mg.solve(mg.Game(program, game="priority"), "mcts", seconds=0, evaluations=30)
    other = again(result)
    assert mg.record(other).to_bytes() == mg.record(result).to_bytes()
    assert repr(other) == repr(result) and other.curve == result.curve


def test_what_cannot_be_pickled_says_what_to_do():
    for one, instead in that_refuse().items():
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError) as told:
                attempt(one)
            message = str(told.value)
            assert message.startswith(f"{type(one).__name__} can't be pickled or copied: ")
            assert instead in message
