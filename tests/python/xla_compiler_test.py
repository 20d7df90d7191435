"""The child process that compiles, what its compiler can, and its versions. None needs JAX."""

import concurrent.futures
import pathlib
import subprocess
import sys
import textwrap
import time
import tomllib

import pytest
from conftest import SOURCE_ROOT

import mallocgame.xla as mgx
from mallocgame.errors import how_to_install
from mallocgame.xla import compiler as compiling
from mallocgame.xla import worker
from mallocgame.xla.abilities import VERSIONS
from mallocgame.xla.modules import Assigned, without_fields


@pytest.fixture
def child(tmp_path, monkeypatch):
    """child(code) returns a Compiler with another process in place of XLA.

    The process runs the code for each line that it is sent.
    """

    def make(code: str, **settings) -> mgx.Compiler:
        script = tmp_path / "child.py"
        script.write_text(
            "import json, os, sys, time\n"
            "print(json.dumps({'ready': {}}), flush=True)\n"
            "for line in sys.stdin:\n"
            "    job = json.loads(line)\n" + textwrap.indent(textwrap.dedent(code), "    ")
        )
        monkeypatch.setattr(compiling, "_WORKER", str(script))
        monkeypatch.setattr(compiling, "installed_versions", lambda: {"libtpu": "none"})
        monkeypatch.setattr(compiling, "portable_artifact", str.encode)
        return mgx.Compiler(mgx.find_target("tpu_v4i"), **{"cache": tmp_path / "cache"} | settings)

    return make


def test_compiler_that_ends(child):
    compiler = child(
        "sys.stderr.write('F1120 x.cc:7] Check failed: a == b\\n'); sys.stderr.flush(); os.abort()"
    )
    for _ in range(2):  # the second time another process is started
        with pytest.raises(
            mgx.CompilerEndedError, match=r"tpu_v4i ended by SIGABRT: .*Check failed: a == b"
        ):
            compiler.compile("module {}")
    assert compiler.compiles == 2


def test_others_are_counted_and_closed_with_the_first(child):
    """They are asked in threads of their own."""
    first = child("print(json.dumps({'ok': False, 'error': str(os.getpid())}), flush=True)")
    refusals = []
    for one in (first, first.another(), first.another()):
        with pytest.raises(mgx.CompilerRefusedError) as refused:
            one.look("module {}", {}, 1)
        refusals.append(int(str(refused.value)))
        assert one.most_bytes > 0
    assert len(set(refusals)) == 3 and first.looks == 3 and first.longest_look > 0
    first.close()
    assert not any(pathlib.Path(f"/proc/{process}").exists() for process in refusals)


