"""The placement problem from Python: the environment, the searches, and what they refuse."""

import json
import pickle
import signal
import subprocess
import sys

import numpy as np
import pytest

import mallocgame as mg

PROGRAM = "resnet50_b1.tpu_v4i"


@pytest.fixture(scope="module")
def problem() -> mg.placement.Placement:
    return mg.placement.Placement(mg.load_program(PROGRAM), mg.placement.Hierarchy.preset("nnp_i"))


def some_maps(problem: mg.placement.Placement, count: int) -> np.ndarray:
    chance = np.random.default_rng(0)
    return chance.integers(
        0, len(problem.level_names), (count, problem.num_nodes, 2), dtype=np.uint8
    )


def test_a_map_that_fits_earns_the_square_of_its_speed_up(problem):
    latency_ps, moved, reward = problem.evaluate(np.full((problem.num_nodes, 2), 2, np.uint8))
    assert (
        moved == 0
        and reward == pytest.approx((problem.baseline_ps / latency_ps) ** 2)
        and reward < 1
    )
    assert problem.evaluate(problem.baseline_map) == (problem.baseline_ps, 0.0, 1.0)


def test_what_had_to_move_is_counted_in_bytes(problem):
    for chosen in some_maps(problem, 20):
        latency_ps, moved, reward = problem.evaluate(chosen)
        carried_out = problem.rectify(chosen)
        placed = problem.tensor_bytes
        assert moved == pytest.approx(placed[carried_out != chosen].sum() / placed.sum())
        assert (carried_out >= chosen).all() and problem.evaluate(carried_out)[:2] == (
            latency_ps,
            0.0,
        )
        assert reward == (
            -moved if moved else pytest.approx((problem.baseline_ps / latency_ps) ** 2)
        )


@pytest.mark.parametrize("threads", [1, 3])
def test_many_are_as_one_by_one(problem, threads):
    maps = some_maps(problem, 300)
    latency_ps, moved, reward = problem.evaluate_many(maps, threads=threads)
    assert latency_ps.dtype == np.int64 and moved.dtype == reward.dtype == np.float64
    assert [problem.evaluate(chosen) for chosen in maps] == list(
        zip(latency_ps, moved, reward, strict=True)
    )


def test_costs_are_what_evaluate_adds_up(problem):
    costs = problem.costs()
    for chosen in some_maps(problem, 20):
        fits = problem.rectify(chosen)
        transfers = costs["fixed_ps"].copy()
        at = costs["term_ps"][np.arange(len(costs["term_ps"])), fits.ravel()[costs["term_tensor"]]]
        np.add.at(transfers, costs["term_node"], at)
        assert (
            np.maximum(costs["compute_ps"], transfers) * costs["trips"]
        ).sum() == problem.evaluate(fits)[0]
        for level, capacity in enumerate(costs["capacity_bytes"]):
            lies = problem.tensor_bytes * (fits == level)
            begin, end = costs["alive"][..., 0], costs["alive"][..., 1]
            assert all(
                lies[(begin <= node) & (node < end)].sum() <= capacity
                for node in range(problem.num_nodes)
            )


def test_the_optimal_map_is_the_best_of_all_maps():
    pytest.importorskip("highspy")
    program = mg.load_program("gcn_dense_2048.tpu_v4i")
    gained = 0
    own = [(mebibytes, 1, 0) for mebibytes in (1, 9, 11, 14, 25)]
    for mebibytes, engines, staged in [*own, (11, 1, 8), (14, 3, 8)]:
        levels = [("A", mebibytes << 20, 10**12), ("B", 1 << 40, 10**11)]
        flops_per_second = 10**13 if staged else 10**14  # so that something can be fetched
        hierarchy = mg.placement.Hierarchy("two", levels, flops_per_second, engines, staged << 20)
        problem = mg.placement.Placement(program, hierarchy)
        used = np.flatnonzero(problem.tensor_bytes)
        maps = np.zeros((2 ** len(used), 2 * problem.num_nodes), np.uint8)
        maps[:, used] = np.arange(len(maps))[:, None] >> np.arange(len(used)) & 1
        latency_ps, moved, _ = problem.evaluate_many(maps.reshape(-1, problem.num_nodes, 2))
        found = mg.placement.optimal_map(problem, seconds=0)
        assert found.status == "optimal" and problem.evaluate(found.map)[:2] == (
            found.latency_ps,
            0.0,
        )
        assert (
            found.bound_ps
            <= latency_ps[moved == 0].min()
            == pytest.approx(found.latency_ps, rel=2e-6)
        )
        gained += found.latency_ps < problem.baseline_ps
        first_come_ps = problem.search("first-come", 1).latency_ps
        assert found.compiler_ps == min(problem.baseline_ps, first_come_ps)
        if found.compiler_ps > found.bound_ps:
            assert (
                found.gap_closed(found.compiler_ps) == 0 and found.gap_closed(found.bound_ps) == 1
            )
            assert found.gap_closed(2 * found.compiler_ps) < 0
    assert gained  # else the compiler's map would have done


