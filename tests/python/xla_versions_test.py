"""A compiler that can't be asked for single buffers, as libtpu before 0.0.48 is.

They are skipped, with the reason, where JAX or libtpu is missing.
"""

import numpy as np
import pytest
from xla_programs import LOOP, loop

import mallocgame.xla as mgx
from mallocgame.xla.option_files import read_request
from mallocgame.xla.overrides import as_xla_does
from mallocgame.xla.probe import Prober, uses_of_large_buffers

_OVERRIDES = "xla_tpu_msa_tensor_overrides"


@pytest.fixture
def older(compiler, monkeypatch):
    """The compiler, but it refuses overrides."""

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
