"""Levels: what ships, that it can be made again, and sets that users make."""

import json
import os
import pathlib
import pickle
import signal
import threading
import time
import zipfile

import numpy as np
import pytest

import mallocgame as mg
from mallocgame._cli.main import main
from mallocgame.level_sets import making
from mallocgame.level_sets.describing import peak_bytes, structure
from mallocgame.level_sets.level_set import (
    BUNDLED,
    BUNDLED_SCHEDULE,
    BUNDLED_WHOLE,
    INDEX,
    PROGRAMS,
    load_level_set,
)
from mallocgame.level_sets.splits import (
    FAMILIES,
    KNOWN,
    SPLITS,
    VARIANTS,
    WHOLE_FAMILIES,
    WHOLE_SPLITS,
    WHOLE_VARIANTS,
    Draft,
    Variant,
    drafts,
)
from mallocgame.programs import suite

SET = load_level_set(BUNDLED)
MANY = {"whole-train": 200, "whole-validation": 60, "whole-test": 60}


def test_the_bundled_set_is_large_and_small():
    own = [entry for entry in SET.programs.values() if entry["family"] != KNOWN]
    assert len(own) + len(SET.index["left_out"]) == len(drafts()) >= 600
    assert sum(entry["loops"] > 0 or entry["branches"] > 0 for entry in own) >= 150
    assert sum(path.stat().st_size for path in BUNDLED.iterdir()) <= 12 << 20
    assert {entry["hardware"] for entry in own} == {"tpu_v4i", "tpu_v5e", "tpu_v6e"}


def test_a_level_goes_to_other_processes_as_its_name():
    level = mg.levels("test")[5]
    data = pickle.dumps(level)
    assert len(data) < 1000
    again = pickle.loads(data)
    assert again == level
    assert again.load_program().fingerprint == level.load_program().fingerprint


def test_splits_have_nothing_in_common():
    families, structures, names = [], [], []
    for split in SPLITS:
        entries = {name: one for name, one in SET.programs.items() if one["split"] == split}
        families.append({one["family"] for one in entries.values()})
        structures.append({one["structure"] for one in entries.values()})
        names.append({name.partition(".")[0] for name in entries})
    for kind in (families, structures, names):
        assert all(kind)
        assert sum(map(len, kind)) == len(set.union(*kind))
    assert KNOWN in families[2]


def test_every_program_is_what_the_index_says():
    for name, entry in SET.programs.items():
        program = SET.load_program(name)
        assert program.name == name
        assert program.fingerprint == entry["fingerprint"]
        assert program.hardware.name == entry["hardware"]
        assert structure(program) == entry["structure"]
        assert peak_bytes(program) == entry["peak_bytes"]
        assert program.counts["loops"] == entry["loops"]
        assert program.free_pairs == entry["free_pairs"]
        xla = program.xla_plan
        assert xla is not None and mg.validate(program, xla).ok, name
        assert mg.simulate(program, xla).latency_ps == entry["xla_ps"]
        assert entry["bound_ps"] <= entry["xla_ps"] <= entry["all_main_ps"] * 3


def test_whole_models_are_levels_of_their_own():
    names, families, structures = [], [], []
    for split in WHOLE_SPLITS:
        levels = mg.levels(split)
        assert {level.family for level in levels} <= set(WHOLE_FAMILIES[split])
        names.append({level.program_name for level in levels})
        families.append({level.family for level in levels})
        structures.append({level.features["structure"] for level in levels})
        for level in levels:
            assert level.bound_ps <= level.best_known_ps <= level.greedy_ps
            assert level.xla_ps is None or level.best_known_ps <= level.xla_ps
            if level.variant != Variant():
                continue
            program, entry = level.load_program(), level.features
            assert program.fingerprint == entry["fingerprint"]
            assert (program.name, program.hardware.name) == (level.name, entry["hardware"])
            assert structure(program) == entry["structure"]
            assert program.counts["accesses"] == entry["accesses"]
            assert mg.simulate(program, program.xla_plan).latency_ps == level.xla_ps
    for kind in (names, families, structures):
        assert all(kind)
        assert sum(map(len, kind)) == len(set.union(*kind))
    assert all(len(mg.levels(split)) >= least for split, least in MANY.items())
    accesses = [level.features["accesses"] for level in mg.levels("whole-test")]
    assert np.median(accesses) > 1000 and max(accesses) > 10_000
    assert sum(path.stat().st_size for path in BUNDLED_WHOLE.iterdir()) <= 3 << 20


