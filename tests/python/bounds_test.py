"""Lower bounds are never above any valid plan's latency.

Random programs and the whole corpus show it.
"""

import csv
import dataclasses
import json
import pathlib
import pickle
import random
import shutil
import subprocess

import numpy as np
import pytest
from conftest import OTHER, SMALL, SOURCE_ROOT

import mallocgame as mg
from mallocgame.bounds.linear import Linear
from mallocgame.programs import suite

# Random programs, and of how many the integer programme is solved too.
NUMBERS = [
    pytest.param(100, 20, marks=pytest.mark.full),
    pytest.param(1000, 150, marks=pytest.mark.weekly),
]


def tiny_programs(count: int, folder: pathlib.Path) -> list[mg.Program]:
    """Random programs, written by a tool of the C++ tests."""
    built = sorted(map(str, SOURCE_ROOT.glob("build/*/tests/support/make_programs")))
    tool = built[0] if built else shutil.which("make_programs")
    if tool is None:
        pytest.skip("make_programs is not built: bash tests/run.sh does")
    subprocess.run([tool, folder, str(count), "1"], check=True)
    return [mg.load_program(folder / f"{i}.mgp") for i in range(count)]


def plans(program: mg.Program, seed: int):
    """Returns plans of the game, good and random ones, and variations that it can't make.

    All are valid.
    """
    game = mg.Game(program, min_buffer_bytes=0)
    for solver, evaluations in (
        ("greedy", 1),
        ("random", 10),
        ("rent", 0),
        ("packing", 300),
        ("exact", 300),
    ):
        result = mg.solve(game, solver, seconds=0, evaluations=evaluations, seed=seed)
        yield result.plan
    generator = random.Random(seed)
    for _ in range(15):
        plan = varied(json.loads(result.plan.to_json(program)), program.ticks, generator)
        try:
            plan = mg.Plan.from_json(json.dumps(plan), program)
        except mg.InvalidInputError:
            continue
        if mg.validate(program, plan).ok:
            yield plan


def varied(plan: dict, ticks: int, generator: random.Random) -> dict:
    """One prefetch begins elsewhere, in one piece or in two, or one residence ends elsewhere."""
    prefetches = [
        copy for copy in plan["copies"] if copy["kind"] == "prefetch" and not copy.get("preload")
    ]
    if not plan["residences"]:
        return plan
    if not prefetches or generator.random() < 0.3:
        generator.choice(plan["residences"])["end"] = generator.randint(0, ticks)
        return plan
    copy = generator.choice(prefetches)
    residence = plan["residences"][copy["residence"]]
    residence["begin"] = copy["begin"] = generator.randint(0, copy["end"])
    size = copy["part_end"] - copy["part_begin"]
    if size > 1 and generator.random() < 0.5:
        cut = copy["part_begin"] + generator.randint(1, size - 1)
        plan["copies"].append(
            copy | {"part_begin": cut, "begin": generator.randint(copy["begin"], copy["end"])}
        )
        copy["part_end"] = cut
    plan["copies"].sort(key=lambda one: one["begin"])
    return plan


@pytest.mark.parametrize(("count", "integer"), NUMBERS)
def test_bounds_of_random_programs_are_below_every_plan(count, integer, tmp_path):
    pytest.importorskip("highspy")
    reached = better = variations = integer_reached = integer_better = near = 0
    for seed, program in enumerate(tiny_programs(count, tmp_path)):
        least, lp = mg.bounds.bound(program), mg.bounds.bound(program, "lp", seconds=0)
        assert (least.name, least.status, lp.name, lp.status) == (
            "no-contention",
            "optimal",
            "lp",
            "optimal",
        )
        assert least.bound_ps <= lp.bound_ps
        latencies = [mg.simulate(program, plan).latency_ps for plan in plans(program, seed)]
        assert min(latencies) >= lp.bound_ps, f"program {seed}: bound {lp.bound_ps}"
        risen = mg.bounds.bound(program, "lagrangian", seconds=0)
        assert risen.status == "converged"
        assert least.bound_ps <= risen.bound_ps <= min(latencies), f"program {seed}"
        mg.bounds.verify(program, risen)
        near += risen.bound_ps >= 0.995 * lp.bound_ps - 1
        any_order = mg.bounds.bound(program, "any-order")
        assert least.bound_ps <= any_order.bound_ps <= min(latencies), f"program {seed}"
        if seed < integer:
            milp = mg.bounds.bound(program, "milp", seconds=0)
            assert (milp.name, milp.status) == ("milp", "optimal")
            assert lp.bound_ps * (1 - 3e-5) - 1 <= milp.bound_ps <= min(latencies)
            integer_reached += min(latencies) <= milp.bound_ps * (1 + 3e-5)
            integer_better += milp.bound_ps > lp.bound_ps * (1 + 1e-3)
        reached += min(latencies) == lp.bound_ps
        better += lp.bound_ps > least.bound_ps
        variations += len(latencies) - 6
    # Else the test could not fail: bounds of nothing, plans far away, no plans but the game's.
    assert near > 0.9 * count
    assert reached > count // 20 and better > count // 2 and variations > count
    assert integer_reached > integer // 10 and integer_better > integer // 4


