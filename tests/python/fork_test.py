"""What a forked child may do with what its parent made. A child that hangs is killed and told."""

import functools
import multiprocessing
import os
import signal
import threading
import time

import numpy as np
import pytest

import mallocgame as mg
from mallocgame import mcts

PROGRAM = "gcn_dense_2048.tpu_v4i"
# JAX, which another test of the process may have imported, warns of every fork.
pytestmark = pytest.mark.filterwarnings(r"ignore:os\.fork\(\) was called:RuntimeWarning")


def ends_well(child, seconds: float = 60.0) -> str:
    """Calls `child` in a forked process; returns what went wrong there, "" if nothing did."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        told = "it ended"
        try:
            child()
            told = ""
        except BaseException as error:
            told = f"{type(error).__name__}: {error}"
        finally:
            os.write(write, told.encode())
            os._exit(0)
    os.close(write)
    end = time.monotonic() + seconds
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return "it hangs"
        time.sleep(0.01)
    with os.fdopen(read) as pipe:
        return pipe.read()


def lowest(info) -> np.ndarray:
    return info["action_mask"].argmax(axis=1)


def stepped(envs, steps: int):
    _, info = envs.reset(seed=3)
    rewards = 0.0
    for _ in range(steps):
        _, found, _, _, info = envs.step(lowest(info))
        rewards += found.sum()
    return rewards


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_vector_environment_steps_on_in_children(threads):
    pytest.importorskip("gymnasium")
    envs = mg.VectorEnv(9, PROGRAM, observation="compact", threads=threads)
    expected = stepped(envs, 30)

    def child():
        assert stepped(envs, 30) == expected
        assert ends_well(lambda: stepped(envs, 5)) == ""

    for _ in range(3):
        assert ends_well(child) == ""
    assert stepped(envs, 30) == expected


def test_a_vector_environment_ends_in_a_child():
    pytest.importorskip("gymnasium")
    held = [mg.VectorEnv(9, PROGRAM, threads=3)]
    held[0].reset(seed=0)
    assert ends_well(held.clear) == ""
    assert ends_well(lambda: (stepped(held[0], 2), held.clear())) == ""


def _work(envs, steps: int, queue) -> None:
    queue.put(stepped(envs, steps))


def test_multiprocessing_forks_it_too():
    pytest.importorskip("gymnasium")
    envs = mg.VectorEnv(6, PROGRAM, observation="compact", threads=2)
    expected = stepped(envs, 12)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    processes = [context.Process(target=_work, args=(envs, 12, queue)) for _ in range(2)]
    for process in processes:
        process.start()
    try:
        assert [queue.get(timeout=600) for _ in processes] == [expected] * 2
    finally:
        for process in processes:
            process.join(10)
            process.kill()


def test_a_fork_while_another_thread_steps_works_or_is_told():
    pytest.importorskip("gymnasium")
    envs = mg.VectorEnv(512, PROGRAM, threads=3)
    envs.reset(seed=0)
    stop = threading.Event()

    def steps():
        info = envs.reset(seed=0)[1]
        while not stop.is_set():
            info = envs.step(lowest(info))[4]

    def child():
        try:
            stepped(envs, 2)
        except mg.InvalidInputError as error:
            if "forked" not in str(error):
                raise
            with pytest.raises(mg.InvalidInputError, match="make a new one"):
                envs.state(0)
            stepped(mg.VectorEnv(4, PROGRAM, threads=2), 2)
            told.append(error)

    told: list[Exception] = []

    def child_that_ends_it():
        child()
        raise SystemExit("told" if told else "stepped")

    thread = threading.Thread(target=steps)
    thread.start()
    seen: set[str] = set()
    try:
        # Whether a fork falls into a step is the scheduler's affair: on a busy machine few do.
        for fork in range(1000):
            seen.add(ends_well(child_that_ends_it))
            if fork >= 24 and "SystemExit: told" in seen:
                break
    finally:
        stop.set()
        thread.join()
    assert seen <= {"SystemExit: told", "SystemExit: stepped"}
    assert "SystemExit: told" in seen


class _Flat:
    """A model that knows nothing."""

    num_actions = 4

    def reserve(self, slots):
        pass

    def start(self, roots, slots, out):
        if self.on_start is not None:
            self.on_start()

    def step(self, roots, parents, actions, slots, out):
        out.rewards[:] = actions

    def __init__(self, on_start=None):
        self.on_start = on_start


def test_a_search_goes_on_in_a_child():
    search = mcts.search(16, 4, simulations=8, threads=3)
    search.run(_Flat(), seed=1)
    expected = search.visits.tolist()

    def child():
        search.run(_Flat(), seed=1)
        assert search.visits.tolist() == expected

    assert ends_well(child) == ""
    # The child of a model that forks goes on with the search itself.
    told = []
    search.run(_Flat(lambda: told.append(ends_well(lambda: None))), seed=1)
    assert told == [""] and search.visits.tolist() == expected


def test_a_search_that_another_thread_runs_is_told():
    began, go_on = threading.Event(), threading.Event()
    search = mcts.search(16, 4, simulations=8, threads=2)
    model = _Flat(lambda: (began.set(), go_on.wait(60)))
    thread = threading.Thread(target=functools.partial(search.run, model))
    thread.start()
    assert began.wait(60)

    def child():
        with pytest.raises(mg.InvalidInputError, match=r"forked.*make a new one"):
            search.run(_Flat())

    found = ends_well(child)
    go_on.set()
    thread.join()
    assert found == ""


@pytest.mark.parametrize("solver", ["portfolio", "mcts", "anneal", "greedy"])
def test_solvers_work_in_a_child(solver):
    program = mg.load_program(PROGRAM)
    expected = mg.solve(program, solver, seconds=0, evaluations=40, seed=2).plan

    def child():
        found = mg.solve(program, solver, seconds=0, evaluations=40, seed=2)
        assert mg.validate(program, found.plan).ok
        assert found.plan == expected or solver == "portfolio"

    assert ends_well(child) == ""


def test_a_solver_that_is_forked_within_is_told():
    program = mg.load_program(PROGRAM)
    found = []

    def child_goes_on():
        # What a caller does who forgets to end the child: it comes back from progress().
        mg.solve(program, "anneal", seconds=0, evaluations=300, progress=forks)

    parent = os.getpid()

    def forks(seconds, latency_ps):
        if os.getpid() == parent and not found:
            found.append(ends_well(lambda: None))
        elif os.getpid() != parent and not forked:
            forked.append(1)
            if os.fork() == 0:
                pass  # and returns to the solver

    forked: list[int] = []
    mg.solve(program, "anneal", seconds=0, evaluations=300, progress=forks)
    assert found == [""]

    def grandchild():
        me = os.getpid()
        try:
            child_goes_on()
        except mg.InvalidInputError as error:
            assert os.getpid() != me and "forked while the solver worked" in str(error)
            os._exit(0)
        if os.getpid() == me:
            _, status = os.wait()
            assert status == 0

    assert ends_well(grandchild) == ""


def test_placements_are_graded_in_a_child():
    problem = mg.placement.problem(PROGRAM, "nnp_i")
    shape = (40, problem.num_nodes, 2)
    maps = np.random.default_rng(0).integers(0, 2, shape, dtype=np.uint8)
    expected = problem.evaluate_many(maps, threads=3).latency_ps.tolist()

    def child():
        assert problem.evaluate_many(maps, threads=3).latency_ps.tolist() == expected
        problem.search("random", evaluations=50, threads=2)

    assert ends_well(child) == ""


def test_offsets_are_found_in_a_child():
    from mallocgame._core import solve_offsets

    intervals = np.array([[0, 4, 6], [2, 9, 5], [5, 9, 4]], np.int64)
    solve_offsets(intervals, 16)
    assert ends_well(lambda: solve_offsets(intervals, 16)) == ""


def _agents_train_on() -> None:
    from small_agents import EGRL, MUZERO

    from mallocgame import agents

    muzero = agents.MuZero(PROGRAM, MUZERO, seed=1, threads=2)
    egrl = agents.Egrl(mg.placement.problem(PROGRAM, "nnp_i"), EGRL, seed=1, threads=2)
    for trainer in (muzero, egrl):
        for _ in range(2):
            trainer.step()

        def child(trainer=trainer):
            trainer.step()
            trainer.agent()

        assert ends_well(child, seconds=120) == ""
        trainer.step()


@pytest.mark.full
def test_agents_train_on_in_a_child():
    """In a process of its own: other tests may have had Torch start threads that no child has."""
    pytest.importorskip("torch", reason="pip install 'mallocgame[agents]'")
    process = multiprocessing.get_context("spawn").Process(target=_agents_train_on)
    process.start()
    process.join(300)
    assert process.exitcode == 0
