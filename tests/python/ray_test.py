"""Jobs on a real Ray cluster of three nodes on this machine, of which two are killed.

All tests share it; the nodes end while the last one runs, because a start takes seconds.
"""

import contextlib
import csv
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import time

import pytest
import small_agents
from conftest import HEEDING

import mallocgame as mg
from mallocgame import agents
from mallocgame._jobs import Cluster, FailedJobsError, run_jobs
from mallocgame._jobs.cluster import pack, unpack
from mallocgame.errors import how_to_install
from mallocgame.experiments import Budget, Player, play
from mallocgame.level_sets import making
from mallocgame.level_sets.splits import Draft

ray = pytest.importorskip("ray", reason="pip install 'mallocgame[ray]'")

# Ray leaves sockets and files of ended processes to the garbage collector.
pytestmark = [pytest.mark.weekly, pytest.mark.filterwarnings("ignore::ResourceWarning")]

PROGRAMS = ("gcn_dense_2048.tpu_v4i", "wavernn_64steps_b8.tpu_v4i", "nerf_mlp_64k.tpu_v4i")
# A cluster whose nodes are told as JSON, until standard input ends.
NODES = """
import json, os, sys
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
from ray.cluster_utils import Cluster

def patiently(start):
    for again in (True, True, False):
        try:
            return start()
        except Exception:  # On a busy machine a node takes longer than Ray waits.
            if not again:
                raise

head = {"num_cpus": 1, "include_dashboard": False}
cluster = patiently(lambda: Cluster(initialize_head=True, head_node_args=head))
nodes = [patiently(lambda: cluster.add_node(num_cpus=1)) for _ in range(2)]
raylets = [node.all_processes["raylet"][0].process.pid for node in nodes]
print(json.dumps({"address": cluster.address, "raylets": raylets}), flush=True)
sys.stdin.read()
cluster.shutdown()
"""


@pytest.fixture(scope="module")
def nodes():
    """The address of the cluster, and the processes of the nodes that may be killed."""
    with subprocess.Popen(
        [sys.executable, "-c", NODES],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as running:
        assert running.stdin is not None and running.stdout is not None
        line = next((one for one in running.stdout if one.startswith("{")), None)
        if line is None:
            pytest.skip("Ray can't start a cluster on this machine")
        yield json.loads(line)
        running.stdin.close()


@pytest.fixture(scope="module")
def cluster(nodes):
    before = os.environ.get("PYTHONPATH", "")
    with Cluster(nodes["address"]) as connected:
        yield connected
    assert os.environ.get("PYTHONPATH", "") == before


def descendants(process: int) -> list[int]:
    """A process and all that it began."""
    children = pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [process, *(one for child in children for one in descendants(int(child)))]


def kill_node(raylet: int) -> None:
    """Ends a node as a machine ends that loses its power."""
    for process in descendants(raylet):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "mallocgame", *map(str, arguments)]


def run(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=600, check=False
    )


def rows_of(path: pathlib.Path) -> list[dict[str, str]]:
    """The rows of a comparison, but how long they took."""
    with path.open(newline="") as file:
        return [{key: row[key] for key in row if key != "seconds"} for row in csv.DictReader(file)]


def describe(state: mg.State) -> tuple[str, list[int], int]:
    return state.game.program.fingerprint, state.actions.tolist(), state.latency_ps


def fail_on_odd(number: int) -> int:
    if number % 2:
        raise ValueError(f"{number} is\nodd")
    return number * number


def end_on_odd(number: int) -> int:
    if number % 2:
        os._exit(3)
    return number


def refuse(number: int) -> int:
    raise mg.InvalidInputError(f"found {number}, allowed: none")


def affinity(_: int) -> list[int]:
    time.sleep(0.2)
    return sorted(os.sched_getaffinity(0))


def states() -> list[mg.State]:
    found = []
    for program in map(mg.load_program, PROGRAMS):
        state = mg.Game(program).initial_state()
        for _ in range(3):
            state.apply(state.legal_actions()[-1])
            found.append(state.clone())
    return found


def test_a_job_goes_without_its_programs():
    programs = {}

    def store(program):
        programs.setdefault(program.fingerprint, program)
        return program.fingerprint

    every = states()
    data = [pack(state, store) for state in every]
    assert len(programs) == len(PROGRAMS)
    assert max(map(len, data)) < 1500
    assert [describe(unpack(one, programs.__getitem__)) for one in data] == [
        describe(one) for one in every
    ]


