"""Measures what settings of XLA's own method are worth, by looks.

    python benchmarks/quality/settings_table.py FOLDER [--seconds S] [--preloads N]
        [--jobs 1 | --ray ADDRESS] [PROGRAM...]

For each program every value of mallocgame.xla.settings is tried alone. Up to six placements that
may be faster are compiled for their prices. Then Climb.settle() searches for S seconds at most, and
what it finds is compiled whole. PROGRAM is WORKLOAD.HARDWARE, as the
bundled ones are called; all of the contended suite, and some that aren't in the corpus, if none is
given. Answers are kept in FOLDER, so that it can be interrupted and goes on where it stopped. Then
the tables of docs/results/settings.md are printed. Needs mallocgame[xla] and no TPU. Exits 1 if a
program has no looks, or what was found is slower than XLA's default.
"""

import argparse
import collections
import contextlib
import functools
import json
import math
import pathlib
import statistics
import sys
import time

from mallocgame._cli.parser import add_workers, workers
from mallocgame._core import validate
from mallocgame._jobs import run_jobs
from mallocgame.errors import MallocGameError
from mallocgame.programs import suite
from mallocgame.xla.captures import capture_module
from mallocgame.xla.climb import Climb
from mallocgame.xla.compiler import Compiler
from mallocgame.xla.lowering import lower
from mallocgame.xla.negotiate import Outcome
from mallocgame.xla.overrides import as_xla_does
from mallocgame.xla.probe import Probe, Prober, find_main_memory, most_doubtful
from mallocgame.xla.settings import PRELOADS, SETTINGS
from mallocgame.xla.sources import find_source
from mallocgame.xla.targets import bundled_target

MORE = (
    "gnn_meshgraph_4k.tpu_v6e",
    "moe_transformer_2l_b4_s128.tpu_v6e",
    "muzero_unroll_b32.tpu_v6e",
    "transformer_train_4l_b8_s256.tpu_v5e",
    "wavernn_64steps_b8.tpu_v6e",
    "whisper_tiny_b1.tpu_v5e",
    "whisper_tiny_b1.tpu_v6e",
)
PRICED = 6  # the most placements that are compiled for their prices
LEAST = 1.0005  # a speed-up that counts as one


def measure(program: str, seconds: float, preloads: int | None) -> dict:
    """Returns the row of a program. MallocGameError: it has no looks."""
    workload, hardware = program.split(".")
    name, function, arguments = find_source(workload)
    target = bundled_target(hardware, preloads)
    with Compiler(target) as compiler:
        one = capture_module(lower(function, *arguments), target, name, compiler)
        prober = Prober(one, compiler)
        if isinstance(find_main_memory(one, compiler), str):
            raise MallocGameError(f"{program} has no looks")
        default = Probe(one.program, one.xla_plan, as_xla_does(one.program))
        report = default.report
        most = report.latency_ps, report.latency_cold_ps
        climb = Climb(one, prober, default, most, seed=0)
        alone = {}
        for setting, values in SETTINGS.items():
            for value in values:
                if setting == PRELOADS and int(value) > one.program.hardware.max_preloads:
                    continue
                probe = climb.ask(default.request.having(setting, value))
                if probe is not None and validate(probe.program, probe.plan).ok:
                    alone[f"{setting}={value}"] = probe
        done: list[Outcome] = []
        for _ in range(PRICED):  # Else what is placed as never before has no good price.
            probe = most_doubtful(alone.values(), fastest(done, most)[0])
            if probe is None:
                break
            done.append(prober.verify(one, probe))
            one = one.with_prices([done[-1].compiled])
            alone = {setting: probe.priced_by(one) for setting, probe in alone.items()}
        allowed = [
            probe for probe in (default.priced_by(one), *alone.values()) if not probe.exceeds(most)
        ]
        climb = Climb(one, prober, min(allowed, key=lambda probe: probe.cost), most, seed=0)
        begin, looks = time.monotonic(), compiler.looks
        climb.settle(begin + seconds)
        searched, looks = time.monotonic() - begin, compiler.looks - looks
        done.append(prober.verify(one, climb.best))
        verified = fastest(done, most)
        return {
            "alone": {
                setting: None if probe.exceeds(most) else most[0] / probe.report.latency_ps
                for setting, probe in alone.items()
            },
            "looks": looks,
            "seconds": searched,
            "xla_ps": most[0],
            "looked_at": most[0] / climb.best.report.latency_ps,
            "verified": most[0] / verified[0],
            "verified_cold": most[1] / verified[1],
            "settings": dict(climb.best.request.settings),
        }