@pytest.mark.parametrize("name", mg.program_names())
def test_no_contention_of_the_corpus(name):
    program = mg.load_program(name)
    assert (
        0 < mg.bounds.bound(program).bound_ps <= mg.simulate(program, program.xla_plan).latency_ps
    )


@pytest.mark.parametrize(
    "name", [SMALL, OTHER, "wavernn_64steps_b8.tpu_v4i", "tensornet_tt_b32.tpu_v4i_16mib"]
)
def test_lp_of_the_corpus(name):
    pytest.importorskip("highspy")
    program = mg.load_program(name)
    lp = mg.bounds.bound(program, "lp", seconds=0)
    assert lp.status == "optimal" and lp.bound_ps >= mg.bounds.bound(program).bound_ps
    assert lp.bound_ps <= mg.simulate(program, program.xla_plan).latency_ps
    for solver in ("greedy", "random", "anneal"):
        assert lp.bound_ps <= mg.solve(program, solver, seconds=0, evaluations=30).report.latency_ps


@pytest.mark.parametrize(
    "name",
    [
        SMALL,
        "resnet50_b64.tpu_v4i",
        "mlp_train_adam_b512.tpu_v4i_16mib",
        pytest.param("llama_1b_decode_8l_b4_kv1024.tpu_v5e", marks=pytest.mark.full),
        pytest.param("llama_3b_paged_decode_4l_b16_kv1024.tpu_v6e", marks=pytest.mark.full),
    ],
)
def test_the_lagrangian_bound_is_near_the_linear_programme(name):
    """On the last four `lp` is 4, 11, 94 and 13 % above no-contention."""
    program = mg.load_program(name)
    recorded = json.loads(
        (pathlib.Path(mg.__file__).parent / "programs" / "suites.json").read_text("utf-8")
    )["programs"][name]
    seen = []
    risen = mg.bounds.bound(
        program, "lagrangian", seconds=0, progress=lambda seconds, value: seen.append(value)
    )
    assert risen.status == "converged" and seen == sorted(seen)
    assert abs(seen[-1] - risen.bound_ps) <= 1e-5 * risen.bound_ps
    assert 0.999 * recorded["lp_ps"] <= risen.bound_ps <= recorded["xla_ps"]
    again = mg.bounds.bound(program, "lagrangian", seconds=0)
    assert again == risen
    assert np.array_equal(again.certificate.multipliers, risen.certificate.multipliers)


def test_a_certificate_is_checked_in_integers(program):
    risen = mg.bounds.bound(program, "lagrangian", seconds=0)
    mg.bounds.verify(program, risen)
    mg.bounds.verify(program, pickle.loads(pickle.dumps(risen)))
    for claimed in (risen.bound_ps + 1, 2 * risen.bound_ps):
        with pytest.raises(mg.InvalidInputError, match=f"{claimed} ps, but .* {risen.bound_ps} ps"):
            mg.bounds.verify(program, dataclasses.replace(risen, bound_ps=claimed))
    own = risen.certificate
    for multipliers in (own.multipliers[1:], own.multipliers - 2**40, own.multipliers + 2**40):
        damaged = dataclasses.replace(own, multipliers=multipliers)
        with pytest.raises(mg.InvalidInputError, match="multipliers"):
            mg.bounds.verify(program, dataclasses.replace(risen, certificate=damaged))
    with pytest.raises(mg.InvalidInputError, match="no certificate"):
        mg.bounds.verify(program, mg.bounds.bound(program))


def test_lp_without_the_time_for_it_is_the_lagrangian_bound():
    """This program's linear programme takes a second."""
    pytest.importorskip("highspy")
    program = mg.load_program("llama_1b_decode_8l_b4_kv1024.tpu_v5e")
    stopped = mg.bounds.bound(program, "lp", seconds=0.6)
    assert stopped.status == "stopped"
    assert stopped.bound_ps > 1.2 * mg.bounds.bound(program).bound_ps
    mg.bounds.verify(program, stopped)


@pytest.mark.parametrize(
    ("name", "gap"),
    [
        pytest.param("resnet50_b64.tpu_v4i", 1e-3, marks=pytest.mark.full),
        pytest.param("mlp_train_adam_b512.tpu_v4i_16mib", 5e-3, marks=pytest.mark.weekly),
    ],
)
def test_good_plans_are_near_the_integer_bound(name, gap):
    """Without a limit of time, so that a busy machine changes nothing."""
    pytest.importorskip("highspy")
    program = mg.load_program(name)
    milp = mg.bounds.bound(program, "milp", seconds=0)
    assert milp.status == "optimal"
    found = mg.solve(program, "packing", seconds=0, evaluations=20_000).report.latency_ps
    assert milp.bound_ps <= found <= milp.bound_ps * (1 + gap)