def test_an_optimal_map_stopped_at_once_is_the_compilers_or_better():
    pytest.importorskip("highspy")
    problem = mg.placement.problem("bert_base_b1_s128.tpu_v4i", "nnp_i_48mib")
    found = mg.placement.optimal_map(problem, seconds=0.01)
    assert (
        found.status == "stopped" and 0 <= found.bound_ps <= found.latency_ps <= problem.baseline_ps
    )
    assert problem.evaluate(found.map)[:2] == (found.latency_ps, 0.0)


def test_the_graph_is_the_programs(problem):
    program, bytes_ = problem.program, problem.tensor_bytes
    assert problem.node_features.shape == (problem.num_nodes, len(problem.features))
    assert (np.diff(problem.node_ticks) > 0).all()
    opcodes = np.array(program.instruction_opcodes)[problem.node_ticks]
    assert (
        not set(opcodes) & {"parameter", "constant", "tuple", "get-tuple-element"}
        and (opcodes == "fusion").sum() > 50
    )
    # Nearly all of ResNet-50's parameters are read by some node.
    assert (
        bytes_[:, 0].sum()
        > 0.95 * program.buffers["size_bytes"][program.buffers["origin"] == 1].sum()
    )
    start, end = problem.edge_index
    assert (start < end).all() and len(start) > problem.num_nodes


def test_a_game_plays_the_map():
    program = mg.load_program("resnet50_b1.tpu_v4i_16mib")
    game = mg.Game(program)
    problem = mg.placement.Placement.of_game(
        game, baseline_ps=mg.simulate(program, program.xla_plan).latency_ps
    )
    assert problem.level_names == ["fast", "main"]
    assert problem.evaluate(np.ones((problem.num_nodes, 2), np.uint8))[0] == game.all_main_ps
    everything = np.zeros((problem.num_nodes, 2), np.uint8)
    latency_ps, _, reward = problem.evaluate(everything)
    state = game.initial_state()
    for action in problem.play(everything):
        state.apply(int(action))
    assert state.is_terminal() and state.latency_ps == latency_ps
    assert mg.validate(program, state.plan()).ok
    assert reward == pytest.approx((problem.baseline_ps / latency_ps) ** 2)


def test_a_map_of_an_priority_game_says_how_runs_are_served_and_when():
    name = "mlp_train_adam_b512.tpu_v4i_16mib"
    program = mg.load_program(name)
    problem = mg.placement.problem(name, game="priority")
    xla_ps = mg.simulate(program, program.xla_plan).latency_ps
    assert problem.level_names == ["Late", "Early", "Preload", "Split", "Skip"]
    assert problem.game.kind == "priority" and problem.baseline_ps == xla_ps
    assert problem.node_features.shape == (problem.num_nodes, len(problem.features))
    assert problem.evaluate(np.full((problem.num_nodes, 2), 4, np.uint8))[0] == (
        problem.game.all_main_ps
    )
    parents = problem.parents
    assert (parents < np.arange(problem.num_nodes)).all() and (parents >= -1).all()
    assert (parents < 0).sum() < problem.num_nodes
    pairs = set(zip(*problem.edge_index.tolist(), strict=True))
    assert {(parents[n], n) for n in np.flatnonzero(parents >= 0)} <= pairs
    for map in (problem.baseline_map, *some_maps(problem, 20)):
        end = mg.placement.play_map(problem, map)
        assert end.is_terminal() and end.latency_ps == problem.evaluate(map)[0]
        assert mg.validate(program, end.plan()).ok
    # Asked for XLA's plan, most of it is had; and turns matter.
    assert problem.evaluate(problem.baseline_map)[0] < 1.1 * xla_ps
    modes = problem.baseline_map[:, :1]
    turned = some_maps(problem, 30)[:, :, 1:] % 5
    several = {
        problem.evaluate(np.ascontiguousarray(np.hstack([modes, turn])))[0] for turn in turned
    }
    assert len(several) > 5
    again = pickle.loads(pickle.dumps(problem))
    assert (again.baseline_map == problem.baseline_map).all() and again.baseline_ps == xla_ps
    # Without XLA's plan it begins as rent plays.
    smaller = mg.placement.problem(program, hardware=mg.hardware("tpu_v4i"), game="priority")
    assert (smaller.baseline_map < 4).any() and smaller.game.hardware.name == "tpu_v4i"
    with pytest.raises(mg.InvalidInputError, match="a hierarchy and the priority game"):
        mg.placement.problem(program, "nnp_i", game="priority")


