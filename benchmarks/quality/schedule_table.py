"""Makes the table of orders of instructions: what deciding the order is worth, by seed.

    python benchmarks/quality/schedule_table.py FOLDER [--seconds 60] [--seeds 3] [PROGRAM ...]

Each PROGRAM, the name of a bundled one or a file, is solved at XLA's order (`portfolio`, one seed),
with the order searched (`portfolio` with order=True, --seeds) and in the schedule game (`mcts`, one
seed). FOLDER keeps each answer, so that this can be interrupted and goes on where it stopped. Then
the table is printed: latencies as shares of XLA's own plan, the median of the seeds and their
spread; the bound of XLA's order and that of any order; and main memory as a share of what XLA's
order needs. Every plan is validated at its order. Nothing else should run on its cores. Exits 1 if
a plan is invalid, or an order needs more main memory.
"""

import argparse
import json
import math
import pathlib
import statistics
import sys
from typing import Any

import mallocgame as mg

MLP, LLAMA = "mlp_train_adam_b512", "llama_1b_decode_8l_b4_kv1024"
PAGED = "llama_3b_paged_decode_4l_b16_kv1024"
PROGRAMS = (
    f"{MLP}.tpu_v6e",
    f"{LLAMA}.tpu_v5p",
    f"{MLP}.tpu7x",
    "muzero_unroll_b32.tpu_v4i_16mib",
    f"{MLP}.tpu_v5e",
    f"{MLP}.tpu_v4i_16mib",
    "alphatensor_b4.tpu_v4i",
    "transformer_train_4l_b8_s256.tpu_v4i",
    "moe_transformer_2l_b4_s128.tpu_v4i",
    f"{LLAMA}.tpu_v4i",
    f"{LLAMA}.tpu_v5e",
    f"{LLAMA}.tpu_v6e",
    f"{PAGED}.tpu_v5e",
    f"{PAGED}.tpu_v6e",
    "llama_3b_splash_prefill_2l_s1024.tpu_v6e",
    "resnet50_b64.tpu_v4i",
)
METHODS: dict[str, dict[str, Any]] = {
    "portfolio": {"solver": "portfolio"},
    "order": {"solver": "portfolio", "order": True},
    "schedule game": {"solver": "mcts", "game": "schedule"},
}
BOUNDS = ("lp", "any-order")


def measure(program: mg.Program, method: str, seconds: float, seed: int) -> dict:
    """The row of one method and seed."""
    result = mg.solve(program, seconds=seconds, seed=seed, **METHODS[method])
    return {
        "latency_ps": result.report.latency_ps,
        "latency_cold_ps": result.report.latency_cold_ps,
        "valid": bool(mg.validate(result.program, result.plan)),
        "main_bytes": result.program.main_memory["total_bytes"],
        "own_main_bytes": program.main_memory["total_bytes"],
        "seconds": round(result.seconds, 1),
    }


def kept(path: pathlib.Path, make) -> dict:
    """What the file has, which is made if it isn't there."""
    if not path.exists():
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(make()) + "\n")
        partial.rename(path)
    return json.loads(path.read_text())


def table(names: list[str], rows: dict, ends: dict) -> list[str]:
    """The lines of the table, and the geometric means."""
    lines = [
        "| program | XLA, µs | portfolio | order | spread | schedule game "
        "| bound | any order | main memory |",
        "| --- |" + " --: |" * 8,
    ]
    gains: dict[str, list[float]] = {"order": [], "schedule game": []}
    for name in names:
        xla = ends[name]["xla_ps"]
        cells = [f"`{name}`", f"{xla / 1e6:,.1f}"]
        medians = {}
        for method in METHODS:
            found = [row["latency_ps"] for row in rows[name][method]]
            medians[method] = statistics.median(found)
            cells.append(f"{medians[method] / xla:.3f}")
            if method == "order":
                cells.append(f"{100 * (max(found) / min(found) - 1):.1f} %")
        cells += [f"{ends[name][bound] / xla:.3f}" for bound in BOUNDS]
        most = max(row["main_bytes"] for method in gains for row in rows[name][method])
        cells.append(f"{most / rows[name]['order'][0]['own_main_bytes']:.3f}")
        lines.append(f"| {' | '.join(cells)} |")
        for method, values in gains.items():
            values.append(medians["portfolio"] / medians[method])
    lines.append("")
    for method, values in gains.items():
        mean = math.exp(statistics.fmean(map(math.log, values)))
        better = sum(value > 1.001 for value in values)
        lines.append(
            f"{method}: geometric mean over portfolio {mean:.4f}; better on {better} of "
            f"{len(values)} programs"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("programs", nargs="*", default=PROGRAMS)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_intermixed_args()
    options.folder.mkdir(parents=True, exist_ok=True)

    rows: dict[str, dict[str, list[dict]]] = {}
    ends: dict[str, dict[str, int]] = {}
    names = [pathlib.Path(source).name.removesuffix(".mgp") for source in options.programs]
    for name, source in zip(names, options.programs, strict=True):
        program = mg.load_program(source)
        ends[name] = kept(
            options.folder / f"{name}.bounds.json",
            lambda program=program: (
                {bound: mg.bounds.bound(program, bound).bound_ps for bound in BOUNDS}
                | {"xla_ps": mg.simulate(program, program.xla_plan).latency_ps}
            ),
        )
        rows[name] = {}
        for method in METHODS:
            rows[name][method] = []
            for seed in range(options.seeds if method == "order" else 1):
                path = f"{name}.{method.replace(' ', '-')}.{options.seconds:g}s.{seed}.json"
                rows[name][method].append(
                    kept(
                        options.folder / path,
                        lambda program=program, method=method, seed=seed: measure(
                            program, method, options.seconds, seed
                        ),
                    )
                )
        print(f"{name} done", file=sys.stderr)
    print("\n".join(table(names, rows, ends)))
    wrong = [
        f"{name}, {method}: "
        + ("an invalid plan" if not row["valid"] else "more main memory than XLA's order")
        for name, methods in rows.items()
        for method, found in methods.items()
        for row in found
        if not row["valid"] or row["main_bytes"] > row["own_main_bytes"]
    ]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