def test_small_buffers_can_take_space_too():
    """The fewer are free, the higher the bound; a good plan is above it all the same."""
    pytest.importorskip("highspy")
    program = mg.load_program("mlp_train_adam_b512.tpu_v5e")
    free = mg.bounds.bound(program, "lp", seconds=0)
    none_free = mg.bounds.bound(program, "lp", free_below_bytes=0, seconds=0)
    assert (free.status, none_free.status) == ("optimal", "optimal")
    found = mg.solve(program, "packing", seconds=0, evaluations=5000).report.latency_ps
    assert free.bound_ps < none_free.bound_ps <= found
    all_free = mg.bounds.bound(
        program, "lp", free_below_bytes=program.hardware.fast_bytes + 1, seconds=0
    )
    assert mg.bounds.bound(program).bound_ps <= all_free.bound_ps < free.bound_ps


def test_a_value_is_not_copied_before_its_writer_is_done():
    """The bound of this program was 2 % lower when a writer's idle time could copy its result."""
    pytest.importorskip("highspy")
    program = mg.load_program("alphatensor_b4.tpu_v4i")
    found = mg.solve(program, "packing", seconds=0, evaluations=3_000).report.latency_ps
    assert found <= 1.002 * mg.bounds.bound(program, "lp", seconds=0).bound_ps


@pytest.mark.parametrize("name", ["lp", "milp"])
def test_a_bound_that_is_stopped_at_once_still_holds(name):
    pytest.importorskip("highspy")
    program = mg.load_program("llama_1b_decode_8l_b4_kv1024.tpu_v5e")
    stopped = mg.bounds.bound(program, name, seconds=1e-3)
    assert stopped.status == "stopped" and stopped.bound_ps >= mg.bounds.bound(program).bound_ps


def test_recorded_bounds_and_suites():
    bundled = pathlib.Path(mg.__file__).parent / "programs" / "suites.json"
    recorded = json.loads(bundled.read_text(encoding="utf-8"))
    assert sorted(recorded["programs"]) == mg.program_names() == suite("all")
    with open(SOURCE_ROOT / "benchmarks/quality/tables/suites.csv", newline="") as file:
        table = {row[0]: row[1:4] for row in csv.reader(file)}
    for name, entry in recorded["programs"].items():
        program = mg.load_program(name)
        assert entry["fingerprint"] == program.fingerprint, (
            f"{name}: run benchmarks/quality/suites.py"
        )
        assert (
            entry["no_contention_ps"]
            == mg.bounds.bound(program).bound_ps
            <= entry["lp_ps"]
            <= entry["xla_ps"]
        )
        assert entry["xla_ps"] == mg.simulate(program, program.xla_plan).latency_ps
        assert entry["lp_ps"] * (1 - 3e-5) <= entry["milp_ps"] <= entry["xla_ps"]
        gain = entry["xla_ps"] / entry["milp_ps"] - 1
        if name in suite("core"):
            assert gain >= 0.02 if name in suite("contended") else gain < 0.03
        bounds = [f"{entry[f'{bound}_ps'] / 1e6:.1f}" for bound in ("no_contention", "lp", "milp")]
        assert table[name] == bounds


def test_any_duals_prove_a_bound():
    """minimise 3x + 2y with x + y >= 1.5 and x, y in [0, 1]: the optimum is 3.5."""
    linear = Linear()
    x, y = linear.column(cost=3.0), linear.column(cost=2.0)
    linear.row([(x, 1.0), (y, 1.0)], low=1.5)
    assert linear.certified(np.array([3.0])) == pytest.approx(3.5)
    for dual in (-5.0, 0.0, 1.0, 2.5, 4.0, 100.0, np.nan):
        assert linear.certified(np.array([dual])) <= 3.5


def test_wrong_arguments(program):
    with pytest.raises(mg.InvalidInputError, match="any-order, lagrangian, lp, milp"):
        mg.bounds.bound(program, "ip")
    with pytest.raises(mg.InvalidInputError, match="seconds"):
        mg.bounds.bound(program, "lp", seconds=-1)
    with pytest.raises(mg.InvalidInputError, match="free_below_bytes must be >= 0, found -1"):
        mg.bounds.bound(program, "lp", free_below_bytes=-1)
    with pytest.raises(mg.InvalidInputError, match="contended"):
        suite("contentious")


def test_compare_with_bounds_csv_and_plot(run, run_json, tmp_path):
    pytest.importorskip("highspy")
    pytest.importorskip("matplotlib")
    options = [
        "--solvers",
        "greedy,all-main",
        "--bound",
        "lp",
        "--csv",
        "out.csv",
        "--plot",
        "out.png",
    ]
    rows = run_json("compare", OTHER, *options)["results"]
    assert {(row["bound_name"], row["bound_status"]) for row in rows} == {("lp", "optimal")}
    assert all(0 < row["bound_ps"] <= row["latency_ps"] for row in rows)
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0].split(",") == list(rows[0]) and len(lines) == 3
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    table = run("compare", "llama_1b_decode_8l_b4_kv1024.tpu_v4i_16mib", "--solvers", "greedy")
    assert max(map(len, table.stdout.splitlines())) <= 80 and "gap" in table.stdout
    nothing = run("compare")
    assert nothing.returncode == 2 and "--suite" in nothing.stderr
