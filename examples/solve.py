"""Let a solver find a plan, have it judged, see where its time goes, keep it, and draw it.

python examples/solve.py [PROGRAM] [SOLVER] [SECONDS]
"""

import sys

import mallocgame as mg
from mallocgame import viewer


def main() -> None:
    program = mg.load_program(sys.argv[1] if len(sys.argv) > 1 else "resnet50_b1.tpu_v4i_16mib")
    solver = sys.argv[2] if len(sys.argv) > 2 else "anneal"
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 10.0

    result = mg.solve(
        program,
        solver=solver,
        seconds=seconds,
        seed=0,
        progress=lambda at, latency_ps: print(
            f"  {latency_ps / 1e6:,.2f} us after {at:.2f} s", end="\r"
        ),
    )
    print()
    verdict = mg.validate(program, result.plan)
    report, bound = result.report, mg.bounds.bound(program)
    print(
        f"{program.name}, {solver}: {report.latency_ps / 1e6:,.2f} us, "
        f"{'valid' if verdict else verdict.message}"
    )
    print(
        f"waits {report.stall_ps / 1e6:,.2f} us, "
        f"prefetches {report.prefetched_bytes / 2**20:.1f} MiB, "
        f"at most {100 * (report.latency_ps / bound.bound_ps - 1):.1f} % "
        "above the best plan there is"
    )

    waits = report.stall_at_ps
    for tick in sorted(range(program.ticks), key=lambda tick: -waits[tick])[:3]:
        if waits[tick]:
            print(f"  waits {waits[tick] / 1e6:.2f} us before {program.instruction_names[tick]}")

    mg.save_plan(result.plan, program, "plan.json")
    viewer.write_page("plan.html", result.plan, program, against=program.xla_plan, label=solver)
    print("written: plan.json, plan.html")


if __name__ == "__main__":
    main()
