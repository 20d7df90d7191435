"""Tuned executables in a user's process: the folder, the hook, and mgx.jit.

A live PJRT plugin for the CPU stands in for libtpu, in a process of its own. What is handed over
there is the executable of another function of the same signature, so that one sees whose it is.
"""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import zipfile

import pytest
from xla_programs import SHAPE, jax

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame.xla.compiler import installed_versions
from mallocgame.xla.compiler_process import NO_CHIP
from mallocgame.xla.signatures import Signature, signature_of_hlo, signature_of_text
from mallocgame.xla.tuned_folders import Key, TunedFolder

pytestmark = pytest.mark.full

# What every process below begins with.
BEGIN = (pathlib.Path(__file__).parent / "jit_process.py").read_text()


@pytest.fixture
def process(tmp_path):
    """process(code) -> what the code prints as JSON, in a process with the plugin."""

    def call(code: str, **environment: str):
        done = subprocess.run(
            [sys.executable, "-c", BEGIN + code],
            cwd=tmp_path,
            env={**os.environ, "JAX_PLATFORMS": "hooked", **environment},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return json.loads(done.stdout.splitlines()[-1])

    return call


def test_a_function_gets_its_executable(process):
    """Others compile as ever, also while the hook is installed."""
    found = process("""
keep(one_more, hundred_more, a)
step = mgx.jit(one_more, executables="tuned")
print(json.dumps([
    step(a).tolist(),
    mgx.jit(one_more, executables="tuned", strict=True)(a).tolist(),
    step.lower(a).compile()(a).tolist(),
    jax.jit(one_more)(a).tolist(),
    jax.jit(lambda a: one_more(a) * 3)(a).tolist(),
    step.untuned(a).tolist(),
    [(offer.taken, offer.refusal) for offer in hook._offers.values()],
    str(step.lower(a).compile().runtime_executable().hlo_modules()[0].name),
]))""")
    assert found == [
        [100, 100], [100, 100], [100, 100], [1, 1], [3, 3], [1, 1], [[1, ""]], "jit_hundred_more"
    ]  # fmt: skip


def test_what_does_not_fit_is_refused_by_name(process):
    found = process("""
wide = jnp.zeros(3)
versions = installed_versions()
said = {}
def refused(name, folder):
    said[name] = plain(mgx.jit(one_more, executables=folder), a)
refused("none", "none")
keep(one_more, hundred_more, a, folder="version", versions=versions | {"libtpu": "0.0.1"})
refused("version", "version")
key = key_of(one_more, a)
keep(one_more, hundred_more, a, folder="key",
     signature=dataclasses.replace(key.signature, donated=(0,)))
refused("key", "key")
executables = {
    "shape": jax.jit(hundred_more).lower(wide),
    "type": jax.jit(lambda a: a.astype(int)).lower(a),
    "donation": jax.jit(hundred_more, donate_argnums=0).lower(a),
    "count": jax.jit(lambda a, b: a + b).lower(a, a),
}
for name, lowered in executables.items():
    TunedFolder(name).keep(key, pjrt(lowered.compile()), {"cost_ps": 1})
    refused(name, name)
TunedFolder("garbage").keep(key, b"garbage", {"cost_ps": 1})
refused("garbage", "garbage")
path = keep(one_more, hundred_more, a, folder="damaged")
data = path.read_bytes()
path.write_bytes(data[:len(data) // 2])
refused("damaged", "damaged")
print(json.dumps([said, {name: offer.taken for name, offer in hook._offers.items()}]))""")
    said, taken = found
    assert not any(taken.values())
    for name, expected in {
        "none": "there is no folder none",
        "version": "is for versions libtpu 0.0.1, not libtpu " + installed_versions()["libtpu"],
        "key": "is for another signature; donated: found 0, allowed: none",
        "shape": "can't be taken: the executable has another signature; "
        "input 0: found f32[3], allowed: f32[2]",
        "type": "output 0: found s32[2], allowed: f32[2]",
        "donation": "input 0: found donated, allowed: kept",
        "count": "inputs: found 2, allowed: 1",
        "garbage": "can't be taken: the executable can't be loaded:",
        "damaged": "damaged: BadZipFile",
    }.items():
        result, (warning,) = said[name]
        assert result == [1, 1] and expected in warning, (name, warning)


def test_another_program_does_not_get_it(process):
    """Of another signature, or traced anew to something else. A call never fails then."""
    found = process("""
keep(one_more, hundred_more, a)
more = 1
def one_more(a):
    return a + more
step = mgx.jit(one_more, executables="tuned")
results = [step(a).tolist()]
picked = step.picked(a)
results.append(picked(jnp.zeros(3)).tolist())
(offer,) = hook._offers.values()
results.append(offer.refusal)
more = 2
jax.clear_caches()
results += [step(a).tolist(), offer.refusal]
more = 1
jax.clear_caches()
results += [step(a).tolist(), offer.refusal]
print(json.dumps(results))""")
    assert found == [
        [100, 100],
        [1, 1, 1],
        "the program being compiled has another signature; input 0: found f32[3], allowed: f32[2]",
        [2, 2],
        "the program being compiled is another one than before",
        [100, 100],
        "",
    ]


def test_two_functions_donation_and_a_thread(process):
    found = process("""
def twice(a):
    return {"result": a * 2}
keep(one_more, hundred_more, a)
donating = jax.jit(twice, donate_argnums=0)
other = jax.jit(lambda a: {"result": a * 200}, donate_argnums=0)
keep(donating, other, a)
results = []
step = mgx.jit(one_more, executables="tuned")
double = mgx.jit(twice, executables="tuned", donate_argnums=0)
given = a + 1
results += [double(given)["result"].tolist(), given.is_deleted()]
thread = threading.Thread(target=lambda: results.append(step(a).tolist()))
thread.start()
thread.join()
results.append(jax.jit(lambda a: double(step(a))["result"])(a).tolist())
step.clear_cache()
results.append(step(a).tolist())
print(json.dumps(results))""")
    assert found == [[200, 200], True, [100, 100], [2, 2], [100, 100]]


def test_the_devices_are_those_of_the_call(process):
    """Another one than the executable was made on, and several."""
    found = process("""
first, second = jax.devices()[:2]
keep(one_more, hundred_more, a)
step = mgx.jit(one_more, executables="tuned")
moved = step(jax.device_put(a, second))
mesh = jax.sharding.Mesh([first, second], "x")
rows = jax.NamedSharding(mesh, jax.P("x"))
split = jax.device_put(jnp.arange(4.0), rows)
def total(a):
    return a.sum(), a
keep(total, lambda a: (a.sum() * 100, a), split, folder="several")
several = mgx.jit(total, executables="several")
whole, again = several(split)
print(json.dumps([moved.tolist(), moved.devices() == {second}, float(whole), again.tolist(),
                  again.sharding.is_equivalent_to(rows, 1)]))""")
    assert found == [[100, 100], True, 600, [0, 1, 2, 3], True]


def test_the_persistent_cache_keeps_the_plain_program_only(process, tmp_path):
    """The folder keeps the tuned one. Neither is taken for the other in a later process."""
    cache = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "JAX_RAISE_PERSISTENT_CACHE_ERRORS": "true",
    }
    code = """
from jax._src import monitoring
hits = []
monitoring.register_event_listener(
    lambda event, **_: hits.append(event) if event.endswith("cache_hits") else None)
a = np.zeros(2, "float32")
if not os.path.exists("tuned"):
    keep(one_more, hundred_more, a)
before = len(hits)
results = [mgx.jit(one_more, executables="tuned")(a).tolist(), jax.jit(one_more)(a).tolist()]
print(json.dumps([*results, len(hits) - before, [it.taken for it in hook._offers.values()]]))
"""
    assert process(code, **cache) == [[100, 100], [1, 1], 0, [1]]
    assert process(code, **cache) == [[100, 100], [1, 1], 1, [1]]
    entries = [path.name for path in (tmp_path / "cache").glob("jit_one_more*-cache")]
    assert len(entries) == 1


