"""`mallocgame solve`, and how the commands run a solver."""

import argparse
from collections.abc import Callable
from typing import Any

import mallocgame as mg
from mallocgame import calibration, games, plots
from mallocgame._cli import console, parser
from mallocgame._cli.rows import print_comparison, print_json
from mallocgame._torch import AGENTS
from mallocgame.errors import InvalidInputError, MallocGameError
from mallocgame.experiments import Table
from mallocgame.experiments.plan_rows import Row, plan_row, reference
from mallocgame.frontier import frontier


def register(commands: parser.Commands) -> None:
    """Adds the command of this module."""
    command = commands.add("solve", _solve, "find a plan and compare it with XLA's")
    command.takes("program PROGRAM", parser.PROGRAM)
    command.takes(
        "--solver NAME",
        f"{', '.join(mg.solver_names())}; with Torch egrl, and with --checkpoint muzero",
        default="greedy",
        choices=known_solvers(),
    )
    parser.add_hardware(command)
    add_limits(command)
    parser.add_bound(command)
    command.takes(
        "--order", "decide the order of instructions too; it needs no more main memory than XLA's"
    )
    command.takes(
        "--main-mib N", "with --order, the main memory that an order may need", parser.count
    )
    command.takes(
        "--prices",
        "what the solver makes small: the latency at the compiler's prices, or at both sets, "
        "the compiler's and calibrated ones, together (docs/both-prices.md)",
        choices=("compiler", "both"),
        default="compiler",
    )
    command.takes(
        "--lean X",
        "with --prices both, the share by which the plan may be slower by calibrated prices "
        "for what it gains by the compiler's; below 0 the other way round (0)",
        float,
    )
    command.takes(
        "--frontier",
        "search at several leans, --seconds each, and print what each plan gains by either "
        "set of prices",
    )
    command.takes("-o --output PLAN", "write the plan as JSON", parser.output_file)
    command.takes("--log GAME", "write the game, to be replayed (.mgr)", parser.output_file)
    command.takes(
        "--plot FILE",
        "draw the best latency over time as PNG (needs matplotlib)",
        parser.output_file,
    )


def known_solvers() -> list[str]:
    """The names that --solver and --solvers take."""
    return [*mg.solver_names(), *AGENTS]


def add_limits(command: parser.Parser) -> None:
    """Adds what `run_solver` reads."""
    command.takes(
        "--seconds S",
        "wall time of a solver (10); 0: no limit, so that a solver which goes on improving "
        "ends only by --evaluations or Ctrl-C",
        parser.seconds,
        default=10.0,
    )
    parser.add_seed(command)
    command.takes(
        "--evaluations N", "games a solver may look at (0: no limit)", parser.count, default=0
    )
    command.takes(
        "--game",
        "the game of solvers that play one: time decides each access in the order of time, "
        "priority places residences in the order of importance, fine is priority with one segment "
        "at a time and exact stalls, schedule decides the order of instructions first (default: "
        "priority for anneal, mcts and egrl, the game of its training for an agent, else time)",
        choices=games.NAMES,
    )
    command.takes(
        "--checkpoint FILE",
        f"of a trained agent: the solver {' or '.join(AGENTS)}, and a member of portfolio",
    )


def run_solver(
    program: mg.Program,
    hardware: mg.Hardware,
    solver: str,
    options: argparse.Namespace,
    work: console.Work,
    stop: Callable[[], bool],
    subject: str = "",
    order: bool = False,
    main_bytes: int | None = None,
) -> mg.SolveResult:
    """Runs a solver within the limits of the options, perhaps on other orders of instructions.

    Once `stop` returns True, the best so far is the result. `subject` stands before the progress.
    """

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
        game=options.game,
        stop=stop,
        order=order,
        main_bytes=main_bytes,
    )


