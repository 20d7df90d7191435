"""Measures what the MuZero agent finds beside other players, and what its parts are worth.

    python benchmarks/quality/muzero_table.py FOLDER [--seconds 120] [--seeds 0,1,2]
    [--players 'PLAYER;...'] [--controls] [--jobs 1 | --ray ADDRESS] [PROGRAM...]

A player is a solver, also one of the priority game (`anneal:game=priority`), muzero, or muzero with
settings (`muzero:game=time,selection=puct`). Each has the same time on one core, with every seed.
An agent begins from nothing, or from the networks of another one (`muzero:tuned_from=CHECKPOINT`,
whose settings it then has unless they are given), and its demonstrations are part of its time.
--controls adds the agent without each of its parts. Each answer is a small file in FOLDER, so that
it can be interrupted and goes on where it stopped.

Prints Markdown: what each player found, the geometric mean over the seeds; what each agent comes to
beside the other players and beside the first agent, with 95 % intervals: of Welch's test for a
program, of rliable's stratified bootstrap over seeds for all of them. With several seeds also how
the first agent learned, as a table and as FOLDER/PROGRAM.png. Needs mallocgame[agents,benchmark].
"""

import argparse
import contextlib
import functools
import json
import math
import pathlib
import statistics
import sys
import time
import warnings

import numpy as np
from scipy import stats

import mallocgame as mg
from mallocgame import agents, plots
from mallocgame._cli.parser import add_workers, workers
from mallocgame._jobs import run_jobs
from mallocgame._levels.scores import mean_of_levels
from mallocgame.programs import suite

OTHERS = ("anneal:game=priority", "mcts:game=priority", "portfolio")
CONTROLS = (  # the agent without each of its parts
    "muzero:updates=0",
    "muzero:updates=0,prior=uniform,proposals=uniform",
    "muzero:prior=uniform",
    "muzero:simulations=1",
    "muzero:proposals=uniform",
    "muzero:varied_decisions=0",
)
SMOOTHED = 5  # steps


def solve(
    program: mg.Program, solver: str, settings: dict[str, str], seed: int, seconds: float
) -> dict:
    if settings.keys() - {"game"}:
        raise SystemExit(f"{solver}: found the settings {settings}, allowed: game")
    result = mg.solve(program, solver, seconds=seconds, seed=seed, game=settings.get("game"))
    return {
        "latency_ps": result.report.latency_ps,
        "curve": [(at, ps) for at, ps, _ in result.curve],
    }


def train(program: mg.Program, settings: dict[str, str], seed: int, seconds: float) -> dict:
    """Trains an agent; the demonstrations are part of its time."""
    settings = dict(settings)
    tuned_from = settings.pop("tuned_from", None)
    begin = time.monotonic()
    trainer = agents.begin_muzero(program, seconds, settings, seed, 1, tuned_from=tuned_from)
    steps = []
    trainer.train(
        (1 - agents.POLISH_SHARE) * seconds, lambda step: steps.append((time.monotonic() - begin, step))
    )
    game = trainer.best_game()
    plan = trainer.polish(seconds=max(0.001, seconds - (time.monotonic() - begin)))
    return {
        "latency_ps": plan.report.latency_ps,
        "found_by": plan.found_by,
        "game_latency_ps": game.report.latency_ps,
        "game_found_by": game.found_by,
        "demonstration_ps": steps[0][1]["best_ps"][0],
        "demonstration_seconds": steps[0][0],
        "curve": [(at, step["best_ps"][0]) for at, step in steps],
        "returns": [(at, step["mean_return"][0]) for at, step in steps if step["games"] > 0],
    }


Run = tuple[str, str, int]  # program, player, seed


def path_of(folder: pathlib.Path, seconds: float, run: Run) -> pathlib.Path:
    program_name, player, seed = run
    return folder / f"{program_name}.{player.replace('/', '+')}.{seconds:g}s.seed{seed}.json"