def test_the_first_run_is_verified_and_measured(process):
    """The other function's results differ, and everything else is as it must be."""
    found = process("""
donating = jax.jit(one_more, donate_argnums=0)
keep(donating, jax.jit(hundred_more, donate_argnums=0), a, folder="wrong")
keep(donating, donating, a, folder="right")
wrong = mgx.verify(mgx.jit(one_more, executables="wrong", donate_argnums=0), a)
right = mgx.verify(donating, a, executables="right")
measured = mgx.measure(donating, a, executables="right", samples=2)
print(json.dumps([
    [[(it.passed, it.said) for it in one.checks[:4]] for one in (wrong, right)],
    str(wrong).splitlines()[0],
    mgx.verify(donating, a, executables="wrong", tolerance=99).checks[0].passed,
    len(measured.tuned),
    sorted(offer.taken for offer in hook._offers.values()),
]))""")
    equal = [True, "bitwise equal"]
    fine = [[True, "1 of 1, with XLA 1"], equal, equal]
    assert found[0] == [[[False, "off by 99, allowed: 0"], *fine], [equal, *fine]]
    assert found[1].startswith("FAILED: results are those of XLA's executable: off by 99")
    assert found[2:] == [True, 2, [1, 1]]


def test_verifying_needs_an_executable():
    one = jax.numpy.ones(3)
    with pytest.raises(mg.InvalidInputError, match="verify: it is for cpu"):
        mgx.verify(lambda a: a + 1, one, executables="none")
    with pytest.raises(mg.InvalidInputError, match="executables: found None, allowed: a folder"):
        mgx.verify(lambda a: a + 1, one)


