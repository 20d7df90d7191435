"""A program as the compiler sees it, with all that is needed to ask the compiler again."""

import concurrent.futures
import contextlib
import dataclasses
import functools
import gzip
import json
import math
import os
import pathlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mallocgame._core import PlacedModule, Plan, Program, Verdict, read_file, validate, write_file
from mallocgame._jobs.processes import cores
from mallocgame.errors import InvalidInputError
from mallocgame.programs import import_hlo
from mallocgame.xla.compiler import Compiler
from mallocgame.xla.compiler_errors import CompilerDeadlineError
from mallocgame.xla.lowering import compiler_options, lower
from mallocgame.xla.modules import device_count_of_proto, hlo_proto, read_dump
from mallocgame.xla.phases import Crew, Lowered, Phases, Scheduled, Stages, Tell, quiet
from mallocgame.xla.prices import Prices, merged, prices_of, profile_of, read_profile
from mallocgame.xla.stablehlo import device_count
from mallocgame.xla.targets import Target, find_target

# This turns memory space assignment off, so that every buffer is in main memory.
ALL_MAIN: Mapping[str, str] = {"xla_msa_enable": "DISABLED"}

LEAST_PRICING = 60.0  # seconds for prices, however long the schedules take
# Seconds of one core that a capture takes at most: to begin, and for each operation. Whole models
# of 3,000 to 91,000 operations took 0.003 to 0.009 for each.
_TO_BEGIN, _FOR_EACH = 10.0, 0.009
_OPERATION = re.compile(r"^\s*%\S+ = ", re.MULTILINE)

# Names of files in a capture's folder, as in the bundled corpus (benchmarks/programs).
_BEFORE, _ASSIGNED, _PRICED = "pre_msa.hlo.pb.gz", "post_msa.hlo.pb.gz", "codegen_{}.hlo.pb.gz"
_PRICES, _MODULE, _META = "prices.json.gz", "module.mlir.gz", "meta.json"


