"""Judges other pieces of XLA's allocator: the tables of docs/results/laboratory.md.

    python benchmarks/quality/laboratory.py [PROGRAM.mgp...]

The first table has the pieces that have a name, one at a time. The others ask whether it pays to
choose begins of prefetches with an eye on the heap (openxla/xla issue 45289): several penalties and
weights, with repacking and without. The weight is chosen on half of the models of the core suite
and judged on the other half, and the other way round; then it is chosen on all of them and judged
on the programs given, or on the suites cloud and sharded. The last two tables say how many
prefetches the penalties move, and what XLA's own begins find. Prints Markdown; it takes some
minutes.
"""

import argparse
from collections.abc import Iterable, Sequence

import mallocgame as mg
from mallocgame import laboratory
from mallocgame._core import PREFETCH
from mallocgame.laboratory import Pieces, Trial, summarize
from mallocgame.programs import suite

WEIGHTS = (0.5, 1, 2, 4, 8, 16, 32)
# What follows an attempt: TPUs' setting, the same without repacking, and XLA's default elsewhere.
SETTINGS = (None, "no-repacking", "once")
PENALTIES = ("fragmentation", "splinter", "crowding")
Trials = dict[str, Trial]  # by program and hardware


def key_of(program: mg.Program) -> str:
    return f"{program.name} {program.hardware.name}"


def model_of(program: mg.Program) -> str:
    return program.name.partition(".")[0]


def judged(pieces: Pieces, programs: Iterable[mg.Program], baseline: Pieces) -> Trials:
    return {
        key_of(program): laboratory.judge(pieces, [program], baseline)[0] for program in programs
    }


def figures(trials: Sequence[Trial]) -> list[str]:
    total = summarize(trials)
    return [
        f"{total.ratio:.4f}",
        f"{total.low:.4f} to {total.high:.4f}",
        f"{total.faster} / {total.slower}",
    ]


def no_bytes(trials: Sequence[Trial]) -> str:
    """How many more attempts met a use without bytes, of how many with the baseline."""
    baseline = sum(trial.baseline_counts.out_of_memory for trial in trials)
    return f"{sum(trial.counts.out_of_memory for trial in trials) - baseline:+} of {baseline}"


def header(*columns: str) -> None:
    print("| " + " | ".join(columns) + " |\n| --- |" + " --: |" * (len(columns) - 1))


def row(*cells: str) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


def named_table(programs: Sequence[mg.Program], others: Sequence[mg.Program]) -> None:
    contended = set(suite("contended"))
    titles = ["contended", "95 %", "+ / -", "core", "95 %", "+ / -"]
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


def halves_of(programs: Sequence[mg.Program]) -> tuple[set[str], set[str]]:
    """The keys of the programs of every other model, and of the rest."""
    models = sorted({model_of(program) for program in programs})
    even = {key_of(program) for program in programs if models.index(model_of(program)) % 2 == 0}
    return even, {key_of(program) for program in programs} - even


def penalty_cells(by_weight: dict[float, Trials], programs: Sequence[mg.Program]) -> list[str]:
    """One row: each weight; then what is chosen on half of the models does on the other half."""
    halves = halves_of(programs)
    keys = halves[0] | halves[1]
    chosen = [best_weight(by_weight, half) for half in halves]
    unseen = [by_weight[chosen[key in halves[0]]][key] for key in sorted(keys)]
    oracle = [
        min((one[key] for one in by_weight.values()), key=lambda trial: trial.ratio)
        for key in sorted(keys)
    ]
    return [
        *(
            f"{summarize([one[key] for key in sorted(keys)]).ratio:.4f}"
            for one in by_weight.values()
        ),
        " and ".join(f"{weight:g}" for weight in chosen),
        *figures(unseen),
        no_bytes(unseen),
        f"{summarize(oracle).ratio:.4f}",
    ]