def test_another_thread_stops_a_compile(child, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    compiler = child("open('begun', 'w').close(); time.sleep(60)", seconds=60)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        asked = pool.submit(compiler.compile, "module {}")
        while not pathlib.Path("begun").exists():
            time.sleep(0.01)
        compiler.stop()
        with pytest.raises(mgx.CompilerEndedError):
            asked.result(timeout=30)
        with pytest.raises(mgx.CompilerEndedError, match="it was stopped"):
            pool.submit(compiler.compile, "module {}").result(timeout=30)
    assert compiler.killed == 0  # Nobody else did it.
    compiler.close()  # Then it can be asked again.
    with pytest.raises(mgx.CompilerLimitError):
        compiler.seconds = 0.3
        compiler.compile("module {}")


def test_one_that_was_stopped_starts_no_process(child, monkeypatch):
    """Where a request is asked for otherwise, its first compile may be stopped, and the next."""
    started = []
    compiler = child("")

    class Child:
        def __init__(self, *_: object) -> None:
            started.append(self)
            compiler.stop()

        def kill(self) -> None:
            raise AssertionError("nobody knows of it before it is started")

        def close(self) -> None:
            started.remove(self)

    monkeypatch.setattr(compiling, "_Child", Child)
    with pytest.raises(mgx.CompilerEndedError, match="it was stopped"):
        compiler.compile("module {}")
    assert not started  # It was stopped while it was started.
    monkeypatch.setattr(compiling, "_Child", None)
    with pytest.raises(mgx.CompilerEndedError, match="it was stopped"):
        compiler.compile("module {}")


def test_compiler_that_takes_too_long(child):
    with pytest.raises(mgx.CompilerLimitError, match=r"no answer within 0.3 s"):
        child("time.sleep(60)", seconds=0.3).compile("module {}")


def test_compiler_without_a_limit_of_time(child):
    compiler = child(
        "time.sleep(0.3); print(json.dumps({'ok': False, 'error': 'at last'}), flush=True)",
        seconds=0,
    )
    with compiler, pytest.raises(mgx.CompilerRefusedError, match=r"^at last$"):
        compiler.compile("module {}")


def test_compiler_that_refuses_is_asked_once(child):
    compiler = child(
        "error = 'no room\\n=== Source Location Trace: x'\n"
        "print(json.dumps({'ok': False, 'error': error}), flush=True)"
    )
    for _ in range(2):
        with pytest.raises(mgx.CompilerRefusedError, match=r"^no room$"):
            compiler.compile("module {}")
    assert compiler.compiles == 1
    with pytest.raises(mgx.CompilerRefusedError):
        compiler.compile("module {}", {"other": "options"})
    assert compiler.compiles == 2
    compiler.close()


def test_only_what_xla_itself_says_is_a_refusal():
    class Refused(Exception):
        pass

    class Compiler:
        refusal = Refused

        def compile(self, job: dict) -> dict:
            if job["error"] is not None:
                raise job["error"]
            return {}

        phase = compile

    def answer(error: Exception | None, kind: str = "compile") -> dict[str, object]:
        return worker._answer(Compiler(), {"kind": kind, "error": error})

    for kind in ("compile", "phase"):
        assert answer(None, kind) == {"ok": True}
        assert answer(Refused("no room"), kind) == {"ok": False, "error": "no room"}
        assert answer(MemoryError("bad_alloc"), kind) == {"failed": "MemoryError: bad_alloc"}
    assert answer(None, "other") == {"failed": "KeyError: 'other'"}


def test_what_is_no_refusal_is_not_kept(child):
    compiler = child("print(json.dumps({'failed': 'MemoryError: bad_alloc'}), flush=True)")
    for _ in range(2):
        with pytest.raises(mgx.CompilerError, match=r"v4i: MemoryError: bad_alloc$") as found:
            compiler.compile("module {}")
        assert not isinstance(found.value, mgx.CompilerRefusedError)
    assert compiler.compiles == 2


def test_compiler_that_dumps(child, tmp_path):
    compiler = child("""
        os.mkdir(job["dump"])
        for end, content in (("after_optimizations_before_buffer_assignment", b"a"),
                             ("after_optimizations", b"b"), ("after_codegen", b"c")):
            open(os.path.join(job["dump"], "m." + end + ".hlo.pb"), "wb").write(b"\\x10" + content)
        print(json.dumps({"ok": True}), flush=True)
    """)
    with compiler:
        answer = compiler.compile("module {}")
        assert (answer.before, answer.assigned, answer.priced) == (b"\x10a", b"\x10b", b"\x10c")
        assert compiler.compile("module {}") == answer and compiler.compiles == 1
    (entry,) = (tmp_path / "cache").glob("*.zip")
    entry.write_bytes(b"damaged")
    with compiler:
        assert compiler.compile("module {}") == answer and compiler.compiles == 2


# Dumps a module of the name jit_f.
DUMPING = """
os.mkdir(job["dump"])
for end in ("after_optimizations_before_buffer_assignment", "after_optimizations", "after_codegen"):
    with open(os.path.join(job["dump"], "m." + end + ".hlo.pb"), "wb") as file:
        file.write(b"\\x0a\\x07\\x0a\\x05jit_f")
print(json.dumps({"ok": True}), flush=True)
"""


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("os.write(1, b'\\xff no JSON\\n')", r"it answered with b'\\xff no JSON"),
        ("print(7, flush=True)", "it answered with b'7"),
        ("print('{}', flush=True)", "it answered with b'{}"),
        ("while True: os.write(1, b'x' * (1 << 16))", "a line of more than"),
        ("print(json.dumps({'ok': True}), flush=True)", "its answer can't be read: .*: no "),
        (DUMPING, "asked for module jit_g, it answered with jit_f"),
    ],
)
def test_compiler_that_answers_nonsense(child, code, sentence):
    with child(code) as compiler, pytest.raises(mgx.CompilerError, match=sentence) as found:
        compiler.compile("module @jit_g attributes {} {}")
    assert not isinstance(found.value, mgx.CompilerRefusedError)


def test_long_words_of_a_compiler_that_ends(child, monkeypatch):
    monkeypatch.setattr(compiling, "_MOST_WORDS", 100)
    code = "sys.stderr.write('x' * 10**6 + '\\nlast words\\n'); sys.stderr.flush(); os.abort()"
    with pytest.raises(mgx.CompilerEndedError, match=r"SIGABRT: last words$"):
        child(code).compile("module {}")


