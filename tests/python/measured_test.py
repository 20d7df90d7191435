"""Published measurements: the data's schema, a function captured, and the law's properties."""

import dataclasses
import importlib
import math
import pathlib
import sys

import pytest

import mallocgame as mg

FOLDER = pathlib.Path(__file__).parents[2] / "benchmarks" / "measured"
CHIPS = ("tpu_v4i", "tpu_v4", "tpu_v4_megacore", "tpu_v5e", "tpu_v5p", "tpu_v6e", "tpu7x")


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    yield
    own = {path.stem for path in FOLDER.glob("*.py")} | {"functions"}
    for name in [name for name in sys.modules if name.partition(".")[0] in own]:
        del sys.modules[name]


def module(name):
    return importlib.import_module(name)


def test_every_point_says_what_where_and_how():
    sources, points = module("points").load()
    assert len(points) == 161 and len({point.id for point in points}) == 161
    assert {point.source for point in points} == set(sources)
    for source in sources.values():
        assert source.url.startswith("https://") and source.measured and source.software
        assert source.flags is None or all(map(str, source.flags))
    for point in points:
        assert point.chip in mg.Hardware.preset_names(), point.id
        assert math.isfinite(point.measured_us) and point.measured_us > 0, point.id
        assert point.method in {
            "device trace",
            "device ops",
            "cycle counter",
            "slope",
            "host clock",
        }, point.id
        assert point.data in {"random", "zero weights"} and point.where and point.kind, point.id


@pytest.mark.full
def test_every_function_can_be_made():
    pytest.importorskip("jax")
    for point in module("points").load()[1]:
        function, arguments = point.make()
        assert callable(function) and arguments, point.id
        names = {"bf16": "bfloat16", "f16": "float16", "f32": "float32"}
        assert str(arguments[0].dtype) == names[point.dtype], point.id


def test_shapes_are_hlo_s():
    shapes = module("functions.shapes")
    assert shapes.dims("bf16[8,128]") == (8, 128) and shapes.dims("f32[]") == ()
    with pytest.raises(ValueError, match=r"found 'bf17\[8\]', allowed: one like bf16\[8,128\]"):
        shapes.dims("bf17[8]")


def test_figures_of_known_numbers():
    found = module("figures").figures([2.0, 4.0, 8.0, 16.0], [1.0, 2.0, 4.0, 8.0])
    assert found.n == 4 and found.bias == pytest.approx(2.0) and found.rank == pytest.approx(1.0)
    assert found.spread == pytest.approx(1.0) and found.after == pytest.approx(0.0)
    assert found.error == pytest.approx(math.log(2.0))


def test_columns_are_read_as_they_are_written():
    wire = module("wire")
    for values in ([], [0], [5, -7, 2**62, -(2**63), 2**63 - 1, 3]):
        assert wire.column(wire.column_field(3, values), 3) == values


@pytest.fixture(scope="module")
def program():
    return mg.load_program("muzero_unroll_b32.tpu_v5e")


def test_prices_are_read_and_written(program):
    prices = module("prices")
    costs, pools = prices.read(program)
    assert len(costs) == program.ticks and sum(map(len, pools)) == program.counts["rows"]
    same = prices.with_pools(program, pools)
    assert same.fingerprint == program.fingerprint and same.xla_plan is None
    plan = program.xla_plan
    moved = prices.moved_plan(plan, program, same)
    assert mg.simulate(same, moved).latency_ps == mg.simulate(program, plan).latency_ps
    twice = prices.repriced(program, lambda cost, name, row: 2 * row.cycles, [""] * program.ticks)
    moved = prices.moved_plan(plan, program, twice)
    before, after = (mg.simulate(*pair) for pair in ((program, plan), (twice, moved)))
    assert after.exact_ps + after.predicted_ps <= 2 * (before.exact_ps + before.predicted_ps)


def test_more_in_fast_memory_is_never_dearer(program):
    prices = module("prices")
    row = prices.Row
    rows = [row(0, 0, 74), row(0, 1, 108), row(1, 1, 90), row(1, 0, 60)]
    assert prices.capped(rows) == [row(0, 0, 74), row(0, 1, 74), row(1, 1, 60), row(1, 0, 60)]
    _, pools = prices.read(program)
    for pool in pools:
        capped = prices.capped(pool)
        assert all(
            more.cycles <= less.cycles for less in capped for more in capped if less.is_below(more)
        )


@pytest.mark.parametrize("chip", CHIPS)
def test_the_law_keeps_to_the_bytes_and_grows_with_them(chip):
    law = module("law").load()[chip]
    work = module("classes").Work
    preset = mg.Hardware.preset(chip)
    assert 0 < law.achieved_bytes_per_second <= preset.main_bytes_per_second
    assert 0 < law.speed <= 1.2 and 0 < law.reduction <= 1.2 and 0 < law.kernel <= 1.2
    for name in module("classes").CLASSES:
        for width in (0.25, 0.5, 1.0, 2.0):
            times = [law.time_ps(work(name, width), 1e6, size) for size in range(0, 2**24, 2**20)]
            assert times == sorted(times)
            assert all(
                time >= preset.transfer_ps(size) * (1 - 1e-9)
                for time, size in zip(times, range(0, 2**24, 2**20), strict=True)
            )
            prices = [law.time_ps(work(name, width), price, 2**20) for price in (0, 1e5, 1e7, 1e9)]
            assert prices == sorted(prices)
    hardware = law.hardware(preset)
    assert hardware.main_bytes_per_second == round(law.achieved_bytes_per_second)
    assert dataclasses.is_dataclass(law)


def test_a_calibrated_program_keeps_to_the_bytes(program):
    prices, law = module("prices"), module("law").load()["tpu_v5e"]
    work = module("classes").Work("stream", 0.5)
    price = lambda cost, name, row: law.cycles(program.hardware, work, cost, row)  # noqa: E731
    calibrated = prices.repriced(program, price, program.instruction_names)
    costs, pools = prices.read(calibrated)
    for cost in costs:
        for row in pools[cost.pool] if cost.pool >= 0 else []:
            time = program.hardware.cycles_to_ps(row.cycles)
            floor = program.hardware.transfer_ps(cost.main_bytes(row))
            assert time >= floor


@pytest.mark.weekly
def test_a_tiny_function_is_captured_and_priced(tmp_path):
    pytest.importorskip("libtpu")
    points, predict = module("points"), module("predict")
    tiny = points.Point(
        id="tiny",
        chip="tpu_v5e",
        kind="copy",
        dtype="bf16",
        function="streams.copy",
        arguments={"x": "bf16[1048576]"},
        measured_us=6.0,
        method="device trace",
        data="random",
        source="tpu-recipes",
        where="a test",
    )
    assert predict.captured(tmp_path, [tiny]) == []
    (row,) = predict.rows_of(tmp_path, [tiny])
    assert row.latency_ps == round(row.terms.compiler_ps()) > 0
    by_chip = module("law").load()
    simulated = predict.calibrated_us(tmp_path, row, by_chip)
    assert simulated == pytest.approx(row.terms.calibrated_ps(by_chip["tpu_v5e"]) / 1e6, rel=0.01)
    assert simulated >= 4 * 2**20 / by_chip["tpu_v5e"].achieved_bytes_per_second * 1e6
    assert any("| all | 1 |" in line for line in predict.tables([row], lambda _: 6.0, "x"))