def penalty_tables(programs: Sequence[mg.Program], others: Sequence[mg.Program]) -> None:
    """One table for the contended programs, one for all, and one for the others."""
    contended = set(suite("contended"))
    hard = [program for program in programs if program.name in contended]
    rows: list[list[list[str]]] = [[], [], []]
    for retry in SETTINGS:
        baseline = Pieces(retry=retry)
        for penalty in PENALTIES:
            name = f"`{penalty}{f', retry={retry}' if retry else ''}`"
            by_weight = {
                weight: judged(
                    Pieces(begins=f"{penalty}:{weight}", retry=retry), programs, baseline
                )
                for weight in WEIGHTS
            }
            rows[0].append([name, *penalty_cells(by_weight, hard)])
            rows[1].append([name, *penalty_cells(by_weight, programs)])
            if not others:
                continue
            weight = best_weight(by_weight, {key_of(program) for program in programs})
            pieces = Pieces(begins=f"{penalty}:{weight}", retry=retry)
            trials = list(judged(pieces, others, baseline).values())
            rows[2].append([name, f"{weight:g}", *figures(trials), no_bytes(trials)])
    titles = [f"{weight:g}" for weight in WEIGHTS]
    titles += ["chosen", "unseen", "95 %", "+ / -", "no bytes", "best of all"]
    for name, table, columns in zip(
        ("contended", "core", "others"),
        rows,
        (titles, titles, ["chosen on all", "ratio", "95 %", "+ / -", "no bytes"]),
        strict=True,
    ):
        if not table:
            continue
        print(f"\n{name}\n")
        header("penalty", *columns)
        for cells in table:
            row(*cells)


def room_cells(programs: Sequence[mg.Program], retry: str | None) -> list[str]:
    """What XLA's own first begin of each prefetch finds: room, pieces that are too small, or less.

    Of prefetches with a window that is long enough. The bytes are in pieces if at each tick enough
    of them are free, but no range over all ticks is large enough.
    """
    whole = pieces = fewer = elsewhere = 0

    def has_range(question: laboratory.BeginsQuestion, begin: int) -> bool:
        free = question.free(begin, question.held_until)
        return bool((free[:, 1] - free[:, 0]).max(initial=0) >= question.size_bytes)

    def count(question: laboratory.BeginsQuestion) -> Sequence[int]:
        nonlocal whole, pieces, fewer, elsewhere
        begins: Sequence[int] = list(question.by_xla())
        if begins:
            window = begins[0], question.held_until
            if has_range(question, begins[0]):
                whole += 1
            elif question.most_used(*window) + question.size_bytes <= question.capacity_bytes:
                pieces += 1
                elsewhere += any(has_range(question, begin) for begin in begins)
            else:
                fewer += 1
        return begins

    for program in programs:
        laboratory.plan_like_xla(program, Pieces(begins=count, retry=retry))
    asked = whole + pieces + fewer
    return [f"{number:,}" for number in (asked, whole, pieces, elsewhere, fewer)]


def room_table(programs: Sequence[mg.Program], others: Sequence[mg.Program]) -> None:
    contended = set(suite("contended"))
    hard = [program for program in programs if program.name in contended]
    header("programs", "prefetches", "room", "in pieces", "room at another", "too few bytes")
    for retry in SETTINGS:
        for name, group in (("contended", hard), ("core", programs), ("others", others)):
            title = f"{name}{f', `retry={retry}`' if retry else ''}"
            row(title, *room_cells(group, retry))


def prefetches_of(plan: mg.Plan) -> set[tuple[int, int, int]]:
    """Buffer, begin and end of each prefetch."""
    copies = plan.copies[plan.copies["kind"] == PREFETCH]
    buffers = plan.residences["buffer"][copies["residence"]]
    columns = [array.tolist() for array in (buffers, copies["begin"], copies["end"])]
    return set(zip(*columns, strict=True))


def moved_table(programs: Sequence[mg.Program]) -> None:
    header("begins", "plans that change", "prefetches that begin elsewhere or are new", "of")
    xla = [prefetches_of(laboratory.plan_like_xla(program).plan) for program in programs]
    for penalty in PENALTIES:
        for weight in (1, 4):
            pieces = Pieces(begins=f"{penalty}:{weight}")
            own = [
                prefetches_of(laboratory.plan_like_xla(program, pieces).plan)
                for program in programs
            ]
            changed = sum(a != b for a, b in zip(own, xla, strict=True))
            moved = sum(len(a - b) for a, b in zip(own, xla, strict=True))
            row(f"`{penalty}:{weight}`", str(changed), str(moved), f"{sum(map(len, own)):,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("others", nargs="*", metavar="PROGRAM.mgp")
    paths = parser.parse_args().others or suite("cloud") + suite("sharded")
    others = [mg.load_program(path) for path in paths]
    programs = [mg.load_program(name) for name in suite("core")]
    named_table(programs, others)
    penalty_tables(programs, others)
    print()
    moved_table(programs)
    print()
    room_table(programs, others)


if __name__ == "__main__":
    main()
