"""Measures what a MuZero agent plays on programs that it has never seen.

    python benchmarks/quality/zero_shot.py FOLDER [--train-levels 96] [--levels 140] [--seconds 600]
    [--seeds 0,1] [--config KEY=VALUE ...] [--jobs 1 | --ray ADDRESS]

An agent is trained for each seed, on so many levels of the split train, on one core: on those with
less memory or bandwidth than the chip, in which there is something to decide. Then it plays one
game of each test level: by its policy alone, and with a search for each decision, also with a
search without one of its parts: without the policy also with so many simulations that it takes as
long as the search with it. All see what the agent's baseline does, and rollouts follow
it: that is the best game of greedy, rent, styles and xla-heuristic, as far as it can be played in
the priority game in which greedy or styles is fastest. It is beside them. Keeps FOLDER/SEED.muzero
and FOLDER/SEED.json, and goes on with what is missing. All machines of --ray must see FOLDER.
Prints the interquartile mean of the scores (0 greedy, 1 best known) with 95 % intervals, by
rliable; that of the scores less the policy's, level by level; and on how many levels each game is
faster, and slower, than the one in the row above. With several seeds also on how many levels the
search is faster, and slower, than without the policy in as long a time, beyond the 95 % interval of
Welch's test. Needs mallocgame[agents,benchmark].
"""

import functools
import math
import pathlib
import time
from collections.abc import Mapping

import numpy as np

import mallocgame as mg
from mallocgame import agents
from mallocgame import experiments as ex

SEARCHES: dict[str, dict[str, object]] = {  # settings of a search
    "policy": {"simulations": 1},
    "search without rollouts": {"rollout_share": 0},
    "search without the policy": {"prior": "uniform"},
    "search": {},
}
AS_LONG = "search without the policy, for as long"
PLAYERS = ("greedy", "baseline", *SEARCHES, AS_LONG)
LEAST_ACCESSES = 40  # of a level to train on
MOST_SIMULATIONS = 4096  # of a search
# Nothing is annealed, as in play: searches from annealed games find nothing better to learn. For
# the same reason half of the games begin at the beginning. Many programs teach more than one does.
CONFIG = {
    "demonstration_decisions": "0",
    "varied_decisions": "0",
    "restart_share": "0.5",
    "updates": "16",
}


def trained(
    checkpoint: pathlib.Path, seed: int, levels: int, seconds: float, config: tuple[str, ...]
) -> agents.MuZeroAgent:
    """The agent of a seed, from its file, or trained and kept there."""
    if not checkpoint.exists():
        contended = [
            one
            for one in mg.levels("train")
            if "@" in one.name and one.features["accesses"] >= LEAST_ACCESSES
        ]
        settings = CONFIG | dict(text.split("=") for text in config)
        trainer = agents.MuZero(ex.evenly(contended, levels), settings, seed, threads=1)
        end = time.process_time() + seconds
        while time.process_time() < end:
            trainer.step()
        trainer.save(checkpoint)
    return agents.MuZeroAgent.load(checkpoint)


def measure(
    seed: int,
    folder: pathlib.Path,
    levels: int,
    train_levels: int,
    seconds: float,
    config: tuple[str, ...],
) -> dict:
    agent = trained(folder / f"{seed}.muzero", seed, train_levels, seconds, config)
    candidates = int(agent.settings["candidates"])
    found = {}
    for level in ex.evenly(mg.levels("test"), levels):
        game = agent.game(level.game(game=agent.settings["game"], candidates=candidates))
        played = {name: play(agent, game, search) for name, search in SEARCHES.items()}
        played[AS_LONG] = play_as_long(agent, game, played["search"][1])
        found[level.name] = {
            "greedy": level.greedy_ps,
            "baseline": agent.baseline(game).report.latency_ps,
        } | {name: latency_ps for name, (latency_ps, _) in played.items()}
    return {"iterations": agent.iterations, "found": found}


def play(
    agent: agents.MuZeroAgent, game: mg.Game, config: Mapping[str, object]
) -> tuple[int, float]:
    """Returns the latency of the agent's game, and the processor time that it took."""
    begin = time.process_time()
    latency_ps = agent.play(game, config=config).report.latency_ps
    return latency_ps, time.process_time() - begin


def play_as_long(agent: agents.MuZeroAgent, game: mg.Game, seconds: float) -> tuple[int, float]:
    """Plays without the policy, with the first number of simulations tried that takes as long."""
    simulations = int(agent.settings["simulations"])
    while True:
        config = {"prior": "uniform", "simulations": simulations}
        latency_ps, took = play(agent, game, config)
        if took >= seconds or simulations == MOST_SIMULATIONS:
            return latency_ps, took
        more = math.ceil(simulations * seconds / took)
        simulations = min(max(simulations + 1, more), MOST_SIMULATIONS)


def beyond_chance(found: list[dict[str, dict[str, int]]]) -> str:
    """On how many levels the policy makes the search faster, and slower, in as long a time."""
    between = [
        ex.difference(
            np.log([one[name]["search"] for one in found]),
            np.log([one[name][AS_LONG] for one in found]),
        )
        for name in found[0]
    ]
    return (
        f"\nBeyond chance the search is faster than without the policy, for as long, on "
        f"{sum(one.high < 0 for one in between)} of {len(found[0])} levels, and slower on "
        f"{sum(one.low > 0 for one in between)}."
    )


def main(
    bench: ex.Bench,
    *,
    train_levels: int = 96,
    levels: int = 140,
    seconds: float = 600,
    seeds: tuple[int, ...] = (0, 1),
    config: tuple[str, ...] = (),
) -> None:
    work = functools.partial(measure, folder=bench.folder)
    settings = {
        "levels": levels,
        "train_levels": train_levels,
        "seconds": seconds,
        "config": config,
    }
    rows = bench.run(work, ex.Grid(seed=seeds), settings=settings, pinned=True)
    found = [row["found"] for row in rows]
    scored = [level for level in mg.levels("test", scored=True) if level.name in found[0]]

    def latencies(player: str) -> np.ndarray:
        return np.array([[one[level.name][player] for level in scored] for one in found])

    titles = (f"{len(scored)} levels", "score", "less the policy's", "faster than above", "slower")
    table = ex.Table(titles)
    above, policy = None, ex.scores_of(scored, latencies("policy"))
    for player in PLAYERS:
        own = latencies(player)
        score = ex.scores_of(scored, own)
        less = "" if player == "policy" else ex.interquartile_mean(score - policy)
        shares: list[float] = []
        if above is not None:
            shares = [float((own < above).mean()), float((own > above).mean())]
        table.add(player, ex.interquartile_mean(score), less, *(f"{one:.0%}" for one in shares))
        above = own
    print(table)
    if len(found) > 1:
        print(beyond_chance(found))


if __name__ == "__main__":
    ex.main(main)
