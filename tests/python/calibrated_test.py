"""Calibrated prices: what calibrated() makes, where prices= is taken, and what commands say."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from conftest import SOURCE_ROOT

import mallocgame as mg
from mallocgame.calibration import error_sentence

NAME = "muzero_unroll_b32.tpu_v5e"


@pytest.fixture(scope="module")
def program():
    return mg.load_program(NAME)


@pytest.fixture(scope="module")
def made(program):
    return mg.calibration.calibrated(program)


def test_a_calibrated_program_is_the_same_but_for_its_prices(program, made):
    law, own = mg.calibration.PriceLaw.of("tpu_v5e"), program.hardware
    assert made.cost_model == "calibrated" and program.cost_model == "profile"
    assert made.hardware.main_bytes_per_second == round(law.main_share * own.main_bytes_per_second)
    assert made.hardware.copy_latency_ps == law.copy_latency_ps
    assert made.hardware.copy_ps(1000) == made.hardware.transfer_ps(1000) + law.copy_latency_ps
    assert own.copy_latency_ps == 0 and own.copy_ps(1000) == own.transfer_ps(1000)
    assert made.instruction_names == program.instruction_names
    assert made.fingerprint != program.fingerprint
    assert made.xla_plan == program.xla_plan.rebased_on(made)
    assert mg.validate(made, made.xla_plan)
    again = mg.Program.from_bytes(made.to_bytes())
    assert again.fingerprint == made.fingerprint and again.hardware == made.hardware
    assert again.pools == made.pools


def test_every_bundled_program_says_what_its_instructions_do():
    for name in mg.program_names():
        program = mg.load_program(name)
        assert all(work != "unknown" for work, *_ in program.pools), name
        assert mg.calibration.PriceLaw.of(program.hardware.name).speed > 0


def test_rows_are_monotone(made):
    for _, _, rows in made.pools:
        for operands, results, cycles in rows:
            for its_operands, its_results, its_cycles in rows:
                if not operands & ~its_operands and not results & ~its_results:
                    assert its_cycles <= cycles


def test_prices_are_chosen_by_name(program, made):
    assert mg.load_program(NAME, prices="calibrated").fingerprint == made.fingerprint
    assert mg.load_program(NAME, prices="compiler").fingerprint == program.fingerprint
    plan = mg.solve(program, "greedy").plan
    report = mg.simulate(program, plan, prices="calibrated")
    assert report == mg.simulate(made, plan.rebased_on(made)) != mg.simulate(program, plan)
    smaller = mg.hardware("tpu_v5e").replace(fast_bytes=32 << 20)
    assert mg.calibration.calibrated(program, smaller).hardware.fast_bytes == 32 << 20
    assert mg.calibration.calibrated(program, smaller).xla_plan is None
    with pytest.raises(mg.InvalidInputError, match=r"prices: found .*, allowed: 'compiler', 'cal"):
        mg.load_program(NAME, prices="real")


def test_what_cant_be_calibrated_is_refused(program, made):
    with pytest.raises(mg.InvalidInputError, match="has them already"):
        mg.calibration.calibrated(made)
    other = program.hardware.replace(name="gpu")
    with pytest.raises(mg.InvalidInputError, match="hardware 'gpu' has no calibrated prices"):
        mg.calibration.calibrated(program, other)
    with pytest.raises(mg.InvalidInputError, match="main_share is 200, allowed are above 0 to 100"):
        mg.calibration.PriceLaw(main_share=200.0)
    assert (
        mg.calibration.calibrated(program, other, mg.calibration.PriceLaw()).cost_model
        == "calibrated"
    )


def test_games_are_played_at_calibrated_prices(made):
    pytest.importorskip("gymnasium")
    for name in ("packing", "greedy"):
        result = mg.solve(made, name, seconds=1)
        assert mg.validate(made, result.plan)
        assert mg.simulate(made, result.plan).latency_ps == result.report.latency_ps
    for game in ("time", "priority"):
        env = mg.MallocGameEnv(NAME, observation="compact", game=game, prices="calibrated")
        env.reset(seed=0)
        total, done = 0.0, False
        while not done:
            action = int(np.flatnonzero(env.action_masks())[-1])
            _, reward, done, _, info = env.step(action)
            total += reward
        all_main = mg.simulate(made, mg.all_main_plan(made)).latency_ps
        assert total == pytest.approx(1 - info["latency_ps"] / all_main)
    envs = mg.VectorEnv(2, [NAME], hardware="tpu_v5e", prices="calibrated")
    assert envs.games[0].program.fingerprint == made.fingerprint


def answer(*arguments):
    command = [sys.executable, "-m", "mallocgame", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def test_commands_say_both(tmp_path, program, made):
    plan = tmp_path / "plan.json"
    limits = ("--solver", "greedy", "--seconds", "1")
    row = json.loads(answer("solve", NAME, *limits, "-o", str(plan), "--json"))
    report = mg.simulate(program, mg.load_plan(plan, program), prices="calibrated")
    own = mg.simulate(made, made.xla_plan)
    assert row["calibrated_ps"] == report.latency_ps
    assert row["calibrated_cold_ps"] == report.latency_cold_ps
    assert row["xla_calibrated_ps"] == own.latency_ps
    assert row["speedup_calibrated_vs_xla"] == own.latency_ps / report.latency_ps
    assert row["speedup_calibrated_cold_vs_xla"] == own.latency_cold_ps / report.latency_cold_ps
    assert row["speedup_cold_vs_xla"] == row["xla_cold_ps"] / row["latency_cold_ps"]
    simulated = json.loads(answer("simulate", NAME, str(plan), "--json"))
    assert simulated["calibrated_ps"] == row["calibrated_ps"]
    text = answer("simulate", NAME, str(plan))
    assert "calibrated" in text and text.index("cold") < text.index("warm")
    limits = ("--solvers", "greedy", "--seconds", "1")
    compared = json.loads(answer("compare", NAME, *limits, "--json"))
    (only,) = compared["results"]
    assert only["speedup_calibrated_vs_xla"] == row["speedup_calibrated_vs_xla"]
    assert compared["summary"]["greedy"]["geomean_speedup_calibrated_cold_vs_xla"] == pytest.approx(
        row["speedup_calibrated_cold_vs_xla"]
    )
    text = answer("compare", NAME, *limits)
    assert "calibrated" in text and max(map(len, text.splitlines())) <= 80


def test_a_plan_that_is_slower_by_either_is_no_faster_program(program):
    claims = pytest.importorskip("mallocgame.xla.claims")
    xla = mg.simulate(program, program.xla_plan)
    all_main = mg.all_main_plan(program)
    main = mg.simulate(program, all_main)
    assert main.latency_ps > xla.latency_ps
    assert not claims.is_faster(xla, main) and not claims.is_faster(xla, xla)
    assert claims.is_faster(main, xla)
    known = claims.calibrated_of(program, all_main, program.xla_plan, claims.WHOLE)
    assert known.speedup < 1 and known.speedup_cold < 1
    numbers = claims.calibrated_numbers(known)
    assert numbers["speedup_calibrated"] == known.speedup
    assert numbers["xla_calibrated_cold_ps"] == known.xla.latency_cold_ps
    assert set(claims.calibrated_numbers(None).values()) == {None}


def test_commands_say_the_errors_of_the_page():
    page = (SOURCE_ROOT / "docs/results/measured.md").read_text()
    reviewed = " ".join(page.partition("a reviewer")[2][:250].split())
    for chip in ("v5p", "v6e", "tpu7x"):
        (held,) = re.findall(rf"^\| {chip} \|.*\| ([\d.]+) \|$", page, re.MULTILINE)
        (others,) = re.findall(rf"(\d+) % on {chip}\b", reviewed)
        name = chip if chip.startswith("tpu") else f"tpu_{chip}"
        said = error_sentence(f"{name}_16mib")
        assert said == (
            f"Calibrated prices of {name} have a median error of {float(held):.0%} to {others}% on "
            "published times."
        )
    assert error_sentence("tpu_v4i").startswith("Too few published times")
