"""A program as the compiler sees it, with all that is needed to ask the compiler again."""

import contextlib
import dataclasses
import functools
import gzip
import json
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mallocgame._core import Plan, Program, Verdict, read_file, validate, write_file
from mallocgame.errors import InvalidInputError
from mallocgame.programs import import_hlo
from mallocgame.xla.compiler import (
    Compiler,
    CompilerEndedError,
    CompilerError,
    CompilerRefusedError,
)
from mallocgame.xla.lowering import lower
from mallocgame.xla.modules import Assigned, Compiled, device_count_of_proto, read_dump
from mallocgame.xla.overrides import mostly_in_main
from mallocgame.xla.stablehlo import device_count
from mallocgame.xla.targets import Target, find_target

# This turns memory space assignment off, so that every buffer is in main memory.
ALL_MAIN = {"xla_msa_enable": "DISABLED"}

# Names of files in a capture's folder, as in the bundled corpus (benchmarks/programs).
_BEFORE, _ASSIGNED, _PRICED = "pre_msa.hlo.pb.gz", "post_msa.hlo.pb.gz", "codegen_{}.hlo.pb.gz"
_MODULE, _META = "module.mlir.gz", "meta.json"


@dataclasses.dataclass(frozen=True)
class Capture:
    """One program for one chip: what was compiled, and what the compiler made of it.

    module: StableHLO, as JAX lowered it. If it is None the compiler can't be asked again.
    default: the compiler's own answer.
    priced: modules after code generation, of any placements; the first is the default's. More make
    better prices.
    trips: trip counts by the name of the loop, for loops whose own can't be read from the module.
    """

    name: str
    target: Target
    module: str | None
    default: Compiled
    priced: tuple[bytes, ...]
    versions: dict[str, str]
    trips: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def program(self) -> Program:
        """The program with XLA's own plan, priced by all that was compiled so far."""
        return self.read(self.default)

    @property
    def xla_plan(self) -> Plan:
        """XLA's own plan of `program`."""
        return _plan_of(self.program)

    @functools.cached_property
    def xla_verdict(self) -> Verdict:
        """Says whether XLA's own plan is valid: if not, nothing is to be compared with it."""
        return validate(self.program, self.xla_plan)

    @property
    def origin(self) -> str:
        """Free text for the program: where it is from."""
        versions = ", ".join(f"{name} {version}" for name, version in sorted(self.versions.items()))
        return f"{self.name}, {self.target.topology}, {versions}"

    def read(self, answer: Compiled) -> Program:
        """Returns the program, with the plan that `answer` carries out as its xla_plan.

        It is priced by that answer and all others. InvalidInputError: it is no answer for it.
        """
        known = [answer.priced, *(priced for priced in self.priced if priced != answer.priced)]
        return import_hlo(
            self.default.before,
            assigned=answer.assigned,
            priced=known,
            hardware=self.target.hardware,
            name=self.name,
            origin=self.origin,
            trips=self.trips,
        )

    def program_of(self, answer: Compiled) -> Program:
        """As read(), of an answer to a request.

        CompilerError: it is no plan. Asked with other settings, the compiler may rewrite
        instructions.
        """
        with self._asked_otherwise():
            return self.read(answer)

    def plan_of(self, answer: Assigned) -> Plan:
        """Returns what an answer carries out, as a plan of `program`.

        CompilerError: as of program_of().
        """
        with self._asked_otherwise():
            there = import_hlo(
                self.default.before,
                assigned=answer.assigned,
                hardware=self.target.hardware,
                name=self.name,
                trips=self.trips,
            )
        return self.as_plan_of(self.program, _plan_of(there), there)

    def with_prices(self, answers: Sequence[Compiled]) -> "Capture":
        """Returns the same with the prices of more answers."""
        more = [answer.priced for answer in answers if answer.priced not in self.priced]
        return dataclasses.replace(self, priced=(*self.priced, *dict.fromkeys(more)))

    def as_plan_of(self, program: Program, plan: Plan, made_for: Program) -> Plan:
        """Returns a plan of one of this capture's programs as a plan of another.

        The programs differ in prices only.
        """
        text = plan.to_json(made_for).replace(made_for.fingerprint, program.fingerprint)
        return Plan.from_json(text, program)

    def check_can_compile(self) -> str:
        """Returns the module to compile. InvalidInputError: the capture has none."""
        if self.module is None:
            raise InvalidInputError(
                f"{self.name}: captured without its StableHLO module, so it can't be compiled again"
            )
        return self.module

    @contextlib.contextmanager
    def _asked_otherwise(self) -> Iterator[None]:
        try:
            yield
        except InvalidInputError as error:
            raise CompilerError(f"{self.name}: the answer is no plan of it: {error}") from None

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes it to a folder, with the program as program.mgp."""
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        files = {_BEFORE: self.default.before, _ASSIGNED: self.default.assigned}
        for number, priced in enumerate(self.priced):
            files[_PRICED.format("default" if number == 0 else f"{number:03}")] = priced
        if self.module is not None:
            files[_MODULE] = self.module.encode()
        # What was there before goes last, so that whatever ends this leaves prices behind.
        for name, data in files.items():
            _write_gzip(folder / name, data)
        write_file(os.fsencode(folder / "program.mgp"), self.program.to_bytes())
        for stale in (*folder.glob(_PRICED.format("*")), folder / _MODULE):
            if stale.name not in files:
                stale.unlink(missing_ok=True)
        meta = {
            "name": self.name,
            "target": self.target.title,
            "fast_mib": self.target.fast_mib,
            "preloads": self.target.hardware.max_preloads,
            "versions": self.versions,
            "trips": dict(self.trips),
        }
        write_file(os.fsencode(folder / _META), (json.dumps(meta, indent=1) + "\n").encode())


def is_capture(folder: str | os.PathLike[str]) -> bool:
    """Returns whether Capture.save has written to a folder."""
    return (pathlib.Path(folder) / _META).exists()


def load_capture(folder: str | os.PathLike[str]) -> Capture:
    """Reads what Capture.save wrote. MissingFileError, InvalidInputError."""
    folder = pathlib.Path(folder)
    meta_path = folder / _META
    try:
        meta = json.loads(read_file(os.fsencode(meta_path)))
        target = find_target(meta["target"], meta.get("fast_mib"), meta.get("preloads"))
        name, versions = str(meta["name"]), {str(k): str(v) for k, v in meta["versions"].items()}
        trips = {str(k): int(v) for k, v in meta.get("trips", {}).items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, InvalidInputError):
            raise InvalidInputError(f"{meta_path}: {error}") from None
        raise InvalidInputError(
            f"{meta_path}: not the description of a capture ({error!r})"
        ) from None
    first = _PRICED.format("default")
    rest = sorted(path.name for path in folder.glob(_PRICED.format("*")) if path.name != first)
    priced = tuple(_read(folder / one) for one in [first, *rest])
    default = Compiled(_read(folder / _BEFORE), _read(folder / _ASSIGNED), priced[0])
    module = _read(folder / _MODULE).decode() if (folder / _MODULE).exists() else None
    return Capture(name, target, module, default, priced, versions, trips)


def capture(
    function: Callable,
    *args: Any,
    target: str = "tpu_v4i",
    fast_mib: int | None = None,
    name: str | None = None,
    compiler: Compiler | None = None,
    preloads: int | None = None,
    trips: Mapping[str, int] | None = None,
) -> Capture:
    """Compiles a JAX function for a chip that needn't be there.

    function, args: as for jax.jit(function).lower(*args); args may be jax.ShapeDtypeStruct.
    target: one of TARGETS, or a topology (v4 lite:1x1). For several chips it has their shape, as in
    tpu_v5e:2x2, and the arguments carry shardings over a mesh of as many devices.
    fast_mib: MiB of fast memory; None is all. Prices may change with it (Target.note).
    name: of the program; None is the function's.
    compiler: one made for this target, to share its process and cache; None starts one.
    preloads: the most parameters that a plan may preload; None is what XLA does by itself, one.
    trips: trip counts by the name of the loop's `while`, for loops whose own can't be read from the
    module; those that lack one are the program's loops without trips_known.

    It takes two compiles: as XLA does by itself, and with everything in main memory. Where the
    compiler can't do the latter, what a plan decides about is kept in main memory in a third.
    InvalidInputError: the function can't be lowered, there is no such target, the function is for
    another number of devices, XLA's own plan takes more than its fast memory, or a name in `trips`
    is no loop's. CompilerError: the compiler refused, ended or took too long.
    """
    chip = find_target(target, fast_mib, preloads)
    module = lower(function, *args)
    title = name or getattr(function, "__name__", "program").strip("<>")
    return capture_module(module, chip, title, compiler, trips)


def capture_module(
    module: str,
    target: Target,
    name: str,
    compiler: Compiler | None = None,
    trips: Mapping[str, int] | None = None,
) -> Capture:
    """Captures StableHLO text, as capture() does."""
    _check_devices(name, device_count(module), target)
    with shared(compiler, target, for_plans=False) as ask:
        default = ask.compile(module)
        captured = Capture(
            name, target, module, default, (default.priced,), ask.versions, dict(trips or {})
        )
        captured.program  # noqa: B018 (it is read here, so that what is wrong with it shows here)
        try:
            in_main = ask.compile(module, ALL_MAIN)
        except (CompilerEndedError, CompilerRefusedError):
            # Some programs need a few buffers in fast memory that no plan decides about.
            ask.check_takes_plans()
            kept = mostly_in_main(captured.program, default.before, 1.0, lambda: 0.0)
            in_main = ask.compile(module, kept.options())
        return captured.with_prices([in_main])


def capture_dump(
    folder: str | os.PathLike[str],
    target: str,
    fast_mib: int | None = None,
    name: str | None = None,
    preloads: int | None = None,
    trips: Mapping[str, int] | None = None,
) -> Capture:
    """Captures the largest program in a folder that XLA dumped, without compiling.

    XLA dumps with XLA_FLAGS='--xla_dump_to=FOLDER --xla_dump_hlo_as_proto'. MissingFileError:
    nothing was dumped there. InvalidInputError: it was compiled for another target.
    """
    answer = read_dump(folder, Compiled)
    title = name or pathlib.Path(folder).resolve().name
    chip = find_target(target, fast_mib, preloads)
    _check_devices(title, device_count_of_proto(answer.before), chip)
    modules = sorted(
        pathlib.Path(folder).glob("*/module.mlir"), key=lambda path: path.stat().st_size
    )
    module = _mlir_text(modules[-1]) if modules else None
    captured = Capture(
        title, chip, module, answer, (answer.priced,), {"dump": title}, dict(trips or {})
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
def shared(compiler: Compiler | None, target: Target, for_plans: bool = True) -> Iterator[Compiler]:
    """Lends the compiler given, and leaves it open; None: one for the length of the block.

    for_plans: whether it will be asked for plans. InvalidInputError: it is for another target.
    MissingOptionError: the installed one takes no plans.
    """
    if compiler is None:
        with Compiler(target) as own, shared(own, target, for_plans) as lent:
            yield lent
        return
    if compiler.target != target:
        raise InvalidInputError(
            f"compiler: found one for {compiler.target}, the program is for {target}"
        )
    if for_plans:
        compiler.check_takes_plans()
    yield compiler


def _plan_of(program: Program) -> Plan:
    """Returns XLA's own plan, which a program has if it was read with `assigned`."""
    assert program.xla_plan is not None, "the module after assignment has a plan"
    return program.xla_plan


def _mlir_text(path: pathlib.Path) -> str | None:
    data = path.read_bytes()
    # Names in bytecode are not readable here.
    return data.decode() if not data.startswith(b"ML\xefR") else None


def _write_gzip(path: pathlib.Path, data: bytes) -> None:
    write_file(os.fsencode(path), gzip.compress(data, compresslevel=9, mtime=0))


def _read(path: pathlib.Path) -> bytes:
    return read_file(os.fsencode(path))  # It unpacks gzip.
