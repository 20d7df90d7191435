"""The packages offer few names at their top, and the former ones for one release."""

import operator
import types

import pytest

import mallocgame as mg
import mallocgame.xla as mgx

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


def test_actions_are_numbers():
    state = mg.Game(mg.load_program("wavernn_64steps_b8.tpu_v4i")).initial_state()
    action = mg.Action(state.legal_actions()[0])
    state.apply(action)
    assert state.actions.tolist() == [action] and list(mg.Mode) == [0, 1, 2, 3, 4]
