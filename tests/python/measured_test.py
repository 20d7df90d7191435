"""Published measurements: the data's schema, a function captured, and the figures of the law."""

import importlib
import math
import pathlib
import sys

import numpy as np
import pytest

import mallocgame as mg

FOLDER = pathlib.Path(__file__).parents[2] / "benchmarks" / "measured"


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
    assert len(points) == 218 and len({point.id for point in points}) == 218
    assert sum(point.held for point in points) == 57
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


@pytest.mark.full
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
    sources, _ = points.load()
    assert predict.captured(tmp_path, [tiny], sources) == []
    (row,) = predict.rows_of(tmp_path, [tiny], sources)
    assert row.predicted_us == mg.simulate(row.program, row.program.xla_plan).latency_ps / 1e6
    law = mg.calibration.PriceLaw.of("tpu_v5e")
    least = 4 * 2**20 / (law.main_share * mg.Hardware.preset("tpu_v5e").main_bytes_per_second)
    assert row.calibrated_us() == pytest.approx(least * 1e6, rel=0.01)
    assert row.calibrated_us() < row.predicted_us and row.calibrated_us(law) == row.calibrated_us()
    assert any("| all | 1 |" in line for line in predict.tables([row], lambda _: 6.0, "x"))


@pytest.mark.full  # It needs SciPy.
def test_the_fit_writes_the_figures_that_the_library_reads():
    fit = module("fit")
    text = fit.figures_text([], {"speed": 0.9, "kernel": 0.6})
    for chip in mg.Hardware.preset_names():
        law, sources = mg.calibration.PriceLaw.of(chip), mg.calibration.PriceLaw.sources_of(chip)
        assert set(sources) == {"main_share", "copy_latency_ps", "speed", "kernel"}
        assert all(sources.values())
        assert f'{{"{chip}",\n {{{law.main_share:.4g}, {law.copy_latency_ps}, ' in text
        assert f'"{sources["main_share"]}"' in text
    assert fit.FILE.read_text().splitlines()[0] == text.splitlines()[0]
    # What is left out has no say.
    assert fit.laws({"speed": 0.9, "kernel": 0.6}, "tokamax")["tpu_v5e"].main_share < 0.9


@pytest.mark.full
def test_a_measured_time_is_a_point(tmp_path):
    jax = pytest.importorskip("jax")
    pytest.importorskip("libtpu")
    from mallocgame.xla import Measured
    from mallocgame.xla.lowering import lower
    from mallocgame.xla.measuring import write_point

    def doubled(x):
        return 2 * x

    text = lower(doubled, jax.ShapeDtypeStruct((1024, 1024), "bfloat16"))
    taken = np.array([3e-6, 4e-6, 9e-6])
    measured = Measured(taken, taken, 1.0, 1.0, 1.0, "TPU v5 lite")
    for _ in range(2):  # The second takes the place of the first.
        write_point(tmp_path / "mine", "doubled", "tpu_v5e", "bfloat16", text, measured)
    points, predict = module("points"), module("predict")
    sources, (point,) = points.load_measured(tmp_path / "mine")
    assert (point.chip, point.kind, point.source) == ("tpu_v5e", "doubled", "TPU v5 lite")
    assert point.measured_us == pytest.approx(4.0) and point.lowered() == text
    assert predict.captured(tmp_path / "captured", [point], sources) == []
    (row,) = predict.rows_of(tmp_path / "captured", [point], sources)
    assert 0 < row.calibrated_us() < row.predicted_us
