"""Makes a set of levels: programs are drawn, compiled and priced, described, and packed.

Drawing and compiling needs mallocgame[xla], describing mallocgame[bounds].
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from mallocgame._core import Plan, Program, validate, write_file
from mallocgame._jobs import Workers, run_jobs
from mallocgame._solve import solve
from mallocgame.errors import MallocGameError
from mallocgame.level_sets.describing import (
    describe,
    describe_variants,
    describe_whole,
    greedy_ps,
    hardest_variant,
    peak_bytes,
)
from mallocgame.level_sets.level_set import (
    BUNDLED,
    FORMAT,
    INDEX,
    PROGRAMS,
    load_level_set,
    write_archive,
)
from mallocgame.level_sets.splits import (
    BANDWIDTHS,
    CHIPS,
    KNOWN,
    WHOLE_BUNDLED,
    WHOLE_SPLITS,
    Draft,
    Variant,
)
from mallocgame.programs import load_program, suite

if TYPE_CHECKING:
    import mallocgame.xla as mgx

Done = Callable[[str, str | None], object]  # told a name, and why it is left out if it is
Subject = TypeVar("Subject")

_PLACEMENTS = 2  # that are priced beside XLA's own and everything in main memory
_COMPILE_SECONDS = 900.0
_PROGRAM, _DESCRIPTION, _LEFT_OUT = ".mgp", ".json", ".left-out"


def make_programs(
    folder: str | os.PathLike[str], wanted: Sequence[Draft], workers: Workers, done: Done
) -> None:
    """Writes FOLDER/NAME.mgp for each draft; what is there already is left as it is.

    Where the compiler can't make a program, NAME.left-out says why; delete that file to try again.
    The same draft gives the same bytes, whoever the workers are. FileAccessError; MallocGameError:
    drafts failed again and again. Interrupted, it goes on where it was when it is run again.
    """
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    drafts = {draft.name: draft for draft in wanted}
    missing = {name: drafts[name] for name in _missing(folder, drafts, _PROGRAM, done)}
    _side_by_side(folder, _PROGRAM, _make_program, missing, workers, done)


def describe_programs(
    folder: str | os.PathLike[str], wanted: Sequence[Draft], workers: Workers, done: Done
) -> None:
    """Writes FOLDER/NAME.json for each program that make_programs() made, and for the known ones.

    Resumed and interrupted like make_programs().
    """
    folder = pathlib.Path(folder)
    drafts = {one.name: one for one in wanted if (folder / (one.name + _PROGRAM)).exists()}
    known, missing = _known(wanted), {}
    for name in _missing(folder, [*drafts, *known], _DESCRIPTION, done):
        draft = drafts.get(name)
        program = (
            load_program(name)
            if draft is None
            else Program.from_bytes((folder / (name + _PROGRAM)).read_bytes())
        )
        split = known[name][0] if draft is None else draft.split
        missing[name] = _Subject(name, split, draft, program)
    _side_by_side(folder, _DESCRIPTION, _describe_program, missing, workers, done)


def pack(folder: str | os.PathLike[str], wanted: Sequence[Draft], seed: int) -> dict[str, Any]:
    """Writes the index and the programs of a set beside FOLDER/programs, and returns the index.

    Of two programs of the same structure in different splits only the first is in the set.
    FileAccessError.
    """
    folder = pathlib.Path(folder)
    source = folder / "programs"
    splits: dict[str, str] = {}  # of structures
    programs, left_out, files = {}, {}, {}
    known = _known(wanted)
    for name, split, family in [
        *((name, *of) for name, of in known.items()),
        *((draft.name, draft.split, draft.family) for draft in wanted),
    ]:
        path = source / (name + _DESCRIPTION)
        if not path.exists():
            left_out[name] = (source / (name + _LEFT_OUT)).read_text(encoding="utf-8").strip()
            continue
        entry = json.loads(path.read_bytes())
        if splits.setdefault(entry["structure"], split) != split:
            left_out[name] = f"of the structure of a program in {splits[entry['structure']]}"
            continue
        programs[name] = {"split": split, "family": family} | entry
        if name not in known:
            files[f"{name}{_PROGRAM}"] = (source / (name + _PROGRAM)).read_bytes()
    index = {"format": FORMAT, "seed": seed, "programs": programs, "left_out": left_out}
    write_archive(folder / PROGRAMS, files, zipfile.ZIP_DEFLATED)
    write_file(folder / INDEX, (json.dumps(index, indent=1) + "\n").encode())
    return index


def _known(wanted: Sequence[Draft]) -> dict[str, tuple[str, str]]:
    """The bundled programs of a set, with split and family."""
    if any(draft.whole for draft in wanted):
        return WHOLE_BUNDLED
    return dict.fromkeys(suite("contended"), ("test", KNOWN))


def _missing(folder: pathlib.Path, names: Iterable[str], suffix: str, done: Done) -> Iterator[str]:
    """Yields the names of which there is no file yet, and tells of the others."""
    for name in names:
        left_out = folder / (name + _LEFT_OUT)
        if (folder / (name + suffix)).exists():
            done(name, None)
        elif left_out.exists():
            done(name, left_out.read_text(encoding="utf-8").strip())
        else:
            yield name


def _side_by_side(
    folder: pathlib.Path,
    suffix: str,
    job: Callable[[Subject], bytes | str],
    subjects: dict[str, Subject],
    workers: Workers,
    done: Done,
) -> None:
    """Writes the file of each name that the job returns of its subject, or why it is left out."""
    names = {subject: name for name, subject in subjects.items()}
    with contextlib.closing(run_jobs(job, names, workers, name=names.__getitem__)) as finished:
        for subject, made in finished:
            name = names[subject]
            if isinstance(made, str):
                write_file(folder / (name + _LEFT_OUT), f"{made}\n".encode())
                done(name, made)
            else:
                write_file(folder / (name + suffix), made)
                done(name, None)


def _make_program(draft: Draft) -> bytes | str:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax

    import mallocgame.xla as mgx
    from mallocgame.workloads.drawn import draw

    function, args = draw(draft.family, draft.number, draft.seed)
    with mgx.Compiler(mgx.find_target(draft.chip), _COMPILE_SECONDS, cache=None) as compiler:
        reason, data = None, b""
        try:
            captured = mgx.capture(
                function, *args, target=draft.chip, name=draft.name, compiler=compiler
            )
            if not draft.whole:
                captured = _priced(captured, draft.seed, compiler)
            data = captured.program.to_bytes()
            reason = _misread(captured.program)
        except mgx.CompilerError as error:
            reason = " ".join(str(error).split())
        finally:
            jax.clear_caches()
        if compiler.killed:  # What was made without some of its answers is another program.
            raise MallocGameError("another process ended the compiler")
    return data if reason is None else reason


def _priced(captured: "mgx.Capture", seed: int, compiler: "mgx.Compiler") -> "mgx.Capture":
    """Has more placements priced, by plans that don't depend on how fast the machine is."""
    from mallocgame.xla.emitting import Emitter, PlanRefusedError

    with Emitter(captured, compiler, jobs=1) as emitter:
        for number in range(_PLACEMENTS):
            plan = _rent(emitter.capture.program, seed + number)
            with contextlib.suppress(PlanRefusedError):  # The others are prices all the same.
                emitter.write(plan)
        return emitter.capture


