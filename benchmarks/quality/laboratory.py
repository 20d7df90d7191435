"""Judges other pieces of XLA's allocator: the tables of docs/results/laboratory.md.

    python benchmarks/quality/laboratory.py [PROGRAM.mgp...]

The first table has the pieces that have a name, one at a time. The second asks whether it pays to
choose begins of prefetches with an eye on the heap (openxla/xla issue 45289): several penalties and
weights, with repacking and without. The weight is chosen on half of the corpus' models and judged
on the other half, and the other way round; then it is chosen on all of them and judged on the
programs given, which are not of the corpus. Prints Markdown; it takes about two minutes.
"""

import argparse
from collections.abc import Iterable, Sequence

import mallocgame as mg
from mallocgame import laboratory
from mallocgame.laboratory import Pieces, Trial, summarize
from mallocgame.programs import suite

WEIGHTS = (0.25, 0.5, 1, 2, 4, 8, 16, 32)
PENALTIES = ("fragmentation", "splinter", "crowding")
Trials = dict[str, Trial]  # by program


def judged(pieces: Pieces, programs: Iterable[mg.Program], baseline: Pieces) -> Trials:
    return {
        program.name + program.hardware.name: laboratory.judge(pieces, [program], baseline)[0]
        for program in programs
    }


def figures(trials: Sequence[Trial]) -> list[str]:
    total = summarize(trials)
    return [
        f"{total.ratio:.4f}",
        f"{total.low:.4f} to {total.high:.4f}",
        f"{total.faster} / {total.slower}",
    ]


def header(*columns: str) -> None:
    print("| " + " | ".join(columns) + " |\n| --- |" + " --: |" * (len(columns) - 1))


def row(*cells: str) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


def named_table(programs: Sequence[mg.Program], others: Sequence[mg.Program]) -> None:
    contended = set(suite("contended"))
    titles = ["contended", "95 %", "+ / -", "all", "95 %", "+ / -"]
    header("pieces", *titles, *(["others", "95 %", "+ / -"] if others else []))
    for piece, name, weighted, _ in laboratory.named_pieces():
        if name == "xla":
            continue
        text = f"{piece}={name}" + (":1" if weighted else "")
        trials = list(judged(Pieces.of(text), programs, laboratory.XLA).values())
        hard = [trial for trial in trials if trial.program in contended]
        cells = figures(hard) + figures(trials)
        if others:
            cells += figures(list(judged(Pieces.of(text), others, laboratory.XLA).values()))
        row(f"`{text}`", *cells)


def best_weight(by_weight: dict[float, Trials], keys: set[str]) -> float:
    """The weight with the least geometric mean over these programs; of equal ones the smallest."""
    return min(
        by_weight,
        key=lambda weight: (
            summarize([t for key, t in by_weight[weight].items() if key in keys]).ratio,
            weight,
        ),
    )


def penalty_table(programs: Sequence[mg.Program], others: Sequence[mg.Program]) -> None:
    models = sorted({program.name.partition(".")[0] for program in programs})
    halves: list[set[str]] = [set(), set()]
    for program in programs:
        half = models.index(program.name.partition(".")[0]) % 2
        halves[half].add(program.name + program.hardware.name)
    titles = [f"{weight:g}" for weight in WEIGHTS]
    titles += ["chosen", "judged unseen", "95 %", "+ / -", "best of all"]
    header("penalty", *titles, *(["others", "95 %", "+ / -"] if others else []))
    for retry in (None, "no-repacking"):
        baseline = Pieces(retry=retry)
        for penalty in PENALTIES:
            by_weight = {
                weight: judged(Pieces(begins=f"{penalty}:{weight}", retry=retry), programs, baseline)
                for weight in WEIGHTS
            }
            chosen = [best_weight(by_weight, half) for half in halves]
            unseen = [
                trial
                for half, weight in zip(reversed(halves), chosen, strict=True)
                for key, trial in by_weight[weight].items()
                if key in half
            ]
            oracle = [
                min((one[key] for one in by_weight.values()), key=lambda trial: trial.ratio)
                for key in halves[0] | halves[1]
            ]
            cells = [f"{summarize(list(one.values())).ratio:.4f}" for one in by_weight.values()]
            cells += [" and ".join(f"{weight:g}" for weight in chosen), *figures(unseen)]
            cells.append(f"{summarize(oracle).ratio:.4f}")
            if others:
                weight = best_weight(by_weight, halves[0] | halves[1])
                pieces = Pieces(begins=f"{penalty}:{weight}", retry=retry)
                cells += figures(list(judged(pieces, others, baseline).values()))
            row(f"{penalty}{', no repacking' if retry else ''}", *cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("others", nargs="*", metavar="PROGRAM.mgp")
    others = [mg.load_program(path) for path in parser.parse_args().others]
    programs = [mg.load_program(name) for name in suite("all")]
    named_table(programs, others)
    print()
    penalty_table(programs, others)


if __name__ == "__main__":
    main()
