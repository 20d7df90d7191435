"""A laboratory for compiler engineers: XLA's allocator with other pieces, judged over programs.

The allocator is `xla-heuristic`. Its order of buffers, its begins of prefetches, what it does after
an attempt, its offsets and its repacking can each be replaced by a function, or by a piece that has
a name. The loop around them stays XLA's (docs/laboratory.md).

    from mallocgame import laboratory

    def late(question):
        return sorted(question.by_xla(), reverse=True)

    trials = laboratory.judge(laboratory.Pieces(begins=late), mg.programs.suite("contended"))
    print(laboratory.summarize(trials))
"""

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

import mallocgame as mg
from mallocgame._core import BeginsQuestion, named_pieces, plan_with_pieces
from mallocgame.by_name import find_object
from mallocgame.errors import InvalidInputError

__all__ = [
    "XLA",
    "Attempt",
    "BeginsQuestion",
    "Counts",
    "OffsetQuestion",
    "OrderQuestion",
    "Outcome",
    "Pieces",
    "RepackQuestion",
    "Summary",
    "Trial",
    "find_pieces",
    "judge",
    "named_pieces",
    "plan_like_xla",
    "summarize",
]

_RESAMPLES = 10_000
_CONFIDENCE = 0.95


@dataclasses.dataclass(frozen=True)
class OrderQuestion:
    """In which order are buffers decided? Asked once; the arrays go together."""

    by_xla: NDArray[np.int32]  # the buffers, in XLA's order
    size_bytes: NDArray[np.int64]
    boundedness: NDArray[np.float64]  # ps saved by all uses, per square root of a byte


@dataclasses.dataclass(frozen=True)
class Attempt:
    """What follows an attempt to decide a buffer?"""

    buffer: int
    retry: int  # how often it has been undone before, not counting what repacking undid
    failures: frozenset[str]  # what stood in the way: "out of memory", "must undo" ...
    repacks_of_buffer: int  # how often bytes were packed anew for this buffer,
    repacks: int  # and in the program
    by_xla: str  # what XLA does: "keep", "retry", "repack" or "leave out"


@dataclasses.dataclass(frozen=True)
class OffsetQuestion:
    """Which bytes does a buffer get over the ticks [begin, end)?"""

    buffer: int
    begin: int
    end: int
    size_bytes: int
    free: NDArray[np.int64]  # [ranges, 2]: those that are large enough, with aligned begins
    capacity_bytes: int  # a range that ends here is the top, which XLA takes to be endless
    alignment_bytes: int


@dataclasses.dataclass(frozen=True)
class RepackQuestion:
    """Where do all blocks go when they are packed anew? Their times stay.

    XLA measures how long a block is there by `program.instructions["logical_time"]`.
    """

    begin: NDArray[np.int32]
    end: NDArray[np.int32]
    offset: NDArray[np.int64]  # where they are now
    size_bytes: NDArray[np.int64]
    reserved: NDArray[np.int64]  # for each tick so many bytes from 0 on aren't free; may be empty
    capacity_bytes: int
    alignment_bytes: int


@dataclasses.dataclass(frozen=True)
class Pieces:
    """The pieces to put in place of XLA's own; None is XLA's.

    Each is a function of one question, or the name of a piece (named_pieces()), such as
    "fragmentation:0.5". What a function raises ends the allocation and is raised to the caller. A
    wrong answer is an InvalidInputError.

    order: answers all buffers of the question, the first one to decide in front.
    begins: answers the ticks at which the copy may begin, the best first. Up to 2,000 are tried;
    the first is taken for which there are bytes and the copy is in time. As in XLA, the search ends
    at a begin that is not after one without bytes, and at once if there are none for the latest.
    retry: answers "keep", "retry", "repack" or "leave out". "keep" is wrong after "must undo".
    offset: answers an aligned offset in one of the free ranges; None: the buffer gets no bytes.
    repack: answers a new offset for each block; None: they stay where they are.
    """

    order: str | Callable[[OrderQuestion], Sequence[int]] | None = None
    begins: str | Callable[[BeginsQuestion], Sequence[int]] | None = None
    retry: str | Callable[[Attempt], str] | None = None
    offset: str | Callable[[OffsetQuestion], int | None] | None = None
    repack: str | Callable[[RepackQuestion], Sequence[int] | None] | None = None

    @classmethod
    def of(cls, text: str) -> "Pieces":
        """Reads pieces by name: "order=size,begins=latest".

        InvalidInputError: there is no such piece, or one is named twice. Names are looked up when
        the pieces are used.
        """
        names: dict[str, str] = {}
        allowed = [field.name for field in dataclasses.fields(cls)]
        for part in filter(None, (part.strip() for part in text.split(","))):
            piece, _, name = part.partition("=")
            if piece not in allowed:
                raise InvalidInputError(f"pieces: found '{part}', allowed: {', '.join(allowed)}")
            if piece in names:
                raise InvalidInputError(f"pieces: found '{piece}' twice, allowed: once")
            names[piece] = name
        return cls(**names)


XLA = Pieces()


