"""Measures what the MuZero agent finds beside other players, and what its parts are worth.

    python benchmarks/quality/muzero_table.py FOLDER [--seconds 120] [--seeds 0,1,2]
    [--players 'PLAYER;...'] [--controls] [--jobs 1 | --ray ADDRESS] [PROGRAM...]

A player is a solver, also one of the priority game (`anneal:game=priority`), muzero, or muzero with
settings (`muzero:preset=paper,updates=0`). Each has the same time on one core, with every seed.
An agent begins from nothing, or from the networks of another one (`muzero:tuned_from=CHECKPOINT`,
whose settings it then has unless they are given), and its demonstrations are part of its time.
--controls adds the agent without each of its parts. Each answer is a small file in FOLDER, so that
it can be interrupted and goes on where it stopped.

Prints Markdown: what each player found, the geometric mean over the seeds; what each agent comes to
beside the other players and beside the first agent, with 95 % intervals: of Welch's test for a
program, of rliable's stratified bootstrap over seeds for all of them. Needs
mallocgame[agents,benchmark].
"""

import math
import time

import numpy as np

import mallocgame as mg
from mallocgame import agents
from mallocgame import experiments as ex
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
    config = dict(settings)
    tuned_from = config.pop("tuned_from", None)
    begin = time.monotonic()
    # As the other players, which count those alone.
    prices = "compiler"
    trainer = agents.begin_muzero(
        program, seconds, config, seed, 1, tuned_from=tuned_from, prices=prices
    )
    steps = []
    share = 1 - agents.POLISH_SHARE
    trainer.train(share * seconds, lambda step: steps.append((time.monotonic() - begin, step)))
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
    }


def measure(seed: int, program: str, player: str, seconds: float) -> dict:
    begin, cpu_begin = time.monotonic(), time.process_time()
    loaded = mg.load_program(program)
    name, _, texts = player.partition(":")
    settings = dict(text.split("=") for text in texts.split(",") if text)
    if name == "muzero":
        answer = train(loaded, settings, seed, seconds)
    else:
        answer = solve(loaded, name, settings, seed, seconds)
    spent = {"seconds": time.monotonic() - begin, "cpu_seconds": time.process_time() - cpu_begin}
    return answer | spent


Answers = dict[str, dict[str, list[ex.Row]]]  # by program, then by player: one for each seed


def logs(rows: list[ex.Row], key: str) -> np.ndarray:
    """Natural logarithms of latencies, [seeds]."""
    return np.array([math.log(row[key if key in row else "latency_ps"]) for row in rows])


def is_agent(player: str) -> bool:
    return player.partition(":")[0] == "muzero"


def latencies(answers: Answers, players: list[str]) -> ex.Table:
    """Microseconds."""
    columns = ["program", "XLA"]
    for player in players:
        columns += [f"{player}: demonstration", "game", "plan"] if is_agent(player) else [player]
    table = ex.Table(columns)
    for name, row in answers.items():
        program = mg.load_program(name)
        assert program.xla_plan is not None, "every bundled program has XLA's own plan"
        cells = [micros(mg.simulate(program, program.xla_plan).latency_ps)]
        for player in players:
            keys = ["latency_ps"]
            if is_agent(player):
                keys = ["demonstration_ps", "game_latency_ps", "latency_ps"]
            cells += [micros(math.exp(logs(row[player], key).mean())) for key in keys]
        table.add(f"`{name}`", *cells)
    return table


def comparison(answers: Answers, players: list[str], key: str, others: list[str]) -> ex.Table:
    """How much faster what each player found is than what the best of `others` did.

    key: "game_latency_ps", which of an agent is its best game, or "latency_ps", its plan. The best
    of the others is chosen for each program by its mean.
    """
    table = ex.Table(["player", "ratio", "no worse", "better", "worse"])
    for player in players:
        ratios, between = [], []
        for row in answers.values():
            own = logs(row[player], key)
            rivals = [logs(row[other], key) for other in others if other != player]
            best = min(rivals, key=lambda found: found.mean())
            between.append(ex.difference(own, best))
            ratios.append(own - best.mean())
        better, worse = (sum(one.high < 0 for one in between), sum(one.low > 0 for one in between))
        mean = ex.mean_of_levels(np.array(ratios).T).exp()
        no_worse = f"{len(between) - worse} of {len(between)}"
        table.add(player, f"{mean:.4f}", no_worse, better, worse)
    return table


def micros(ps: float) -> str:
    return f"{ps / 1e6:,.2f}"


def main(
    bench: ex.Bench,
    *programs: str,
    seconds: float = 120,
    seeds: tuple[int, ...] = (0, 1, 2),
    players: tuple[str, ...] = (*OTHERS, "muzero"),
    controls: bool = False,
) -> None:
    wanted = [*players, *(CONTROLS if controls else ())]
    grid = ex.Grid(seed=seeds, program=programs or suite("contended"), player=wanted)
    rows = bench.run(measure, grid, settings={"seconds": seconds}, pinned=True)
    chosen = list(ex.grouped(rows, "player"))
    answers = {
        program: ex.grouped(several, "player")
        for program, several in ex.grouped(rows, "program").items()
    }
    print(latencies(answers, chosen))
    trained = [player for player in chosen if is_agent(player)]
    others = [player for player in chosen if not is_agent(player)]
    if trained and others:
        print(f"\nThe best game of each agent, as a share of the best of {', '.join(others)}:\n")
        print(comparison(answers, trained, "game_latency_ps", others))
        print("\nIts plan:\n")
        print(comparison(answers, trained, "latency_ps", others))
    if len(trained) > 1:
        print(f"\nThe best game, as a share of that of {trained[0]}:\n")
        print(comparison(answers, trained[1:], "game_latency_ps", trained[:1]))


if __name__ == "__main__":
    ex.main(main)
