"""The child process that compiles, and the cache of its answers. None needs JAX."""

import pathlib
import subprocess
import sys
import textwrap
import time

import pytest
from conftest import again

import mallocgame.xla as mgx
from mallocgame.errors import how_to_install
from mallocgame.xla import answers, compiler_process, worker
from mallocgame.xla import compiler as compiling
from mallocgame.xla.modules import without_fields
from mallocgame.xla.partial_programs import PartialProgram
from mallocgame.xla.phases import Crew, Scheduled


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
        monkeypatch.setattr(compiler_process, "_WORKER", str(script))
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
            mgx.compiler.CompilerEndedError,
            match=r"tpu_v4i ended by SIGABRT: .*Check failed: a == b",
        ):
            compiler.compile("module {}")
    assert compiler.compiles == 2


def test_others_are_counted_and_closed_with_the_first(child):
    """They are asked in threads of their own."""
    code = "print(json.dumps({'ok': False, 'error': str(os.getpid())}), flush=True)"
    first = child(code, cache=None)
    refusals = []
    for one in (first, first.another(), first.another()):
        with pytest.raises(mgx.compiler.CompilerRefusedError) as refused:
            one.compile("module {}")
        refusals.append(int(str(refused.value)))
        assert one.most_bytes > 0
    assert len(set(refusals)) == 3 and first.compiles == 3
    first.close()
    assert not any(pathlib.Path(f"/proc/{process}").exists() for process in refusals)


def test_others_are_kept_for_whoever_borrows_next(child):
    code = "print(json.dumps({'ok': False, 'error': str(os.getpid())}), flush=True)"
    with child(code, cache=None) as first:

        def process_of(one):
            with pytest.raises(mgx.compiler.CompilerRefusedError) as refused:
                one.compile("module {}")
            return pathlib.Path(f"/proc/{refused.value}")

        with first.keeping_others():
            with first.keeping_others():
                other = first.borrow()
                process = process_of(other)
                first.give_back(other)
            assert process.exists()
            assert first.borrow() is other and first.borrow() is not other
            first.give_back(other)
        assert not process.exists()
        alone = first.borrow()
        process = process_of(alone)
        first.give_back(alone)
        assert not process.exists() and first.borrow() is not alone


def test_compiler_that_takes_too_long(child):
    with pytest.raises(mgx.compiler.CompilerLimitError, match=r"no answer within 0.3 s"):
        child("time.sleep(60)", seconds=0.3).compile("module {}")


def test_time_that_is_over(child):
    compiler = child("time.sleep(60)", cache=None)
    other = compiler.another()
    with compiler, compiler.until(time.monotonic() + 0.5):
        for one in (compiler, other, compiler):  # the second and third are not asked any more
            with pytest.raises(mgx.compiler.CompilerDeadlineError, match="the time is over"):
                one.compile("module {}")
    assert compiler.compiles == 3
    compiler.seconds = 0.1
    with compiler, pytest.raises(mgx.compiler.CompilerLimitError, match=r"within 0.1 s") as told:
        compiler.compile("module {}")
    assert not isinstance(told.value, mgx.compiler.CompilerDeadlineError)


def test_what_isnt_compiled_in_time_is_left_out_or_named(child):
    """An instruction that takes minutes takes no more than the time that there is."""
    is_slow = "b'slow' in open(job['programs'][0], 'rb').read() and time.sleep(60)\n"
    program = Scheduled({})
    modules = {name: PartialProgram(name.encode(), name=name) for name in ("quick", "slow", "also")}
    said, late = [], []
    with child(is_slow + PHASE, cache=None) as compiler:
        crew = Crew(compiler, jobs=2, tell=said.append)
        begin = time.monotonic()
        with crew, compiler.until(begin + 5):
            done = crew.lower_isolated(program, modules, called=str.upper, late=late)
        assert (set(done), late) == ({"quick", "also"}, ["slow"])
        assert said[-1] == "2 of 3 instructions compiled, the next: 'SLOW'"
        with (
            compiler.until(time.monotonic() + 1),
            pytest.raises(mgx.compiler.CompilerDeadlineError, match="had compiled 'slow'"),
        ):
            crew.lower_isolated(program, {"slow": modules["slow"]})
        assert time.monotonic() - begin < 30


def test_compiler_without_a_limit_of_time(child):
    compiler = child(
        "time.sleep(0.3); print(json.dumps({'ok': False, 'error': 'at last'}), flush=True)",
        seconds=0,
    )
    with compiler, pytest.raises(mgx.compiler.CompilerRefusedError, match=r"^at last$"):
        compiler.compile("module {}")


def test_compiler_that_refuses_is_asked_once(child):
    compiler = child(
        "error = 'no room\\n=== Source Location Trace: x'\n"
        "print(json.dumps({'ok': False, 'error': error}), flush=True)"
    )
    for _ in range(2):
        with pytest.raises(mgx.compiler.CompilerRefusedError, match=r"^no room$"):
            compiler.compile("module {}")
    assert compiler.compiles == 1
    with pytest.raises(mgx.compiler.CompilerRefusedError):
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
        assert not isinstance(found.value, mgx.compiler.CompilerRefusedError)
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
    with compiler, pytest.warns(RuntimeWarning, match="is damaged, so the compiler is asked again"):
        assert compiler.compile("module {}") == answer and compiler.compiles == 2


