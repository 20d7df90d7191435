"""The command line, `mallocgame` and `python -m mallocgame`.

Exits 0, 1 (the check it was asked for failed) or 2 (bad usage or input, one line on standard
error). With --json standard output holds one JSON document and nothing else; progress goes to
standard error.
"""

import os
import sys
from collections.abc import Sequence

import mallocgame as mg
from mallocgame._bounds.bound import bound
from mallocgame._cli import parser
from mallocgame._cli.rows import (
    cell,
    plan_row,
    print_comparison,
    print_json,
    program_row,
    report_row,
    xla_report,
)
from mallocgame._core import offsets_from_csv, offsets_to_csv, read_file, solve_offsets, write_file
from mallocgame._solve import AGENTS
from mallocgame.errors import InvalidInputError, MallocGameError
from mallocgame.files import program_of
from mallocgame.programs import suite

OK, CHECK_FAILED, BAD_INPUT, INTERRUPTED = 0, 1, parser.BAD_INPUT, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    options = parser.parser(_COMMANDS).parse_args(argv)
    try:
        return options.run(options)
    except BrokenPipeError:  # the reader of our output has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        return INTERRUPTED
    except (MallocGameError, OSError) as error:
        print(f"mallocgame {options.command}: {' '.join(str(error).split())}", file=sys.stderr)
        return BAD_INPUT


# Commands. Each returns the exit status.


def _programs(options) -> int:
    from mallocgame._cli import console

    rows = []
    names = mg.program_names()
    with console.working("reading programs", len(names)) as work:
        for name in names:
            work.tell(name)
            rows.append(program_row(mg.load_program(name), name))
            work.advance()
    if options.json:
        return print_json({"programs": rows})
    console.print_table(
        [
            ("program", "left"),
            ("instr", "right"),
            ("bufs", "right"),
            ("accs", "right"),
            ("main µs", "right"),
            ("XLA µs", "right"),
        ],
        [
            [
                row["program"],
                str(row["instructions"]),
                str(row["eligible_buffers"]),
                str(row["accesses"]),
                console.microseconds(row["all_main_ps"]),
                console.microseconds(row["xla_ps"]),
            ]
            for row in rows
        ],
        gap=1,
    )
    console.print_line(
        "bufs: buffers that may move, accs: their accesses, main: all in main memory."
    )
    console.print_line("Static estimates from the compiler's prices, not measurements on a chip.")
    return OK


def _import(options) -> int:
    from mallocgame._cli import console

    _check_writable(options.output)
    name = options.name or os.path.basename(options.output).removesuffix(".mgp")
    with console.working(f"importing {options.module}"):
        program = mg.import_hlo(
            options.module,
            assigned=options.assigned,
            priced=options.priced,
            profile=options.profile,
            hardware=mg.hardware(options.hardware),
            name=name,
            origin=options.origin,
        )
        mg.save_program(program, options.output)
        row = program_row(program, program.name)
    if options.json:
        return print_json(row)
    console.print_table(
        [(program.name, "left"), ("", "right")],
        [[key.replace("_", " "), cell(row[key])] for key in row],
    )
    return OK


def _solve(options) -> int:
    from mallocgame import plots
    from mallocgame._cli import console

    program, hardware = _problem(options)
    for path in (options.output, options.log, options.plot):
        if path is not None:
            _check_writable(path)
    if options.plot is not None:
        plots.check()
    with console.working(f"{options.solver} on {program.name}") as work:
        least = bound(program, options.bound, hardware)
        result = _run_solver(program, hardware, options.solver, options, work)
        verdict = mg.validate(program, result.plan, hardware)
        xla = xla_report(program, hardware)
    row = plan_row(program, hardware, result.report, verdict, xla, result, least)
    if options.output is not None:
        mg.save_plan(result.plan, program, options.output)
    if options.log is not None:
        mg.save_log(mg.record(result), options.log)
    if options.plot is not None:
        curve = [(seconds, latency_ps) for seconds, latency_ps, _ in result.curve] or [
            (0.0, row["latency_ps"])
        ]
        plots.save_curves(
            options.plot,
            {options.solver: curve},
            program.name,
            xla_ps=row["xla_ps"],
            bound_ps=row["bound_ps"],
            end=result.seconds,
        )
    if options.json:
        print_json(row)
    else:
        print_comparison(program, hardware, options.solver, result.report, xla, row)
    return OK if verdict.ok else CHECK_FAILED