def poison(name: str, entry: pathlib.Path, other: pathlib.Path) -> None:
    data = bytearray(entry.read_bytes())
    if name == "another's":
        data = bytearray(other.read_bytes())
    elif name == "encrypted":
        data[6] |= 1
        data[data.index(b"PK\x01\x02") + 8] |= 1
    elif name == "no such compression":
        data[8] = data[data.index(b"PK\x01\x02") + 10] = 77
    elif name == "damaged stream":
        at = 30 + len("key")
        data[at : at + 8] = b"\xff" * 8
    if name == "a folder":
        entry.unlink()
        entry.mkdir()
    else:
        entry.write_bytes(bytes(data))


@pytest.mark.parametrize(
    "name", ["another's", "encrypted", "no such compression", "damaged stream", "a folder"]
)
def test_poisoned_entries_are_asked_for_again(child, tmp_path, name):
    with child(DUMPING) as compiler:
        answer = compiler.compile("module @jit_f {}")
        (entry,) = (tmp_path / "cache").glob("*.zip")
        compiler.compile("module @jit_f {}", {"other": "options"})
        (other,) = {*(tmp_path / "cache").glob("*.zip")} - {entry}
        poison(name, entry, other)
        assert compiler.compile("module @jit_f {}") == answer and compiler.compiles == 3


def test_an_entry_may_not_be_huge(child, tmp_path, monkeypatch):
    with child(DUMPING) as compiler:
        compiler.compile("module @jit_f {}")
        monkeypatch.setattr(compiling, "_LARGEST_ENTRY", 10)
        compiler.compile("module @jit_f {}")
        assert compiler.compiles == 2


def test_a_cache_that_cannot_be_written_is_done_without(child, tmp_path):
    (tmp_path / "file").write_text("")
    with child(DUMPING, cache=tmp_path / "file") as compiler:
        assert compiler.compile("module @jit_f {}").before.endswith(b"jit_f")


def test_the_compilers_process_ends_with_its_parent(tmp_path):
    """What the parent can't remove any more goes too."""
    job = tmp_path / "job"
    (job / "dump").mkdir(parents=True)
    (job / "dump" / "module.pb").touch()
    code = (
        "import importlib.util, time, threading, sys\n"
        f"spec = importlib.util.spec_from_file_location('worker', {compiling._WORKER!r})\n"
        "worker = importlib.util.module_from_spec(spec); spec.loader.exec_module(worker)\n"
        f"job = {{'folder': {str(job)!r}}}\n"
        "threading.Thread(target=worker._end_with_parent, args=[job], daemon=True).start()\n"
        "print('ready', flush=True); time.sleep(60)\n"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe) as process:
        assert process.stdout.readline() == b"ready\n"
        process.stdin.write(b"a job that nobody reads\n")
        process.stdin.close()
        assert process.wait(30) == 1
    assert not job.exists() and tmp_path.exists()


def test_compiler_that_is_stopped_early(child):
    """A look takes what was dumped until the main memory did not suffice.

    A refusal stays one, and nothing is kept.
    """
    compiler = child("""
        if "refused" in job["options"]:
            answer = {"ok": False, "error": "no room"}
        else:
            os.mkdir(job["dump"])
            for end in ("after_optimizations_before_buffer_assignment", "after_optimizations"):
                with open(os.path.join(job["dump"], "m." + end + ".hlo.pb"), "wb") as file:
                    file.write(b"\\x10" + end[-1:].encode())
            mib = job["options"]["xla_tpu_max_hbm_size_mib"]
            error = "E1000: CompileTimeHbmOom: 9M exceeds available HBM " + mib
            answer = {"ok": False, "error": error}
        print(json.dumps(answer), flush=True)
    """)
    with compiler:
        for _ in range(2):
            look = compiler.look("module {}", {}, main_mib=7)
            assert type(look) is Assigned and (look.before, look.assigned) == (b"\x10t", b"\x10s")
        with pytest.raises(mgx.CompilerRefusedError, match=r"^no room$"):
            compiler.look("module {}", {"refused": ""}, main_mib=7)
        assert (compiler.looks, compiler.compiles) == (3, 0)
        # A caller who wants it whole gets an error.
        with pytest.raises(mgx.CompilerRefusedError, match=r"HBM 7$"):
            compiler.compile("module {}", {"xla_tpu_max_hbm_size_mib": "7"})


# Gives its inputs back, the last first.
PHASE = """
os.mkdir(job["outputs"])
names = [str(number) for number in range(len(job["programs"]))]
for name, program in zip(names, reversed(job["programs"])):
    os.rename(program, os.path.join(job["outputs"], name))
print(json.dumps({"ok": True, "programs": names}), flush=True)
"""


def test_a_phase_takes_programs_and_gives_programs(child):
    with child(PHASE) as compiler:
        assert compiler.run_phase("phase3_linking", [b"a", b"\x00b"]) == [b"\x00b", b"a"]
        assert compiler.run_phase("phase3_linking", []) == []
        assert compiler.compiles == compiler.looks == 0


