"""A compiler that can't be asked for single buffers, as libtpu before 0.0.48 is.

The installed one stands for it by refusing; `xla_older_version_test.py` runs all that is here with
an older version in its place. Skipped, with the reason, where JAX or libtpu is missing.
"""

import importlib.metadata

import numpy as np
import pytest
from xla_programs import LOOP, loop

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame.xla.abilities import VERSIONS
from mallocgame.xla.option_files import read_request
from mallocgame.xla.overrides import as_xla_does
from mallocgame.xla.probe import Prober, find_main_memory, uses_of_large_buffers

OLDER = "0.0.47.1"  # the last without overrides
_OVERRIDES = "xla_tpu_msa_tensor_overrides"


@pytest.fixture
def older(compiler, monkeypatch):
    """The compiler, but it refuses overrides, if it doesn't by itself."""
    if _OVERRIDES in compiler.abilities.missing:
        return compiler

    def without_overrides(ask):
        def refusing(module, options=None, *rest):
            if _OVERRIDES in (options or {}):
                raise mgx.CompilerRefusedError(f"No such compile option: '{_OVERRIDES}'")
            return ask(module, options, *rest)

        return refusing

    monkeypatch.setattr(compiler, "_abilities", mgx.Abilities((_OVERRIDES,), True))
    monkeypatch.setattr(compiler, "compile", without_overrides(compiler.compile))
    monkeypatch.setattr(compiler, "look", without_overrides(compiler.look))
    return compiler


def test_tuning_without_overrides(older):
    """Settings, turns and preloads are left, and they are worth something."""
    told = []
    tuned = mgx.tune(loop, *LOOP, seconds=8, compiler=older, tell=told.append)
    assert tuned.speedup > 1 and tuned.speedup_cold > 1
    assert tuned.options and _OVERRIDES not in tuned.options
    assert any(f"has no option {_OVERRIDES}, by which plans are asked for" in one for one in told)


def test_plans_need_overrides(older, captured):
    with pytest.raises(mgx.MissingOptionError, match="by which plans are asked for"):
        mgx.apply(captured, captured.xla_plan, compiler=older)


def test_copies_for_single_uses_are_obeyed(older, captured):
    """Copies that begin late instead of early are another plan."""
    prober, before = Prober(captured, older), captured.default.before
    uses = uses_of_large_buffers(captured.program, before)
    assert len(uses) >= 6
    default = as_xla_does(captured.program)
    plans = []
    for degree in ("0", "1"):
        wanted = default
        for use in uses:
            wanted = wanted.hurrying(use, degree)
        assert read_request(wanted.options(), captured.program, before) == wanted
        plans.append(prober.ask(captured, wanted).plan)
    assert not np.array_equal(plans[0].copies, plans[1].copies)


def test_plan_and_looks_of_this_version(compiler, captured):
    """XLA's own plan is valid, and a look says what a whole compile does."""
    assert mg.validate(captured.program, captured.xla_plan).ok
    found = find_main_memory(captured, compiler)
    assert isinstance(found, int), found
    look = captured.plan_of(compiler.look(captured.check_can_compile(), {}, found))
    assert np.array_equal(look.served_by, captured.xla_plan.served_by)
    missing = compiler.abilities.missing
    if importlib.metadata.version("libtpu") == OLDER:
        assert _OVERRIDES in missing
    if importlib.metadata.version("libtpu") == VERSIONS["libtpu"]:
        assert not missing