@dataclasses.dataclass(frozen=True)
class Capture:
    """One program for one chip: how the compiler scheduled it, and where it put what.

    module: StableHLO, as JAX lowered it. If it is None the compiler can't be asked again.
    before: the scheduled module before memory space assignment.
    assigned: the same after it, with the buffer assignment (HloProto).
    priced: modules after code generation, which a run has dumped.
    prices: what the compiler said of single instructions. More make better programs.
    trips: trip counts by the name of the loop, for loops whose own can't be read from the module.
    late: instructions that the compiler was asked for too late to be priced.
    """

    name: str
    target: Target
    module: str | None
    before: bytes = dataclasses.field(repr=False)
    assigned: bytes = dataclasses.field(repr=False)
    versions: dict[str, str]
    priced: tuple[bytes, ...] = dataclasses.field(default=(), repr=False)
    prices: Prices = dataclasses.field(default_factory=dict, repr=False)
    trips: Mapping[str, int] = dataclasses.field(default_factory=dict)
    late: tuple[str, ...] = ()

    @property
    def unpriced(self) -> list[str]:
        """The instructions that have no price because it took too long."""
        return [name for name in self.late if not self.prices.get(name)]

    @functools.cached_property
    def program(self) -> Program:
        """The program with XLA's own plan, priced by all that is known."""
        return import_hlo(
            self.before,
            assigned=self.assigned,
            priced=self.priced,
            # Also of no prices: what has none is then counted as such.
            profile=None if self.priced and not self.prices else profile_of(self.prices),
            hardware=self.target.hardware,
            name=self.name,
            origin=self.origin,
            trips=self.trips,
        )

    @property
    def xla_plan(self) -> Plan:
        """XLA's own plan of `program`."""
        plan = self.program.xla_plan
        assert plan is not None, "the module after assignment has a plan"
        return plan

    @functools.cached_property
    def xla_verdict(self) -> Verdict:
        """Says whether XLA's own plan is valid: if not, nothing is to be compared with it."""
        return validate(self.program, self.xla_plan)

    @property
    def origin(self) -> str:
        """Free text for the program: where it is from."""
        versions = ", ".join(f"{name} {version}" for name, version in sorted(self.versions.items()))
        return f"{self.name}, {self.target.topology}, {versions}"

    def with_prices(self, more: Prices) -> "Capture":
        """Returns the same with more prices; itself, if it knows them all."""
        known = merged(self.prices, more)
        return self if known == self.prices else dataclasses.replace(self, prices=known)

    def check_can_compile(self) -> str:
        """Returns the module to compile. InvalidInputError: the capture has none."""
        if self.module is None:
            raise InvalidInputError(
                f"{self.name}: captured without its StableHLO module, so it can't be compiled again"
            )
        return self.module

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes it to a folder, with the program as program.mgp."""
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        files = {_BEFORE: self.before, _ASSIGNED: self.assigned}
        for number, priced in enumerate(self.priced):
            files[_PRICED.format("default" if number == 0 else f"{number:03}")] = priced
        if self.prices:
            files[_PRICES] = profile_of(self.prices)
        if self.module is not None:
            files[_MODULE] = self.module.encode()
        # What was there before goes last, so that whatever ends this leaves prices behind.
        for name, data in files.items():
            _write_gzip(folder / name, data)
        write_file(folder / "program.mgp", self.program.to_bytes())
        for stale in (*folder.glob(_PRICED.format("*")), folder / _PRICES, folder / _MODULE):
            if stale.name not in files:
                stale.unlink(missing_ok=True)
        meta = {
            "name": self.name,
            "target": self.target.title,
            "fast_mib": self.target.fast_mib,
            "preloads": self.target.hardware.max_preloads,
            "options": dict(self.target.given_options),
            "versions": self.versions,
            "trips": dict(self.trips),
            "late": list(self.late),
        }
        write_file(folder / _META, (json.dumps(meta, indent=1) + "\n").encode())


def is_capture(folder: str | os.PathLike[str]) -> bool:
    """Returns whether Capture.save has written to a folder."""
    return (pathlib.Path(folder) / _META).exists()


def load_capture(folder: str | os.PathLike[str]) -> Capture:
    """Reads what Capture.save wrote. MissingFileError, InvalidInputError."""
    folder = pathlib.Path(folder)
    meta_path = folder / _META
    try:
        meta = json.loads(read_file(meta_path))
        given = {str(k): str(v) for k, v in meta.get("options", {}).items()}
        target = find_target(meta["target"], meta.get("fast_mib"), meta.get("preloads"), given)
        name, versions = str(meta["name"]), {str(k): str(v) for k, v in meta["versions"].items()}
        trips = {str(k): int(v) for k, v in meta.get("trips", {}).items()}
        late = tuple(map(str, meta.get("late", [])))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, InvalidInputError):
            raise InvalidInputError(f"{meta_path}: {error}") from None
        raise InvalidInputError(
            f"{meta_path}: not the description of a capture ({error!r})"
        ) from None
    return Capture(
        name,
        target,
        _read(folder / _MODULE).decode() if (folder / _MODULE).exists() else None,
        _read(folder / _BEFORE),
        _read(folder / _ASSIGNED),
        versions,
        tuple(_read(path) for path in _priced_files(folder)),
        _read_prices(folder / _PRICES),
        trips,
        late,
    )


def capture(
    function: Callable,
    *args: Any,
    target: str = "tpu_v4i",
    fast_mib: int | None = None,
    name: str | None = None,
    compiler: Compiler | None = None,
    preloads: int | None = None,
    trips: Mapping[str, int] | None = None,
    options: Mapping[str, str] | None = None,
    seconds: float = math.inf,
    tell: Tell = quiet,
) -> Capture:
    """Has a JAX function scheduled for a chip that needn't be there, and its instructions priced.

    function, args: as for jax.jit(function).lower(*args); args may be jax.ShapeDtypeStruct.
    target: one of TARGETS, or a topology (v4 lite:1x1). For several chips it has their shape, as in
    tpu_v5e:2x2, and the arguments carry shardings over a mesh of as many devices.
    fast_mib: MiB of fast memory; None is all. Prices may change with it (Target.note).
    name: of the program; None is the function's.
    compiler: one made for this target, to share its process and cache; None starts one.
    preloads: the most parameters that a plan may preload; None is what XLA does by itself, one.
    trips: trip counts by the name of the loop's `while`, for loops whose own can't be read from the
    module; those that lack one are the program's loops without trips_known.
    options: of the compiler, for this and every later compile of the capture, after those that
    jax.jit(function, compiler_options=...) was given. They become the target's (find_target).
    seconds: of wall time, though prices have a minute of it (less, if `seconds` is less) however
    long the schedules take. An instruction that has no price by then is left without
    (Capture.unpriced).
    tell: called with each stage, its progress, and how long the next ones may take.

    Each distinct instruction is priced where XLA has its arrays, and with all of them in main
    memory. InvalidInputError: the function can't be lowered, there is no such target, the function
    is for another number of devices, XLA's own plan takes more than its fast memory, or a name in
    `trips` is no loop's. CompilerError: the compiler refused, ended or took too long.
    """
    given = compiler_options(function) | dict(options or {})
    chip = find_target(target, fast_mib, preloads, given)
    module = lower(function, *args)
    title = name or getattr(function, "__name__", "program").strip("<>")
    return capture_module(module, chip, title, compiler, trips, seconds, tell)


def capture_module(
    module: str,
    target: Target,
    name: str,
    compiler: Compiler | None = None,
    trips: Mapping[str, int] | None = None,
    seconds: float = math.inf,
    tell: Tell = quiet,
) -> Capture:
    """Captures StableHLO text, as capture() does."""
    _check_devices(name, device_count(module), target)
    late: list[str] = []
    least = min(seconds, LEAST_PRICING) / 2
    end, stages = time.monotonic() + seconds, Stages(tell, 3)
    with shared(compiler, target) as ask, ask.keeping_others(), _telling_where(name, stages):
        stages.begin("XLA's schedule, and one with everything in main memory", _expected(module))
        (assigned, its_code), (unassigned, main_code) = _schedules(ask, module)
        # The first half is for XLA's own places, of which a program needs the prices most.
        now = time.monotonic()
        until = now + max((end - now) / 2, least)
        stages.begin(
            f"prices of {len(assigned.isolated)} instructions at XLA's places", _at_most(until)
        )
        with Crew(ask, tell=stages) as crew:
            own = _prices_of(crew, assigned, its_code, module, until, late)
        until = max(end, time.monotonic() + least)
        stages.begin(
            f"prices of {len(unassigned.isolated)} instructions in main memory", _at_most(until)
        )
        with Crew(ask, ALL_MAIN, tell=stages) as crew:
            prices = _prices_of(crew, unassigned, main_code, module, until, late)
        prices = merged(prices, own)
        captured = Capture(
            name,
            target,
            module,
            unassigned.module,
            hlo_proto(assigned.module, assigned.assignment),
            ask.versions,
            prices=prices,
            trips=dict(trips or {}),
            late=tuple(dict.fromkeys(late)),
        )
    captured.program  # noqa: B018 (it is read here, so that what is wrong with it shows here)
    return captured


def _schedules(ask: Compiler, module: str) -> list[tuple[Scheduled, Lowered]]:
    """Returns XLA's schedule and the one with everything in main memory, each with its code.

    They are made side by side where there is a processor for each.
    """
    beside = ask.borrow() if len(cores()) > 1 else ask

    def made(phases: Phases) -> tuple[Scheduled, Lowered]:
        scheduled = phases.schedule(module)
        return scheduled, phases.lower(scheduled, kept=True)

    with concurrent.futures.ThreadPoolExecutor(1 if beside is ask else 2) as threads:
        try:
            return list(threads.map(made, (Phases(ask), Phases(beside, ALL_MAIN))))
        except KeyboardInterrupt:  # What they are at is of no use, and may take a minute.
            ask.close()
            raise
        finally:
            if beside is not ask:
                ask.give_back(beside)


def _expected(module: str) -> str:
    """Says before a capture how long it may take."""
    count = len(_OPERATION.findall(module))
    return (
        f"the capture of {count:,} operations takes up to {_TO_BEGIN + _FOR_EACH * count:.0f} s of "
        "one core, and less where answers are kept"
    )


@contextlib.contextmanager
def _telling_where(name: str, stages: Stages) -> Iterator[None]:
    """Says of a time that is over at which stage of the capture it was."""
    try:
        yield
    except CompilerDeadlineError:
        raise CompilerDeadlineError(
            f"{name}: the time was over at {stages.name} of the capture; give it more seconds: "
            "what is done is kept, and the same again goes on from there"
        ) from None


def _at_most(until: float) -> str:
    left = until - time.monotonic()
    return "as long as it takes" if left == math.inf else f"at most {left:.0f} s"


def _prices_of(
    crew: Crew, scheduled: Scheduled, lowered: Lowered, module: str, until: float, late: list[str]
) -> Prices:
    """Has every instruction priced where it is, and adds those that take too long to `late`."""
    first = {called: name for name, called in reversed(list(lowered.calls.items()))}
    missing: list[str] = []
    compiler = crew.first.compiler
    with compiler.until(until):
        isolated = crew.lower_isolated(
            scheduled,
            scheduled.isolated,
            leave_out_refused=True,
            called=lambda called: first.get(called, called),
            late=missing,
        )
    late += [name for name, called in lowered.calls.items() if called in missing]
    if len(isolated) + len(missing) < len(scheduled.isolated):
        # The compiler may refuse the program as a whole, as it does if a kernel takes more fast
        # memory than there is.
        compiler.compile(module)
    placed = PlacedModule(scheduled.module, scheduled.assignment)
    return prices_of(lowered, isolated, placed, compiler.target.hardware.fast_memory_space)


def capture_dump(
    folder: str | os.PathLike[str],
    target: str,
    fast_mib: int | None = None,
    name: str | None = None,
    preloads: int | None = None,
    trips: Mapping[str, int] | None = None,
    options: Mapping[str, str] | None = None,
) -> Capture:
    """Captures the largest program in a folder that XLA dumped, without compiling.

    XLA dumps with XLA_FLAGS='--xla_dump_to=FOLDER --xla_dump_hlo_as_proto'. MissingFileError:
    nothing was dumped there. InvalidInputError: it was compiled for another target.
    """
    answer = read_dump(folder)
    title = name or pathlib.Path(folder).resolve().name
    chip = find_target(target, fast_mib, preloads, options)
    _check_devices(title, device_count_of_proto(answer.before), chip)
    modules = sorted(
        pathlib.Path(folder).glob("*/module.mlir"), key=lambda path: path.stat().st_size
    )
    captured = Capture(
        title,
        chip,
        _mlir_text(modules[-1]) if modules else None,
        answer.before,
        answer.assigned,
        {"dump": title},
        (answer.priced,),
        trips=dict(trips or {}),
    )
    captured.program  # noqa: B018 (as above)
    return captured


def _check_devices(name: str, count: int, target: Target) -> None:
    if count == target.devices:
        return
    hint = "" if target.shape else f"; several chips are a target like {_square(target)}"
    raise InvalidInputError(
        f"{name}: is for {_devices(count)}, but target {target.title} has "
        f"{_devices(target.devices)}{hint}"
    )


def _devices(count: int) -> str:
    return "1 device" if count == 1 else f"{count} devices"


def _square(target: Target) -> str:
    sides = target.topology.count("x") + 1
    return f"{target.name}:{'x'.join('221'[:sides])}"


@contextlib.contextmanager
def shared(compiler: Compiler | None, target: Target) -> Iterator[Compiler]:
    """Lends the compiler given, and leaves it open; None: one for the length of the block.

    A compiler of the same target with other options lends another one with those of the program.
    InvalidInputError: it is for another target.
    """
    if compiler is not None and compiler.target == target:
        yield compiler
        return
    if compiler is None:
        own = Compiler(target)
    elif dataclasses.replace(compiler.target, given_options=target.given_options) == target:
        own = compiler.another(target)
    else:
        raise InvalidInputError(
            f"compiler: found one for {compiler.target}, the program is for {target}"
        )
    with own:
        yield own


def _priced_files(folder: pathlib.Path) -> list[pathlib.Path]:
    """Returns the modules after code generation, the default's first."""
    first = folder / _PRICED.format("default")
    return sorted(folder.glob(_PRICED.format("*")), key=lambda path: (path != first, path.name))


def _read_prices(path: pathlib.Path) -> Prices:
    if not path.exists():
        return {}
    try:
        return read_profile(_read(path))
    except (ValueError, TypeError, AttributeError) as error:
        raise InvalidInputError(f"{path}: no prices ({error!r})") from None


def _mlir_text(path: pathlib.Path) -> str | None:
    data = path.read_bytes()
    # Names in bytecode are not readable here.
    return data.decode() if not data.startswith(b"ML\xefR") else None


def _write_gzip(path: pathlib.Path, data: bytes) -> None:
    write_file(path, gzip.compress(data, compresslevel=9, mtime=0))


def _read(path: pathlib.Path) -> bytes:
    return read_file(path)  # It unpacks gzip.