def test_a_program_is_a_problem_on_a_hierarchy_or_as_a_game():
    program = mg.load_program("mlp_train_adam_b512.tpu_v4i")
    on_chip = mg.placement.problem(program, "nnp_i")
    assert on_chip.game is None and on_chip.level_names == ["SRAM", "LLC", "DRAM"]
    as_game = mg.placement.problem("mlp_train_adam_b512.tpu_v4i")
    assert as_game.baseline_ps == mg.simulate(program, program.xla_plan).latency_ps
    # XLA's plan says nothing of this hardware.
    smaller = mg.placement.problem(program, hardware=mg.hardware("tpu_v4i_16mib"))
    assert smaller.evaluate(np.zeros((smaller.num_nodes, 2), np.uint8))[0] == smaller.baseline_ps
    end = mg.placement.play_map(smaller, smaller.baseline_map)
    assert end.is_terminal() and end.latency_ps == smaller.baseline_ps
    assert mg.validate(program, end.plan(), smaller.game.hardware).ok
    with pytest.raises(mg.InvalidInputError, match="a hierarchy and a hardware"):
        mg.placement.problem(program, "nnp_i", smaller.game.hardware)


def test_a_hierarchy_of_ones_own_is_a_file(tmp_path):
    levels = [
        {"name": "A", "capacity_bytes": 1 << 20, "bytes_per_second": 10**12},
        {"name": "B", "capacity_bytes": 1 << 33, "bytes_per_second": 10**10},
    ]
    document = {"name": "mine", "flops_per_second": 10**13, "levels": levels}
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(document))
    hierarchy = mg.placement.load_hierarchy(path)
    assert (hierarchy.name, hierarchy.flops_per_second) == ("mine", 10**13) and hierarchy.levels[
        1
    ] == ("B", 1 << 33, 10**10)
    assert mg.placement.problem(PROGRAM, path).level_names == ["A", "B"]
    assert (hierarchy.engines, hierarchy.staging_bytes) == (1, 0)
    path.write_text(json.dumps(document | {"engines": 4, "staging_bytes": 1 << 16}))
    shared = mg.placement.load_hierarchy(path)
    assert (shared.engines, shared.staging_bytes) == (4, 1 << 16)
    assert (
        mg.placement.problem(PROGRAM, shared).baseline_ps
        > mg.placement.problem(PROGRAM, hierarchy).baseline_ps
    )
    for wrong, says in (
        ({"name": "mine", "levels": levels}, "no key 'flops_per_second'"),
        (document | {"levels": levels[:1]}, "2 to 8"),
        (
            document | {"levels": [{**levels[0], "capacity_bytes": "1 MiB"}, levels[1]]},
            "capacity_bytes: found '1 MiB', allowed: an integer",
        ),
        ([], "not a hierarchy"),
    ):
        path.write_text(json.dumps(wrong))
        with pytest.raises(mg.InvalidInputError, match=says):
            mg.placement.load_hierarchy(path)
    path.write_text("{")
    with pytest.raises(mg.InvalidInputError, match=r"mine.json: not a hierarchy"):
        mg.placement.load_hierarchy(path)
    with pytest.raises(mg.errors.MissingFileError):
        mg.placement.load_hierarchy(tmp_path / "none.json")


def test_searches_keep_their_budget_and_can_be_run_again(problem):
    for name in mg.placement.searches():
        chosen, latency_ps, reward, best_ps = problem.search(name, evaluations=700, seed=3)
        assert len(best_ps) == (1 if name in ("compiler", "first-come") else 700)
        assert problem.evaluate(chosen) == (latency_ps, 0.0, reward)
        again = problem.search(name, evaluations=700, seed=3, threads=1)
        assert (again[0] == chosen).all() and (again[3] == best_ps).all()
    other = problem.search("evolution", evaluations=700, seed=4)
    assert (other[3] != problem.search("evolution", evaluations=700, seed=3)[3]).any()