def test_what_is_done_there_is_what_is_done_here(cluster):
    jobs = states()
    found = dict(run_jobs(lambda state: describe(state), jobs, cluster))
    assert [found[job] for job in jobs] == [describe(job) for job in jobs]


def test_programs_are_stored_once(cluster, monkeypatch):
    stored = []
    put = ray.put
    monkeypatch.setattr(ray, "put", lambda value: stored.append(value) or put(value))
    again = [pickle.loads(pickle.dumps(state)) for state in states()]
    list(run_jobs(lambda state: None, [*states(), *again], cluster))
    programs = [value for value in stored if isinstance(value, bytes)]
    assert sorted(programs) == sorted(mg.load_program(name).to_bytes() for name in PROGRAMS)


def test_levels_are_described_and_played_as_here(cluster, tmp_path):
    wanted = [Draft("train", "iterative", 1, 0)]
    levels = mg.levels("validation")[:2]
    runs = []
    for workers in (2, cluster):
        folder = tmp_path / str(len(runs))
        (folder / "programs").mkdir(parents=True)
        source = next(one for one in mg.levels() if one.program_name == wanted[0].name)
        mg.save_program(source.load_program(), folder / f"programs/{wanted[0].name}.mgp")
        making.describe_programs(folder / "programs", wanted, workers, lambda *_: None)
        making.pack(folder, wanted, 0)
        budgets = [Budget(seconds=5.0)]
        played = play([Player("greedy")], levels, folder / "played", budgets, workers=workers)
        runs.append(
            (
                {
                    path.relative_to(folder): path.read_bytes()
                    for path in folder.rglob("*")
                    if path.is_file() and path.parent.name != "runs"
                },
                [(run.level, run.latency_ps, run.in_time_ps) for run in played],
            )
        )
    assert runs[0] == runs[1] and len(runs[0][0]) > 20


def test_muzero_learns_as_here(nodes, tmp_path):
    pytest.importorskip("torch", reason="pip install 'mallocgame[agents]'")
    script = """
import json, sys
from mallocgame import agents
address, path, program, settings = sys.argv[1:]
trainer = agents.MuZero(program, json.loads(settings), seed=3)
with trainer.actors(address):
    for _ in range(4):
        trainer.step()
trainer.save(path)
"""
    there = tmp_path / "there"
    settings = json.dumps(small_agents.MUZERO)
    subprocess.run(
        [sys.executable, "-c", script, nodes["address"], there, PROGRAMS[0], settings],
        timeout=600,
        check=True,
    )
    here = agents.MuZero(PROGRAMS[0], small_agents.MUZERO, seed=3)
    for _ in range(4):
        here.step()
    assert there.read_bytes() == here.agent().checkpoint


def test_jobs_that_fail_are_named(cluster):
    finished = run_jobs(fail_on_odd, [0, 1, 2, 3], cluster, name=lambda job: f"job {job}")
    found = []
    with pytest.raises(FailedJobsError) as raised:
        found.extend(finished)
    assert sorted(found) == [(0, 0), (2, 4)]
    assert str(raised.value) == (
        "2 of 4 jobs failed 3 times: job 1: ValueError: 1 is odd; job 3: ValueError: 3 is odd; "
        "run it again to go on"
    )
    with pytest.raises(FailedJobsError, match=r"1 of 3 jobs failed 3 times: 1: .*died"):
        found.extend(run_jobs(end_on_odd, [0, 1, 2], cluster))
    assert sorted(found) == [(0, 0), (0, 0), (2, 2), (2, 4)]
    with pytest.raises(mg.InvalidInputError, match="found 7, allowed: none"):
        list(run_jobs(refuse, [7], cluster))


def test_a_pinned_job_has_a_core(cluster):
    found = [cores for _, cores in run_jobs(affinity, range(6), cluster, pinned=True)]
    # Three nodes on a machine of two cores: the third has none that is free.
    assert min(map(len, found)) == 1 and {len(cores) for cores in found} <= {1, os.cpu_count()}
    assert all(len(cores) > 1 for _, cores in run_jobs(affinity, range(3), cluster)) or (
        len(os.sched_getaffinity(0)) == 1
    )


