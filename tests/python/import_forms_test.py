"""Modules in the forms in which people have them: text, protos of all kinds, with or without gzip.

What had to be assumed of a module is told.
"""

import gzip
import json
import sys

import pytest
from conftest import SOURCE_ROOT

import mallocgame as mg
from mallocgame.programs import module_forms

pytestmark = pytest.mark.full

MODULE = (
    SOURCE_ROOT / "benchmarks/programs/hlo/core/tpu_v4i/gcn_dense_2048/pre_msa.hlo.pb.gz"
).read_bytes()

# Counts down by 4 from START while it is above 0, and scales a matrix meanwhile.
LOOP = """HloModule scaled, is_scheduled=true

%scale (s: (TYPE[], f32[256,256])) -> (TYPE[], f32[256,256]) {
  %s = (TYPE[], f32[256,256]{1,0}) parameter(0)
  %k = TYPE[] get-tuple-element(%s), index=0
  %four = TYPE[] constant(4)
  %less = TYPE[] subtract(%k, %four)
  %old = f32[256,256]{1,0} get-tuple-element(%s), index=1
  %new = f32[256,256]{1,0} multiply(%old, %old)
  ROOT %t = (TYPE[], f32[256,256]{1,0}) tuple(%less, %new)
}

%more (q: (TYPE[], f32[256,256])) -> pred[] {
  %q = (TYPE[], f32[256,256]{1,0}) parameter(0)
  %left = TYPE[] get-tuple-element(%q), index=0
  %zero = TYPE[] constant(0)
  ROOT %any = pred[] compare(%left, %zero), direction=GT
}

ENTRY %main (p: f32[256,256]) -> f32[256,256] {
  %p = f32[256,256]{1,0} parameter(0)
  %start = TYPE[] constant(START)
  %mine = f32[256,256]{1,0} copy(%p)
  %begin = (TYPE[], f32[256,256]{1,0}) tuple(%start, %mine)
  %while.7 = (TYPE[], f32[256,256]{1,0}) while(%begin), condition=%more, body=%scale
  ROOT %end = f32[256,256]{1,0} get-tuple-element(%while.7), index=1
}
"""
COUNTED = LOOP.replace("TYPE", "s32").replace("START", "13")
UNKNOWN = LOOP.replace("TYPE", "f32").replace("START", "13")


def fields(module: bytes) -> bytes:
    """The bytes of hlo_module in those of an HloProto, whose first field it is."""
    at = shift = size = 0
    assert module[0] == 0x0A
    while True:
        at += 1
        size |= (module[at] & 127) << shift
        shift += 7
        if module[at] < 128:
            return module[at + 1 : at + 1 + size]


def loops(program: mg.Program) -> list[tuple[str, int, bool]]:
    return [
        (program.instruction_names[loop["entry"]], int(loop["trips"]), bool(loop["trips_known"]))
        for loop in program.loops
    ]


def test_a_proto_in_all_its_forms_is_one_program(tmp_path):
    whole = gzip.decompress(MODULE)
    module = fields(whole)
    expected = mg.import_hlo(MODULE).fingerprint
    forms = [whole, module, gzip.compress(module), gzip.compress(gzip.compress(whole))]
    for number, form in enumerate(forms):
        path = tmp_path / f"{number}.any"
        path.write_bytes(form)
        assert mg.import_hlo(form).fingerprint == expected
        assert mg.import_hlo(path).fingerprint == expected


def test_text_is_what_its_proto_is(tmp_path):
    parsed = module_forms.module_bytes(COUNTED.encode())
    expected = mg.import_hlo(parsed, hardware="tpu_v5e")
    assert expected.name == "scaled" and loops(expected) == [("while.7", 4, True)]
    assert expected.counts["unscheduled_computations"] == 0
    comment = "// posted by somebody\n/* with\n thanks */\n\n"
    forms = [
        COUNTED.encode(),
        gzip.compress(COUNTED.encode()),
        COUNTED.replace("\n", "\r\n").encode(),
        (comment + COUNTED).encode(),
        COUNTED.encode("utf-8-sig"),
        COUNTED.encode("utf-16"),
    ]
    (tmp_path / "posted.txt.gz").write_bytes(forms[1])
    for form in (*forms, tmp_path / "posted.txt.gz"):
        assert mg.import_hlo(form, hardware="tpu_v5e").fingerprint == expected.fingerprint


def test_text_without_its_first_line():
    body = COUNTED.split("\n", 2)[2]
    program = mg.import_hlo(body.encode(), hardware="tpu_v5e")
    assert loops(program) == [("while.7", 4, True)]
    assert program.counts["unscheduled_computations"] == 3


