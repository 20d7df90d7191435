"""How many positions a second MuZero's actors evaluate, and where more of them would end.

    python benchmarks/speed/actors.py [PROGRAM] [--seconds 20] [--rounds 3] [--config KEY=VALUE ...]
    python benchmarks/speed/actors.py [PROGRAM] --curves STEPS [--rounds 3] [--config KEY=VALUE ...]

Needs mallocgame[agents,ray] and two cores. Each figure is the median of rounds, which take turns.
Each run has so many cores for all of it: the learner, the actors, and Ray where that is meant. What
a harvest takes, in seconds and bytes, gives the arithmetic behind the last lines. With --curves it
tells instead how well is learned from as many positions, with as many seeds as rounds.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any, NamedTuple

from mallocgame import agents
from mallocgame import experiments as ex
from mallocgame._torch import torch_module

PROGRAM = "llama_1b_decode_8l_b4_kv1024.tpu_v4i_16mib"
SETTINGS = {"demonstration_decisions": 200_000}
ASYNCHRONOUS = 10**6  # as most_stale: no game is dropped
NETWORK = 125e6  # bytes a second of a link of 1 Gbit/s


class Way(NamedTuple):
    """How it is played."""

    name: str
    actors: int
    cores: int
    by: str  # threads, processes or ray
    waits: bool  # whether actors wait for each other

    def open(self, trainer: agents.MuZero) -> contextlib.AbstractContextManager[Any]:
        """Has the games of steps played in this way within a block."""
        if self.by == "threads":
            return contextlib.nullcontext()
        workers: int | str = "local" if self.by == "ray" else self.actors
        return trainer.actors(workers, None if self.waits else ASYNCHRONOUS)


Row = dict[str, float]

THREADS = Way("threads of one process, 2 cores", 2, 2, "threads", True)
DONT_WAIT = Way("2 processes that don't wait, 2 cores", 2, 2, "processes", False)
WAYS = [
    Way("threads of one process, 1 core", 1, 1, "threads", True),
    THREADS,
    Way("1 process, 1 core", 1, 1, "processes", True),
    Way("2 processes, 2 cores", 2, 2, "processes", True),
    DONT_WAIT,
    Way("Ray, 1 actor, 1 core", 1, 1, "ray", True),
    Way("Ray, 2 actors, 2 cores", 2, 2, "ray", True),
    Way("Ray, 2 actors that don't wait, 2 cores", 2, 2, "ray", False),
    Way("4 processes that don't wait, 2 cores", 4, 2, "processes", False),
]


def run(way: Way, program: str, seconds: float, settings: dict[str, str]) -> Row:
    """Trains for so many seconds behind four steps, and tells what a second and a harvest had."""
    os.sched_setaffinity(0, set(ex.cores()[: way.cores]))
    trainer = agents.MuZero(
        program, SETTINGS | settings | {"groups": way.actors}, seed=0, threads=way.actors
    )
    with way.open(trainer):
        for _ in range(4):  # Until all processes have begun.
            trainer.step()
        total = dict.fromkeys(("evaluations", "play_seconds", "learn_seconds"), 0.0)
        begin, steps = time.monotonic(), 0
        while time.monotonic() - begin < seconds:
            progress = trainer.step()
            total = {name: total[name] + progress[name] for name in total}
            steps += 1
        took = time.monotonic() - begin
    harvests = steps * way.actors
    return {
        "positions": total["evaluations"] / took,
        "harvests": harvests / took,
        "play": total["play_seconds"] / harvests,
        "learn": total["learn_seconds"] / harvests,
        "staleness": progress["staleness"],
    }


def sizes(program: str, settings: dict[str, str]) -> Row:
    """Bytes of what goes to an actor and comes back, and the learner's seconds with them."""
    trainer = agents.MuZero(program, SETTINGS | settings | {"groups": 1}, seed=0, threads=1)
    trainer.step()
    own = trainer._trainer
    actor = torch_module().MuZeroActor(trainer._problems, own.introduction())
    for _ in range(4):  # Until games have their whole length.
        begin = time.monotonic()
        weights, assignment = own.weights(), own.assign(0)
        seconds = time.monotonic() - begin
        harvest = actor.play(weights, assignment)
        begin = time.monotonic()
        own.take(0, harvest, None)
        seconds += time.monotonic() - begin
        own.end_step()
    return {
        "introduction": len(own.introduction()),
        "weights": len(weights),
        "assignment": len(assignment),
        "harvest": len(harvest),
        "hand": seconds,  # making the one and taking the other
    }


