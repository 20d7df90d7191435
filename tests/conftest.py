"""The tiers of the Python tests, `--tier unit|full|weekly`; CONTRIBUTING.md says what is in which.

A test is of the tier that it is marked with, and of `unit` without a mark. In `--tier unit`, what
fails imports what only `full` may need.
"""

import ast
import pathlib
import sys

import pytest

TIERS = ("unit", "full", "weekly")
# What is of `full` without a mark: who takes one of these fixtures needs a compiler or a browser.
_HEAVY_FIXTURES = {"compiler", "browser"}
# What takes seconds to import, or isn't installed by `.ci/setup unit`.
_HEAVY_MODULES = ("torch", "jax", "libtpu", "ray", "playwright", "sphinx", "minari")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--tier",
        choices=TIERS,
        help="unit: what takes seconds; full: unit and what each change runs beside it; weekly: "
        "what takes too long for that. Without it, all tests that are named.",
    )


def pytest_ignore_collect(collection_path: pathlib.Path, config: pytest.Config) -> bool | None:
    """Leaves out files of a higher tier: to import them would import what they need."""
    if config.getoption("--tier") != "unit" or not collection_path.name.endswith("_test.py"):
        return None
    marks = _marks_of_file(collection_path.read_text())
    return True if marks & set(TIERS) - {"unit"} else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tier = config.getoption("--tier")
    wanted = {None: TIERS, "full": ("unit", "full")}.get(tier, (tier,))
    left_out = [item for item in items if tier_of(item) not in wanted]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if tier_of(item) in wanted]


@pytest.fixture(autouse=True)
def _only_what_the_tier_may_import(request: pytest.FixtureRequest):
    yield
    if request.config.getoption("--tier") == "unit":
        found = [name for name in _HEAVY_MODULES if name in sys.modules]
        assert not found, f"a test that imports {', '.join(found)} is marked pytest.mark.full"


def tier_of(item: pytest.Item) -> str:
    for tier in reversed(TIERS):
        if item.get_closest_marker(tier):
            return tier
    return "full" if _HEAVY_FIXTURES & set(getattr(item, "fixturenames", ())) else "unit"


def _marks_of_file(text: str) -> set[str]:
    """Returns the names of the marks that `pytestmark` gives all tests of a file."""
    if "pytestmark" not in text:
        return set()
    return {
        node.attr
        for statement in ast.parse(text).body
        if isinstance(statement, ast.Assign)
        and any(isinstance(one, ast.Name) and one.id == "pytestmark" for one in statement.targets)
        for node in ast.walk(statement)
        if isinstance(node, ast.Attribute)
    }
