"""The suite of whole models: what is bundled, what is made, and what is said of the rest."""

import os
import pathlib

import pytest
from conftest import SMALL

import mallocgame as mg
from mallocgame import programs

NAMES = programs.suite("large")
BUNDLED = sorted(
    path.stem for path in (pathlib.Path(programs.__file__).parent / "large").glob("*.mgp")
)
UNBUNDLED = [name for name in NAMES if name not in BUNDLED]


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The folder of programs that are made, of a user who has made none."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return pathlib.Path(programs.made_folder())


def test_manifest():
    known = programs.large_manifest()
    accesses = [entry["accesses"] for entry in known.values()]
    assert accesses == sorted(accesses) and 2000 <= accesses[0] <= accesses[-1] <= 50_000
    assert set(BUNDLED) < set(NAMES) and not set(NAMES) & set(mg.program_names())
    for entry in known.values():
        assert entry["no_contention_ps"] <= entry["xla_ps"]


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled(name):
    program, entry = mg.load_program(name), programs.large_manifest()[name]
    assert (program.name, program.fingerprint) == (name, entry["fingerprint"])
    assert program.hardware == mg.hardware(entry["hardware"])
    assert program.counts["accesses"] == entry["accesses"]
    assert program.counts["unknown_trip_counts"] == 0
    assert mg.simulate(program, program.xla_plan).latency_ps == entry["xla_ps"]
    assert mg.validate(program, program.xla_plan)


def test_a_program_is_made_once_and_then_found(home):
    name = UNBUNDLED[0]
    with pytest.raises(mg.InvalidInputError, match=f"{name}.*`mallocgame xla large {name}`"):
        mg.load_program(name)
    home.mkdir(parents=True)
    mg.save_program(mg.load_program(SMALL), home / f"{name}.mgp")
    assert mg.load_program(name).name == SMALL
    with pytest.raises(mg.InvalidInputError, match=f"close: {name}"):
        mg.load_program(f"{name}x")


def test_commands_say_which_are_missing(home, run, run_json, monkeypatch):
    told = run_json("programs", "--suite", "large")
    assert [row["program"] for row in told["programs"]] == [n for n in NAMES if n in BUNDLED]
    assert told["unmade"] == UNBUNDLED
    done = run("compare", "--suite", "large", "--solvers", "greedy")
    assert done.returncode == 2 and f"`mallocgame xla large {UNBUNDLED[0]}`" in done.stderr


@pytest.mark.full
def test_models_are_those_of_the_suite():
    from mallocgame.workloads.whole import MODELS

    assert set(NAMES) <= {f"{model}.{target}" for model, (target, _) in MODELS.items()}


@pytest.mark.full
def test_the_command_makes_what_is_missing(home, run, monkeypatch, capsys):
    from mallocgame import xla
    from mallocgame._cli.main import main

    asked = []

    def fake(function, *args, target, name, compiler, tell):
        asked.append((name, target, compiler.target.title))
        assert function is not None and args
        if len(asked) == 2:
            raise xla.CompilerError("no such chip")
        return type("Captured", (), {"program": mg.load_program(SMALL)})

    monkeypatch.setattr("mallocgame.xla.whole_models.capture", fake)
    monkeypatch.setattr(programs, "_BUNDLED_LARGE", os.devnull)
    home.mkdir(parents=True)
    mg.save_program(mg.load_program(SMALL), home / f"{NAMES[0]}.mgp")
    assert main(["xla", "large", *NAMES[:3]]) == 1
    assert [name for name, *_ in asked] == NAMES[1:3]
    assert all(title == target for _, target, title in asked)
    assert f"{NAMES[2]}: no such chip" in capsys.readouterr().err
    assert {path.stem for path in home.iterdir()} == set(NAMES[:2])
    done = run("xla", "large", "unheard-of")
    assert done.returncode == 2 and "'unheard-of'" in done.stderr and "--suite large" in done.stderr
