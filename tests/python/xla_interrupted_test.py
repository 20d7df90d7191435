"""What is kept where Ctrl-C or a full disk ends the work early, without a compiler."""

import dataclasses
import gzip
import types
from collections.abc import Callable

import pytest
from conftest import SOURCE_ROOT

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame.xla import captures, dumps
from mallocgame.xla.tuned_folders import Key

FOLDER = SOURCE_ROOT / "benchmarks/programs/hlo/core/tpu_v4i/mlp_train_adam_b512"
VERSIONS = {"jax": "1", "jaxlib": "1", "libtpu": "1"}


@pytest.fixture(scope="module")
def capture() -> mgx.Capture:
    """A program of the corpus, with prices of its instructions beside those of its modules."""
    loaded = mgx.load_capture(FOLDER)
    return dataclasses.replace(loaded, module="module {}", prices={"copy": {("0", "0"): 5}})


def ending_after(count: int) -> Callable[[bytes, bytes], None]:
    """In place of write_file(): it writes so many files, and then is interrupted."""
    left = [captures.write_file] * count

    def write(path: bytes, data: bytes) -> None:
        if not left:
            raise KeyboardInterrupt
        left.pop()(path, data)

    return write


def test_prices_stay_where_saving_ends_early(capture, tmp_path, monkeypatch):
    fewer = dataclasses.replace(capture, priced=capture.priced[:2], prices={})
    for before, after in ((fewer, capture), (capture, fewer)):
        files = 5 + len(after.priced) + bool(after.prices)
        for count in range(files):
            before.save(tmp_path)
            with monkeypatch.context() as ending, pytest.raises(KeyboardInterrupt):
                ending.setattr(captures, "write_file", ending_after(count))
                after.save(tmp_path)
            assert {*mgx.load_capture(tmp_path).priced} >= {*fewer.priced}
        after.save(tmp_path)
        assert mgx.load_capture(tmp_path) == after
        assert len([*tmp_path.iterdir()]) == files


def test_a_capture_without_a_module_leaves_none_of_another(capture, tmp_path):
    capture.save(tmp_path)
    without = dataclasses.replace(capture, module=None, prices={})
    without.save(tmp_path)
    assert mgx.load_capture(tmp_path) == without


def test_prices_that_are_none_are_named(capture, tmp_path):
    capture.save(tmp_path)
    for text in (b"[]", b"{", b'{"a": 5}', b'{"a": [["0", "0", "x"]]}'):
        (tmp_path / "prices.json.gz").write_bytes(gzip.compress(text))
        with pytest.raises(mg.InvalidInputError, match=r"prices.json.gz: no prices"):
            mgx.load_capture(tmp_path)


@pytest.fixture
def run_of_a_user(tmp_path):
    """Two programs of a run, as XLA dumps it."""
    folder = tmp_path / "dumps"
    for name in ("long", "short"):
        (folder / name).mkdir(parents=True)
        (folder / name / "module.mlir").write_text(f"module @{name} {{}}")
    return folder


def test_ctrl_c_while_a_program_is_captured_keeps_those_before(
    run_of_a_user, capture, tmp_path, monkeypatch
):
    def modules(*_: object):
        for latency_ps, name in ((20, "long"), (10, "short")):
            text = f"module @{name} {{}}"
            yield dumps._Module(
                name, text, Key(name, None, "tpu_v4i", VERSIONS, {}), latency_ps, []
            )

    def capture_module(module: str, *_: object) -> mgx.Capture:
        if "short" in module:
            raise KeyboardInterrupt
        return capture

    tuned = types.SimpleNamespace(interrupted=False)
    monkeypatch.setattr(dumps, "_modules", modules)
    monkeypatch.setattr(dumps, "capture_module", capture_module)
    monkeypatch.setattr(dumps, "tune_capture", lambda *_, **__: tuned)
    told = []
    compiler = types.SimpleNamespace(target=capture.target)
    results = mgx.tune_dumps(run_of_a_user, tmp_path, compiler=compiler, report=told.append)
    assert told == results
    assert [(one.name, one.interrupted) for one in results] == [("long", False), ("short", True)]
    assert results[0].tuned is tuned
