"""Measures what the MuZero agent finds beside greedy, beam and anneal.

Each has the same time on one thread.

    python benchmarks/quality/muzero_table.py FOLDER [--seconds 180] [--players 'PLAYER;...']
    [--seeds 0,1,2] [--jobs 1 | --ray ADDRESS] [PROGRAM...]

A player is a solver, also one of the order game (`anneal:game=order`), muzero, or muzero with
settings (`muzero:game=order,selection=puct`). Each answer is a small file in FOLDER, so that it can
be interrupted and goes on where it stopped. Prints Markdown: the columns of docs/results/muzero.md
for the first seed, and what they come to. With several seeds also how each learned, as a table and
as FOLDER/PROGRAM.png.
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

import mallocgame as mg
from mallocgame import agents, plots
from mallocgame._cli.parser import add_workers, workers
from mallocgame._jobs import run_jobs
from mallocgame.programs import suite

OTHERS = ("greedy", "beam", "anneal")
POLISH_SHARE = 0.1  # of the agent's time, at the end, as on the command line
SMOOTHED = 5  # steps
DEMONSTRATION_DECISIONS = 5e5  # at most, for each second, as on the command line


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
    """Trains an agent from nothing; the demonstrations are part of its time."""
    config = {"demonstration_decisions": DEMONSTRATION_DECISIONS * seconds} | settings
    begin = time.monotonic()
    trainer = agents.MuZero(program, config, seed=seed, threads=1)
    steps = []
    trainer.train(
        (1 - POLISH_SHARE) * seconds, lambda step: steps.append((time.monotonic() - begin, step))
    )
    game = trainer.best_game()
    plan = trainer.polish(seconds=max(0.001, seconds - (time.monotonic() - begin)))
    return {
        "latency_ps": plan.report.latency_ps,
        "found_by": plan.found_by,
        "game_ps": game.report.latency_ps,
        "game_found_by": game.found_by,
        "demonstration_ps": steps[0][1]["best_ps"][0],
        "demonstration_seconds": steps[0][0],
        "curve": [(at, step["best_ps"][0]) for at, step in steps],
        "returns": [(at, step["mean_return"][0]) for at, step in steps if step["games"] > 0],
    }


Run = tuple[str, str, int]  # program, player, seed


def path_of(folder: pathlib.Path, seconds: float, run: Run) -> pathlib.Path:
    program_name, player, seed = run
    return folder / f"{program_name}.{player}.{seconds:g}s.seed{seed}.json"


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


def print_table(answers: dict[str, dict[str, dict]], players: list[str]) -> None:
    """answers: by program, then by player. Microseconds."""
    trained = [player for player in players if player.startswith("muzero")]
    others = [player for player in players if player not in trained]
    columns = ["program", "XLA", *others]
    for player in trained:
        columns += ["demonstration", f"{player}: game", "plan", "plan / best other"]
    print(f"| {' | '.join(columns)} |\n| --- |{' --: |' * (len(columns) - 1)}")
    ratios: dict[str, list[float]] = {player: [] for player in trained}
    for name, row in answers.items():
        program = mg.load_program(name)
        assert program.xla_plan is not None, "every bundled program has XLA's own plan"
        cells = [f"`{name}`", micros(mg.simulate(program, program.xla_plan).latency_ps)]
        cells += [micros(row[player]["latency_ps"]) for player in others]
        best = min((row[player]["latency_ps"] for player in others), default=0)
        for player in trained:
            answer = row[player]
            cells += [
                micros(answer["demonstration_ps"]),
                micros(answer["game_ps"]),
                micros(answer["latency_ps"]),
            ]
            cells.append(f"{answer['latency_ps'] / best:.4f}" if best else "")
            if best:
                ratios[player].append(answer["latency_ps"] / best)
        print(f"| {' | '.join(cells)} |")
    for player, found in ratios.items():
        if found:
            mean = math.exp(statistics.fmean(map(math.log, found)))
            print(
                f"\n{player}: no worse than the best of {', '.join(others)} on "
                f"{sum(r <= 1 for r in found)} of {len(found)}, "
                f"better on {sum(r < 1 for r in found)}; geometric mean of the ratio {mean:.4f}"
            )


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
        times, values = zip(*answer["returns"], strict=True)
        smooth = [
            statistics.fmean(values[max(0, i - SMOOTHED + 1) : i + 1]) for i in range(len(values))
        ]
        curves[f"seed {seed}: games"] = [
            (at, round((1 - value) * all_main_ps)) for at, value in zip(times, smooth, strict=True)
        ]
        curves[f"seed {seed}: best"] = answer["curve"]
    plots.save_curves(path, curves, f"MuZero on {program_name}")


def micros(ps: int) -> str:
    return f"{ps / 1e6:,.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument(
        "programs", nargs="*", metavar="PROGRAM", help="the contended suite, if none is given"
    )
    parser.add_argument(
        "--seconds", type=float, default=180, help="for each player and program (180)"
    )
    parser.add_argument(
        "--seeds", type=lambda text: [int(seed) for seed in text.split(",")], default=[0]
    )
    parser.add_argument(
        "--players",
        type=lambda text: text.split(";"),
        default=[*OTHERS, "muzero"],
        help="separated by ;",
    )
    add_workers(parser, 1, "runs side by side, each on a core of its own (1)")
    options = parser.parse_intermixed_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    names = options.programs or suite("contended")
    answers: dict[str, dict[str, dict]] = {}
    learned: dict[str, dict[int, dict]] = {}
    runs = [
        (name, player, seed)
        for name in names
        for player in options.players
        for seed in (options.seeds if player == "muzero" else options.seeds[:1])
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
    for name, player, seed in runs:
        answer = json.loads(paths[name, player, seed].read_text())
        answers.setdefault(name, {}).setdefault(player, answer)
        if player == "muzero":
            learned.setdefault(name, {})[seed] = answer
    print_table(answers, options.players)
    if len(options.seeds) > 1:
        for name, by_seed in learned.items():
            print_learning(name, by_seed, options.seconds)
            draw_learning(options.folder / f"{name}.png", name, by_seed)


if __name__ == "__main__":
    main()
