"""Makes a set of levels: programs are drawn, compiled and priced, described, and packed.

Drawing and compiling needs mallocgame[xla], describing mallocgame[bounds].
"""

import contextlib
import functools
import json
import os
import pathlib
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

from mallocgame._core import Plan, Program, validate, write_file
from mallocgame._jobs import run_jobs
from mallocgame._levels.describing import describe, greedy_ps, hardest_variant, peak_bytes
from mallocgame._levels.level_sets import (
    BUNDLED,
    FORMAT,
    INDEX,
    PROGRAMS,
    load_level_set,
    write_archive,
)
from mallocgame._levels.splits import BANDWIDTHS, CHIPS, KNOWN, Draft, Variant
from mallocgame._solve import solve
from mallocgame.errors import MallocGameError
from mallocgame.programs import load_program, suite

Done = Callable[[str, str | None], object]  # told a name, and why it is left out if it is
_Job = Callable[[pathlib.Path, Any], str | None]  # makes a file; returns why it is left out

_PLACEMENTS = 2  # that are priced beside XLA's own and everything in main memory
_COMPILE_SECONDS = 180.0
_PROGRAM, _DESCRIPTION, _LEFT_OUT = ".mgp", ".json", ".left-out"


def make_programs(
    folder: str | os.PathLike[str], wanted: Sequence[Draft], jobs: int, done: Done
) -> None:
    """Writes FOLDER/NAME.mgp for each draft; what is there already is left as it is.

    Where the compiler can't make a program, NAME.left-out says why; delete that file to try again.
    The same draft gives the same bytes, whatever the number of `jobs`, processes that work side by
    side. FileAccessError; MallocGameError: a process ended. Interrupted, it goes on where it was
    when it is run again.
    """
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _side_by_side(folder, _make_program, {draft.name: draft for draft in wanted}, jobs, done)


def describe_programs(
    folder: str | os.PathLike[str], wanted: Sequence[Draft], jobs: int, done: Done
) -> None:
    """Writes FOLDER/NAME.json for each program that make_programs() made, and for the known ones.

    Resumed and interrupted like make_programs().
    """
    folder = pathlib.Path(folder)
    made = {draft.name: draft for draft in wanted if (folder / (draft.name + _PROGRAM)).exists()}
    known = {name: name for name in suite("contended")}
    _side_by_side(folder, _describe_program, made | known, jobs, done, _DESCRIPTION)


def pack(folder: str | os.PathLike[str], wanted: Sequence[Draft], seed: int) -> dict[str, Any]:
    """Writes the index and the programs of a set beside FOLDER/programs, and returns the index.

    Of two programs of the same structure in different splits only the first is in the set.
    FileAccessError.
    """
    folder = pathlib.Path(folder)
    source = folder / "programs"
    splits: dict[str, str] = {}  # of structures
    programs, left_out, files = {}, {}, {}
    for name, split, family in [
        *((name, "test", KNOWN) for name in suite("contended")),
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
        if family != KNOWN:
            files[f"{name}{_PROGRAM}"] = (source / (name + _PROGRAM)).read_bytes()
    index = {"format": FORMAT, "seed": seed, "programs": programs, "left_out": left_out}
    write_archive(folder / PROGRAMS, files, zipfile.ZIP_DEFLATED)
    write_file(os.fsencode(folder / INDEX), (json.dumps(index, indent=1) + "\n").encode())
    return index


def _side_by_side(
    folder: pathlib.Path,
    job: _Job,
    wanted: dict[str, Any],
    jobs: int,
    done: Done,
    suffix: str = _PROGRAM,
) -> None:
    """Runs a job for each name of which there is no file yet."""
    missing = {}
    for name, subject in wanted.items():
        left_out = folder / (name + _LEFT_OUT)
        if (folder / (name + suffix)).exists():
            done(name, None)
        elif left_out.exists():
            done(name, left_out.read_text(encoding="utf-8").strip())
        else:
            missing[name] = subject
    work = functools.partial(job, folder)
    names = {subject: name for name, subject in missing.items()}
    with contextlib.closing(run_jobs(work, names, jobs)) as finished:
        for subject, reason in finished:
            done(names[subject], reason)


def _make_program(folder: pathlib.Path, draft: Draft) -> str | None:
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
            captured, _ = mgx.profile(captured, _PLACEMENTS, draft.seed, compiler, planner=_rent)
            data = captured.program.to_bytes()
            reason = _misread(captured.program)
        except mgx.CompilerError as error:
            reason = " ".join(str(error).split())
        finally:
            jax.clear_caches()
        if compiler.killed:  # What was made without some of its answers is another program.
            raise MallocGameError(
                f"levels: {draft.name}: another process ended the compiler; run it again to go on"
            )
    if reason is None:
        write_file(os.fsencode(folder / (draft.name + _PROGRAM)), data)
    else:
        write_file(os.fsencode(folder / (draft.name + _LEFT_OUT)), f"{reason}\n".encode())
    return reason


def _misread(program: Program) -> str | None:
    """Why a program can't be right: the compiler does what the rules forbid. None: it may be."""
    assert program.xla_plan is not None, "a capture has a plan"
    verdict = validate(program, program.xla_plan)
    return None if verdict else f"XLA's own plan is not valid: {verdict.rule}: {verdict.message}"


def _rent(program: Program, seed: int) -> Plan:
    """A plan that doesn't depend on how fast the machine is."""
    return solve(program, "rent", seconds=0, seed=seed).plan


def _describe_program(folder: pathlib.Path, subject: Draft | str) -> str | None:
    if isinstance(subject, str):
        name, program = subject, load_program(subject)
        entry = _bundled(name, program) or describe(program) | _scored(program, Variant(), name)
    else:
        name = subject.name
        program = Program.from_bytes((folder / (name + _PROGRAM)).read_bytes())
        entry = describe(program)
        if subject.split != "train":
            bandwidth = BANDWIDTHS[subject.number // len(CHIPS) % len(BANDWIDTHS)]
            entry |= _scored(program, hardest_variant(program, bandwidth), name)
    write_file(os.fsencode(folder / (name + _DESCRIPTION)), json.dumps(entry).encode())
    return None


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
