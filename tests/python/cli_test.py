"""The command line as users run it: keys, exit statuses, one line of error."""

import argparse
import itertools
import json
import re

import pytest
from conftest import OTHER, SMALL

import mallocgame as mg
from mallocgame._cli import parser
from mallocgame._cli.main import main
from mallocgame.programs import suite

PLAN_KEYS = [
    "program",
    "hardware",
    "solver",
    "status",
    "valid",
    "latency_ps",
    "latency_cold_ps",
    "all_main_ps",
    "xla_ps",
    "xla_cold_ps",
    "xla_invalid",
    "bound_ps",
    "bound_name",
    "bound_status",
    "speedup_cold_vs_xla",
    "speedup_vs_xla",
    "calibrated_cold_ps",
    "calibrated_ps",
    "xla_calibrated_cold_ps",
    "xla_calibrated_ps",
    "speedup_calibrated_cold_vs_xla",
    "speedup_calibrated_vs_xla",
    "seconds",
    "seed",
]
PROGRAM_KEYS = [
    "program",
    "hardware",
    "instructions",
    "buffers",
    "eligible_buffers",
    "accesses",
    "argument_bytes",
    "all_main_ps",
    "xla_ps",
    "xla_cold_ps",
    "xla_valid",
    "xla_invalid",
    "cost_model",
]


LLAMA = "llama_1b_decode_8l_b4_kv1024.tpu_v4i"


def refused(done, *parts: str) -> None:
    """Exit status 2, nothing on standard output, one line that names each of the parts."""
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    for part in parts:
        assert part in lines[0], lines[0]


@pytest.fixture
def plan(run, tmp_path):
    done = run("solve", SMALL, "--solver", "greedy", "-o", "plan.json", "--log", "game.mgr")
    assert done.returncode == 0, done.stderr
    return tmp_path / "plan.json"


def test_programs(run, run_json):
    rows = run_json("programs")["programs"]
    assert [row["program"] for row in rows] == mg.program_names()
    for row in rows:
        assert list(row) == PROGRAM_KEYS
        assert row["xla_valid"] is True and row["cost_model"] == "profile"
        assert 0 < row["xla_ps"] <= row["xla_cold_ps"]
        assert row["xla_ps"] < row["all_main_ps"] or row["program"] not in suite("core")
    table = run("programs")
    assert table.returncode == 0 and max(map(len, table.stdout.splitlines())) <= 80
    squeezed = re.sub(r"\s+", "", table.stdout)
    assert all(name in squeezed for name in mg.program_names())


def test_solve(run, run_json, tmp_path):
    row = run_json(
        "solve", SMALL, "--solver", "greedy", "--seed", 4, "-o", "p.json", "--log", "g.mgr"
    )
    assert list(row) == PLAN_KEYS
    assert (row["program"], row["hardware"], row["solver"], row["seed"]) == (
        SMALL,
        "tpu_v4i",
        "greedy",
        4,
    )
    assert row["valid"] is True and row["latency_ps"] < row["all_main_ps"]
    assert row["speedup_vs_xla"] == pytest.approx(row["xla_ps"] / row["latency_ps"])
    again = run_json("simulate", SMALL, "p.json")
    assert list(again)[: len(PLAN_KEYS)] == PLAN_KEYS
    assert again["latency_ps"] == row["latency_ps"] == again["compute_ps"] + again["stall_ps"]
    assert again["solver"] is None and again["seed"] is None
    text = run("solve", SMALL)
    assert text.returncode == 0 and text.stderr == ""
    assert "XLA" in text.stdout and max(map(len, text.stdout.splitlines())) <= 80


def test_searched_games_are_logged_with_the_search(run, tmp_path):
    done = run("solve", SMALL, "--solver", "mcts", "--seconds", 0.5, "--log", "game.mgr")
    assert done.returncode == 0, done.stderr
    log = mg.load_log(tmp_path / "game.mgr")
    assert log.search_visits.shape == log.search_values.shape == (len(log.actions), 20)
    assert log.search_visits[0].sum() > 0
    assert run("replay", "game.mgr").returncode == 0
    assert run("view", "game.mgr", "-o", "page.html").returncode == 0
    assert run("solve", SMALL, "--solver", "greedy", "--log", "game.mgr").returncode == 0
    assert mg.load_log(tmp_path / "game.mgr").search_visits.shape == (0, 4)


