"""Measures how well the twin of XLA's allocator knows what the compiler does with a request.

    python benchmarks/quality/twin.py [--requests 200] [--changes 40] [--settings | --alone]
        [--parted] PROGRAM...

PROGRAM is WORKLOAD.HARDWARE, as the bundled ones are called. Random requests of up to so many
changes (mallocgame/xla/imitation.py) are looked at, and each is given to the twin too. It prints
the rows of docs/results/xla-heuristic.md: XLA's own plan without a request; with requests the share
of accesses that are served from the same memory, the share of requests whose latency is the same to
within 0.5 %, and how often both refuse. With --settings the requests also set options of XLA's own
method; with --alone each sets one, to each value in turn, and says nothing of buffers. --parted
also says for each request the first buffer, in the order in which the twin decides them, that the
two place otherwise. Needs mallocgame[xla] and no TPU.
"""

import argparse
import random
import statistics
import sys
import time

import numpy as np

import mallocgame as mg
from mallocgame._core import plan_like_xla
from mallocgame.xla.captures import Capture, capture_module
from mallocgame.xla.compiler import Compiler, CompilerError
from mallocgame.xla.imitation import Directives, Imitation
from mallocgame.xla.lowering import lower
from mallocgame.xla.probe import Prober
from mallocgame.xla.settings import IMITATED, SETTINGS
from mallocgame.xla.sources import find_source
from mallocgame.xla.targets import bundled_target

CLOSE = 0.005  # share of the latency


def where_parted(capture: Capture, order: list[int], twin: mg.Plan, compiler: mg.Plan) -> str:
    """Returns the first buffer, in the order of decision, that two plans serve otherwise."""
    program = capture.program
    differs = (twin.served_by >= 0) != (compiler.served_by >= 0)
    others = set(program.accesses["buffer"][differs].tolist())
    for turn, buffer in enumerate(order):
        if buffer in others:
            first = np.flatnonzero(differs & (program.accesses["buffer"] == buffer))[0]
            place = "main memory" if twin.served_by[first] < 0 else "fast memory"
            return (
                f"turn {turn}: {program.buffer_names[buffer]} at tick "
                f"{program.accesses['tick'][first]}, which the twin has in {place}"
            )
    return "nowhere"


def own_plan(capture: Capture, imitation: Imitation) -> tuple[float, float]:
    """Returns the share of same accesses, and the ratio of latencies, without a request."""
    program = capture.program
    plan, _ = imitation.start.plan(mg.Game(program))
    same = (plan.served_by >= 0) == (capture.xla_plan.served_by >= 0)
    xla = mg.simulate(program, capture.xla_plan)
    return float(same.mean()), mg.simulate(program, plan).latency_ps / xla.latency_ps


def requests_of(
    program: mg.Program, arguments: argparse.Namespace
) -> tuple[Imitation, list[Directives]]:
    """Returns the requests, and what drew them."""
    imitation = Imitation(program, 0, arguments.seed)
    if arguments.settings:
        values = {name: SETTINGS[name] for name in IMITATED}
        imitation = Imitation(program, 0, arguments.seed, settings=values)
    if arguments.alone:
        alone = [{name: value} for name in IMITATED for value in SETTINGS[name]]
        return imitation, [imitation.start.with_settings(one) for one in alone]
    chance = random.Random(arguments.seed)
    changes = [chance.randint(1, arguments.changes) for _ in range(arguments.requests)]
    return imitation, [imitation.draw(count) for count in changes]


def row(name: str, arguments: argparse.Namespace) -> str:
    workload, hardware = name.split(".")
    title, function, shapes = find_source(workload)
    target = bundled_target(hardware)
    with Compiler(target) as compiler:
        capture = capture_module(lower(function, *shapes), target, title, compiler)
        prober = Prober(capture, compiler)
        program, game = capture.program, mg.Game(capture.program)
        imitation, requests = requests_of(program, arguments)
        same: list[float] = []
        ratios: list[float] = []
        refused = both = 0
        seconds = 0.0
        for number, directives in enumerate(requests):
            begin = time.monotonic()
            plan, not_granted = directives.plan(game)
            seconds += time.monotonic() - begin
            options = directives.request(program, capture.default.before).options()
            try:
                answer = capture.plan_of(prober.compile(capture.check_can_compile(), options))
            except CompilerError:  # It ends at some requests instead of refusing them.
                refused += 1
                both += bool(not_granted)
                continue
            same.append(float(np.mean((plan.served_by >= 0) == (answer.served_by >= 0))))
            latencies = [mg.simulate(program, one).latency_ps for one in (plan, answer)]
            ratios.append(latencies[0] / latencies[1])
            if arguments.parted and same[-1] < 1:
                order = plan_like_xla(game, order=list(directives.order))[2]
                parted = where_parted(capture, order, plan, answer)
                print(
                    f"{name} {number}: {100 * same[-1]:.1f} % the same; {parted}", file=sys.stderr
                )
        own_same, own_ratio = own_plan(capture, imitation)
        close = statistics.mean(abs(ratio - 1) <= CLOSE for ratio in ratios) if ratios else 0
        cells = [
            f"`{name}`",
            f"{100 * own_same:.1f} %",
            f"{own_ratio:.3f}",
            f"{100 * statistics.median(same):.1f} %" if same else "–",
            f"{100 * min(same):.1f} %" if same else "–",
            f"{100 * close:.0f} %",
            f"{both} of {refused}",
            f"{len(requests) / seconds:.0f}",
        ]
        return "| " + " | ".join(cells) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="+", metavar="PROGRAM")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--changes", type=int, default=40, help="the most in one request")
    settings = parser.add_mutually_exclusive_group()
    settings.add_argument("--settings", action="store_true", help="set options of XLA's too")
    settings.add_argument("--alone", action="store_true", help="set one option of XLA's each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parted", action="store_true")
    arguments = parser.parse_args()
    columns = ("program", "own: same", "own: ratio", "same, median", "least", "close", "refused")
    print("| " + " | ".join((*columns, "a second")) + " |\n| --- |" + " --: |" * len(columns))
    for name in arguments.programs:
        print(row(name, arguments), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
