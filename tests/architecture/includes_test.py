"""Who may include whom: a shared include root can't hold these arrows, so this test does."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Folder -> folders it may include, besides itself.
BASE = {"base"}
HARDWARE = BASE | {"hardware"}
PROGRAM = HARDWARE | {"program"}
PLAN = PROGRAM | {"plan"}
SIMULATOR = PLAN | {"simulator"}
GAME = SIMULATOR | {"game"}
ALLOWED = {
    "base": set(),
    "hardware": BASE,
    "program": HARDWARE,
    "plan": PROGRAM,
    "simulator": PLAN,
    "game": SIMULATOR,
    "solvers": GAME,
    "hlo": PLAN,
    "replay": GAME | {"solvers"},
    "vector": GAME,
}
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.MULTILINE)
# Generated protobuf code stays behind these: what they offer names none of it.
PUBLIC = {"hlo/import.h", "replay/files.h", "replay/game_log.h", "replay/plan_file.h", "replay/program_file.h"}
SOURCES = sorted(path for path in (ROOT / "mallocgame").rglob("*") if path.suffix in (".h", ".cc"))


def test_there_are_sources():
    assert len(SOURCES) > 20
    assert {path.relative_to(ROOT).parts[1] for path in SOURCES} <= set(ALLOWED)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_includes(path):
    folder = path.relative_to(ROOT).parts[1]
    public = str(path.relative_to(ROOT / "mallocgame")) in PUBLIC
    for included in INCLUDE.findall(path.read_text()):
        parts = included.split("/")
        if included.endswith(".pb.h"):
            assert parts[1] == folder and folder in ("hlo", "replay") and not public, included
        elif parts[0] == "google":
            assert folder in ("hlo", "replay") and not public, included
        elif parts[0] == "nlohmann":
            assert path.suffix == ".cc" and (folder in ("hlo", "replay") or path.name == "hardware_json.cc"), included
        elif parts[0] in ("torch", "pybind11", "Python.h", "bindings", "agents", "tests", "benchmarks", "examples"):
            pytest.fail(f"the core includes {included}")
        elif parts[0] == "mallocgame":
            assert parts[1] == folder or parts[1] in ALLOWED[folder], included
            assert (ROOT / included).exists(), included


def test_public_headers_exist():
    assert all((ROOT / "mallocgame" / header).exists() for header in PUBLIC)


def test_users_of_the_core_include_public_headers_of_hlo_and_replay_only():
    users = [path for folder in ("bindings", "examples") for path in (ROOT / folder).rglob("*") if path.suffix in (".h", ".cc")]
    assert users
    for path in users:
        for included in INCLUDE.findall(path.read_text()):
            if included.startswith(("mallocgame/hlo/", "mallocgame/replay/")):
                assert included.removeprefix("mallocgame/") in PUBLIC, (path, included)