def _compare(options) -> int:
    from mallocgame import plots
    from mallocgame._cli import comparison, console

    solvers = _solver_list(options.solvers or parser.DEFAULT_SOLVERS)
    names = list(options.programs) + ([] if options.suite is None else suite(options.suite))
    if not names:
        raise InvalidInputError("found no program to compare; give names or --suite")
    for path in (options.csv, options.plot):
        if path is not None:
            _check_writable(path)
    if options.plot is not None:
        plots.check()
    problems = [(_load(name), name) for name in dict.fromkeys(names)]
    override = None if options.hardware is None else mg.hardware(options.hardware)
    rows = []
    with console.working("comparing", len(problems) * len(solvers)) as work:
        for program, _ in problems:
            hardware = override or program.hardware
            xla = xla_report(program, hardware)
            work.tell(f"{program.name} bound")
            least = bound(program, options.bound, hardware)
            for solver in solvers:
                rows.append(_compared(program, hardware, solver, xla, options, work, least))
                work.advance()
    summary = comparison.summary(rows, solvers)
    if options.csv is not None:
        comparison.write_csv(options.csv, rows)
    if options.plot is not None:
        plots.save_comparison(options.plot, rows, solvers)
    if options.json:
        print_json({"results": rows, "summary": summary})
    else:
        comparison.print_results(rows, summary)
    return CHECK_FAILED if any(row["valid"] is False for row in rows) else OK


def _validate(options) -> int:
    from mallocgame._cli import console

    program, hardware = _problem(options)
    plan = mg.load_plan(options.plan, program)
    verdict = mg.validate(program, plan, hardware)
    report = mg.simulate(program, plan, hardware)
    row = plan_row(program, hardware, report, verdict, xla_report(program, hardware))
    row |= {"rule": verdict.rule, "message": verdict.message}
    if options.json:
        print_json(row)
    else:
        console.print_line(
            "valid" if verdict.ok else f"not valid: {verdict.rule}: {verdict.message}"
        )
    return OK if verdict.ok else CHECK_FAILED


def _simulate(options) -> int:
    from mallocgame._cli import console

    program, hardware = _problem(options)
    plan = mg.load_plan(options.plan, program)
    report = mg.simulate(program, plan, hardware)
    verdict = mg.validate(program, plan, hardware)
    xla = xla_report(program, hardware)
    row = plan_row(program, hardware, report, verdict, xla)
    if options.json:
        return print_json(row | report_row(report))
    print_comparison(program, hardware, "plan", report, xla, row)
    if not verdict.ok:
        console.print_line(f"The plan is not valid: {verdict.rule}: {verdict.message}")
    return OK


def _offsets(options) -> int:
    from mallocgame._cli import console

    if options.output is not None:
        _check_writable(options.output)
    text = read_file(os.fsencode(options.table))
    try:
        ids, intervals = offsets_from_csv(text)
    except InvalidInputError as error:
        raise InvalidInputError(f"{options.table}: {error}") from None
    with console.working(f"{len(ids)} intervals"):
        result = solve_offsets(intervals, options.capacity, options.alignment, options.seconds)
    feasible = result.status == "feasible"
    if feasible and options.output is not None:
        write_file(os.fsencode(options.output), offsets_to_csv(text, result.offsets))
    row = {
        "table": options.table,
        "intervals": len(ids),
        "capacity": options.capacity,
        "alignment": options.alignment,
        "status": result.status,
        "height": result.height,
        "nodes": result.nodes,
        "seconds": round(result.seconds, 6),
    }
    if options.json:
        print_json(row)
    else:
        note = "" if feasible else ", the lowest found without the limit"
        console.print_line(
            f"{result.status}: height {result.height:,} of {options.capacity:,}{note}; {result.seconds:.3f} s"
        )
    return OK if feasible else CHECK_FAILED


def _train(options) -> int:
    from mallocgame._cli import console

    with console.working("training") as work:
        run = _training(options)
        finished = run.run(work)
        rows = run.finish(finished, work)
    if options.json:
        print_json({"results": rows, "folder": options.out, f"{run.columns[1]}s": run.steps})
    else:
        run.show(rows)
        if not finished:
            console.print_line("Interrupted; --resume goes on with the last checkpoint.")
    return (
        INTERRUPTED if not finished else OK if all(row["valid"] for row in rows) else CHECK_FAILED
    )


