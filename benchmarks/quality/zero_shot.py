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

import argparse
import contextlib
import functools
import json
import math
import pathlib
import sys
import time
from collections.abc import Mapping

import numpy as np
from muzero_table import interval  # type: ignore[import-not-found]
from numpy.typing import NDArray

import mallocgame as mg
from mallocgame import agents
from mallocgame._cli.parser import add_workers, workers
from mallocgame._cli.training import settings
from mallocgame._jobs import run_jobs
from mallocgame._levels import evenly
from mallocgame._levels.scores import interquartile_mean, score

SEARCHES: dict[str, dict[str, object]] = {  # settings of a search
    "policy": {"simulations": 1},
    "search without rollouts": {"rollout_share": 0},
    "search without the policy": {"prior": "uniform"},
    "search": {},
}
AS_LONG = "search without the policy, for as long"
PLAYERS = ("greedy", "baseline", *SEARCHES, AS_LONG)
LEAST_ACCESSES = 40  # of a level to train on
MOST_SIMULATIONS, MOST_CONSIDERED = 4096, 64  # of a search
# Nothing is annealed, as in play: searches from annealed games find nothing better to learn. For
# the same reason half of the games begin at the beginning. Many programs teach more than one does.
CONFIG = {
    "demonstration_decisions": "0",
    "varied_decisions": "0",
    "restart_share": "0.5",
    "updates": "16",
}


def measure(options: argparse.Namespace, seed: int) -> None:
    checkpoint = options.folder / f"{seed}.muzero"
    if not checkpoint.exists():
        contended = [
            one
            for one in mg.levels("train")
            if "@" in one.name and one.features["accesses"] >= LEAST_ACCESSES
        ]
        trainer = agents.MuZero(
            evenly(contended, options.train_levels),
            CONFIG | settings(options.config),
            seed,
            threads=1,
        )
        end = time.process_time() + options.seconds
        while time.process_time() < end:
            trainer.step()
        trainer.save(checkpoint)
    agent = agents.MuZeroAgent.load(checkpoint)
    candidates = int(agent.settings["candidates"])
    found = {}
    for level in evenly(mg.levels("test"), options.levels):
        game = agent.game(level.game(game=agent.settings["game"], candidates=candidates))
        played = {name: play(agent, game, config) for name, config in SEARCHES.items()}
        played[AS_LONG] = play_as_long(agent, game, played["search"][1])
        found[level.name] = {
            "greedy": level.greedy_ps,
            "baseline": agent.baseline(game).report.latency_ps,
        } | {name: latency_ps for name, (latency_ps, _) in played.items()}
    partial = checkpoint.with_suffix(".partial")
    partial.write_text(json.dumps({"iterations": agent.iterations, "found": found}, indent=1))
    partial.rename(checkpoint.with_suffix(".json"))


def is_whole(answer: pathlib.Path) -> bool:
    """Returns whether all players have played. There may be more of them than when it was made."""
    if not answer.exists():
        return False
    found = json.loads(answer.read_text())["found"]
    return all(set(PLAYERS) <= latencies.keys() for latencies in found.values())


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
        considered = min(simulations, MOST_CONSIDERED)
        config = {"prior": "uniform", "simulations": simulations, "considered": considered}
        latency_ps, took = play(agent, game, config)
        if took >= seconds or simulations == MOST_SIMULATIONS:
            return latency_ps, took
        more = math.ceil(simulations * seconds / took)
        simulations = min(max(simulations + 1, more), MOST_SIMULATIONS)


def print_beyond_chance(found: list[dict[str, dict[str, int]]]) -> None:
    """On how many levels the policy makes the search faster, and slower, in as long a time."""
    better = worse = 0
    for name in found[0]:
        own = np.log([one[name]["search"] for one in found])
        other = np.log([one[name][AS_LONG] for one in found])
        low, high = interval(own, other)
        better += high < 0
        worse += low > 0
    print(
        f"\nBeyond chance the search is faster than without the policy, for as long, on {better} "
        f"of {len(found[0])} levels, and slower on {worse}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--train-levels", type=int, default=96, help="to train on (96)")
    parser.add_argument("--levels", type=int, default=140, help="to play (140)")
    parser.add_argument("--seconds", type=float, default=600, help="of training (600)")
    parser.add_argument(
        "--seeds",
        type=lambda text: [int(seed) for seed in text.split(",")],
        default=[0, 1],
        help="(0,1)",
    )
    parser.add_argument("--config", nargs="+", default=[], metavar="KEY=VALUE", help="of the agent")
    add_workers(parser, 1, "seeds side by side, each on a core of its own (1)")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    answers = {seed: options.folder / f"{seed}.json" for seed in options.seeds}
    missing = [seed for seed, path in answers.items() if not is_whole(path)]
    with (
        workers(options, here=True) as several,
        contextlib.closing(
            run_jobs(functools.partial(measure, options), missing, several, pinned=True)
        ) as finished,
    ):
        for seed, _ in finished:
            print(f"seed {seed}", file=sys.stderr, flush=True)
    found = [json.loads(path.read_text())["found"] for path in answers.values()]
    levels = {level.name: level for level in mg.levels("test")}
    scored = [name for name in found[0] if score(levels[name], 1) is not None]
    print(
        f"| {len(scored)} levels | score | less the policy's | faster than above | slower |\n"
        f"| --- |{' --: |' * 4}"
    )

    def scores_of(player: str) -> NDArray[np.float64]:
        scores = [[score(levels[name], one[name][player]) for name in scored] for one in found]
        return np.array(scores, float)

    def shown(scores: NDArray[np.float64]) -> str:
        mean = interquartile_mean(scores)
        return f"{mean.mean:.3f} ({mean.low:.3f} to {mean.high:.3f})"

    above = None
    for player in PLAYERS:
        latencies = np.array([[one[name][player] for name in scored] for one in found])
        less = "" if player == "policy" else shown(scores_of(player) - scores_of("policy"))
        cells = [player, shown(scores_of(player)), less]
        if above is not None:
            cells += [f"{np.mean(latencies < above):.0%}", f"{np.mean(latencies > above):.0%}"]
        print(f"| {' | '.join(cells)}{' |' * (6 - len(cells))}")
        above = latencies
    if len(found) > 1:
        print_beyond_chance(found)


if __name__ == "__main__":
    main()
