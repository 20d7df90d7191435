"""`mallocgame benchmark`: players and submissions, scored over the levels of a split."""

import argparse
import contextlib
import dataclasses
import os
import tempfile
from collections.abc import Sequence

import mallocgame as mg
from mallocgame._cli import console, parser
from mallocgame._cli.folders import working_in
from mallocgame._cli.levels import add_set, set_of
from mallocgame._cli.rows import print_json
from mallocgame._core import write_file
from mallocgame.errors import InvalidInputError
from mallocgame.experiments import (
    Budget,
    Player,
    Run,
    Summary,
    Table,
    judge_submission,
    play,
    results_of,
    summarize,
)
from mallocgame.experiments.intervals import load_rliable
from mallocgame.experiments.judging import NO_PLAN, improve
from mallocgame.level_sets import LEAST_GAIN, Level, levels

_BUDGETS = "0.005,0.05,1,20"
_NOTES = (
    "score: of each level log(greedy / latency) / log(greedy / best known), so that greedy has 0",
    "and the best plan known 1; the mean of the middle half over levels and seeds. 95 %: the",
    "interval of that mean. vs greedy: geometric mean of the speed-up over all levels; over best:",
    "of the latency over the best known one.",
    f"scored: levels where the best known plan is at least {LEAST_GAIN - 1:.1%} faster than "
    "greedy's. beaten:",
    "levels with a better plan than the best known. no plan: levels without a valid one, which",
    "count with everything in main memory. Latencies are static estimates.",
)


def register(commands: parser.Commands) -> None:
    """Adds the command of this module."""
    command = commands.add(
        "benchmark", _benchmark, "players and folders of plans, scored over many levels"
    )
    command.takes(
        "--split",
        "whose levels count",
        choices=("validation", "test", "whole-validation", "whole-test"),
        required=True,
    )
    add_set(command)
    command.takes(
        "--players A,B",
        f"of {', '.join(mg.solver_names())}; NAME:priority and NAME:time play another game "
        "than the solver's own",
        _players,
        default=[],
    )
    command.takes(
        "--submission FOLDER",
        "a folder with the plan LEVEL.json of each level, to be judged; may be repeated",
        dest="submissions",
        action="append",
        default=[],
    )
    command.takes("--seeds N", "the seeds 0 to N - 1 (1)", parser.positive, default=1)
    command.takes(
        "--seconds S,S",
        f"times of one core; a player begins anew with each ({_BUDGETS}, without --games)",
        _times,
    )
    command.takes(
        "--games N,N",
        "numbers of complete games, every warm start and rollout counted, such as 1,8,64; a "
        "player that took more has no result",
        _games,
        default=[],
    )
    command.takes(
        "--min-headroom PERCENT",
        "only levels on which the best known plan is so much faster than greedy's (0)",
        parser.percent,
        former="--stake",
        default=0.0,
    )
    parser.add_workers(command, 1, "players that work side by side, each on a core of its own (1)")
    command.takes(
        "-o --output FOLDER",
        "keep plans and times; what is there is not run again. FOLDER/PLAYER/SEED/TIME is a "
        "submission",
    )
    command.takes(
        "--improve", "keep plans that are better than the best known, in the set of levels"
    )
    command.takes("--page FILE", "write the tables as Markdown", parser.output_file)


def _players(text: str) -> list[Player]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    try:
        return list(dict.fromkeys(Player.named(name) for name in names))
    except InvalidInputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _times(text: str) -> list[Budget]:
    times = sorted({parser.seconds_to_spend(part.strip()) for part in text.split(",")})
    return [Budget(seconds=seconds) for seconds in times]


def _games(text: str) -> list[Budget]:
    numbers = sorted({parser.positive(part.strip()) for part in text.split(",")})
    return [Budget(games=games) for games in numbers]