def test_another_version_is_refused(cluster, monkeypatch):
    monkeypatch.setattr(mg, "__version__", "0.0.1")
    with pytest.raises(mg.InvalidInputError, match=r"found mallocgame [\d.]+, allowed: 0\.0\.1"):
        list(run_jobs(fail_on_odd, [0], cluster))


def test_a_bad_address_is_one_line(unused_port):
    for address, said in (
        ("mars", "found 'mars', allowed: local, auto, HOST:PORT"),
        (f"127.0.0.1:{unused_port}", "no cluster answers there"),
    ):
        done = run("compare", PROGRAMS[0], "--ray", address)
        assert done.returncode == 2 and done.stdout == ""
        assert done.stderr.count("\n") == 1 and said in done.stderr
    done = run("compare", PROGRAMS[0], "--ray", "local", "--jobs", 2)
    assert done.returncode == 2 and "not allowed with argument" in done.stderr


def test_one_agent_of_egrl_is_trained_by_the_cluster_as_here(nodes, tmp_path):
    pytest.importorskip("torch", reason="pip install 'mallocgame[agents]'")
    programs = PROGRAMS[:2]
    arguments = ["train", "egrl", *programs, "--one-agent", "--evaluations", 25]
    arguments += ["--out", tmp_path / "there", "--ray", nodes["address"]]
    done = run(*arguments, "--config", *small_agents.texts(small_agents.EGRL))
    assert done.returncode == 0, done.stderr
    problems = [mg.placement.problem(program, game="priority") for program in programs]
    here = agents.Egrl(problems, small_agents.EGRL)
    here.train(25 * len(programs))
    here.save(tmp_path / "here")
    there = tmp_path / "there" / "agent.checkpoint.egrl"
    assert there.read_bytes() == (tmp_path / "here").read_bytes()


@pytest.fixture
def unused_port():
    import socket

    with socket.socket() as held:  # Nobody listens.
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def test_without_ray_it_says_what_to_install():
    script = "import sys; sys.modules['ray'] = None\nfrom mallocgame._cli.main import main\n"
    done = subprocess.run(
        [sys.executable, "-c", f"{script}main(['compare', '{PROGRAMS[0]}', '--ray', 'local'])"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == f"mallocgame compare: a cluster needs ray: {how_to_install('ray')}\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_keeps_what_is_done(nodes, tmp_path, number):
    table = tmp_path / "table.csv"
    # The second solver has no end.
    arguments = ["compare", PROGRAMS[0], "--solvers", "greedy,anneal", "--seconds", 0]
    arguments += ["--csv", table, "--ray", nodes["address"]]
    part = tmp_path / "table.csv.part"
    with subprocess.Popen(
        [*HEEDING, *command(*arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        deadline = time.monotonic() + 600
        while not part.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        running.send_signal(number)
        out, err = running.communicate(timeout=600)
    assert running.returncode == 130, err
    assert "Interrupted: these are 1 results of 2." in out
    assert [row["solver"] for row in rows_of(table)] == ["greedy"]


def test_two_nodes_end_in_the_middle(nodes, tmp_path):
    """The comparison is complete, and the same as that of one machine."""
    solvers = "greedy,rent,styles,packing,anneal,random"
    limits = ["--solvers", solvers, "--seconds", 0, "--evaluations", 1000]
    here, there = tmp_path / "here.csv", tmp_path / "there.csv"
    assert run("compare", *PROGRAMS, *limits, "--csv", here).returncode == 0
    part = tmp_path / "there.csv.part"
    arguments = ["compare", *PROGRAMS, *limits, "--csv", there, "--ray", nodes["address"], "--json"]
    with subprocess.Popen(
        command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        for raylet, least in zip(nodes["raylets"], (2, 6), strict=True):
            deadline = time.monotonic() + 600
            while time.monotonic() < deadline and running.poll() is None:
                if len(list(part.glob("*/*.json"))) >= least:
                    break
                time.sleep(0.02)
            assert running.poll() is None, "it has ended before the node"
            kill_node(raylet)
        out, err = running.communicate(timeout=600)
    assert running.returncode == 0, err
    assert rows_of(there) == rows_of(here)
    assert len(json.loads(out)["results"]) == len(PROGRAMS) * len(solvers.split(","))