def test_text_as_jax_prints_it():
    jax = pytest.importorskip("jax")
    compiled = jax.jit(lambda a, b: jax.numpy.tanh(a @ b) @ b).lower(
        jax.numpy.ones((64, 64)), jax.numpy.ones((64, 64))
    )
    text = compiled.compile().as_text()
    program = mg.import_hlo(text.encode(), hardware="tpu_v6e")
    assert program.counts["buffers"] > 2
    assert program.counts["unscheduled_computations"] == 0
    lowered = mg.import_hlo(compiled.as_text("hlo").encode(), hardware="tpu_v6e")
    assert lowered.counts["unscheduled_computations"] > 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "found 0 bytes, allowed: 1 to 2147483647"),
        (b" \n// nothing\n", "blanks and comments"),
        (b"module @jit_f attributes {} {\n}", "`mallocgame xla capture`"),
        (b"#loc = loc(unknown)\nmodule @jit_f {\n}", "found MLIR text, such as StableHLO"),
        (b"ML\xefR\r" + bytes(99), "found MLIR bytecode"),
        (b'hlo_module {\n  name: "jit_f"\n}', "found a protocol buffer as text"),
        (b'{"hlo": 1}', """text that begins with '{"hlo": 1}'"""),
        (b"{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }", "wanted is HLO text"),
        (b"\x28\xb5\x2f\xfd" + bytes(20), "compressed with zstd"),
        (b"PK\3\4" + bytes(20), "compressed with zip"),
        (COUNTED.replace("subtract", "subtractt").encode(), "Unknown opcode: subtractt"),
        (COUNTED[:400].encode(), "no HLO text that jaxlib reads"),
        (gzip.compress(COUNTED.encode())[:-20], "cut short"),
    ],
)
def test_what_is_no_hlo_is_named(content, message):
    with pytest.raises(mg.InvalidInputError, match=r"^module: ") as refusal:
        mg.import_hlo(content, hardware="tpu_v5e")
    assert message in str(refusal.value)


def test_text_needs_jaxlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "jaxlib", None)
    with pytest.raises(mg.InvalidInputError, match=r"pip install 'mallocgame\[xla\]'"):
        mg.import_hlo(COUNTED.encode())


def test_a_folder_and_text_with_a_plan(tmp_path):
    with pytest.raises(mg.InvalidInputError, match="xla capture"):
        mg.import_hlo(tmp_path)
    with pytest.raises(mg.InvalidInputError, match=r"assigned module: .*lacks the buffer"):
        mg.import_hlo(COUNTED.encode(), assigned=COUNTED.encode())


def test_schedules():
    unscheduled = COUNTED.replace(", is_scheduled=true", "").encode()
    program = mg.import_hlo(unscheduled, hardware="tpu_v5e")
    assert program.counts["unscheduled_computations"] == 3
    with pytest.raises(mg.InvalidInputError, match="has no schedule, and one is required"):
        mg.import_hlo(unscheduled, hardware="tpu_v5e", schedule="module")
    with pytest.raises(mg.InvalidInputError, match="schedule: found 'any'"):
        mg.import_hlo(unscheduled, schedule="any")
    back = mg.Program.from_bytes(program.to_bytes())
    assert back.counts["unscheduled_computations"] == 3


def test_trips_may_be_told():
    def imported(**options):
        return loops(mg.import_hlo(UNKNOWN.encode(), hardware="tpu_v5e", **options))

    assert imported() == [("while.7", 5, False)]
    assert imported(default_trips=9) == [("while.7", 9, False)]
    assert imported(trips={"while.7": 1000}) == [("while.7", 1000, True)]
    assert imported(trips={"while.7": 0}) == [("while.7", 0, True)]
    with pytest.raises(mg.InvalidInputError, match=r"'while\.8' is no loop; loops are while\.7"):
        imported(trips={"while.8": 1000})
    with pytest.raises(mg.InvalidInputError, match="found -1"):
        imported(trips={"while.7": -1})


def test_the_command_tells_what_it_assumes(run, tmp_path):
    (tmp_path / "loop.txt").write_text(UNKNOWN.replace(", is_scheduled=true", ""))

    def imported(*options: str):
        done = run(
            "import", "loop.txt", "--hardware", "tpu_v5e", "-o", "out.mgp", "--json", *options
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), done.stderr

    row, said = imported()
    assert row["unknown_trips"] == [{"loop": "while.7", "trips": 5}]
    assert row["unscheduled_computations"] == 3
    assert "while.7 (5). --trips NAME=COUNT" in said and "have no schedule" in said
    row, said = imported("--default-trips", "12")
    assert row["unknown_trips"] == [{"loop": "while.7", "trips": 12}]
    row, said = imported("--trips", "while.7=1000")
    assert row["unknown_trips"] == [] and "trips" not in said
    for wrong in ("while.7", "while.7=-1"):
        done = run("import", "loop.txt", "--hardware", "tpu_v5e", "-o", "o.mgp", "--trips", wrong)
        assert done.returncode == 2 and "--trips" in done.stderr


