"""Searches by both sets of prices: solve, its command, and the frontier of the two."""

import pytest

import mallocgame as mg
from mallocgame.calibration import at_both_prices, calibrated, cautious
from mallocgame.frontier import frontier


@pytest.fixture(scope="module")
def program():
    names = [name for name in mg.program_names() if name.endswith("tpu_v5e")]
    return mg.load_program(min(names, key=lambda name: len(mg.load_program(name).accesses)))


def worst(program, plan):
    """The larger of a plan's two latencies, each over that of XLA's plan."""
    made = calibrated(program)
    pairs = [(program, plan, program.xla_plan)]
    pairs.append((made, plan.rebased_on(made), program.xla_plan.rebased_on(made)))
    return max(
        mg.simulate(at, now).latency_ps / mg.simulate(at, xla).latency_ps for at, now, xla in pairs
    )


def test_cautious_prices_gain_nothing_that_nobody_priced(program):
    plan = mg.solve(program, "greedy", seconds=0).plan
    seen, calibrated_seen = (cautious(each, 0.5) for each in (program, calibrated(program)))
    for known, each in ((program, seen), (calibrated(program), calibrated_seen)):
        assert each.fingerprint == known.fingerprint
        report = mg.simulate(known, plan.rebased_on(known))
        slower = mg.simulate(each, plan.rebased_on(each)).latency_ps
        assert report.predicted_ps > 0 and slower > report.latency_ps
    with pytest.raises(mg.InvalidInputError, match=r"^caution: found -1, allowed: a number from 0"):
        cautious(program, -1)


def test_a_search_by_both_is_no_slower_than_xla_by_either(program):
    both = at_both_prices(program)
    assert both.fingerprint == program.fingerprint
    found = mg.solve(both, "portfolio-xla", seconds=0, evaluations=600)
    assert worst(program, found.plan) <= 1
    assert mg.validate(program, found.plan).ok
    again = mg.solve(both, "portfolio-xla", seconds=0, evaluations=600)
    assert again.plan == found.plan


def test_a_lean_that_is_no_share_is_refused(program):
    with pytest.raises(mg.InvalidInputError, match="lean: found 2, allowed: a number from -1 to 1"):
        at_both_prices(program, 2)
    with pytest.raises(mg.InvalidInputError, match="can't have calibrated prices"):
        at_both_prices(calibrated(program))


def test_the_frontier_goes_from_one_set_of_prices_to_the_other(program):
    ends = frontier(program, seconds=0, leans=(1.0, -1.0), evaluations=400)
    assert [point.lean for point in ends] == [1.0, -1.0]
    for point in ends:
        assert point.report.latency_ps == mg.simulate(program, point.result.plan).latency_ps
        assert point.speedup == point.xla.latency_ps / point.report.latency_ps
    with pytest.raises(mg.InvalidInputError, match="needs XLA's plan"):
        frontier(program, hardware=program.hardware.replace(fast_bytes=1 << 20))


def test_the_command_prints_the_frontier(program, run, run_json, tmp_path):
    path = tmp_path / "small.mgp"
    mg.save_program(program, path)
    limits = ["--solver", "portfolio", "--seconds", "0", "--evaluations", "200"]
    picture = tmp_path / "frontier.png"
    rows = run_json("solve", path, *limits, "--frontier", "--plot", picture)["frontier"]
    assert picture.stat().st_size > 10_000
    refused = run("solve", path, *limits, "--frontier", "--log", tmp_path / "game")
    assert "--frontier finds several plans, so it takes no --log" in refused.stderr
    assert [row["lean"] for row in rows] == [1.0, 0.02, 0.0, -0.02, -1.0]
    row = run_json("solve", path, *limits, "--prices", "both")
    assert row["latency_ps"] > 0
    assert row["calibrated_ps"] > 0
    refused = run("solve", path, *limits, "--lean", "0.1")
    assert "--lean needs --prices both" in refused.stderr