@pytest.mark.parametrize(
    ("code", "error", "sentence"),
    [
        ('print(\'{"ok": false, "error": "no"}\', flush=True)', mgx.CompilerRefusedError, "no"),
        ("print('{\"ok\": true}', flush=True)", mgx.CompilerError, "its answer can't be read"),
        (
            'print(\'{"ok": true, "programs": ["0"]}\', flush=True)',
            mgx.CompilerError,
            "its answer can't be read: FileNotFoundError",
        ),
        ("os.abort()", mgx.CompilerEndedError, "ended by SIGABRT"),
    ],
)
def test_a_phase_that_goes_wrong(child, code, error, sentence):
    with child(code) as compiler, pytest.raises(error, match=sentence) as found:
        compiler.run_phase("phase3_linking", [b"a"])
    assert type(found.value) is error


def test_extra_that_is_missing():
    code = (
        "import sys, importlib.metadata as m\n"
        "real = m.version\n"
        "def version(name):\n"
        "    if name == 'libtpu': raise m.PackageNotFoundError(name)\n"
        "    return '1'\n"
        "m.version = version\n"
        "import mallocgame.xla as mgx\n"
        "try: mgx.Compiler(mgx.find_target('tpu_v4i'))\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == f"mallocgame.xla needs libtpu: {how_to_install('xla')}", (
        done.stderr
    )


def test_import_needs_no_jax():
    heavy = {"jax", "jaxlib", "libtpu"}
    code = f"import sys, mallocgame.xla; print(sorted(sys.modules.keys() & {heavy}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "[]", done.stderr


OLD_COMPILER = """
options = job["options"]
known = {"xla_max_cross_program_prefetches", "xla_tpu_sliced_prefetch_max_slices"}
memory = {"xla_tpu_max_hbm_size_mib", "xla_tpu_rematerialization_min_size_in_bytes"}
unknown = sorted(set(options) - known - memory)
if unknown:
    error = f"INVALID_ARGUMENT: No such compile option: '{unknown[0]}'"
else:
    error = "RESOURCE_EXHAUSTED: " + WORDS
with open("asked", "a") as file:
    file.write("x")
print(json.dumps({"ok": False, "error": error}), flush=True)
"""


@pytest.mark.parametrize(
    ("words", "early"),
    [("E1000: CompileTimeHbmOom", True), ("Ran out of memory on HBM", True), ("Other", False)],
)
def test_what_the_installed_compiler_can(child, words, early, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    old = OLD_COMPILER.replace("WORDS", repr(words))
    for _ in range(2):  # the second time the answer is kept
        with child(old) as compiler:
            abilities = compiler.abilities
    assert (tmp_path / "asked").read_text() == "xxx"
    assert abilities.ends_early is early
    assert compiler.compiles == compiler.looks == 0
    sentence = abilities.sentence({"jax": "0.10.2", "jaxlib": "1", "libtpu": "0.0.42.1"})
    assert sentence == (
        "libtpu 0.0.42.1 has no option xla_tpu_msa_sort_order_overrides and no "
        "xla_tpu_msa_tensor_overrides, by which plans are asked for: "
        "pip install jaxlib==0.10.2 libtpu==0.0.51"
    )
    with pytest.raises(mgx.MissingOptionError, match="by which plans are asked for: pip install"):
        compiler.check_takes_plans()


def test_a_compiler_that_lacks_nothing_says_nothing():
    assert mgx.Abilities((), True).sentence({"libtpu": "9"}) is None
    slow = mgx.Abilities((), False).sentence(VERSIONS)
    assert slow == "libtpu 0.0.51 doesn't end early, so every look is a whole compile"


def test_versions_are_those_of_the_extra():
    project = tomllib.loads((SOURCE_ROOT / "pyproject.toml").read_text())
    pinned = project["project"]["optional-dependencies"]["xla"]
    assert pinned == [f"{name}=={version}" for name, version in VERSIONS.items()]


def test_without_fields():
    inner = b"\x0a\x01x" + b"\x3a\x02yz"  # field 1 = "x", field 7 = "yz"
    message = b"\x08\x05" + b"\x12" + bytes([len(inner)]) + inner  # field 1 = 5, field 2 = inner
    assert without_fields(message, {2: {7: None}}) == b"\x08\x05\x12\x03\x0a\x01x"
    assert without_fields(message, {}) == message
    for damaged in (message[:-1], b"\x0b"):
        with pytest.raises((IndexError, ValueError)):
            without_fields(damaged, {2: {7: None}})