def measure(seconds: float, run: Run) -> dict:
    program_name, player, seed = run
    program = mg.load_program(program_name)
    begin, cpu_begin = time.monotonic(), time.process_time()
    name, _, texts = player.partition(":")
    settings = dict(text.split("=") for text in texts.split(",") if text)
    if name == "muzero":
        answer = train(program, settings, seed, seconds)
    else:
        answer = solve(program, name, settings, seed, seconds)
    spent = {"seconds": time.monotonic() - begin, "cpu_seconds": time.process_time() - cpu_begin}
    return answer | spent


Answers = dict[str, dict[str, list[dict]]]  # by program, then by player: one for each seed


def logs(answers: list[dict], key: str) -> np.ndarray:
    """Natural logarithms of latencies, [seeds]."""
    return np.array([math.log(answer.get(key, answer["latency_ps"])) for answer in answers])


def is_agent(player: str) -> bool:
    return player.partition(":")[0] == "muzero"


def print_latencies(answers: Answers, players: list[str]) -> None:
    """Microseconds."""
    columns = ["program", "XLA"]
    for player in players:
        columns += [f"{player}: demonstration", "game", "plan"] if is_agent(player) else [player]
    print(f"| {' | '.join(columns)} |\n| --- |{' --: |' * (len(columns) - 1)}")
    for name, row in answers.items():
        program = mg.load_program(name)
        assert program.xla_plan is not None, "every bundled program has XLA's own plan"
        cells = [f"`{name}`", micros(mg.simulate(program, program.xla_plan).latency_ps)]
        for player in players:
            keys = ["latency_ps"]
            if is_agent(player):
                keys = ["demonstration_ps", "game_latency_ps", "latency_ps"]
            cells += [micros(math.exp(logs(row[player], key).mean())) for key in keys]
        print(f"| {' | '.join(cells)} |")


def print_comparison(answers: Answers, players: list[str], key: str, others: list[str]) -> None:
    """How much faster what each player found is than what the best of `others` did.

    key: "game_latency_ps", which of an agent is its best game, or "latency_ps", its plan. The best
    of the others is chosen for each program by its mean.
    """
    print("| player | ratio | no worse | better | worse |\n| --- | --: | --: | --: | --: |")
    for player in players:
        ratios, better, worse, even = [], 0, 0, 0
        for row in answers.values():
            own = logs(row[player], key)
            rivals = [logs(row[other], key) for other in others if other != player]
            if not rivals:
                break
            best = min(rivals, key=lambda found: found.mean())
            low, high = interval(own, best)
            better += high < 0
            worse += low > 0
            even += low <= 0 <= high
            ratios.append(own - best.mean())
        if ratios:
            mean = mean_of_levels(np.array(ratios).T)
            low, middle, high = (math.exp(x) for x in (mean.low, mean.mean, mean.high))
            print(
                f"| {player} | {middle:.4f} ({low:.4f} to {high:.4f}) "
                f"| {better + even} of {len(ratios)} | {better} | {worse} |"
            )