def test_a_plan_without_a_game_is_shown_and_written(run, tmp_path):
    """Only the game can't be: by then the solver may have taken hours."""
    pytest.importorskip("matplotlib")
    command = ["solve", SMALL, "--solver", "xla-assigned", "--log", "game.mgr"]
    done = run(*command, "-o", "plan.json", "--plot", "curve.png", "--json")
    row = json.loads(done.stdout)
    assert done.returncode == 2 and list(row) == PLAN_KEYS
    assert done.stderr.splitlines() == [
        "mallocgame solve: record: the plan of solver 'xla-assigned' was not made by playing a game"
    ]
    program = mg.load_program(SMALL)
    plan = mg.load_plan(tmp_path / "plan.json", program)
    assert mg.simulate(program, plan).latency_ps == row["latency_ps"]
    assert (tmp_path / "curve.png").exists() and not (tmp_path / "game.mgr").exists()
    text = run(*command)
    assert text.returncode == 2 and "XLA" in text.stdout and "by playing a game" in text.stderr


def test_an_priority_game_is_solved_logged_replayed_and_shown(run, run_json, tmp_path):
    options = ["--game", "priority", "--seconds", 0.5, "--log", "game.mgr"]
    assert run_json("solve", SMALL, "--solver", "mcts", *options)["valid"]
    log = mg.load_log(tmp_path / "game.mgr")
    game = log.game(mg.load_program(SMALL))
    assert game.kind == "priority" and log.search_visits.shape[1] == game.num_actions
    assert run("replay", "game.mgr").returncode == 0
    assert run("view", "game.mgr", "-o", "page.html").returncode == 0
    refused(
        run("solve", SMALL, "--solver", "rent", "--game", "priority"), "the time game only", "mcts"
    )
    refused(run("solve", SMALL, "--game", "chess"), "chess")
    rows = run_json("compare", SMALL, "--solvers", "greedy,anneal", *options[:4])["results"]
    assert all(row["valid"] for row in rows)


def test_more_preloads(run, run_json, tmp_path):
    pytest.importorskip("highspy")
    program, preloads, bounds = mg.load_program(SMALL), [], []
    for number in (0, 1, 4):
        options = ["--preloads", number, "--seconds", 0, "--evaluations", 6000]
        row = run_json(
            "solve", SMALL, "--solver", "packing", *options, "-o", "plan.json", "--bound", "lp"
        )
        assert row["valid"] and row["latency_ps"] <= row["latency_cold_ps"]
        assert (row["xla_ps"] is None) == (number == 0)  # XLA's plan preloads one
        bounds.append(row["bound_ps"])
        assert bounds[-1] <= row["latency_ps"]
        preloads.append(mg.load_plan(tmp_path / "plan.json", program).copies["preload"].sum())
        again = run_json("simulate", SMALL, "plan.json", "--preloads", number)
        assert (again["latency_ps"], again["valid"]) == (row["latency_ps"], True)
    # Of equal optima the proven bounds differ by the solver's last digits.
    assert preloads == [0, 1, 4]
    assert all(more <= fewer * (1 + 1e-6) for fewer, more in itertools.pairwise(bounds))
    few = run("validate", SMALL, "plan.json")
    assert few.returncode == 1 and "preloaded, the hardware allows 1" in few.stdout
    refused(run("solve", SMALL, "--preloads", 2_000_000), "max_preloads", "2000000")


def test_log_keeps_the_preloads(run_json, tmp_path):
    options = ["--preloads", 3, "--seconds", 0, "--evaluations", 300]
    row = run_json("solve", LLAMA, "--solver", "anneal", *options, "--log", "game.mgr")
    log = mg.load_log(tmp_path / "game.mgr")
    assert log.hardware.max_preloads == 3 and log.plan.copies["preload"].sum() > 1
    again = run_json("replay", "game.mgr")
    assert again["same"] and again["valid"] and again["latency_ps"] == row["latency_ps"]