@pytest.mark.parametrize("text", ["calibrated", "f50calibrated", "f25", "b50"])
def test_a_variant_of_a_whole_model_has_its_own_prices_and_memory(text):
    level = next(one for one in mg.levels("whole-test") if one.name.endswith(f"@{text}"))
    program, hardware = level.load_program(), level.hardware()
    chip = mg.Hardware.preset(level.features["hardware"])
    assert (program.cost_model == "calibrated") == text.endswith("calibrated")
    blocks = chip.fast_bytes * level.variant.share // 100 // chip.alignment_bytes
    assert hardware.fast_bytes == blocks * chip.alignment_bytes
    assert (hardware.copy_latency_ps > 0) == level.variant.calibrated
    assert (hardware.main_bytes_per_second < chip.main_bytes_per_second) == (
        level.variant.calibrated or text == "b50"
    )
    game = level.game()
    assert (game.hardware, game.program.fingerprint) == (hardware, program.fingerprint)
    assert mg.solve(game, "greedy", seconds=0).report.latency_ps == level.greedy_ps
    assert pickle.loads(pickle.dumps(level)).hardware() == hardware
    xla = program.xla_plan
    valid = xla is not None and mg.validate(program, xla, hardware).ok
    assert valid == (level.xla_ps is not None)


def test_what_is_known_of_the_chip_is_not_said_of_its_variants():
    level = next(one for one in mg.levels("test") if one.variant != Variant())
    assert level.bound_ps is level.xla_ps is None
    own = next(one for one in mg.levels("train") if one.variant == Variant())
    assert (own.bound_ps, own.xla_ps) == (own.features["bound_ps"], own.features["xla_ps"])


def test_drafts_of_whole_models_are_those_of_their_splits():
    wanted = drafts(whole=True)
    assert all(draft.whole for draft in wanted) and not any(one.whole for one in drafts())
    assert len(wanted) == sum(sum(families.values()) for families in WHOLE_FAMILIES.values())
    assert {draft.split for draft in wanted[:10]} == set(WHOLE_SPLITS)


def test_levels_say_whether_their_order_is_free():
    for split in ("train", "test"):
        levels = mg.levels(split)
        free = mg.levels(split, free_order=True)
        assert free == [level for level in levels if level.free_pairs > 0]
        assert 0 < len(free) < len(levels)


def test_levels_on_which_the_order_counts():
    several = mg.levels("schedule")
    assert several == mg.levels("schedule", scored=False, free_order=True)
    assert len(several) >= 10
    assert len({level.program_name for level in several}) >= 5
    assert sum(path.stat().st_size for path in BUNDLED_SCHEDULE.iterdir()) <= 1 << 20
    for level in several:
        program, hardware = level.load_program(), level.hardware()
        assert program.fingerprint == level.features["fingerprint"]
        assert program.free_pairs == level.free_pairs > 0
        greedy = mg.solve(program, "greedy", seconds=0, hardware=hardware)
        assert greedy.report.latency_ps == level.greedy_ps
        # Its plan is valid at its order, within the main memory of XLA's.
        ordered, plan = program.reordered(level.best_known_order()), level.best_known_plan()
        assert mg.validate(ordered, plan, hardware).ok
        assert mg.simulate(ordered, plan, hardware).latency_ps == level.best_known_ps
        least = mg.bounds.bound(program, "any-order", hardware)
        assert least.bound_ps * 1.02 <= level.own_order_bound_ps <= level.greedy_ps
        assert least.bound_ps <= level.best_known_ps <= level.greedy_ps / 1.01
        needed = ordered.main_memory["total_bytes"]
        assert needed <= program.main_memory["total_bytes"]
        again = pickle.loads(pickle.dumps(level))
        assert again.best_known_ps == level.best_known_ps
        assert level.game(game="schedule").kind == "schedule"


def test_scored_levels_have_a_best_plan():
    for split in ("validation", "test"):
        for level in mg.levels(split):
            program, hardware = level.load_program(), level.hardware()
            greedy = mg.solve(level.game(), "greedy", seconds=0)
            assert greedy.report.latency_ps == level.greedy_ps
            plan = level.best_known_plan()
            assert plan is not None and mg.validate(program, plan, hardware).ok, level.name
            assert mg.simulate(program, plan, hardware).latency_ps == level.best_known_ps
            assert level.best_known_ps <= level.greedy_ps