# libtpu compiles for chips that aren't there, and loads nothing for them.
AHEAD = """
import json, warnings
import jax, numpy as np
from jax.experimental import topologies
import mallocgame.xla as mgx
from mallocgame.xla import hook, jitting
from mallocgame.xla.compiler import installed_versions
from mallocgame.xla.signatures import signature_of_hlo, signature_of_text
from mallocgame.xla.tuned_folders import Key, TunedFolder

def step(weight, x):
    return {"a": jax.numpy.tanh(x @ weight), "b": (x.sum() > 0)}

devices = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2").devices
found = []
for count, title in ((1, "tpu_v5e"), (4, "tpu_v5e:2x2")):
    mesh = jax.sharding.Mesh(np.array(devices[:count]), "x")
    rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    args = [jax.ShapeDtypeStruct((128, 128), "bfloat16", sharding=rows)] * 2
    text = mgx.lower(jax.jit(step, donate_argnums=1), *args)
    TunedFolder("tuned").keep(Key.of_module(text, title, installed_versions()), b"", {"cost_ps": 1})
    tuned = mgx.jit(step, executables="tuned", donate_argnums=1)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        compiled = tuned.lower(*args).compile()
    (module,) = compiled.runtime_executable().hlo_modules()
    made = signature_of_hlo(module.as_serialized_hlo_module_proto(), count)
    found.append([str(one.message) for one in said])
    found.append([signature_of_text(text).refuses(made), list(made.inputs), list(made.outputs),
                  list(made.donated)])
try:
    jax.jit(step).lower(*args).compile({hook.MARK: "another"})
except jax.errors.JaxRuntimeError as error:
    found.append(str(error))
print(json.dumps(found))
"""