def test_bounds_of_a_loop_that_never_runs():
    pytest.importorskip("highspy")
    never = COUNTED.replace("constant(13)", "constant(-13)")
    program = mg.import_hlo(never.encode(), hardware="tpu_v5e")
    best = mg.solve(program, "anneal", seconds=2).report.latency_ps
    for name in ("no-contention", "lp", "milp"):
        assert 0 < mg.bounds.bound(program, name, seconds=20).bound_ps <= best


# These start from XLA's own plan.
NEED_A_PLAN = {"xla-assigned", "portfolio-xla"}
SOLVERS = [name for name in mg.solver_names() if name not in NEED_A_PLAN]


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_loop_that_never_runs_is_played_and_costs_nothing(solver):
    never = COUNTED.replace("constant(13)", "constant(-13)")
    program = mg.import_hlo(never.encode(), hardware="tpu_v5e")
    assert loops(program) == [("while.7", 0, True)]
    inside = slice(program.loops[0]["entry"], program.loops[0]["exit"])
    assert not program.instructions["access_count"][inside].any()
    result = mg.solve(program, solver=solver, seconds=2)
    assert mg.validate(program, result.plan).ok
    # What is left is the copy of a quarter of a MiB.
    moved = 2 * 256 * 256 * 4
    longest = moved / program.hardware.main_bytes_per_second * 1e12 + 1e5
    assert 0 < result.report.latency_ps <= longest


def test_text_of_a_compiled_function(tmp_path, run):
    """It is from after memory space assignment, and has the compiler's prices."""
    text = tmp_path / "compiled.txt"
    text.write_text(
        """HloModule after, is_scheduled=true

ENTRY %e (a: f32[512,512], w: f32[512,512]) -> f32[512,512] {
  %a = f32[512,512]{1,0:T(8,128)} parameter(0)
  %w = f32[512,512]{1,0:T(8,128)} parameter(1)
  %s = (f32[512,512]{1,0:T(8,128)S(1)}, f32[512,512]{1,0:T(8,128)}, u32[]{:S(2)}) copy-start(%w)
  %b = f32[512,512]{1,0:T(8,128)S(1)} tanh(%a), backend_config={"estimated_cycles":"9000"}
  %d = f32[512,512]{1,0:T(8,128)S(1)} copy-done(%s)
  ROOT %c = f32[512,512]{1,0:T(8,128)} add(%b, %d), backend_config={"estimated_cycles":"7000"}
}
"""
    )
    out = tmp_path / "out.mgp"
    said = run("import", text, "--priced", text, "--hardware", "tpu_v5e", "-o", out, "--json")
    assert said.returncode == 0, said.stderr
    assert "from after memory space assignment. Results brought back" in said.stderr
    row = json.loads(said.stdout)
    assert (row["unassigned_arrays"], row["unassigned_copies"], row["kept_copies"]) == (1, 1, 0)
    program = mg.load_program(out)
    assert program.instruction_names == ["a", "w", "b", "c"]
    assert program.counts["priced_instructions"] == 2
    assert program.counts["eligible_buffers"] == 4


def test_work_on_the_host_is_told(tmp_path, run):
    text = tmp_path / "host.txt"
    text.write_text(
        """HloModule host, is_scheduled=true

%called (p: f32[1024,1024]) -> f32[1024,1024] {
  %p = f32[1024,1024]{1,0} parameter(0)
  ROOT %n = f32[1024,1024]{1,0} negate(%p)
}, execution_thread="host"

ENTRY %e (x: f32[1024,1024]) -> f32[1024,1024] {
  %x = f32[1024,1024]{1,0} parameter(0)
  %s = ((f32[1024,1024]{1,0}), f32[1024,1024]{1,0}, u32[]) custom-call-start(%x), \
async_execution_thread="host", custom_call_target="HostExecute", called_computations={%called}
  ROOT %d = f32[1024,1024]{1,0} custom-call-done(%s)
}
"""
    )
    said = run("import", text, "--hardware", "tpu_v5e", "-o", tmp_path / "out.mgp")
    assert "Parts that the host computes, of which only the transfers count: 1." in said.stderr
    program = mg.load_program(tmp_path / "out.mgp")
    assert program.counts["host_transfers"] == 2
    # There and back at 15 GB/s.
    main_ps = mg.simulate(program, mg.all_main_plan(program)).latency_ps
    assert main_ps == pytest.approx(2 * (4 << 20) / 15e9 * 1e12, rel=1e-3)