def test_answers_that_cannot_be_kept_are_given_all_the_same(child, tmp_path):
    (tmp_path / "cache").write_bytes(b"no folder")
    with child(DUMPING) as compiler, pytest.warns(RuntimeWarning, match="answers can't be kept"):
        answer = compiler.compile("module @jit_f {}")
        assert compiler.compile("module @jit_f {}") == answer and compiler.compiles == 2


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
    assert not isinstance(found.value, mgx.compiler.CompilerRefusedError)


def test_long_words_of_a_compiler_that_ends(child, monkeypatch):
    monkeypatch.setattr(compiler_process, "_MOST_WORDS", 100)
    code = "sys.stderr.write('x' * 10**6 + '\\nlast words\\n'); sys.stderr.flush(); os.abort()"
    with pytest.raises(mgx.compiler.CompilerEndedError, match=r"SIGABRT: last words$"):
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
        with pytest.warns(RuntimeWarning):
            assert compiler.compile("module @jit_f {}") == answer and compiler.compiles == 3


def test_an_entry_may_not_be_huge(child, tmp_path, monkeypatch):
    with child(DUMPING) as compiler:
        compiler.compile("module @jit_f {}")
        monkeypatch.setattr(answers, "_LARGEST_ENTRY", 10)
        with pytest.warns(RuntimeWarning, match="is damaged"):
            compiler.compile("module @jit_f {}")
        assert compiler.compiles == 2


def test_the_compilers_process_ends_with_its_parent(tmp_path):
    """What the parent can't remove any more goes too."""
    job = tmp_path / "job"
    (job / "dump").mkdir(parents=True)
    (job / "dump" / "module.pb").touch()
    code = (
        "import importlib.util, time, threading, sys\n"
        f"spec = importlib.util.spec_from_file_location('worker', {compiler_process._WORKER!r})\n"
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
        assert compiler.compiles == 0 and compiler.phases == {"phase3_linking": 2}


def test_what_a_phase_gave_is_kept_if_asked_for(child, tmp_path):
    with child(PHASE) as compiler:
        for _ in range(2):
            assert compiler.run_phase("phase1_hlo_opts", [b"a", b"b"], kept=True) == [b"b", b"a"]
        assert compiler.phases == {"phase1_hlo_opts": 1}
        compiler.run_phase("phase1_hlo_opts", [b"ab"], kept=True)
        compiler.run_phase("phase1_hlo_opts", [b"a", b"b"], {"other": "options"}, kept=True)
        compiler.run_phase("phase2a_tlp_lowering", [b"a", b"b"], kept=True)
        assert compiler.phases.total() == 4
        for entry in (tmp_path / "cache").glob("*.zip"):
            entry.write_bytes(entry.read_bytes()[:-9])
        with pytest.warns(RuntimeWarning, match="is damaged"):
            assert compiler.run_phase("phase1_hlo_opts", [b"a", b"b"], kept=True) == [b"b", b"a"]
        assert compiler.phases.total() == 5


def test_in_another_process_it_has_the_same_limits(child, tmp_path):
    compiler = child("os.abort()", seconds=7.0, memory_bytes=5 << 30)
    with pytest.raises(mgx.compiler.CompilerEndedError):
        compiler.compile("module {}")
    other = again(compiler)
    assert (other.target, other.seconds, other.memory_bytes) == (compiler.target, 7.0, 5 << 30)
    assert other.versions == compiler.versions and other.compiles == 0


def test_a_child_that_another_process_kills_is_counted(child):
    with child("os.kill(os.getpid(), 9)") as compiler:
        with pytest.raises(mgx.compiler.CompilerEndedError, match="ended by SIGKILL") as found:
            compiler.run_phase("phase3_linking", [])
        assert found.value.killed and compiler.killed == 1


@pytest.mark.parametrize(
    ("code", "error", "sentence"),
    [
        (
            'print(\'{"ok": false, "error": "no"}\', flush=True)',
            mgx.compiler.CompilerRefusedError,
            "no",
        ),
        ("print('{\"ok\": true}', flush=True)", mgx.CompilerError, "its answer can't be read"),
        (
            'print(\'{"ok": true, "programs": ["0"]}\', flush=True)',
            mgx.CompilerError,
            "its answer can't be read: FileNotFoundError",
        ),
        ("os.abort()", mgx.compiler.CompilerEndedError, "ended by SIGABRT"),
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
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.stdout.strip() == f"mallocgame.xla needs libtpu: {how_to_install('xla')}", (
        done.stderr
    )


def test_import_needs_no_jax():
    heavy = {"jax", "jaxlib", "libtpu"}
    code = f"import sys, mallocgame.xla; print(sorted(sys.modules.keys() & {heavy}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_without_fields():
    inner = b"\x0a\x01x" + b"\x3a\x02yz"  # field 1 = "x", field 7 = "yz"
    message = b"\x08\x05" + b"\x12" + bytes([len(inner)]) + inner  # field 1 = 5, field 2 = inner
    assert without_fields(message, {2: {7: None}}) == b"\x08\x05\x12\x03\x0a\x01x"
    assert without_fields(message, {}) == message
    for damaged in (message[:-1], b"\x0b"):
        with pytest.raises((IndexError, ValueError)):
            without_fields(damaged, {2: {7: None}})