def interval(own: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """95 % of the difference of the means, by Welch's test; of one seed, or of equal ones, it."""
    difference = own.mean() - other.mean()
    if min(len(own), len(other)) < 2 or own.std() + other.std() == 0:
        return difference, difference
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # where the seeds of one are equal
        low, high = stats.ttest_ind(own, other, equal_var=False).confidence_interval()
    return low, high


def print_learning(program_name: str, by_seed: dict[int, dict], seconds: float) -> None:
    """Mean return of the games that self-play finished, over time."""
    moments = [seconds * share / 6 for share in range(1, 7)]
    print(
        f"\n| `{program_name}`, "
        f"seconds | {' | '.join(f'{at:g}' for at in moments)} |\n| --- |{' --: |' * len(moments)}"
    )
    for seed, answer in by_seed.items():
        cells = []
        for at in moments:
            lately = [value for when, value in answer["returns"] if at - seconds / 6 < when <= at]
            cells.append(f"{statistics.fmean(lately):.4f}" if lately else "")
        print(f"| seed {seed} | {' | '.join(cells)} |")


def draw_learning(path: pathlib.Path, program_name: str, by_seed: dict[int, dict]) -> None:
    """The same as latencies, each the mean of a few steps, with the best ones found."""
    program = mg.load_program(program_name)
    all_main_ps = mg.simulate(program, mg.all_main_plan(program)).all_main_ps
    curves = {}
    for seed, answer in by_seed.items():
        times = [at for at, _ in answer["returns"]]
        values = [value for _, value in answer["returns"]]
        smooth = [
            statistics.fmean(values[max(0, i - SMOOTHED + 1) : i + 1]) for i in range(len(values))
        ]
        curves[f"seed {seed}: games"] = [
            (at, round((1 - value) * all_main_ps)) for at, value in zip(times, smooth, strict=True)
        ]
        curves[f"seed {seed}: best"] = answer["curve"]
    plots.save_curves(path, curves, f"MuZero on {program_name}")


def micros(ps: float) -> str:
    return f"{ps / 1e6:,.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument(
        "programs", nargs="*", metavar="PROGRAM", help="the contended suite, if none is given"
    )
    parser.add_argument(
        "--seconds", type=float, default=120, help="for each player and program (120)"
    )
    parser.add_argument(
        "--seeds",
        type=lambda text: [int(seed) for seed in text.split(",")],
        default=[0, 1, 2],
        help="(0,1,2)",
    )
    parser.add_argument(
        "--players",
        type=lambda text: text.split(";"),
        default=[*OTHERS, "muzero"],
        help="separated by ;",
    )
    parser.add_argument("--controls", action="store_true", help="the agent without its parts, too")
    add_workers(parser, 1, "runs side by side, each on a core of its own (1)")
    options = parser.parse_intermixed_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    players = [*options.players, *(CONTROLS if options.controls else ())]
    runs = [
        (name, player, seed)
        for seed in options.seeds
        for name in options.programs or suite("contended")
        for player in players
    ]
    paths = {run: path_of(options.folder, options.seconds, run) for run in runs}
    missing = [run for run in runs if not paths[run].exists()]
    measured = functools.partial(measure, options.seconds)
    with (
        workers(options, here=True) as several,
        contextlib.closing(run_jobs(measured, missing, several, pinned=True)) as finished,
    ):
        for (name, player, seed), answer in finished:
            path = paths[name, player, seed]
            partial = path.with_suffix(".partial")
            partial.write_text(json.dumps(answer, indent=1) + "\n")
            partial.rename(path)
            print(f"{name}: {player}, seed {seed}", file=sys.stderr, flush=True)
    answers: Answers = {}
    for name, player, seed in runs:
        answer = json.loads(paths[name, player, seed].read_text())
        answers.setdefault(name, {}).setdefault(player, []).append(answer)
    print_latencies(answers, players)
    trained = [player for player in players if is_agent(player)]
    others = [player for player in players if not is_agent(player)]
    if trained and others:
        print(f"\nThe best game of each agent, as a share of the best of {', '.join(others)}:\n")
        print_comparison(answers, trained, "game_latency_ps", others)
        print("\nIts plan:\n")
        print_comparison(answers, trained, "latency_ps", others)
    if len(trained) > 1:
        print(f"\nThe best game, as a share of that of {trained[0]}:\n")
        print_comparison(answers, trained[1:], "game_latency_ps", trained[:1])
    if trained and len(options.seeds) > 1:
        for name, row in answers.items():
            by_seed = dict(zip(options.seeds, row[trained[0]], strict=True))
            print_learning(name, by_seed, options.seconds)
            draw_learning(options.folder / f"{name}.png", name, by_seed)


if __name__ == "__main__":
    main()
