"""Every program that a run of the user's compiled, tuned one after the other, or side by side."""

import contextlib
import dataclasses
import functools
import os
import pathlib
import re
import time
from collections.abc import Callable, Iterator

from mallocgame._core import simulate
from mallocgame._jobs import HERE, run_jobs, workers_of
from mallocgame._moved import renamed
from mallocgame.errors import InvalidInputError, MallocGameError, MissingFileError
from mallocgame.xla.captures import Capture, capture_module, shared
from mallocgame.xla.compiler import Compiler
from mallocgame.xla.emitting import Tell, quiet
from mallocgame.xla.modules import read_dump
from mallocgame.xla.stablehlo import device_count
from mallocgame.xla.targets import Target, find_target, kinds_of_target
from mallocgame.xla.tuned_folders import Key, TunedFolder
from mallocgame.xla.tuning import Tuned, keep, tune_capture

_CHIP = re.compile(rb"TFRT (TPU[\w ]*)")
_LEAST_SECONDS = 5.0  # A search that has less finds nothing.
_INTERRUPTED = "it was interrupted"


@dataclasses.dataclass(frozen=True)
class TunedModule:
    """What became of one program of a run."""

    name: str  # of its files
    latency_ps: int | None  # a call, as XLA compiled it; None: it isn't known
    tuned: Tuned | None = None
    why_not: str | None = None  # why it wasn't tuned
    note: str | None = None

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it before its time was over."""
        return self.why_not == _INTERRUPTED or (self.tuned is not None and self.tuned.interrupted)


@dataclasses.dataclass(frozen=True)
class _Module:
    """A program of the run that can be tuned."""

    name: str
    text: str
    key: Key
    latency_ps: int
    order: list[str]  # of its instructions, as the run had it


@dataclasses.dataclass(frozen=True, eq=False)
class _Task:
    """A program that is to be tuned."""

    module: _Module
    seconds: float  # its share


Report = Callable[[TunedModule], object]  # a function that is told of each program at once


@renamed(options="executables")
def tune_dumps(
    folder: str | os.PathLike[str],
    executables: str | os.PathLike[str],
    target: str = "tpu_v4i",
    fast_mib: int | None = None,
    preloads: int | None = None,
    seconds: float = 600.0,
    seed: int = 0,
    compiler: Compiler | None = None,
    tell: Tell = quiet,
    report: Report = lambda _: None,
    jobs: int = 1,
    ray: str | None = None,
) -> list[TunedModule]:
    """Tunes the programs that XLA dumped in a run, those that take longest first.

    Each gets its share of the seconds, by the estimated latency of a call. What is found is kept in
    the folder `executables`, where jit() finds it. A program that is there for the same chip and
    versions is left out, so the same call again goes on from where it was interrupted.

    folder: of XLA_FLAGS='--xla_dump_to=FOLDER'.
    target, fast_mib, preloads, seed: as for tune(). seconds: of wall time, of all; side
    by side they are of all together, so that it is over sooner.
    report: called with each program, tuned or not; the list of all is returned. After Ctrl-C
    the rest is left out.
    jobs: processes that tune side by side, each with a compiler like the one given. ray: the
    address of a Ray cluster that does so instead (docs/ray.md). Then what is found is kept when a
    program is done, and Ctrl-C keeps the programs that are.

    MissingFileError: no program was dumped there. MallocGameError: the processes of programs ended
    again and again, or no cluster answers.
    """
    chip = find_target(target, fast_mib, preloads)
    results = []

    def done(result: TunedModule) -> None:
        results.append(result)
        report(result)

    with workers_of(jobs, ray, here=True) as workers, shared(compiler, chip) as ask:
        modules = list(_modules(pathlib.Path(folder), ask, tell, done))
        modules.sort(key=lambda module: (-module.latency_ps, module.name))
        kept = TunedFolder(executables)
        tasks = _tasks(modules, seconds, kept, workers == HERE, done)
        if workers == HERE:
            tuned = functools.partial(_tune, ask, seed, tell, executables, None)
            for _, result in run_jobs(tuned, tasks, HERE):
                done(result)
                if result.interrupted:
                    break
        else:
            left = list(tasks)
            tuned = functools.partial(_tune_elsewhere, ask, seed)
            with contextlib.closing(
                run_jobs(tuned, left, workers, name=lambda task: task.module.name)
            ) as finished:
                try:
                    for task, result in finished:
                        left.remove(task)
                        if result.tuned is not None and result.tuned.best is not None:
                            keep(executables, result.tuned.capture, result.tuned.best)
                        done(result)
                        tell(f"{result.name} is tuned")
                except KeyboardInterrupt:
                    for task in left:
                        done(_not_tuned(task.module, _INTERRUPTED))
    return results


def _tasks(
    modules: list[_Module], seconds: float, folder: TunedFolder, one_by_one: bool, done: Report
) -> Iterator[_Task]:
    """Yields the programs to tune with their shares of the time, and tells of the others.

    one_by_one: whether a program is tuned before the next one is asked for. Then what one doesn't
    use is for those after it.
    """
    left = []
    for module in modules:
        there = folder.find(module.key)
        if there is None:
            left.append(module)
        else:
            done(_not_tuned(module, f"{there.path} has it already"))
    weight = sum(module.latency_ps for module in left)
    for module in left:
        share = seconds * module.latency_ps / weight if weight > 0 else 0.0
        begin = time.monotonic()
        if share < _LEAST_SECONDS:
            why_not = f"its share is {share:.1f} s, and a search needs {_LEAST_SECONDS:g}"
            done(_not_tuned(module, why_not))
        else:
            yield _Task(module, share)
        seconds -= time.monotonic() - begin if one_by_one else share
        weight -= module.latency_ps


def _tune(
    compiler: Compiler,
    seed: int,
    tell: Tell,
    executables: str | os.PathLike[str] | None,
    jobs: int | None,
    task: _Task,
) -> TunedModule:
    """Tunes a program; what is found is kept in the folder `executables`, if there is one."""
    module = task.module
    tell(f"{module.name}: {task.seconds:.0f} s")
    begin = time.monotonic()
    try:
        captured = capture_module(module.text, compiler.target, _title(module.name), compiler)
        left = max(0.0, task.seconds - (time.monotonic() - begin))
        tuned = tune_capture(captured, left, seed, compiler, tell, executables, jobs)
    except MallocGameError as error:
        return _not_tuned(module, str(error))
    except KeyboardInterrupt:
        return _not_tuned(module, _INTERRUPTED)
    return TunedModule(module.name, module.latency_ps, tuned, note=_note(module, captured))


def _tune_elsewhere(compiler: Compiler, seed: int, task: _Task) -> TunedModule:
    """Tunes a program where the folder of options need not be."""
    with compiler:
        return _tune(compiler, seed, quiet, None, 1, task)


def _modules(
    folder: pathlib.Path, compiler: Compiler, tell: Tell, done: Report
) -> Iterator[_Module]:
    """Yields the programs that can be tuned, and tells of the others."""
    names = sorted(path.parent.name for path in folder.glob("*/module.mlir"))
    if not names:
        raise MissingFileError(
            f"{folder}: no */module.mlir; dump with XLA_FLAGS='--xla_dump_to=FOLDER'"
        )
    seen: dict[str, str] = {}
    for name in names:
        tell(f"reading {name}")
        try:
            module = _module(folder, name, compiler)
            first = seen.setdefault(module.key.digest, name)
            if first != name:
                raise InvalidInputError(f"the same program as {first}")
        except MallocGameError as error:
            done(TunedModule(name, None, why_not=str(error)))
            continue
        yield module


def _module(folder: pathlib.Path, name: str, compiler: Compiler) -> _Module:
    """Reads a program. MallocGameError: why it can't be tuned."""
    target = compiler.target
    _check_chip(folder / name, target)
    try:
        module = (folder / name / "module.mlir").read_bytes().decode()
    except UnicodeDecodeError:
        raise InvalidInputError("its StableHLO is bytecode, not text") from None
    if device_count(module) != target.devices:
        raise InvalidInputError(
            f"it is for {device_count(module)} devices, the target has {target.devices}"
        )
    try:
        answer = read_dump(folder, name)
    except MissingFileError:  # Without --xla_dump_hlo_as_proto XLA dumps text.
        program = capture_module(module, target, _title(name), compiler).program
    else:
        program = Capture(
            _title(name), target, module, answer.before, answer.assigned, {}, (answer.priced,)
        ).program
    assert program.xla_plan is not None, "the module after assignment has a plan"
    key = Key.of_module(module, target.title, compiler.versions)
    latency_ps = simulate(program, program.xla_plan).latency_ps
    return _Module(name, module, key, latency_ps, program.instruction_names)


def _check_chip(folder: pathlib.Path, target: Target) -> None:
    """InvalidInputError: the program was compiled for something else."""
    for path in folder.glob("topology.*"):
        chip = _CHIP.search(path.read_bytes())
        kind = chip[1].decode() if chip else None
        if kind not in kinds_of_target(target.name):
            raise InvalidInputError(f"it is for {kind or 'no TPU'}, the target is {target.name}")


def _not_tuned(module: _Module, why_not: str) -> TunedModule:
    return TunedModule(module.name, module.latency_ps, why_not=why_not)


def _note(module: _Module, captured: Capture) -> str | None:
    """Says whether the run compiled something else than this compiler does."""
    if captured.program.instruction_names == module.order:
        return None
    return "the run had another schedule: of another libtpu, or with other flags"


def _title(name: str) -> str:
    """Returns the name of a program, of module_0005.jit_step.cl_1003875606 step."""
    parts = name.split(".")
    return (parts[1] if len(parts) > 1 else name).removeprefix("jit_")
