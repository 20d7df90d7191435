"""The packages offer few names at their top, and the former ones for one release."""

import operator
import types

import pytest

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame._cli.main import main
from mallocgame._moved import renamed

PACKAGES = pytest.mark.parametrize("package", [mg, mgx], ids=["mallocgame", "mallocgame.xla"])


@PACKAGES
def test_there_are_few(package):
    names = [n for n in package.__all__ if not isinstance(getattr(package, n), types.ModuleType)]
    assert len(names) <= 35 and len(set(names)) == len(names)


@PACKAGES
def test_former_ones_warn(package):
    for place, names in package._MOVED.items():
        for name in names.split():
            with pytest.warns(DeprecationWarning, match=rf"{place}\.{name} now"):
                former = getattr(package, name)
            assert former is operator.attrgetter(f"{place}.{name}")(package)
            assert name not in package.__all__
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = package.Nothing


def test_an_argument_warns_under_its_former_name():
    @renamed(options="executables")
    def tuned(where: str, *, executables: str = "none") -> str:
        return f"{where} {executables}"

    with pytest.warns(DeprecationWarning, match="tuned: the argument options is called exec"):
        assert tuned("in", options="folder") == "in folder"
    assert tuned("in", executables="folder") == "in folder"


@pytest.mark.parametrize("name", ["apply", "jit", "tune", "tune_capture", "tune_dumps", "verify"])
def test_executables_were_options(name):
    """A folder under the former name is taken as one: what else is missing is the complaint."""
    with pytest.warns(DeprecationWarning, match=f"{name}: the argument options is called"):
        try:
            getattr(mgx, name)(options="none")
        except TypeError as error:
            assert "options" not in str(error)


def test_shadow_prices_were_prices():
    with pytest.warns(DeprecationWarning, match=r"bounds\.prices is .*bounds\.shadow_prices now"):
        assert mg.bounds.prices is mg.bounds.shadow_prices
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = mg.bounds.nothing


@pytest.mark.parametrize(
    ("arguments", "now"),
    [
        (
            ["benchmark", "--split", "test", "--players", "greedy", "--stake", "900"],
            "--min-headroom",
        ),
        pytest.param(
            ["xla", "tune", "no such source", "--prices", "compiler"],
            "--accept",
            marks=pytest.mark.full,
        ),
        pytest.param(
            ["xla", "apply", "nowhere", "plan.json", "--options", "tuned"],
            "--output",
            marks=pytest.mark.full,
        ),
    ],
)
def test_an_option_warns_under_its_former_name(arguments, now, capsys):
    assert main(arguments) == 2
    assert f"is called {now} now" in capsys.readouterr().err


def test_actions_are_numbers():
    state = mg.Game(mg.load_program("wavernn_64steps_b8.tpu_v4i")).initial_state()
    action = mg.Action(state.legal_actions()[0])
    state.apply(action)
    assert state.actions.tolist() == [action] and list(mg.Mode) == [0, 1, 2, 3, 4]