def test_solve_on_other_hardware(run_json, tmp_path):
    row = run_json("solve", SMALL, "--hardware", "tpu_v4i_16mib")
    assert (
        row["hardware"] == "tpu_v4i_16mib"
        and row["xla_ps"] is None
        and row["speedup_vs_xla"] is None
    )
    path = tmp_path / "mine.json"
    path.write_text(mg.hardware("tpu_v4i_16mib").to_json())
    assert run_json("solve", SMALL, "--hardware", path)["latency_ps"] == row["latency_ps"]


def test_compare(run, run_json):
    document = run_json(
        "compare", SMALL, OTHER, "--solvers", "greedy,xla-assigned,all-main", "--seconds", 5
    )
    assert list(document) == ["results", "summary"]
    rows = document["results"]
    assert [(row["program"], row["solver"]) for row in rows] == [
        (name, solver)
        for name in (SMALL, OTHER)
        for solver in ("greedy", "xla-assigned", "all-main")
    ]
    assert all(list(row) == PLAN_KEYS and row["valid"] for row in rows)
    assert document["summary"]["xla-assigned"]["geomean_speedup_vs_xla"] == pytest.approx(1.0)
    assert document["summary"]["all-main"]["geomean_speedup_vs_all_main"] == pytest.approx(1.0)
    expected = (rows[0]["speedup_vs_xla"] * rows[3]["speedup_vs_xla"]) ** 0.5
    assert document["summary"]["greedy"]["geomean_speedup_vs_xla"] == pytest.approx(expected)
    table = run("compare", SMALL, "--solvers", "greedy")
    assert table.returncode == 0 and max(map(len, table.stdout.splitlines())) <= 80


def test_compare_without_xlas_plan(run_json):
    rows = run_json(
        "compare", SMALL, "--solvers", "greedy,xla-assigned", "--hardware", "tpu_v4i_16mib"
    )["results"]
    assert [row["status"] for row in rows][1] == "unavailable"
    assert list(rows[1]) == PLAN_KEYS and rows[1]["latency_ps"] is None and rows[1]["valid"] is None


def test_validate(run, run_json, plan, tmp_path):
    row = run_json("validate", SMALL, plan)
    assert list(row)[: len(PLAN_KEYS)] == PLAN_KEYS
    assert row["valid"] is True and row["rule"] == "none"
    document = json.loads(plan.read_text())
    document["residences"][0]["offset"] += 1
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps(document))
    done = run("validate", SMALL, broken, "--json")
    assert done.returncode == 1
    row = json.loads(done.stdout)
    assert row["valid"] is False and row["rule"] == "space" and row["message"]
    text = run("validate", SMALL, broken)
    assert text.returncode == 1 and "space" in text.stdout


def test_replay(run, run_json, plan, tmp_path):
    row = run_json("replay", "game.mgr")
    assert list(row)[: len(PLAN_KEYS)] == PLAN_KEYS
    assert row["same"] is True and row["solver"] == "greedy" and row["seed"] == 0
    mg.save_program(mg.load_program(SMALL), tmp_path / "mine.mgp")
    assert run_json("replay", "game.mgr", "--program", "mine.mgp")["same"] is True
    assert run("replay", "game.mgr").returncode == 0
    refused(run("replay", "game.mgr", "--program", OTHER), mg.load_program(OTHER).fingerprint)
    refused(run("replay", plan), "plan.json")


def test_unusable_names(run):
    refused(run("solve", "resnet50_b1.tpu_v4"), "resnet50_b1.tpu_v4i")
    refused(run("solve", "./none.mgp"), "none.mgp")
    refused(run("solve", SMALL, "--hardware", "tpu_v9"), "tpu_v9", "tpu_v5e")
    refused(run("solve", SMALL, "--solver", "gready"), "gready", "greedy")
    refused(run("compare", SMALL, "--solvers", "greedy,gready"), "gready")
    refused(run("solve", SMALL, "--seconds", "-1"), "-1")
    refused(run("solve", SMALL, "--seconds", "nan"), "nan")
    refused(run("solve", SMALL, "--seed", "x"), "seed")
    refused(run("solve"), "PROGRAM")
    refused(run("guess"), "guess")
    refused(run(), "COMMAND")


