"""Who may include whom: a shared include root can't hold these arrows, so this test does."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Folder -> folders it may include, besides itself.
BASE = {"base"}
HARDWARE = BASE | {"hardware"}
PROGRAM = HARDWARE | {"program"}
SCHEDULE = PROGRAM | {"schedule"}
PLAN = PROGRAM | {"plan"}
SIMULATOR = PLAN | {"simulator"}
GAME = SIMULATOR | {"schedule", "game"}
SEARCH = GAME | {"search"}
ALLOWED = {
    "base": set(),
    "hardware": BASE,
    "program": HARDWARE,
    "schedule": PROGRAM,
    "plan": PROGRAM,
    "simulator": PLAN,
    "game": SIMULATOR | SCHEDULE,
    "search": GAME,
    "tree": SEARCH,
    "solvers": SEARCH | {"tree"},
    "hlo": PLAN | SCHEDULE,
    "replay": SEARCH | SCHEDULE | {"solvers"},
    "vector": GAME,
    "placement": SEARCH | {"vector"},
    "pjrt": BASE,
}
# Folders of solvers -> what they may include of `solvers` besides themselves. None knows the table
# of solvers or the portfolio that runs them, but the search for a schedule, which has a solver
# place what it found.
SOLVERS = {
    "lagrangian": {"bounds.h"},
    "styles": set(),
    "policy": set(),
    "xla": set(),
    "schedule": {"solver.h", "recorder.h", "registry.h"},
    "playing": {"styles", "xla", "solver.h", "bounds.h", "budget.h"},
    "planning": {
        "playing",
        "policy",
        "styles",
        "xla",
        "solver.h",
        "recorder.h",
        "budget.h",
        "anneal_result.h",
    },
}
# Headers of `solvers` in no folder -> what they and their sources may include of it.
SOLVERS_TOP = {
    "solver": set(),
    "bounds": set(),
    "recorder": {"solver.h"},
    "budget": {"solver.h", "recorder.h"},
    "anneal_result": {"solver.h", "budget.h"},
    "portfolio": {"solver.h", "recorder.h", "budget.h", "anneal_result.h"},
    "registry": {"solver.h", "portfolio.h", "playing", "planning"},
}
# Rooms of `hlo` -> the other rooms they may include. What writes modules and what judges them share
# neither.
HLO_READS = {"module", "cost", "import"}
HLO = {
    "module": set(),
    "cost": {"module"},
    "import": {"module", "cost"},
    "write": HLO_READS,
    "check": HLO_READS,
}
# The folders of the games -> the headers of each that all may include: the game and its position.
GAMES = {
    "time": {"time_game.h", "state.h"},
    "priority": {"priority_game.h", "priority_state.h"},
    "schedule": {"schedule_game.h", "schedule_state.h"},
}
# Where what else of a game is used: annealing of residences lays them and their copies as the
# priority game does, searches play beside a game of it, and networks see its runs.
GAME_GUESTS = [
    ("mallocgame/search/residence_search.h", "priority/arrangement.h"),
    ("mallocgame/search/residence_search.h", "priority/copy_times.h"),
    ("mallocgame/placement/", "priority/priority_tables.h"),
    ("mallocgame/placement/", "priority/run_graph.h"),
    ("mallocgame/solvers/styles/", "priority/run_graph.h"),
    ("mallocgame/solvers/policy/", "priority/run_graph.h"),
    ("mallocgame/solvers/policy/", "priority/priority_tables.h"),
    ("mallocgame/solvers/playing/rent.cc", "time/time_decoder.h"),
    ("agents/muzero/baseline.cc", "priority/priority_tables.h"),
]
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.MULTILINE)
# What mallocgame/CMakeLists.txt installs. No header includes generated protobuf code.
PUBLIC = {
    header
    for header_set in re.findall(
        r"FILE_SET HEADERS\b([^)]*)\)", (ROOT / "mallocgame" / "CMakeLists.txt").read_text()
    )
    for header in re.findall(r"\S+\.h\b", header_set)
}
SOURCES = sorted(path for path in (ROOT / "mallocgame").rglob("*") if path.suffix in (".h", ".cc"))
# Agents stand above the core; each folder with those it may include besides itself. They do not
# know each other.
AGENTS = {"training": set(), "muzero": {"training"}, "egrl": {"training"}}
AGENT_SOURCES = sorted(
    path for path in (ROOT / "agents").rglob("*") if path.suffix in (".h", ".cc")
)


def test_there_are_sources():
    assert len(SOURCES) > 20
    assert {path.relative_to(ROOT).parts[1] for path in SOURCES} <= set(ALLOWED)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_includes(path):
    folder = path.relative_to(ROOT).parts[1]
    for included in INCLUDE.findall(path.read_text()):
        parts = included.split("/")
        if included.endswith(".pb.h"):
            assert path.suffix == ".cc" and parts[1] == folder, included
            assert folder in ("hlo", "replay", "pjrt"), included
        elif parts[0] == "google":
            assert path.suffix == ".cc" and folder in ("hlo", "replay"), included
        elif parts[0] == "nlohmann":
            assert folder in ("hlo", "replay") or path.name == "hardware_json.cc", included
            if path.suffix == ".h":
                assert included == "nlohmann/json_fwd.hpp", included
                assert str(path.relative_to(ROOT / "mallocgame")) not in PUBLIC, included
        elif parts[0] in (
            "torch",
            "pybind11",
            "Python.h",
            "bindings",
            "agents",
            "tests",
            "benchmarks",
            "examples",
        ):
            pytest.fail(f"the core includes {included}")
        elif parts[0] == "mallocgame":
            assert parts[1] == folder or parts[1] in ALLOWED[folder], included
            assert (ROOT / included).exists(), included


@pytest.mark.parametrize(
    "path",
    [path for path in SOURCES if path.relative_to(ROOT).parts[1] == "solvers"],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_includes_of_solvers(path):
    room = path.relative_to(ROOT).parts[2:]
    allowed = (
        {room[0], *SOLVERS[room[0]]}
        if len(room) == 2
        else {f"{path.stem}.h", *SOLVERS_TOP[path.stem]}
    )
    for included in INCLUDE.findall(path.read_text()):
        if included.startswith("mallocgame/solvers/"):
            assert included.split("/")[2] in allowed, included


@pytest.mark.parametrize(
    "path",
    [path for path in SOURCES if path.relative_to(ROOT).parts[1] == "hlo"],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_includes_of_hlo(path):
    room = path.relative_to(ROOT).parts[2]
    for included in INCLUDE.findall(path.read_text()):
        if included.startswith("mallocgame/hlo/"):
            assert included.split("/")[2] in {room, *HLO[room]}, included


@pytest.mark.parametrize(
    "path",
    [*SOURCES, *AGENT_SOURCES, *sorted((ROOT / "bindings").rglob("*.cc"))],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_games_are_private(path):
    """Who includes what of a game: its public header, its position, and what is named here."""
    place = str(path.relative_to(ROOT))
    for included in INCLUDE.findall(path.read_text()):
        folder, _, header = included.removeprefix("mallocgame/game/").partition("/")
        if not included.startswith("mallocgame/game/") or folder not in GAMES:
            continue
        if place.startswith(f"mallocgame/game/{folder}/") or header in GAMES[folder]:
            continue
        if place.startswith("mallocgame/game/schedule/") and folder == "priority":
            continue
        allowed = [end for start, end in GAME_GUESTS if place.startswith(start)]
        assert included.removeprefix("mallocgame/game/") in allowed, included


def test_what_all_games_share_knows_no_game():
    for path in sorted((ROOT / "mallocgame" / "game").glob("*.*")):
        if path.stem == "games":
            continue
        included = INCLUDE.findall(path.read_text())
        known = [name for name in included if name.split("/")[2:3] and name.split("/")[2] in GAMES]
        assert not known, f"{path.name} includes {known}"


def test_public_headers_are_as_the_map_says():
    assert all((ROOT / "mallocgame" / header).exists() for header in PUBLIC)
    named = re.findall(r"`((?:\w+/)+\w+\.h)`", (ROOT / "mallocgame" / "README.md").read_text())
    assert named and set(named) <= PUBLIC


@pytest.mark.parametrize("header", sorted(PUBLIC))
def test_public_headers_include_public_headers_only(header):
    included = INCLUDE.findall((ROOT / "mallocgame" / header).read_text())
    assert {
        name.removeprefix("mallocgame/") for name in included if name.startswith("mallocgame/")
    } <= PUBLIC


@pytest.mark.parametrize("path", AGENT_SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_agents_include_the_core_and_what_is_below_them(path):
    folder = path.relative_to(ROOT).parts[1]
    for included in INCLUDE.findall(path.read_text()):
        parts = included.split("/")
        if parts[0] in (
            "google",
            "nlohmann",
            "pybind11",
            "Python.h",
            "bindings",
            "tests",
            "benchmarks",
            "examples",
        ) or included.endswith(".pb.h"):
            pytest.fail(f"an agent includes {included}")
        elif parts[0] == "agents":
            assert parts[1] == folder or parts[1] in AGENTS[folder], included
            assert (ROOT / included).exists(), included
        elif parts[0] == "mallocgame":
            assert (ROOT / included).exists(), included


def test_users_of_the_core_include_public_headers_only():
    users = [
        path
        for folder in ("bindings", "examples")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".h", ".cc")
    ]
    assert users
    for path in users:
        for included in INCLUDE.findall(path.read_text()):
            # The macros of base/error.h are for all of our own code, and for no one else's.
            if included.startswith("mallocgame/") and included != "mallocgame/base/error.h":
                assert included.removeprefix("mallocgame/") in PUBLIC, (path, included)