def attempt(seconds: float, preloads: int | None, program: str) -> dict | str:
    """Returns the row of a program, or why there is none."""
    try:
        return measure(program, seconds, preloads)
    except MallocGameError as error:
        return str(error)


def fastest(done: list[Outcome], most: tuple[int, int]) -> tuple[int, int]:
    """Returns the latencies of the fastest outcome that exceeds nothing, `most` if none does."""
    latencies = [(one.verified_ps, one.verified_cold_ps) for one in done]
    return min([most, *(one for one in latencies if one[0] <= most[0] and one[1] <= most[1])])


def print_tables(rows: dict[str, dict]) -> None:
    print("| program | best alone | which | all | verified | cold | looks | s |")
    print("| --- | --: | --- | --: | --: | --: | --: | --: |")
    for name, row in rows.items():
        alone = {setting: gain or 1.0 for setting, gain in row["alone"].items()}
        first = max(alone, key=alone.__getitem__)
        which = f"`{short(first)}`" if alone[first] > LEAST else "–"
        print(
            f"| `{name}` | {alone[first]:.3f} | {which} | {row['looked_at']:.3f} | "
            f"{row['verified']:.3f} | {row['verified_cold']:.3f} | {row['looks']} | "
            f"{row['seconds']:.0f} |"
        )
    means = [
        math.exp(statistics.fmean(math.log(value(row)) for row in rows.values()))
        for value in (
            lambda row: max([1.0, *(gain for gain in row["alone"].values() if gain)]),
            lambda row: row["looked_at"],
            lambda row: row["verified"],
            lambda row: row["verified_cold"],
        )
    ]
    print("| geometric mean | {:.3f} | | {:.3f} | {:.3f} | {:.3f} | | |\n".format(*means))
    print("| setting | programs faster | geometric mean | most | values that were of use |")
    print("| --- | --: | --: | --: | --- |")
    for name in SETTINGS:
        best: dict[str, float] = {}
        useful: collections.Counter[str] = collections.Counter()
        for program, row in rows.items():
            for setting, gain in row["alone"].items():
                if setting.partition("=")[0] == name and gain and gain > LEAST:
                    best[program] = max(best.get(program, 1.0), gain)
                    useful[short(setting).partition("=")[2]] += 1
        mean = math.exp(sum(math.log(gain) for gain in best.values()) / len(rows))
        values = ", ".join(f"{value} ({count})" for value, count in useful.most_common())
        print(
            f"| `{name}` | {len(best)} | {mean:.4f} | {max([1.0, *best.values()]):.3f} | {values} |"
        )


def short(setting: str) -> str:
    """Returns a setting in few words: only the eagerness of an override says anything."""
    name, _, value = setting.partition("=")
    eagerness = value.partition("prefetch_eagerness: ")[2].split(" ")[0]
    return f"{name}={eagerness or value}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument(
        "--preloads", type=int, help="the most that plans may have; one, if not given"
    )
    add_workers(parser, 1, "programs side by side (1)")
    options = parser.parse_intermixed_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    programs = options.programs or [*suite("contended"), *MORE]
    paths = {program: options.folder / f"{program}.json" for program in programs}
    missing = [program for program, path in paths.items() if not path.exists()]
    attempted = functools.partial(attempt, options.seconds, options.preloads)
    with (
        workers(options, here=True) as several,
        contextlib.closing(run_jobs(attempted, missing, several)) as finished,
    ):
        for program, row in finished:
            if isinstance(row, str):
                print(f"{program}: {row}", file=sys.stderr)
            else:
                paths[program].write_text(json.dumps(row, indent=1) + "\n")
    rows = {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}
    failed = len(rows) < len(paths) or any(
        min(row["verified"], row["verified_cold"]) < 1 for row in rows.values()
    )
    if rows:
        print_tables(rows)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
