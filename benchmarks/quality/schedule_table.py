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

import functools
import pathlib
import statistics
import sys
from typing import Any

import mallocgame as mg
from mallocgame import experiments as ex

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


BOUND = "bounds"


def measure(program: str, method: str, seed: int, sources: dict[str, str], seconds: float) -> dict:
    loaded = mg.load_program(sources[program])
    if method == BOUND:
        assert loaded.xla_plan is not None, "every bundled program has XLA's own plan"
        bounds = {bound: mg.bounds.bound(loaded, bound).bound_ps for bound in BOUNDS}
        return bounds | {"xla_ps": mg.simulate(loaded, loaded.xla_plan).latency_ps}
    result = mg.solve(loaded, seconds=seconds, seed=seed, **METHODS[method])
    return {
        "latency_ps": result.report.latency_ps,
        "latency_cold_ps": result.report.latency_cold_ps,
        "valid": bool(mg.validate(result.program, result.plan)),
        "main_bytes": result.program.main_memory["total_bytes"],
        "own_main_bytes": loaded.main_memory["total_bytes"],
        "seconds": round(result.seconds, 1),
    }


def table(rows: list[ex.Row]) -> tuple[ex.Table, dict[str, list[float]]]:
    """Returns the table, and by how much each order gains over portfolio."""
    heads = ("program", "XLA, µs", "portfolio", "order", "spread", "schedule game")
    made = ex.Table((*heads, "bound", "any order", "main memory"))
    gains: dict[str, list[float]] = {"order": [], "schedule game": []}
    for name, several in ex.grouped(rows, "program").items():
        own = ex.grouped(several, "method")
        (ends,) = own.pop(BOUND)
        found = {method: [row["latency_ps"] for row in of] for method, of in own.items()}
        medians = {method: statistics.median(several) for method, several in found.items()}
        shares = {method: f"{one / ends['xla_ps']:.3f}" for method, one in medians.items()}
        spread = max(found["order"]) / min(found["order"]) - 1
        most = max(row["main_bytes"] for method in gains for row in own[method])
        made.add(
            f"`{name}`",
            f"{ends['xla_ps'] / 1e6:,.1f}",
            shares["portfolio"],
            shares["order"],
            f"{100 * spread:.1f} %",
            shares["schedule game"],
            *(f"{ends[bound] / ends['xla_ps']:.3f}" for bound in BOUNDS),
            f"{most / own['order'][0]['own_main_bytes']:.3f}",
        )
        for method, values in gains.items():
            values.append(medians["portfolio"] / medians[method])
    return made, gains


def main(
    bench: ex.Bench, *programs: str, seconds: float = 60, seeds: tuple[int, ...] = (0, 1, 2)
) -> None:
    sources = {pathlib.Path(one).name.removesuffix(".mgp"): one for one in programs or PROGRAMS}
    grid = ex.Grid(program=sources, method=[BOUND, *METHODS], seed=seeds)
    grid = grid.where(lambda method, seed, **_: method == "order" or seed == seeds[0])
    work = functools.partial(measure, sources=sources)
    rows = bench.run(work, grid, settings={"seconds": seconds})
    made, gains = table(rows)
    print(made, end="\n\n")
    for method, values in gains.items():
        mean = statistics.geometric_mean(values)
        better = sum(value > 1.001 for value in values)
        print(
            f"{method}: geometric mean over portfolio {mean:.4f}; better on {better} of "
            f"{len(values)} programs"
        )
    wrong = [
        f"{row['program']}, {row['method']}: "
        + ("an invalid plan" if not row["valid"] else "more main memory than XLA's order")
        for row in rows
        if row["method"] != BOUND
        and (not row["valid"] or row["main_bytes"] > row["own_main_bytes"])
    ]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    ex.main(main)
