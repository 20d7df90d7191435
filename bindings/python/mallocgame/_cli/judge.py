"""`mallocgame validate`, `simulate` and `replay`: plans and logged games, judged again."""

import argparse

import mallocgame as mg
from mallocgame._cli import console, parser
from mallocgame._cli.rows import print_comparison, print_json
from mallocgame.experiments.plan_rows import plan_row, reference, report_row
from mallocgame.files import program_of


def register(commands: parser.Commands) -> None:
    """Adds the commands of this module."""
    for name, summary in (
        ("validate", "is the plan one that the hardware can carry out?"),
        ("simulate", "what does the plan cost?"),
    ):
        command = commands.add(name, _judge, summary)
        command.takes("program PROGRAM", parser.PROGRAM)
        command.takes("plan PLAN", "JSON, as `solve -o` writes it")
        parser.add_hardware(command)

    command = commands.add(
        "replay", _replay, "play a logged game again; does it come out the same?"
    )
    command.takes("log GAME", "as `solve --log` writes it")
    command.takes("--program PROGRAM", "of the game, where it is no bundled one")


def _judge(options: argparse.Namespace) -> int:
    """Carries out `validate`, which ends by the verdict, and `simulate`, which shows the costs."""
    program, hardware = parser.problem_of(options)
    ordered, plan, order = mg.files.load_ordered_plan(options.plan, program)
    verdict = mg.validate(ordered, plan, hardware)
    report = mg.simulate(ordered, plan, hardware)
    xla = reference(program, hardware)
    row = plan_row(program, hardware, report, verdict, xla, plan=plan, order=order)
    broken = f"not valid: {verdict.rule}: {verdict.message}"
    if options.command == "simulate":
        if options.json:
            return print_json(row | report_row(report))
        print_comparison(program, hardware, "plan", report, xla, row)
        if not verdict.ok:
            console.print_line(f"The plan is {broken}")
        return parser.OK
    if options.json:
        print_json(row | {"rule": verdict.rule, "message": verdict.message})
    else:
        console.print_line("valid" if verdict.ok else broken)
    return parser.OK if verdict.ok else parser.CHECK_FAILED


def _replay(options: argparse.Namespace) -> int:
    log = mg.load_log(options.log)
    program = program_of(log) if options.program is None else mg.load_program(options.program)
    with console.working(f"replaying {log.program_name}"):
        verdict = mg.replay(log, program)
        report = log.report
        ordered = program if log.order is None else program.reordered(log.order)
        valid = mg.validate(ordered, log.plan, log.hardware)
        xla = reference(program, log.hardware)
    row = plan_row(program, log.hardware, report, valid, xla, plan=log.plan, order=log.order)
    row |= {"solver": log.solver or None, "seed": log.seed}
    row |= {
        "same": verdict.same,
        "step": None if verdict.same else verdict.step,
        "message": verdict.message,
    }
    row |= {"decisions": len(log.actions)}
    if options.json:
        print_json(row)
    elif verdict.same:
        console.print_line(
            f"same: {len(log.actions)} decisions, {console.microseconds(report.latency_ps)} µs"
        )
    else:
        console.print_line(f"different: {verdict.message}")
    return parser.OK if verdict.same else parser.CHECK_FAILED