def test_levels_of_train_are_all_variants():
    found = mg.levels("train")
    programs = [one for one in SET.programs.values() if one["split"] == "train"]
    # All but those in which there is nothing to decide.
    assert 0.9 * len(programs) * len(VARIANTS) < len(found) < len(programs) * len(VARIANTS)
    assert len({level.name for level in found}) == len(found)
    small = next(level for level in found if level.name.endswith("@c20b50"))
    own, chip = small.hardware(), small.load_program().hardware
    assert own.name == f"{chip.name}_c20b50"
    assert own.main_bytes_per_second == chip.main_bytes_per_second // 2
    wanted = small.features["peak_bytes"] / 5
    assert wanted <= own.fast_bytes < wanted + own.alignment_bytes
    assert small.game().hardware == own
    assert small.best_known_plan() is None


def test_known_levels_are_the_contended_programs():
    known = [level for level in mg.levels("test") if level.family == KNOWN]
    assert {level.name for level in known} == set(suite("contended"))
    assert known[0].load_program().fingerprint == mg.load_program(known[0].name).fingerprint


@pytest.mark.parametrize(
    "variant", [*VARIANTS, *WHOLE_VARIANTS], ids=lambda one: one.level("program")
)
def test_variants_are_read_from_names(variant):
    assert Variant.named(variant.level("mlp_000.tpu_v5e")) == variant


@pytest.mark.parametrize("name", ["x@", "x@20", "x@c", "x@b50c20", "x@c20b50@", "x@b50calibrated"])
def test_other_names_are_no_variants(name):
    with pytest.raises(mg.InvalidInputError, match="after @ it needs c, f and b with percents"):
        Variant.named(name)


def test_the_peak_counts_what_is_needed_at_once():
    program = mg.load_program("resnet50_b1.tpu_v4i")
    accesses, buffers = program.accesses, program.buffers
    eligible = np.flatnonzero(buffers["eligible"])
    alive = np.zeros(program.ticks, np.int64)
    for buffer in eligible:
        ticks = accesses["tick"][accesses["buffer"] == buffer]
        if not len(ticks):
            continue
        first = 0 if buffers["origin"][buffer] == 1 else ticks.min()
        last = program.ticks - 1 if buffers["is_output"][buffer] else ticks.max()
        alive[first : last + 1] += buffers["size_bytes"][buffer]
    assert peak_bytes(program) == alive.max()