def _misread(program: Program) -> str | None:
    """Why a program can't be right: the compiler does what the rules forbid. None: it may be."""
    assert program.xla_plan is not None, "a capture has a plan"
    verdict = validate(program, program.xla_plan)
    return None if verdict else f"XLA's own plan is not valid: {verdict.rule}: {verdict.message}"


def _rent(program: Program, seed: int) -> Plan:
    return solve(program, "rent", seconds=0, seed=seed).plan


@dataclasses.dataclass(frozen=True, eq=False)
class _Subject:
    """A program that is to be described."""

    name: str
    split: str
    draft: Draft | None  # None: a bundled one
    program: Program


def _describe_program(subject: _Subject) -> bytes:
    name, draft, program = subject.name, subject.draft, subject.program
    if subject.split in WHOLE_SPLITS:
        entry = describe_whole(program, subject.split)
    elif draft is None:
        entry = _bundled(name, program) or describe(program) | _scored(program, Variant(), name)
    else:
        entry = describe(program)
        if draft.split == "train":
            entry |= {"variants": describe_variants(program)}
        else:
            bandwidth = BANDWIDTHS[draft.number // len(CHIPS) % len(BANDWIDTHS)]
            entry |= _scored(program, hardest_variant(program, bandwidth), name)
    return json.dumps(entry).encode()


def _bundled(name: str, program: Program) -> dict[str, Any] | None:
    """What the bundled set has in its index of this very program."""
    if not (BUNDLED / INDEX).exists():
        return None
    entry = load_level_set(BUNDLED).programs.get(name, {})
    if entry.get("fingerprint") != program.fingerprint:
        return None
    return {key: value for key, value in entry.items() if key not in ("split", "family")}


def _scored(program: Program, variant: Variant, name: str) -> dict[str, Any]:
    """What a program of validation or test has in the index beside its description."""
    hardware = variant.of(program.hardware, peak_bytes(program))
    return {"level": variant.level(name), "greedy_ps": greedy_ps(program, hardware)}