def test_unusable_files(run, plan, tmp_path):
    refused(
        run("validate", OTHER, plan),
        mg.load_program(OTHER).fingerprint,
        mg.load_program(SMALL).fingerprint,
    )
    refused(run("simulate", SMALL, "none.json"), "none.json")
    (tmp_path / "noise.json").write_bytes(bytes(range(256)))
    refused(run("simulate", SMALL, "noise.json"), "noise.json")
    (tmp_path / "cut.json").write_text(plan.read_text()[:200])
    refused(run("validate", SMALL, "cut.json"), "cut.json")
    refused(run("solve", SMALL, "-o", "no/such/folder/plan.json"), "no/such/folder")
    refused(run("solve", SMALL, "--log", tmp_path), str(tmp_path))
    refused(run("solve", plan), "plan.json")


def test_options_of_other_agents(tmp_path, capsys):
    """None is ignored: neither a flag, nor 0, nor what another agent has by itself."""
    out = tmp_path / "out"
    for command, option, whose in (
        (["muzero", SMALL], ["--one-agent"], "egrl's, found the agent muzero"),
        (["egrl", SMALL], ["--most-stale", "0"], "muzero's, found the agent egrl"),
    ):
        # Were the option ignored, this setting would keep the training from beginning.
        never = ["--config", "no_such_setting=1"]
        assert main(["train", *command, "--out", str(out), *option, *never]) == 2
        assert capsys.readouterr().err == f"mallocgame train: {option[0]}: is {whose}\n"
    assert not out.exists()


def test_types_of_arguments():
    assert parser.count("0") == 0 and parser.positive("1") == 1
    assert parser.seconds("0") == parser.gibibytes("0") == 0 and parser.seconds("1.5") == 1.5
    assert parser.seconds_to_spend("0.5") == 0.5
    for kind, text, allowed in (
        (parser.count, "-1", "0 and above"),
        (parser.count, "1.5", "an integer"),
        (parser.positive, "0", "1 and above"),
        (parser.seconds, "-1", "0 (no limit) and above"),
        (parser.seconds, "nan", "0 (no limit) and above"),
        (parser.seconds, "soon", "0 (no limit) and above"),
        (parser.seconds_to_spend, "0", "more than 0; it ends only when its time is over"),
    ):
        with pytest.raises(argparse.ArgumentTypeError, match=f"^found {text}, ") as error:
            kind(text)
        assert allowed in str(error.value)


def test_no_limit_of_time(run, run_json, tmp_path):
    """0 means no limit, but for work that goes on until its time is over."""
    assert run_json("solve", SMALL, "--seconds", 0)["valid"] is True
    assert run_json("solve", SMALL, "--solver", "random", "--seconds", 0, "--evaluations", 3)
    (tmp_path / "a.csv").write_text("id,lower,upper,size\n0,0,2,4\n1,1,3,4\n")
    assert run_json("offsets", "a.csv", "--capacity", 8, "--seconds", 0)["height"] == 8
    for command in (("tune", "gcn_dense_2048"), ("check", "gcn_dense_2048")):
        refused(run("xla", *command, "--seconds", 0), "--seconds", "found 0", "more than 0")
    for option in ("--compile-seconds", "--memory-gib"):
        done = run("xla", "apply", tmp_path, "xla-assigned", option, 0)
        refused(done, "meta.json")  # The limits were taken; only the capture is missing.


@pytest.mark.parametrize(
    "content", [b"", b"\x0a\xff\xff\xff\x7f", bytes(range(256)) * 4, b"\x1f\x8b\x08\x00rest"]
)
def test_import_of_what_is_no_module(run, tmp_path, content):
    (tmp_path / "module.pb").write_bytes(content)
    refused(run("import", "module.pb", "--hardware", "tpu_v4i", "-o", "out.mgp"), "module")
    assert not (tmp_path / "out.mgp").exists()


def test_help_and_version(run):
    assert run("--version").stdout.strip() == f"mallocgame {mg.__version__}"
    for command in ("programs", "import", "solve", "compare", "validate", "simulate", "replay"):
        done = run(command, "--help")
        assert done.returncode == 0 and "--json" in done.stdout
