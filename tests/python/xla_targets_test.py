"""Chips that can be compiled for, by name."""

import pytest

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame.programs import manifest
from mallocgame.xla.targets import bundled_target


def test_targets():
    target = mgx.find_target("v4 lite:1x1", 16)
    assert target.hardware.name == "tpu_v4i_16mib"
    assert target.options == {"xla_tpu_max_cmem_used_by_memory_space_assignment": "16384"}
    assert (
        mgx.find_target("tpu_v4i", 128) == mgx.find_target("tpu_v4i")
        and mgx.find_target("tpu_v4i").options == {}
    )
    more = mgx.find_target("tpu_v4i", 16, preloads=4)
    assert more.hardware == target.hardware.replace(max_preloads=4)
    assert more.options == target.options and more != target
    given = {"xla_b": "2", "xla_a": "1"}
    with_options = mgx.find_target("tpu_v4i", 16, options=given)
    assert with_options.options == given | target.options and with_options != target
    assert str(with_options).endswith("(preloads: 1, xla_a=1, xla_b=2)")
    with pytest.raises(mg.InvalidInputError, match="found 'tpu_v9', allowed: tpu_v4i, tpu_v4, "):
        mgx.find_target("tpu_v9")
    with pytest.raises(mg.InvalidInputError, match="found 129, allowed: 1 to 128"):
        mgx.find_target("tpu_v4i", 129)


def test_every_chip():
    assert set(mgx.TARGETS) == set(mg.Hardware.preset_names())
    for name in mgx.TARGETS:
        target = mgx.find_target(name)
        assert target.hardware == mg.Hardware.preset(name) and target.options == {}
        assert mgx.find_target(target.topology).topology == target.topology
    # One topology, with and without its two cores as one device.
    one_core, both = mgx.find_target("v4:1x1x1"), mgx.find_target("tpu_v4_megacore")
    assert one_core.name == "tpu_v4" and one_core.topology == both.topology
    assert one_core.config is None and both.config == "megacore"


def test_less_fast_memory_where_kernels_share_it():
    """What memory space assignment doesn't get there is scratch for kernels."""
    for name, shared_kib in (("tpu_v5p", 65472), ("tpu_v5e", 131072), ("tpu_v6e", 131008)):
        small = mgx.find_target(name, 16)
        assert small.options == {"xla_tpu_scoped_vmem_limit_kib": str(shared_kib - 16 * 1024)}
        assert small.hardware.fast_bytes == 16 * 2**20
        assert f"differ from those of {name}" in (small.note or "")
    assert mgx.find_target("tpu_v4", 16).note is None
    # The whole of it isn't a number of MiB.
    with pytest.raises(mg.InvalidInputError, match=r"found 96, allowed: 1 to 95 \(tpu_v6e\)"):
        mgx.find_target("tpu_v6e", 96)
    with pytest.raises(mg.InvalidInputError, match=r"found 16, allowed: all that it has, for want"):
        mgx.find_target("tpu7x", 16)


def test_targets_are_listed(run, run_json):
    rows = {row["target"]: row for row in run_json("xla", "targets")["targets"]}
    assert set(rows) == set(mgx.TARGETS)
    assert rows["tpu_v6e"]["fast_mib"] == [1, 95] and rows["tpu_v6e"]["fast_mib_changes_prices"]
    assert rows["tpu_v4_megacore"]["config"] == "megacore"
    assert rows["tpu7x"]["fast_mib"] is None
    assert "100,597,760" in run("xla", "targets").stdout


def test_the_target_of_a_bundled_program():
    limited = mgx.find_target("tpu_v4i", 16, preloads=4)
    assert bundled_target("tpu_v4i_16mib", preloads=4) == limited
    assert bundled_target("tpu_v5e_2x2") == mgx.find_target("tpu_v5e:2x2")
    for name, entry in manifest().items():
        target = bundled_target(name.removeprefix(f"{entry['model']}."))
        assert target.hardware.name == entry["hardware"]
    for wrong in ("tpu_v9", "tpu_v4i_2x2x2", "tpu_v4i_999mib", "tpu_v4i_16", "", "tpu_v4i\n"):
        with pytest.raises(mg.InvalidInputError):
            bundled_target(wrong)