def learn(way: Way, program: str, seed: int, steps: int, settings: dict[str, str]) -> list[Row]:
    """What each step has behind it: positions, and how well the networks know returns and moves."""
    trainer = agents.MuZero(
        program, SETTINGS | settings | {"groups": way.actors}, seed=seed, threads=way.actors
    )
    rows, positions = [], 0
    with way.open(trainer):
        for _ in range(steps):
            progress = trainer.step()
            positions += progress["evaluations"]
            rows.append(
                {
                    "positions": positions,
                    "value error": progress["value_error"],
                    "policy loss": progress["policy_loss"],
                    "best game in µs": trainer.best_game().report.latency_ps / 1e6,
                }
            )
    return rows


def print_curves(program: str, seeds: int, steps: int, settings: dict[str, str]) -> None:
    """Whether actors that don't wait learn from as many positions as well as threads do."""
    names = ("value error", "policy loss", "best game in µs")
    print(f"{program}, seeds 0 to {seeds - 1}: the mean, least and most\n")
    print(f"| | positions | {' | '.join(names)} |")
    print("| --- | --: | --: | --: | --: |")
    for number in (WAYS.index(THREADS), WAYS.index(DONT_WAIT)):
        curves: list[list[Row]] = [
            apart("learn_number", number, program, seed, steps, settings) for seed in range(seeds)
        ]
        for step in (steps // 4, steps // 2, steps):
            rows = [curve[step - 1] for curve in curves]
            cells = []
            for name in names:
                found = [row[name] for row in rows]
                cells.append(
                    f"{statistics.mean(found):,.2f} ({min(found):,.2f} to {max(found):,.2f})"
                )
            positions = statistics.mean(row["positions"] for row in rows)
            print(f"| {WAYS[number].name} | {positions:,.0f} | {' | '.join(cells)} |", flush=True)


def apart(function: str, *arguments: Any) -> Any:
    """Calls a function of this file in a process of its own."""
    script = (
        f"import json, sys, actors; print(json.dumps(actors.{function}(*json.load(sys.stdin))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"from actors import Way\n{script}"],
        input=json.dumps(arguments),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])},
    )
    return json.loads(done.stdout.splitlines()[-1])


def run_number(number: int, program: str, seconds: float, settings: dict[str, str]) -> Any:
    """Runs a way by its place in WAYS."""
    return run(WAYS[number], program, seconds, settings)


def learn_number(number: int, *arguments: Any) -> Any:
    """Learns in a way by its place in WAYS."""
    return learn(WAYS[number], *arguments)


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("program", nargs="?", default=PROGRAM)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--config", nargs="+", default=[], metavar="KEY=VALUE")
    parser.add_argument("--curves", type=int, metavar="STEPS", help="of learning, instead")
    options = parser.parse_args()
    settings = dict(text.split("=", 1) for text in options.config)
    if options.curves is not None:
        print_curves(options.program, options.rounds, options.curves, settings)
        return
    found: list[list[Row]] = [[] for _ in WAYS]
    for _ in range(options.rounds):
        for number, way in enumerate(WAYS):
            one = apart("run_number", number, options.program, options.seconds, settings)
            found[number].append(one)
            print(f"{way.name}: {one['positions']:,.0f} positions/s", file=sys.stderr, flush=True)
    medians = [
        {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}
        for rounds in found
    ]
    size = apart("sizes", options.program, settings)
    alone = medians[0]
    play, learn, hand = alone["play"], alone["learn"], size["hand"]
    print(f"{options.program}, {options.rounds} rounds of {options.seconds:g} s\n")
    print("| | positions/s | of one thread | harvests/s | by the model | staleness |")
    print("| --- | --: | --: | --: | --: | --: |")
    for way, row in zip(WAYS, medians, strict=True):
        own = learn / way.actors + hand  # All groups of a step share its updates.
        model = min(way.actors / play, 1 / own, way.cores / (play + own))
        print(
            f"| {way.name} | {row['positions']:,.0f} | {row['positions'] / alone['positions']:.2f} "
            f"| {row['harvests']:.3f} | {model:.3f} | {row['staleness']:.0f} |"
        )
    down, up = size["weights"] + size["assignment"], size["harvest"]
    for line in (
        f"\nA harvest: {play:.2f} s of an actor, {hand:.3f} s of the learner to hand it out and "
        f"take it, and {learn:.3f} s for the updates of a step.",
        f"Bytes: weights {size['weights']:,.0f}, assignment {size['assignment']:,.0f}, harvest "
        f"{size['harvest']:,.0f}, introduction {size['introduction']:,.0f}.",
        f"Bytes a second of an actor: {down / play:,.0f} down, {up / play:,.0f} up.",
        "With a machine for each actor, the learner is busy with "
        f"{play / (learn + hand):.0f} actors at as many updates a harvest, with "
        f"{play / hand:,.0f} at as many a step, and its link of 1 Gbit/s is full with "
        f"{NETWORK / (max(down, up) / play):,.0f}.",
    ):
        print(line)


if __name__ == "__main__":
    main()