def test_a_search_can_be_interrupted():
    code = f"""
import mallocgame as mg, signal, threading, os
signal.signal(signal.SIGINT, signal.default_int_handler)
hierarchy = mg.placement.Hierarchy.preset("nnp_i")
problem = mg.placement.Placement(mg.load_program({PROGRAM!r}), hierarchy)
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    problem.search("evolution", evaluations=10**9)
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.stdout == "interrupted\n", done.stderr
    assert done.returncode != -signal.SIGKILL


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda p: p.evaluate(np.zeros((p.num_nodes, 2), np.int64)), "dtype int64"),
        (lambda p: p.evaluate(np.zeros((p.num_nodes, 3), np.uint8)), "shape"),
        (lambda p: p.evaluate(np.full((p.num_nodes, 2), 3, np.uint8)), "found level 3"),
        (lambda p: p.evaluate(np.zeros((2, p.num_nodes), np.uint8).T), "C order"),
        (lambda p: p.evaluate_many(np.zeros((p.num_nodes, 2), np.uint8)), "shape"),
        (lambda p: p.evaluate_many(some_maps(p, 2), threads=5000), "threads"),
        (lambda p: p.play(p.baseline_map), "hierarchy"),
        (lambda p: mg.placement.problem(p.program).costs(), "hierarchy"),
        (lambda p: mg.placement.optimal_map(mg.placement.problem(p.program)), "on a game"),
        (lambda p: mg.placement.optimal_map(p, seconds=-1), "seconds must be >= 0"),
        (lambda p: p.search("annealing"), "greedy-dp"),
        (lambda p: p.search("random", evaluations=0), "evaluations"),
        (lambda p: mg.placement.Hierarchy.preset("nnp"), "nnp_i_48mib"),
        (lambda p: mg.placement.Hierarchy("one", [("A", 1, 1)], 1), "2 to 8"),
        (
            lambda p: mg.placement.Placement(
                p.program, mg.placement.Hierarchy("small", [("A", 1, 2), ("B", 1, 1)], 1)
            ),
            "at least",
        ),
        (lambda p: mg.placement.Placement.of_game(mg.Game(p.program), -1), "baseline_ps"),
    ],
)
def test_what_is_refused(problem, call, says):
    with pytest.raises(mg.InvalidInputError, match=says):
        call(problem)


def test_gymnasium(problem):
    gymnasium = pytest.importorskip("gymnasium")
    from gymnasium.utils.env_checker import check_env

    env = gymnasium.make("mallocgame/Placement-v0", program=PROGRAM)
    check_env(env.unwrapped, skip_render_check=True)
    observation, info = env.reset(seed=0)
    assert (
        observation["node_features"].shape[0] == problem.num_nodes
        and info["baseline_ps"] == problem.baseline_ps
    )
    _, reward, terminated, truncated, _ = env.step(info["baseline_map"].flatten())
    assert (reward, terminated, truncated) == (1.0, True, False)
    with pytest.raises(mg.errors.GameOverError):
        env.unwrapped.step(info["baseline_map"].flatten())
    env.reset()
    for wrong in (
        np.zeros(3, int),
        np.full(2 * problem.num_nodes, 3),
        np.full(2 * problem.num_nodes, -1),
    ):
        with pytest.raises(mg.errors.InvalidActionError, match="0 to 2"):
            env.unwrapped.step(wrong)
    played = gymnasium.make(
        "mallocgame/Placement-v0", program="resnet50_b1.tpu_v4i_16mib", hierarchy=None
    )
    _, info = played.reset()
    program = mg.load_program("resnet50_b1.tpu_v4i_16mib")
    assert info["baseline_ps"] == mg.simulate(program, program.xla_plan).latency_ps
    assert played.step(np.zeros(played.action_space.shape, int))[4]["latency_ps"] > 0


def test_measurements_spread_around_the_latency_as_the_seed_says(problem):
    latency_ps = problem.baseline_ps
    measured = [problem.evaluate(problem.baseline_map, 0.03, seed) for seed in range(400)]
    over = np.array([one.latency_ps for one in measured]) / latency_ps
    assert abs(over.mean() - 1) < 0.01 and over.std() == pytest.approx(0.03, rel=0.15)
    assert measured[7] == problem.evaluate(problem.baseline_map, 0.03, 7)
    assert measured[7].reward == pytest.approx(over[7] ** -2)
    with pytest.raises(mg.InvalidInputError, match=r"noise: found 0.3.*, allowed: 0 to 0.2"):
        problem.evaluate(problem.baseline_map, 0.3)


def test_an_environment_with_noise_follows_its_seed():
    import gymnasium

    def play(noise: float, seed: int) -> list[int]:
        env = gymnasium.make("mallocgame/Placement-v0", program=PROGRAM, noise=noise)
        told = []
        for episode in range(3):
            _, info = env.reset(seed=seed if episode == 0 else None)
            told.append(env.step(info["baseline_map"].ravel())[4]["latency_ps"])
        return told

    assert play(0.02, 1) == play(0.02, 1) != play(0.02, 2)
    assert len(set(play(0.02, 1))) == 3 and len(set(play(0, 1))) == 1
