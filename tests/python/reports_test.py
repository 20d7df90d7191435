"""Where the time of a program goes by layer, scope and opcode, and what more memory would bring."""

import json

import pytest

import mallocgame as mg
from mallocgame import reports
from mallocgame.reports import scopes

NAME = "resnet50_b1.tpu_v4i_16mib"  # it has prefetches, evictions, preloads and waits
LOOPED = "wavernn_64steps_b8.tpu_v4i"
ENCODER = "bert_base_b1_s128.tpu_v4i"


@pytest.mark.parametrize(
    ("op_name", "path"),
    [
        ("jit(step)/layer_3/attention/dot_general", ("layer_3", "attention")),
        ("jit(step)/transpose(jvp(layer_3))/mlp/mul", ("layer_3", "mlp")),
        ("jit(f)/transpose(jvp(block_2))/jvp(block_2)/checkpoint/mlp/mul", ("block_2", "mlp")),
        ("jit(f)/jit(silu)/logistic", ("silu",)),
        ("jit(f)/while/body/closed_call/add", ("while",)),
        ("jit(f)/jvp()/mul", ()),
        ("params['layers'][3]['query']", ()),
        ("", ()),
    ],
)
def test_scopes_are_read_from_names(op_name, path):
    assert scopes.scope_path(op_name) == path


class Named:
    """A program of which only names are asked for."""

    name = "named"

    def __init__(self, *op_names):
        self.op_names = list(op_names)


class Arguments:
    """A program whose parameters have other names in the source."""

    def __init__(self, program, op_names):
        self._program = program
        self.op_names = op_names

    def __getattr__(self, name):
        return getattr(self._program, name)


def test_layers_that_repeat_are_told_together():
    named = Named(*(f"jit(f)/{scope}/mul" for scope in ("emb", "layer_0/mlp", "layer_1", "norm1")))
    groups = scopes.group_instructions(named, "layer")
    assert [group.name for group in groups] == ["emb", "layer_0", "layer_1", "norm1"]
    assert [group.together for group in groups] == ["emb", "layer_*", "layer_*", "norm1"]
    groups = scopes.group_instructions(named, "scope", depth=2)
    assert groups[1] == ("layer_0/mlp", "layer_0/mlp")  # No other layer has that.
    assert scopes.group_instructions(Named(""), "scope") == [(scopes.OTHER, scopes.OTHER)]
    with pytest.raises(mg.InvalidInputError, match="by: found 'colour'"):
        scopes.group_instructions(named, "colour")


@pytest.mark.parametrize(
    ("argument", "layer"),
    [
        ("params['layers'][3]['query']", ("layers_3",)),
        ("state.params['encoder']['layer_2']['kernel']", ("encoder_layer_2",)),
        ("opt_state[0].mu['layers'][3]['query']", ("layers_3",)),
        ("params['embedding']", ("embedding",)),
        ("params[3]", ()),
        ("x", ()),
    ],
)
def test_layers_are_read_from_arguments(argument, layer):
    assert scopes._argument_layer(argument) == layer


@pytest.mark.parametrize("name", [NAME, LOOPED])
def test_parts_add_up_to_the_picosecond(name):
    program = mg.load_program(name)
    plans = {"XLA": program.xla_plan, "greedy": mg.solve(program, "greedy").plan}
    subjects = [reports.Subject(label, program, plan) for label, plan in plans.items()]
    told = reports.breakdown(subjects, by="opcode")
    for place, plan in enumerate(plans.values()):
        report = mg.simulate(program, plan)
        spent = [part.spent[place] for part in told.parts]
        assert sum(one.latency_ps for one in spent) == report.latency_ps
        assert sum(one.stall_ps for one in spent) == report.stall_ps
        copied = report.prefetched_bytes + report.written_back_bytes
        assert sum(one.copied_bytes for one in spent) == copied
        assert told.total.spent[place] == sum(spent, reports.Spent())
    assert sum(part.instructions for part in told.parts) == program.ticks
    first = [part.spent[0].latency_ps for part in told.parts]
    assert first == sorted(first, reverse=True)
    main = reports.breakdown(
        [reports.Subject("main", program, mg.all_main_plan(program))], by="opcode"
    )
    assert main.total.spent[0].main_bytes > told.total.spent[1].main_bytes > 0


