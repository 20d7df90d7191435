"""Solvers against each other and against XLA, on several programs.

.ci/setup plot    # for the picture
python examples/compare.py [SECONDS] [PROGRAM ...]
"""

import math
import sys

import mallocgame as mg
from mallocgame import plots

SOLVERS = ["greedy", "rent", "anneal"]


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    names = sys.argv[2:] or [
        "resnet50_b1.tpu_v4i_16mib",
        "mlp_train_adam_b512.tpu_v5e",
        "wavernn_64steps_b8.tpu_v4i",
    ]
    rows = []
    speedups: dict[str, list[float]] = {solver: [] for solver in SOLVERS}
    print(f"{'program':34}" + "".join(f"{solver:>12}" for solver in SOLVERS) + f"{'XLA':>12}")
    for name in names:
        program = mg.load_program(name)
        bound_ps = mg.bounds.bound(program).bound_ps
        assert program.xla_plan is not None, "every bundled program has XLA's own plan"
        xla_ps = mg.simulate(program, program.xla_plan).latency_ps
        cells = []
        for solver in SOLVERS:
            result = mg.solve(program, solver=solver, seconds=seconds)
            assert mg.validate(program, result.plan)
            latency_ps = result.report.latency_ps
            rows.append(
                {"program": name, "solver": solver, "latency_ps": latency_ps, "bound_ps": bound_ps}
            )
            speedups[solver].append(xla_ps / latency_ps)
            cells.append(f"{latency_ps / 1e6:>9,.1f} us")
        rows.append({"program": name, "solver": "XLA", "latency_ps": xla_ps, "bound_ps": bound_ps})
        print(f"{name:34}" + "".join(cells) + f"{xla_ps / 1e6:>9,.1f} us")
    means = (math.exp(sum(map(math.log, ratios)) / len(ratios)) for ratios in speedups.values())
    print(f"{'times faster than XLA (geomean)':34}" + "".join(f"{mean:>12.3f}" for mean in means))
    plots.save_comparison("compare.png", rows, [*SOLVERS, "XLA"])
    print("written: compare.png; static estimates, not measurements on a chip")


if __name__ == "__main__":
    main()
