"""Computes the figures that pages quote, from the kept tables and the package.

    python benchmarks/quality/headline.py

prints each with its name. tests/python/figures_test.py compares the pages with them. Speed-ups are
geometric means over programs and over *models*: the programs of one workload, for several chips and
sizes of fast memory, count once.
"""

import csv
import json
import pathlib
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

import numpy as np

import mallocgame as mg
from mallocgame import experiments as ex
from mallocgame.level_sets.splits import VARIANTS
from mallocgame.programs import suite

TABLES = pathlib.Path(__file__).parent / "tables"
SUITES = pathlib.Path(mg.__file__).parent / "programs/suites.json"
Row = dict[str, str]


def rows_of(table: str) -> list[Row]:
    """The rows of a kept table."""
    with open(TABLES / f"{table}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def model_of(program: str) -> str:
    """The workload of a program, without its chip."""
    return program.partition(".")[0]


def column(rows: Iterable[Row], name: str) -> dict[str, float]:
    """The numbers of a column by program, without those that are missing."""
    return {row["program"]: float(row[name]) for row in rows if row[name] not in ("", "–")}


def by_model(speedups: dict[str, float]) -> float:
    """The geometric mean over models of those over their programs."""
    models = defaultdict(list)
    for program, speedup in speedups.items():
        models[model_of(program)].append(speedup)
    return statistics.geometric_mean(map(statistics.geometric_mean, models.values()))


def outlier(program: str) -> bool:
    """Whether it is of the four that gain more than a half."""
    return program.startswith("wavernn") or program == "llama_1b_decode_8l_b4_kv1024.tpu_v4i"


def of_speedups(name: str, speedups: dict[str, float]) -> dict[str, float]:
    """The usual figures of a column."""
    return {
        name: statistics.geometric_mean(speedups.values()),
        f"{name}_median": statistics.median(speedups.values()),
        f"{name}_models": by_model(speedups),
        f"{name}_least": min(speedups.values()),
        f"{name}_most": max(speedups.values()),
        f"{name}_n": len(speedups),
        f"{name}_models_n": len({*map(model_of, speedups)}),
    }


def of_solvers() -> dict[str, float]:
    """What `portfolio` reaches in the model."""
    contended, others = rows_of("solver_table_contended"), rows_of("solver_table_others")
    cold, warm = (column(contended, f"portfolio 30 s {how}") for how in ("cold", "warm"))
    figures = of_speedups("plans_cold", cold) | of_speedups("plans_warm", warm)
    figures["plans_farthest"] = max(abs(cold[name] - warm[name]) for name in cold)
    for how in ("cold", "warm"):
        figures |= of_speedups(f"others_{how}", column(others, f"portfolio {how}"))
    return figures


def of_tuned() -> dict[str, float]:
    """What the compiler links."""
    rows, cloud = rows_of("tune_table_contended"), rows_of("tune_table_cloud_both")
    figures: dict[str, float] = {}
    for how in ("cold", "warm"):
        for name, heading in (("tuned", "speed-up"), ("calibrated", "calibrated")):
            speedups = column(rows, f"{heading} {how}")
            rest = {program: one for program, one in speedups.items() if not outlier(program)}
            figures |= of_speedups(f"{name}_{how}", speedups)
            figures |= of_speedups(f"{name}_rest_{how}", rest)
            figures |= of_speedups(f"cloud_{name}_{how}", column(cloud, f"{heading} {how}"))
        sharded = column(rows_of("tune_table_sharded"), f"tuned {how}")
        figures |= of_speedups(f"sharded_{how}", sharded)
    wave = column(rows, "speed-up cold") | column(cloud, "speed-up cold")
    return figures | {
        f"wavernn_{name.partition('.')[2]}": one
        for name, one in wave.items()
        if name.startswith("wavernn")
    }


def of_headroom() -> dict[str, float]:
    """How often `tune` gained more, warm, than the bound at the bundled prices left."""
    rows = [row for name in ("cloud", "sharded") for row in rows_of(f"tune_table_{name}")
            if row["tuned warm"] != "–"]  # fmt: skip
    left = {row["program"]: float(row["left"].rstrip("%")) / 100 for row in rows}
    gain = {row["program"]: float(row["tuned warm"]) - 1 for row in rows}
    little = [name for name in left if left[name] < 0.02]
    return {
        "exceeded": sum(gain[name] > left[name] for name in left),
        "exceeded_of": len(left),
        "little_left": len(little),
        "little_left_but_gained": sum(gain[name] >= 0.02 for name in little),
    }


def proven_share(name: str) -> float:
    """What a bound is that is proven for every placement, in per cent of XLA's latency.

    Instructions count that are priced under all placements, with the least of their prices. Any
    price that nobody asked for may be 0.
    """
    program = mg.load_program(name)
    pools, trips = program.pools, program.instructions["trips"]
    accesses = program.accesses
    movable = program.buffers["eligible"][accesses["buffer"]]
    choices = 1 << np.bincount(accesses["tick"][movable], minlength=program.ticks)
    cycles = 0
    for tick, pool in enumerate(program.pool_of):
        if pool >= 0 and len(pools[pool][2]) >= choices[tick]:
            cycles += min(row[2] for row in pools[pool][2]) * int(trips[tick])
    assert program.xla_plan is not None, "bundled programs have one"
    xla = mg.simulate(program, program.xla_plan).latency_ps
    return 100 * cycles / program.hardware.clock_hz * 1e12 / xla


def of_proof() -> dict[str, float]:
    """How little can be proven for every placement that a plan could use."""
    shares = [proven_share(name) for name in (*suite("cloud"), *suite("sharded"))]
    return {"proven_share": statistics.median(shares), "proven_n": len(shares)}


def of_bounds() -> dict[str, float]:
    """What XLA leaves by `lp`, in per cent: contended programs and the other core ones."""
    bounds = json.loads(SUITES.read_text())["programs"]

    def left(chosen: Iterable[str]) -> list[float]:
        return sorted(100 * (bounds[name]["xla_ps"] / bounds[name]["lp_ps"] - 1) for name in chosen)

    contended = suite("contended")
    others = [name for name in suite("core") if name not in contended]
    return {
        "contended_left_least": left(contended)[0],
        "contended_left_below_3": sum(one < 3 for one in left(contended)),
        "others_left_most": left(others)[-1],
        "others_left_2": sum(one >= 2 for one in left(others)),
    }


def of_predictor() -> dict[str, float]:
    """How far predicted prices are off, in per cent, over the programs without WaveRNN."""
    rows = [row for row in rows_of("predictor") if not row["program"].startswith("wavernn")]
    names = [name for name in rows[0] if name != "program"]
    figures: dict[str, float] = {"predictor_n": len(rows)}
    for name in names:
        try:
            figures[f"predictor {name}"] = statistics.mean(float(row[name].rstrip("%"))
                                                           for row in rows)  # fmt: skip
        except ValueError:
            continue
    return figures


def of_package() -> dict[str, float]:
    """Counts of programs and levels."""
    names, contended = mg.program_names(), suite("contended")
    splits = {split: mg.levels(split) for split in ("train", "validation", "test")}
    variants = Counter(level.program_name for level in splits["train"])
    whole = sum(count == len(VARIANTS) for count in variants.values())
    programs = {level.program_name for levels in splits.values() for level in levels}
    return {
        "problems": len(names),
        "models": len({*map(model_of, names)}),
        "core": len(suite("core")),
        "cloud": len(suite("cloud")),
        "sharded": len(suite("sharded")),
        "contended": len(contended),
        "contended_v4i": sum(".tpu_v4i" in name for name in contended),
        "contended_models": len({*map(model_of, contended)}),
        "uncontended": len(names) - len(contended),
        "levels": sum(map(len, splits.values())),
        "train_levels": len(splits["train"]),
        "validation_levels": len(splits["validation"]),
        "test_levels": len(splits["test"]),
        "train_programs": len(variants),
        "whole_programs": whole,
        "part_programs": len(variants) - whole,
        "least_variants": min(variants.values()),
        "most_part_variants": max(count for count in variants.values() if count < len(VARIANTS)),
        "known_programs": len(programs & {*names}),
        "drawn_programs": len(programs - {*names}),
        "schedule_levels": len(mg.levels("schedule")),
    }


PARTS: tuple[Callable[[], dict[str, float]], ...] = (
    of_solvers,
    of_tuned,
    of_headroom,
    of_proof,
    of_bounds,
    of_predictor,
    of_package,
)


# The rows of README's table; its columns are means, means by model and medians.
HEADLINES = ("plans", "others", "tuned", "tuned_rest", "cloud_tuned")


def figures() -> dict[str, float]:
    """All figures by their names."""
    found = {name: value for part in PARTS for name, value in part().items()}
    for name, ends in (("means_farthest", ("", "_models")), ("medians_farthest", ("_median",))):
        found[name] = max(
            abs(found[f"{row}_cold{end}"] - found[f"{row}_warm{end}"])
            for row in HEADLINES
            for end in ends
        )
    return found


def main() -> None:
    for name, value in figures().items():
        print(f"{name}: {value}" if isinstance(value, int) else f"{name}: {value:.4f}")


if __name__ == "__main__":
    ex.main(main)