def _solve(options: argparse.Namespace) -> int:
    program, hardware = parser.problem_of(options)
    if options.plot is not None:
        plots.check()
    if options.prices == "both" and not options.order:
        program = calibration.at_both_prices(program, options.lean or 0.0)
    elif options.lean is not None or options.prices == "both":
        raise InvalidInputError("--lean needs --prices both, which --order does not go with")
    if options.frontier:
        for name in ("order", "output", "log"):
            if getattr(options, name):
                raise InvalidInputError(f"--frontier finds several plans, so it takes no --{name}")
        return _frontier(options, program, hardware)
    with console.stopping() as stop, console.working(f"{options.solver} on {program.name}") as work:

        def higher(seconds: float, value_ps: float) -> None:
            work.tell(f"bound {value_ps / 1e6:,.1f} µs after {seconds:.1f} s")

        least = mg.bounds.bound(program, options.bound, hardware, progress=higher)
        main_bytes = None if options.main_mib is None else options.main_mib << 20
        result = run_solver(
            program,
            hardware,
            options.solver,
            options,
            work,
            stop,
            order=options.order,
            main_bytes=main_bytes,
        )
        ordered = result.program
        verdict = mg.validate(ordered, result.plan, hardware)
        xla = reference(program, hardware)
        row = plan_row(
            program, hardware, result.report, verdict, xla, result, least, result.plan, result.order
        )
        if result.schedule is not None:
            row |= _order_row(program, ordered, result.schedule)
        failure = None
        try:
            _write(options, program, result, row)
        except (MallocGameError, OSError) as error:
            failure = error  # It is told last, so that what took so long to find is shown.
    if options.json:
        print_json(row)
    else:
        print_comparison(program, hardware, options.solver, result.report, xla, row)
        if result.schedule is not None:
            console.print_line(_order_sentence(row))
        if stop():
            console.print_line("Interrupted: this is the best so far.")
    if failure is not None:
        raise failure
    if not verdict.ok:
        return parser.CHECK_FAILED
    return parser.INTERRUPTED if stop() else parser.OK


def _frontier(options: argparse.Namespace, program: mg.Program, hardware: mg.Hardware) -> int:
    with console.stopping() as stop, console.working(f"{options.solver} on {program.name}") as work:
        points = frontier(
            program,
            options.solver,
            options.seconds,
            options.seed,
            hardware,
            tell=work.tell,
            evaluations=options.evaluations,
            stop=stop,
        )
    if options.plot is not None:
        pairs = [(point.speedup, point.speedup_calibrated) for point in points]
        plots.save_frontiers(options.plot, {program.name: pairs})
    rows: list[Row] = [
        {
            "lean": point.lean,
            "latency_ps": point.report.latency_ps,
            "calibrated_ps": point.calibrated.latency_ps,
            "speedup_vs_xla": point.speedup,
            "speedup_calibrated_vs_xla": point.speedup_calibrated,
        }
        for point in points
    ]
    if options.json:
        print_json({"program": program.name, "solver": options.solver, "frontier": rows})
        return parser.INTERRUPTED if stop() else parser.OK
    table = Table(("lean", "warm µs", "vs XLA", "calibrated µs", "vs XLA"))
    for row in rows:
        table.add(
            f"{row['lean']:g}",
            console.microseconds(row["latency_ps"]),
            console.times(row["speedup_vs_xla"]),
            console.microseconds(row["calibrated_ps"]),
            console.times(row["speedup_calibrated_vs_xla"]),
        )
    console.print_table(table)
    return parser.INTERRUPTED if stop() else parser.OK


def _order_row(program: mg.Program, ordered: mg.Program, schedule: dict[str, Any]) -> Row:
    return {
        "has_freedom": schedule["has_freedom"],
        "own_order_ps": schedule["own_order_ps"],
        "orders": schedule["orders"],
        "main_bytes": ordered.main_memory["total_bytes"],
        "own_order_main_bytes": program.main_memory["total_bytes"],
    }


def _order_sentence(row: Row) -> str:
    if not row["has_freedom"]:
        return "No freedom: the instructions have no other order, or nobody knows what they need."
    own, order = row["own_order_main_bytes"], row["main_bytes"]
    return (
        f"{row['orders']} orders of instructions; at XLA's the best plan found takes "
        f"{console.microseconds(row['own_order_ps'])} µs. Main memory: "
        f"{console.mebibytes(order)} MiB, XLA's order {console.mebibytes(own)}."
    )


def _write(
    options: argparse.Namespace, program: mg.Program, result: mg.SolveResult, row: Row
) -> None:
    """Writes what the options ask for; the game comes last, because there may be none."""
    if options.output is not None:
        mg.save_plan(result.plan, program, options.output, result.order)
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
    if options.log is not None:
        mg.save_log(mg.record(result), options.log)