def _benchmark(options: argparse.Namespace) -> int:
    if not options.players and not options.submissions:
        raise InvalidInputError("found nobody to judge; give --players or --submission")
    options.levels = set_of(options.levels, options.split)
    if options.improve and not os.access(options.levels, os.W_OK):
        raise InvalidInputError(f"{options.levels}: no permission to write, which --improve needs")
    load_rliable()
    if options.seconds is None:
        options.seconds = [] if options.games else _times(_BUDGETS)
    chosen = [
        level
        for level in levels(options.split, options.levels)
        if options.min_headroom <= 0 or level.gain >= 1 + options.min_headroom / 100
    ]
    if not chosen:
        raise InvalidInputError(
            f"{options.levels}: found no level in the split {options.split}"
            + (f" with {options.min_headroom:g} % of headroom" if options.min_headroom > 0 else "")
        )
    with contextlib.ExitStack() as stack:
        output = options.output or stack.enter_context(tempfile.TemporaryDirectory())
        stack.enter_context(working_in(output))
        runs = _judge(options, chosen, output)
        improved = improve(chosen, runs) if options.improve else []
    results = results_of(runs, chosen)
    summaries = summarize(results)
    if options.page is not None:
        write_file(options.page, _page(options, chosen, summaries).encode())
    if options.json:
        print_json(
            {
                "split": options.split,
                "results": [dataclasses.asdict(result) for result in results],
                "summary": [dataclasses.asdict(summary) for summary in summaries],
                "improved": improved,
            }
        )
    else:
        _print(summaries, runs, improved)
    invalid = any(run.problem not in ("", NO_PLAN) for run in runs)
    return parser.CHECK_FAILED if invalid else parser.OK


def _judge(options: argparse.Namespace, chosen: Sequence[Level], output: str) -> list[Run]:
    """Runs the players, and judges the submissions."""
    budgets = options.games + options.seconds
    played = len(options.players) * options.seeds * len(budgets) * len(chosen)
    total = played + len(options.submissions) * len(chosen)
    with parser.workers(options) as workers, console.working("benchmarking", total) as work:

        def done(what: str) -> None:
            work.tell(what)
            work.advance()

        runs = play(options.players, chosen, output, budgets, options.seeds, workers, done)
        for folder in dict.fromkeys(options.submissions):
            runs += judge_submission(folder, chosen, done)
    return runs


def _score_table(summaries: Sequence[Summary]) -> Table:
    """A row for each player and budget."""
    made = Table(
        (
            "player",
            "budget",
            "score",
            "95 %",
            "vs greedy",
            "over best",
            "scored",
            "beaten",
            "no plan",
        )
    )
    for one in summaries:
        made.add(
            one.player,
            _budget(one.budget),
            _number(None if one.score is None else one.score.mean),
            "-" if one.score is None else f"{one.score.low:.3f} to {one.score.high:.3f}",
            console.times(one.speedup),
            _number(one.room),
            one.scored,
            one.beaten,
            one.problems,
        )
    return made


def _family_table(summaries: Sequence[Summary]) -> Table:
    """The scores of each family: a row for each player, a column for each budget."""
    budgets = list(dict.fromkeys(one.budget for one in summaries))
    found = {(one.player, one.budget): one.families for one in summaries}
    made = Table(("family", "player", *map(_budget, budgets)), left=2)
    for family in summaries[0].families:
        for player in dict.fromkeys(one.player for one in summaries):
            own = (found.get((player, budget), {}).get(family) for budget in budgets)
            made.add(family, player, *map(_number, own))
    return made


def _budget(budget: Budget | None) -> str:
    return "submitted" if budget is None else str(budget)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _print(summaries: Sequence[Summary], runs: Sequence[Run], improved: Sequence[str]) -> None:
    console.print_table(_score_table(summaries))
    console.print_line()
    console.print_line("Scores by family:")
    console.print_table(_family_table(summaries))
    console.print_line()
    for note in _NOTES:
        console.print_line(note)
    for player in dict.fromkeys(run.player for run in runs if run.problem):
        own = [run for run in runs if run.player == player]
        missing = [run.level for run in own if run.problem == NO_PLAN]
        if missing:
            console.print_line(f"{player}: no plan of {', '.join(missing)}")
        for run in own:
            if run.problem not in ("", NO_PLAN):
                console.print_line(f"{player}: not valid: {run.level}: {run.problem}")
    if improved:
        console.print_line(f"better than the best known, and kept: {len(improved)} plans")


def _page(
    options: argparse.Namespace, chosen: Sequence[Level], summaries: Sequence[Summary]
) -> str:
    """The tables as a Markdown page."""
    seeds = f"{options.seeds} seed{'' if options.seeds == 1 else 's'}"
    return "\n".join(
        [
            f"# Scores on the split {options.split}",
            "",
            f"mallocgame {mg.__version__}, {len(chosen)} levels, {seeds}.",
            "",
            str(_score_table(summaries)),
            "",
            *_NOTES,
            "",
            "## By family",
            "",
            str(_family_table(summaries)),
            "",
        ]
    )
