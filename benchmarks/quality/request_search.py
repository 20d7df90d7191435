"""How fast the requests are that a search finds, as the twin of XLA's allocator tells it.

    python benchmarks/quality/request_search.py [--seconds 10] [--seeds 0,1,2] PROGRAM...

For each program it prints, as speed-ups over XLA's own plan in the mean of warm and cold latency:
the best plan of `portfolio` that XLA could be asked for, the best request of an annealing that
begins with XLA's own, and of one that begins near that plan. All settings that the twin knows are
taken to be right. What is left between plan and requests is what requests can't say, or what the
time is too short for. It needs no compiler.
"""

import argparse
import statistics
import sys

import mallocgame as mg
from mallocgame.xla.claims import cost_ps
from mallocgame.xla.imitation import Imitation
from mallocgame.xla.settings import IMITATED, SETTINGS

_SOLVER_SECONDS = 8.0


def speedups(name: str, seconds: float, seed: int) -> tuple[float, float, float]:
    """Returns those of the plan, and of the requests from XLA's own and from near the plan."""
    program = mg.load_program(name)
    assert program.xla_plan is not None, "every bundled program has XLA's own plan"
    game, xla = mg.Game(program), mg.simulate(program, program.xla_plan)
    askable = mg.Game(program, hardware=program.hardware.replace(askable=True))
    plan = mg.solve(askable, "portfolio", seconds=_SOLVER_SECONDS, seed=seed).plan
    settings = {setting: SETTINGS[setting] for setting in IMITATED}

    def found(near: mg.Plan | None) -> float:
        imitation = Imitation(program, xla.latency_cold_ps, seed, settings=settings)
        start = imitation.start if near is None else imitation.near(game, near)
        best = imitation.search(program, start, seconds)
        return cost_ps(xla) / imitation.cost(game, best)

    return cost_ps(xla) / cost_ps(mg.simulate(program, plan)), found(None), found(plan)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="of each search")
    parser.add_argument("--seeds", default="0,1,2", help="separated by commas")
    parser.add_argument("programs", metavar="PROGRAM", nargs="+")
    options = parser.parse_args()
    seeds = [int(seed) for seed in options.seeds.split(",")]
    print("| program | plan | from XLA's | from near the plan |\n| --- | --: | --: | --: |")
    columns: list[list[float]] = [[], [], []]
    for name in options.programs:
        rows = [speedups(name, options.seconds, seed) for seed in seeds]
        cells = []
        for values, column in zip(zip(*rows, strict=True), columns, strict=True):
            column.append(statistics.geometric_mean(values))
            cells.append(f"{column[-1]:.4f} ({min(values):.4f} to {max(values):.4f})")
        print(f"| `{name}` | {' | '.join(cells)} |", flush=True)
    means = [f"{statistics.geometric_mean(column):.4f}" for column in columns]
    print(f"| geometric mean | {' | '.join(means)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