@dataclasses.dataclass(frozen=True)
class Counts:
    """What happened on the way to a plan."""

    attempts: int  # to decide a buffer
    out_of_memory: int  # of these met a use for which there were no bytes
    undone: int  # of these were undone because a value couldn't get back to main memory
    repacks: int  # bytes were to be packed anew,
    repacked: int  # and so often they fitted


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A plan, the order in which buffers were decided, and what happened."""

    plan: mg.Plan
    order: NDArray[np.int32]
    counts: Counts


def plan_like_xla(
    program: mg.Program | mg.Game, pieces: Pieces = XLA, hardware: mg.Hardware | None = None
) -> Outcome:
    """Plans as XLA's allocator does, with some of its pieces replaced.

    hardware: None is the program's own; a Game has its own. InvalidInputError: a piece isn't known,
    or answered what isn't allowed. Exceptions of pieces come through.
    """
    game = program if isinstance(program, mg.Game) else mg.Game(program, hardware=hardware)
    plan, order, counts = plan_with_pieces(
        game,
        order=_asking(pieces.order, OrderQuestion),
        begins=pieces.begins,
        retry=_asking(pieces.retry, _attempt),
        offset=_asking(pieces.offset, OffsetQuestion),
        repack=_asking(pieces.repack, RepackQuestion),
    )
    return Outcome(plan, order, Counts(**counts))


def _attempt(
    buffer: int, retry: int, failures: Iterable[str], of_buffer: int, repacks: int, by_xla: str
) -> Attempt:
    return Attempt(buffer, retry, frozenset(failures), of_buffer, repacks, by_xla)


def _asking(
    piece: str | Callable[..., object] | None, question: Callable[..., object]
) -> str | Callable[..., object] | None:
    """Returns a function of the numbers that make the question of `piece`."""
    if piece is None or isinstance(piece, str):
        return piece
    return lambda *numbers: piece(question(*numbers))


@dataclasses.dataclass(frozen=True)
class Trial:
    """Pieces on one program, beside the baseline. Picoseconds, preloads done before the start."""

    program: str
    latency_ps: int
    baseline_ps: int
    copies: int
    baseline_copies: int
    stall_ps: int
    baseline_stall_ps: int
    counts: Counts
    baseline_counts: Counts

    @property
    def ratio(self) -> float:
        """The latency over the baseline's: below 1 is faster."""
        return self.latency_ps / self.baseline_ps


def judge(
    pieces: Pieces,
    programs: Iterable[str | mg.Program],
    baseline: Pieces = XLA,
    tell: Callable[[str], object] = lambda name: None,
) -> list[Trial]:
    """Plans for each program with the pieces and with the baseline's, and prices both.

    programs: bundled names, files, or programs, on the hardware that they are for. Prices are the
    program's own, in simulate(). tell: called with the name of each before. Errors as those of
    plan_like_xla, with the program's name.
    """
    trials = []
    for named in programs:
        program = mg.load_program(named) if isinstance(named, str) else named
        tell(program.name)
        own, report = _judged(program, pieces)
        base, base_report = _judged(program, baseline)
        trials.append(
            Trial(
                program=program.name,
                latency_ps=report.latency_ps,
                baseline_ps=base_report.latency_ps,
                copies=len(own.plan.copies),
                baseline_copies=len(base.plan.copies),
                stall_ps=report.stall_ps,
                baseline_stall_ps=base_report.stall_ps,
                counts=own.counts,
                baseline_counts=base.counts,
            )
        )
    return trials


def _judged(program: mg.Program, pieces: Pieces) -> tuple[Outcome, mg.Report]:
    try:
        outcome = plan_like_xla(program, pieces)
    except InvalidInputError as error:
        raise InvalidInputError(f"{program.name}: {error}") from error
    verdict = mg.validate(program, outcome.plan)
    if not verdict:
        raise InvalidInputError(f"{program.name}: {verdict.rule}: {verdict.message}")
    return outcome, mg.simulate(program, outcome.plan)


@dataclasses.dataclass(frozen=True)
class Summary:
    """The geometric mean of the ratios, and the interval in which it lies with 95 % confidence.

    The interval is a bootstrap over models: programs of one model, made for several kinds of
    hardware, are drawn together, because they fare alike.
    """

    programs: int
    models: int
    ratio: float
    low: float
    high: float
    faster: int  # programs that are faster by 0.1 % or more
    slower: int


def summarize(trials: Sequence[Trial]) -> Summary:
    """Sums up trials of one set of pieces. InvalidInputError: there are none."""
    if not trials:
        raise InvalidInputError("summarize: found no trial, allowed: one and more")
    models: dict[str, list[float]] = {}
    for trial in trials:
        models.setdefault(trial.program.partition(".")[0], []).append(math.log(trial.ratio))
    sums = np.array([sum(logarithms) for logarithms in models.values()])
    counts = np.array([len(logarithms) for logarithms in models.values()])
    drawn = np.random.default_rng(0).integers(len(models), size=(_RESAMPLES, len(models)))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.exp(np.quantile(means, [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2]))
    return Summary(
        programs=len(trials),
        models=len(models),
        ratio=float(np.exp(sums.sum() / counts.sum())),
        low=float(low),
        high=float(high),
        faster=sum(trial.ratio < 1 - 1e-3 for trial in trials),
        slower=sum(trial.ratio > 1 + 1e-3 for trial in trials),
    )


def find_pieces(text: str) -> Pieces:
    """Returns pieces by name ("order=size,begins=latest"), or those of MODULE:NAME.

    MODULE:NAME is a Pieces, or a function without arguments that returns one. The module is looked
    for in the current folder too. InvalidInputError: there is none.
    """
    module, colon, _ = text.partition(":")
    if not colon or "=" in module:
        return Pieces.of(text)
    found = find_object(text)
    made = found if isinstance(found, Pieces) or not callable(found) else found()
    if not isinstance(made, Pieces):
        raise InvalidInputError(
            f"'{text}': found {type(made).__name__}, allowed: a Pieces, or a function that returns "
            "one"
        )
    return made