def _replay(options) -> int:
    from mallocgame._cli import console

    log = mg.load_log(options.log)
    program = program_of(log) if options.program is None else _load(options.program)
    with console.working(f"replaying {log.program_name}"):
        verdict = mg.replay(log, program)
        report = log.report
        valid = mg.validate(program, log.plan, log.hardware)
        xla = xla_report(program, log.hardware)
    row = plan_row(program, log.hardware, report, valid, xla)
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
    return OK if verdict.same else CHECK_FAILED


def _view(options) -> int:
    from mallocgame._cli import console
    from mallocgame._cli.view import view

    _check_writable(options.output)
    with console.working(f"drawing {options.shown}"):
        row = view(
            options.shown,
            options.against,
            options.program,
            options.hardware,
            options.bound,
            options.output,
        )
    if options.json:
        return print_json(row)
    console.print_line(
        f"{row['page']}: {row['bytes'] / 1e6:.1f} MB, opens in any browser, needs no network"
    )
    return OK


# What the commands share.


def _load(name: str) -> mg.Program:
    return mg.load_program(name)


def _problem(options) -> tuple[mg.Program, mg.Hardware]:
    program = _load(options.program)
    return program, program.hardware if options.hardware is None else mg.hardware(options.hardware)


def _run_solver(program, hardware, solver, options, work, subject: str = "") -> mg.SolveResult:
    def better(seconds: float, latency_ps: int) -> None:
        work.tell(f"{subject}{latency_ps / 1e6:,.1f} µs after {seconds:.1f} s")

    return mg.solve(
        program,
        solver=solver,
        seconds=options.seconds,
        seed=options.seed,
        evaluations=options.evaluations,
        hardware=hardware,
        progress=better,
        checkpoint=options.checkpoint,
    )


def _training(options):
    from mallocgame._cli import train, train_egrl, train_muzero

    config = train.settings(options.config)
    hardware = None if options.hardware is None else mg.hardware(options.hardware)
    if options.agent == "egrl":
        return train_egrl.EgrlTraining(
            options.programs,
            options.out,
            options.resume,
            options.seed,
            config,
            hardware,
            options.hierarchy,
            options.evaluations or 4000,
            options.seconds or 0.0,
        )
    for name in ("hierarchy", "evaluations"):
        if getattr(options, name) is not None:
            raise InvalidInputError(f"--{name}: is egrl's, found the agent {options.agent}")
    return train_muzero.MuZeroTraining(
        options.programs,
        options.out,
        options.resume,
        options.seed,
        config,
        hardware,
        600.0 if options.seconds is None else options.seconds,
    )


def _compared(program, hardware, solver, xla, options, work, least) -> dict:
    work.tell(f"{program.name} {solver}")
    # nothing is wrong: this program has no plan of XLA's here
    if solver == "xla-assigned" and xla is None:
        row = plan_row(program, hardware, None, None, None, None, least)
        return row | {
            "program": program.name,
            "hardware": hardware.name,
            "solver": solver,
            "status": "unavailable",
        }
    result = _run_solver(program, hardware, solver, options, work, f"{program.name} {solver}: ")
    verdict = mg.validate(program, result.plan, hardware)
    return plan_row(program, hardware, result.report, verdict, xla, result, least)


def _solver_list(text: str) -> list[str]:
    known = [*mg.solver_names(), *AGENTS]
    solvers = [name.strip() for name in text.split(",") if name.strip()]
    for name in solvers:
        if name not in known:
            raise InvalidInputError(f"--solvers: found '{name}', allowed: {', '.join(known)}")
    if not solvers:
        raise InvalidInputError(f"--solvers: found none, allowed: {', '.join(known)}")
    return list(dict.fromkeys(solvers))


def _check_writable(path: str) -> None:
    """Before long work: is there a place for its result?"""
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise InvalidInputError(f"{path}: is a folder, not a file")
    if not os.path.isdir(folder):
        raise InvalidInputError(f"{path}: no folder '{folder}'")
    if not os.access(folder, os.W_OK):
        raise InvalidInputError(f"{path}: no permission to write in '{folder}'")


_COMMANDS = {
    "programs": _programs,
    "import": _import,
    "solve": _solve,
    "compare": _compare,
    "validate": _validate,
    "simulate": _simulate,
    "offsets": _offsets,
    "train": _train,
    "replay": _replay,
    "view": _view,
}

if __name__ == "__main__":
    sys.exit(main())