def test_drafts_are_fair_and_fixed():
    wanted = drafts()
    assert len({draft.name for draft in wanted}) == len(wanted)
    assert len(wanted) == sum(sum(families.values()) for families in FAMILIES.values())
    first = wanted[: len(wanted) // 4]
    for families in FAMILIES.values():
        for family, count in families.items():
            share = sum(draft.family == family for draft in first) / count
            assert 0.15 <= share <= 0.35, family
    assert {draft.name for draft in drafts(share=0.1)} <= {draft.name for draft in wanted}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A set of its own, of one program that the compiler can make and one that it can't."""
    pytest.importorskip("jax", reason="programs are made with JAX")
    folder = tmp_path_factory.mktemp("levels")
    wanted = [Draft("train", "iterative", 1, 0)]
    told = []
    making.make_programs(folder / "programs", wanted, 1, lambda *one: told.append(one))
    assert told == [(wanted[0].name, None)]
    refused = Draft("train", "iterative", 2, 0)
    (folder / "programs" / f"{refused.name}.left-out").write_text("too large\n")
    return folder, [*wanted, refused]


@pytest.mark.weekly
def test_a_program_is_made_again(made):
    """But for its prices: those of the set are from whole compiles."""
    folder, wanted = made
    program = mg.load_program(folder / "programs" / f"{wanted[0].name}.mgp")
    with zipfile.ZipFile(BUNDLED / PROGRAMS) as archive:
        bundled = mg.Program.from_bytes(archive.read(f"{wanted[0].name}.mgp"))
    assert program.instruction_names == bundled.instruction_names
    assert program.buffer_names == bundled.buffer_names
    assert np.array_equal(program.accesses, bundled.accesses)
    own, before = (mg.simulate(one, one.xla_plan) for one in (program, bundled))
    assert own.latency_ps == before.latency_ps


@pytest.mark.weekly
def test_making_goes_on_where_it_was(made, monkeypatch):
    folder, wanted = made
    path = folder / "programs" / f"{wanted[0].name}.mgp"
    before, told = path.stat().st_mtime_ns, []
    making.make_programs(folder / "programs", wanted, 1, lambda *one: told.append(one))
    assert told == [(wanted[0].name, None), (wanted[1].name, "too large")]
    assert path.stat().st_mtime_ns == before


@pytest.mark.weekly
def test_a_compiler_that_is_killed_makes_no_program():
    pytest.importorskip("jax", reason="programs are made with JAX")
    children = pathlib.Path(f"/proc/{os.getpid()}/task/{threading.get_native_id()}/children")
    killed = []

    def kill():
        while not killed:
            for child in children.read_text().split():
                if "worker.py" in pathlib.Path(f"/proc/{child}/cmdline").read_text():
                    killed.append(child)
                    os.kill(int(child), signal.SIGTERM)
            time.sleep(0.2)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        with pytest.raises(mg.MallocGameError, match="another process ended the compiler"):
            making._make_program(Draft("train", "iterative", 1, 0))
    finally:
        killed.append(None)  # Else it would kill the next test's.
        thread.join()
    assert len(killed) == 2


@pytest.mark.weekly
def test_a_set_is_described_and_packed(made, monkeypatch, capsys):
    folder, wanted = made
    monkeypatch.setattr(making, "suite", lambda name: ["wavernn_64steps_b8.tpu_v4i"])
    making.describe_programs(folder / "programs", wanted, 1, lambda *_: None)
    index = making.pack(folder, wanted, seed=0)
    assert index["left_out"] == {wanted[1].name: "too large"}
    assert list(index["programs"]) == ["wavernn_64steps_b8.tpu_v4i", wanted[0].name]
    bundled = SET.programs[wanted[0].name]
    entry = index["programs"][wanted[0].name]
    priced = ("fingerprint", "variants")  # It has prices of its own.
    assert entry == bundled | {key: entry[key] for key in priced}
    found = mg.levels("train", folder)
    assert [level.variant.text for level in found] == list(entry["variants"])
    assert found[0].load_program().fingerprint == entry["fingerprint"]
    (scored,) = mg.levels("test", folder)
    assert scored.best_known_ps is None
    assert main(["levels", "list", "--levels", str(folder)]) == 0  # without a validation split
    assert "iterative" in capsys.readouterr().out
    packed = (folder / PROGRAMS).read_bytes()
    making.pack(folder, wanted, seed=0)
    assert (folder / PROGRAMS).read_bytes() == packed


def test_the_command_lists_families(capsys):
    assert main(["levels", "list", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    rows = {(row["split"], row["family"]): row for row in document["families"]}
    assert sum(row["programs"] for row in rows.values()) == len(SET.programs)
    assert rows["test", "known"]["programs"] == len(suite("contended"))
    assert rows["train", "recurrent"]["with_loops"] == rows["train", "recurrent"]["programs"]
    assert main(["levels", "list", "--split", "test"]) == 0
    text = capsys.readouterr().out
    assert "cached_decoder" in text and "recurrent" not in text


def test_the_command_lists_levels_with_a_free_order(capsys):
    assert main(["levels", "list", "--names", "--split", "schedule"]) == 0
    names = capsys.readouterr().out.split()
    assert names == [level.name for level in mg.levels("schedule")]
    assert main(["levels", "list", "--free-order", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["families"]
    assert all(row["programs"] == row["with_free_order"] for row in rows)
    [known] = [row for row in rows if row["family"] == KNOWN]
    free = mg.levels("test", free_order=True)
    assert known["programs"] == sum(level.family == KNOWN for level in free)


def test_the_command_lists_names_and_draws(capsys, tmp_path):
    picture = tmp_path / "gaps.png"
    command = ["levels", "list", "--names", "--split", "validation", "--plot", str(picture)]
    assert main(command) == 0
    names = capsys.readouterr().out.split()
    assert names == [level.name for level in mg.levels("validation")]
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["list", "--levels", "/nowhere"], "there is no finished set of levels"),
        (["make", "/tmp", "--share", "0"], "found 0, allowed: more than 0, at most 100"),
        (["make", "/tmp", "--jobs", "0"], "found 0, allowed: an integer, 1 and above"),
    ],
)
def test_bad_arguments(arguments, message, capsys):
    try:
        status = main(["levels", *arguments])
    except SystemExit as error:
        status = error.code
    assert status == 2
    assert message in capsys.readouterr().err


def test_a_split_that_is_not_there():
    with pytest.raises(mg.InvalidInputError, match="found split 'all', allowed: train"):
        mg.levels("all")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 1, "programs": {}}', '{"format": 2, "programs": {"a": 1}}']
)
def test_a_damaged_index(tmp_path, text):
    (tmp_path / INDEX).write_text(text)
    with pytest.raises(mg.InvalidInputError, match="index"):
        mg.levels("test", tmp_path)


def test_damaged_programs(tmp_path):
    for file in BUNDLED.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / PROGRAMS).write_bytes((BUNDLED / PROGRAMS).read_bytes()[:5000])
    level = mg.levels("train", tmp_path)[0]
    with pytest.raises(mg.InvalidInputError, match="damaged"):
        level.load_program()