@pytest.mark.weekly
def test_ahead_of_time_libtpu_compiles(tmp_path):
    """It refuses the mark, and executables have the signature."""
    done = subprocess.run(
        [sys.executable, "-c", AHEAD],
        cwd=tmp_path,
        env={**os.environ, **NO_CHIP},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    one, of_one, four, of_four, refused = json.loads(done.stdout.splitlines()[-1])
    for (warning,) in (one, four):
        assert "can't be taken: it is compiled ahead of time" in warning
    assert of_one == ["", ["bf16[128,128]"] * 2, ["bf16[128,128]", "pred[]"], [1]]
    assert of_four == ["", ["bf16[32,128]"] * 2, ["bf16[32,128]", "pred[]"], [1]]
    assert "No such compile option: 'mallocgame_executable'" in refused


def both(a, b):
    return (a + b).astype("int8"), a > b


def test_signatures():
    """Of what JAX lowered and of what was compiled of it."""
    shapes = SHAPE((2, 3), "float32"), SHAPE((), "float32")
    lowered = jax.jit(both, donate_argnums=0).lower(*shapes)
    text = mgx.lower(jax.jit(both), *shapes)
    signature = signature_of_text(text)
    assert signature == Signature(1, ("f32[2,3]", "f32[]"), ("s8[2,3]", "pred[2,3]"), (), ())
    (module,) = lowered.compile().runtime_executable().hlo_modules()
    made = signature_of_hlo(module.as_serialized_hlo_module_proto(), 1)
    assert made == signature and signature.refuses(made) == ""
    assert Signature.from_json(json.loads(json.dumps(dataclasses.asdict(made)))) == made
    for change, why in (
        ({"devices": 2}, "devices: found 2, allowed: 1"),
        ({"inputs": ("f32[2,3]",)}, "inputs: found 1, allowed: 2"),
        ({"outputs": ("s8[2,3]", "s8[2,3]")}, "output 1: found s8[2,3], allowed: pred[2,3]"),
        ({"donated": (1,)}, "input 1: found donated, allowed: kept"),
    ):
        assert signature.refuses(dataclasses.replace(made, **change)) == why
    part = Signature(2, ("f32[1,3]",), (), (), ("",))
    whole = dataclasses.replace(part, inputs=("f32[2,3]",), shardings=("rows",))
    assert whole.refuses(part) == "" and part.refuses(whole)
    with pytest.raises(mg.InvalidInputError, match="HLO module: JaxRuntimeError"):
        signature_of_hlo(b"", 1)
    with pytest.raises(mg.InvalidInputError, match="no StableHLO text"):
        signature_of_text("modul")


@pytest.fixture
def key():
    module = mgx.lower(both, SHAPE((2, 3), "float32"), SHAPE((), "float32"))
    return Key.of_module(module, "tpu_v5e:2x2", {"libtpu": "1"})


def test_executables_are_found_by_what_they_are_for(key, tmp_path):
    folder = TunedFolder(tmp_path / "tuned")
    assert folder.find(key) is None and folder.why_not(key) == f"there is no folder {folder.path}"
    path = folder.keep(key, b"code", {"cost_ps": 7, "program": "a/b"})
    assert path.name == f"a_b.tpu_v5e_2x2.{key.digest}.mgx"
    found = folder.find(key)
    assert found.executable() == b"code" and found.cost_ps == 7 and found.key == key
    for change, why_not in (
        ({"module": "another"}, "has none for this code with arguments of these shapes"),
        ({"target": "tpu_v5e"}, "is for target tpu_v5e:2x2, not tpu_v5e"),
        ({"versions": {"libtpu": "2"}}, "is for versions libtpu 1, not libtpu 2"),
        ({"flags": {"XLA_FLAGS": "--a"}}, "is for flags XLA_FLAGS unset, not XLA_FLAGS --a"),
        (
            {"signature": dataclasses.replace(key.signature, inputs=("f32[4]",))},
            "is for another signature; inputs: found 2, allowed: 1",
        ),
    ):
        other = dataclasses.replace(key, **change)
        assert folder.find(other) is None and folder.why_not(other).endswith(why_not)
    with pytest.raises(mg.InvalidInputError, match="found cost_ps None, allowed: a number"):
        folder.keep(key, b"code", {})


def test_only_cheaper_executables_take_the_place(key, tmp_path):
    folder = TunedFolder(tmp_path)
    for cost_ps, cheapest in ((70, b"70"), (80, b"70"), (60, b"60")):
        path = folder.keep(key, str(cost_ps).encode(), {"cost_ps": cost_ps})
        assert folder.find(key).path == path and folder.find(key).executable() == cheapest
    before = path.read_bytes()
    assert folder.keep(key, b"60", {"cost_ps": 60}).read_bytes() == before


def test_damaged_files_are_named(key, tmp_path):
    """They are passed over, and take nobody's place."""
    folder = TunedFolder(tmp_path)
    path = folder.keep(key, b"code", {"cost_ps": 5})
    with zipfile.ZipFile(path) as archive:
        document = json.loads(archive.read("about.json"))

    def write(executable: bytes, **changes: object) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("about.json", json.dumps(document | changes))
            archive.writestr("executable", executable)

    write(b"other")
    with pytest.raises(mg.InvalidInputError, match="another SHA-256 than it says"):
        folder.find(key).executable()
    folder.keep(key, b"costly", {"cost_ps": 9})
    assert folder.find(key).executable() == b"costly"
    for changes, why in (
        ({"version": 2}, "found format ('mallocgame tuned executable', 2), allowed:"),
        ({"key": {"module": ""}}, "damaged: KeyError 'signature'"),
        ({"about": {}}, "damaged: KeyError 'cost_ps'"),
    ):
        write(b"code", **changes)
        assert folder.find(key) is None and why in folder.why_not(key)


def test_a_function_of_jax_that_is_unknown(process):
    """It is left alone, and XLA compiles."""
    found = process("""
from jax._src import compiler
unknown = compiler.backend_compile_and_load = lambda backend, module: None
path = TunedFolder("tuned").keep(key_of(one_more, a), b"", {"cost_ps": 1})
why = jitting.find_offer(one_more, TunedFolder("tuned"), (a,), {})
print(json.dumps([*why, compiler.backend_compile_and_load is unknown]))""")
    assert found == [None, "jax: backend_compile_and_load takes backend, module", True]