def test_layers_by_arguments():
    """An instruction is of the layer whose weights it reads, or of that of the one before it."""
    program = mg.load_program(ENCODER)
    names = {
        name: name.replace("____", "']['").replace("params__", "params['").rstrip("_.1") + "']"
        for name in program.instruction_names
        if name.startswith("params__")
    }
    named = Arguments(program, [names.get(name, "") for name in program.instruction_names])
    groups = scopes.group_instructions(named, "layer")
    layers = {group.name for group in groups if group.together == "encoder_layer_*"}
    assert layers == {f"encoder_layer_{number}" for number in range(12)}
    assert {group.name for group in groups} - layers == {scopes.OTHER, "embeddings"}
    at = program.accesses["tick"][
        program.accesses["buffer"]
        == program.buffer_names.index(
            next(name for name in names if "layer____7____output____dense____kernel" in name)
        )
    ]
    assert groups[at[0]].name == groups[at[0] + 1].name == "encoder_layer_7"
    assert scopes.default_grouping(named) == "layer"


def test_a_program_without_names_has_one_scope_and_no_layers():
    program = mg.load_program(NAME)
    subject = reports.Subject("XLA", program, program.xla_plan)
    told = reports.breakdown([subject], by="scope")
    assert [part.name for part in told.parts] == [scopes.OTHER]
    with pytest.raises(mg.InvalidInputError, match="nothing in it is called after a layer"):
        reports.breakdown([subject], by="layer")


def test_more_of_a_machine_is_never_slower_for_the_solver():
    program = mg.load_program(NAME)
    told = reports.what_if(program, solver="greedy", sizes=[8 << 20, 16 << 20, 48 << 20])
    assert [point.fast_bytes >> 20 for point in told.fast] == [8, 16, 48]
    for points in (told.fast, told.bandwidth):
        for name in ("greedy", "bound"):
            latencies = [point.latency_ps[name] for point in points]
            assert latencies == sorted(latencies, reverse=True) and latencies[0] > latencies[-1]
        assert all(point.latency_ps["bound"] <= point.latency_ps["greedy"] for point in points)
    own = next(point for point in told.fast if point.is_of(told))
    assert own.latency_ps["greedy"] <= mg.solve(program, "greedy").report.latency_ps
    calibrated = mg.calibration.calibrated(program)
    same = next(point for point in told.bandwidth if point.is_of(told))
    assert same.latency_ps["greedy"] <= mg.solve(calibrated, "greedy").report.latency_ps
    stopped = reports.what_if(program, solver="greedy", stop=lambda: True)
    assert stopped.fast == stopped.bandwidth == ()


def test_what_if_command(run, run_json, tmp_path):
    arguments = ["report", NAME, "--what-if", "--solver", "greedy"]
    told = run_json(*arguments, "--plot", "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert 16 + 32 in [point["fast_bytes"] >> 20 for point in told["fast"]]
    text = run(*arguments).stdout
    assert "\n16 now" in text and "\n1 now" in text and "\n48 " in text
    for wrong in (["--plot", "x.png"], ["--what-if", "--plan", "x.json"]):
        assert run("report", NAME, *wrong).returncode == 2


def test_command(run, run_json):
    told = run_json("report", NAME, "--by", "opcode", "--solver", "greedy")
    assert told["plans"] == ["XLA", "greedy"]
    xla = mg.simulate(mg.load_program(NAME), mg.load_program(NAME).xla_plan)
    assert told["total"]["spent"][0]["compute_ps"] == xla.compute_ps
    table = run("report", NAME, "--by", "opcode", "--rows", "2").stdout.splitlines()
    assert table[2].startswith("fusion") and "others)" in table[3] and table[4].startswith("total")
    assert run("solve", NAME, "-o", "plan.json").returncode == 0
    assert run_json("report", NAME, "--by", "opcode", "--plan", "plan.json")["plans"][1] == (
        "plan.json"
    )
    assert run_json("report", NAME)["by"] == "opcode"
    refused = run("report", NAME, "--by", "layer")
    assert refused.returncode == 2 and "nothing in it is called" in refused.stderr
    assert json.loads(json.dumps(told)) == told
