"""A plan becomes the program: written into the module, checked, priced and linked by the compiler.

The compiler looks at nothing of what it is given between its phases. So each plan is written by
write_plan(), looked at by check_phase_module(), and each isolated module that is made for it is
proven to be the compiler's own by its hash.
"""

import dataclasses
import itertools
import math
import time
from collections.abc import Mapping
from typing import NoReturn

from mallocgame._core import (
    Hardware,
    InstructionPlacement,
    PlacedModule,
    Plan,
    Program,
    Report,
    all_main_plan,
    check_phase_module,
    place_isolated_module,
    simulate,
    timeline,
    write_plan,
)
from mallocgame.errors import InvalidInputError, MallocGameError
from mallocgame.xla.captures import ALL_MAIN, Capture, capture_module
from mallocgame.xla.claims import Calibrated, Order, calibrated_of, claimed_part, cost_ps
from mallocgame.xla.compiler import Compiler
from mallocgame.xla.compiler_errors import CompilerEndedError, CompilerError, CompilerRefusedError
from mallocgame.xla.compiler_messages import CAPACITY, ROUNDING_BYTES
from mallocgame.xla.exploring import moved, placements_of
from mallocgame.xla.modules import main_memory_bytes
from mallocgame.xla.partial_programs import PartialProgram
from mallocgame.xla.phases import Crew, Lowered, Phases, Scheduled, Tell, quiet
from mallocgame.xla.prices import Placement, placement_of, prices_of

_VMEM = 1  # the memory space that fusions reserve parts of
_ALIGNMENT = 4096  # bytes
_CHIP_BYTES = "the fast memory of the chip"  # an answer that is kept
# What asks for it: a program of which a result is in fast memory.
_SMALL = """
module @small attributes {{mhlo.num_partitions = {devices} : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func public @main(%x: tensor<512x512xf32>, %w: tensor<512x512xf32>)
      -> tensor<512x512xf32> {{
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
    %1 = stablehlo.tanh %0 : tensor<512x512xf32>
    %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0]
        : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
    return %2 : tensor<512x512xf32>
  }}
}}
"""
# Instructions take more for themselves in some other placements than in XLA's: plans of two whole
# models were too high by so much at most.
_MARGIN = 5 << 18
LATE = "late"  # the rule of a plan whose code isn't there in its time
_ACCESSES_PER_SECOND = 1000  # of which a plan is written, about, until one is
_BATCH = 4  # isolated modules for each compiler, between looks at the clock


class PlanRefusedError(CompilerError):
    """A plan that can't be written, or of which the compiler makes something else.

    The rule is one of write_plan (mallocgame/hlo/write_plan.h), of check_phase_module
    (check_phase_module.h), "isolated", "code", "late" or "main-memory". The accesses are of the
    program that the plan is of.
    """


@dataclasses.dataclass(frozen=True)
class Written:
    """A plan in the compiler's own form, with everything that phase 3 links."""

    plan: Plan  # of `program`
    program: Program  # with the prices of this placement
    scheduled: Scheduled
    lowered: Lowered
    isolated: tuple[Lowered, ...]
    report: Report
    xla: Report  # XLA's default at the same prices
    order: Order | None = None  # of `program`; None is XLA's
    calibrated: Calibrated | None = None  # None: the program can't have calibrated prices
    # As PJRT serializes it; empty: it isn't linked.
    executable: bytes = dataclasses.field(default=b"", repr=False)

    @property
    def cost_ps(self) -> float:
        """What searches make small: the mean of the warm and the cold latency."""
        return cost_ps(self.report)


class Emitter:
    """Writes plans of one captured program, and has the compiler price and link them.

    It starts compilers that work side by side; close it, or use it as a context manager.

    jobs: how many; None is one for each processor.
    """

    def __init__(
        self, capture: Capture, compiler: Compiler, jobs: int | None = None, tell: Tell = quiet
    ) -> None:
        self.capture = capture
        self._tell = tell
        self._crew = Crew(compiler, ALL_MAIN, jobs, tell)
        # As scheduled, with everything in main memory.
        self._scheduled = self._crew.first.schedule(capture.check_can_compile())
        self._calls = self._crew.first.lower(self._scheduled, kept=True).calls
        self.waiting: list[str] = []  # instructions that explore() didn't come to the end of
        # Bytes that an instruction takes for itself at most, in XLA's own plan and in main memory.
        self._most_scoped = 0
        self._xla_bytes = 0  # where XLA's own plan ends, with the most that its instructions take
        self._limit = 0  # bytes of fast memory that the chip has; 0: nobody knows
        # What a plan takes beside the code of single instructions, as the last ones did.
        self._write_seconds = len(capture.program.accesses) / _ACCESSES_PER_SECOND
        self._link_seconds = 0.0
        self._lowered = self._own_code(compiler)

    def __reduce__(self) -> NoReturn:
        """It has asked a compiler of this process."""
        raise TypeError("Emitter can't be pickled or copied: make another of its capture")

    def close(self) -> None:
        """Ends the compilers that it has started."""
        self._crew.close()

    def __enter__(self) -> "Emitter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(
        self,
        plan: Plan,
        hardware: Hardware | None = None,
        order: Order | None = None,
        until: float = math.inf,
    ) -> Written:
        """Writes a plan of `capture.program`, and has every instruction priced where it then is.

        hardware: that the plan was made for; None is the target's.
        order: the plan is of the program with its instructions in this order
        (Program.reordered()), and so is what comes back.
        until: time.monotonic() at which the code of single instructions is there, and the module
        could be written again. Code that gains most by the prices known comes first.

        `capture` knows these prices then, so its program is another one (Plan.rebased_on()).
        PlanRefusedError, also, with the rule LATE, of the instructions whose code isn't there in
        time; other CompilerErrors.
        """
        begin = time.monotonic()
        program, base = self._ordered(order), self._scheduled
        hardware = self.capture.target.hardware if hardware is None else hardware
        try:
            module, assignment, plan = write_plan(
                program, plan, base.module, base.assignment, hardware
            )
            check_phase_module(base.module, base.assignment, module, assignment, hardware)
        except MallocGameError as error:
            raise _refused(program.name, error) from None
        scheduled = base.having(module, assignment)
        lowered = self._crew.first.lower(scheduled)
        placed = PlacedModule(module, assignment)
        self._write_seconds = time.monotonic() - begin
        # What is late can then be left out, and the module written again.
        last = until - self._write_seconds
        isolated, late = self._lower_isolated(lowered, placed, _gains(program, plan), last)
        prices = prices_of(lowered, isolated, placed, hardware.fast_memory_space)
        self.capture = self.capture.with_prices(prices)
        if late:
            raise PlanRefusedError(
                f"{program.name}: the time for this plan was over before the compiler had "
                f"compiled {len(late)} of its instructions"
            ).about(LATE, late)
        self._check_fits(program, plan, lowered, isolated)
        report = simulate(program, plan)
        code = tuple(isolated.values())
        written = Written(plan, program, scheduled, lowered, code, report, self.xla, order)
        return self.priced(written)

    def _check_fits(
        self, program: Program, plan: Plan, lowered: Lowered, isolated: Mapping[str, Lowered]
    ) -> None:
        """PlanRefusedError: an instruction takes more for itself than there is above the plan.

        Phase 3 would refuse it: the compiler adds what an instruction takes to where the whole plan
        ends, wherever the plan ends while it runs. Phase 2b says what instructions take.
        """
        if not self._limit:
            return
        left = self._limit - _end_of(program, plan)
        beyond = {
            name: isolated[called].scoped_bytes - left
            for name, called in lowered.calls.items()
            if called in isolated and isolated[called].scoped_bytes > left
        }
        if not beyond:
            return
        first = max(beyond, key=beyond.__getitem__)
        raise PlanRefusedError(
            f"{program.name}: fast memory is exceeded by {beyond[first]} bytes at '{first}', and "
            f"at {len(beyond) - 1} other instructions, with what they take for themselves"
        ).about(CAPACITY, list(beyond), exceeded_bytes=beyond[first])

    @property
    def look_seconds(self) -> float:
        """What a plan takes beside the code of single instructions, as the last one did.

        Of the first one it is an estimate.
        """
        return self._write_seconds + self._link_seconds

    @property
    def xla(self) -> Report:
        """What XLA's default costs, at the prices that `capture` knows."""
        return simulate(self.capture.program, self.capture.xla_plan)

    def priced(self, written: Written) -> Written:
        """Returns a written plan, and XLA's default, at the prices that `capture` knows."""
        own, program = self.capture.program, self._ordered(written.order)
        plan, xla = written.plan.rebased_on(program), self.xla
        return dataclasses.replace(
            written,
            plan=plan,
            program=program,
            report=simulate(program, plan),
            xla=xla,
            calibrated=calibrated_of(
                own, plan, self.capture.xla_plan, claimed_part(xla), written.order
            ),
        )

    def _ordered(self, order: Order | None) -> Program:
        program = self.capture.program
        return program if order is None else program.reordered(order)

    def main_bytes(self, written: Written | None = None) -> int:
        """Returns the bytes of main memory of a written plan; of None those of XLA's order.

        They are all allocations there of the buffer assignment: parameters, results, constants and
        what the program shares out among values. Of XLA's order they are what it needs with
        nothing in fast memory.
        """
        scheduled = self._scheduled if written is None else written.scheduled
        return main_memory_bytes(scheduled.assignment)

    def explore(self, until: float) -> int:
        """Prices placements of single instructions, those that tell most first.

        until: time.monotonic() at which it ends, whatever the compiler is at. Returns how many it
        has priced, and `capture` knows them then, `waiting` the instructions with a placement that
        was to be priced and isn't. What the compiler refuses is left out. CompilerError.
        """
        program, fast = self.capture.program, self.capture.target.hardware.fast_memory_space
        placed = PlacedModule(self._scheduled.module, self._scheduled.assignment)
        calls = {
            instruction: called
            for instruction, called in self._calls.items()
            if called in self._scheduled.isolated
        }
        wanted = (
            (instruction, where, placement)
            for instruction, arrays in placements_of(program, self._scheduled, calls)
            for placement in [moved(placed.placement([instruction]), arrays, fast)]
            if (where := placement_of(placement, fast))
            not in self.capture.prices.get(instruction, {})
        )
        known: dict[str, dict[Placement, int]] = {}
        late: list[tuple[str, Placement, tuple[tuple[int, ...], ...]]] = []
        done = 0
        while time.monotonic() < until:
            batch = list(itertools.islice(wanted, self._crew.jobs * _BATCH))
            if not batch:
                break
            missing = {}
            for instruction, where, placement in batch:
                name = f"{self._calls[instruction]}.{where[0]}.{where[1]}"
                isolated = self._isolated(instruction, name, placement)
                missing[instruction, where, tuple(map(tuple, placement.shared))] = isolated
            with self._crew.first.compiler.until(until):
                priced = self._crew.lower_isolated(
                    self._scheduled,
                    missing,
                    leave_out_refused=True,
                    called=lambda key: key[0],
                    late=late,
                )
            for key, made in priced.items():
                instruction, where, shared = key
                for known_as in made.hashes:
                    self._lowered[known_as, shared] = made
                for cycles in made.cycles.values():
                    known.setdefault(instruction, {})[where] = cycles
                done += 1
        left = {calls[instruction] for instruction, *_ in itertools.chain(late, wanted)}
        self.waiting = [instruction for instruction, called in calls.items() if called in left]
        self.capture = self.capture.with_prices(known)
        return done

    def fast_bytes(self) -> int:
        """Returns the fast memory that plans may take: the chip's, less what fusions reserve.

        Where phase 2b doesn't say what they reserve, XLA's own plan is moved to the end of fast
        memory, and the compiler says by how much that is too far. Where it can't be asked so, it is
        the target's. CompilerError.
        """
        target = self.capture.target
        if target.fast_mib is not None or target.hardware.fast_memory_space != _VMEM:
            return target.hardware.fast_bytes
        limit = self._chip_bytes()
        if not limit:
            return target.hardware.fast_bytes
        if self._most_scoped and self._xla_bytes <= limit:
            self._limit = limit
            capacity = limit - self._most_scoped - _MARGIN
        else:  # As on v7x, whose compiler counts otherwise than _check_fits().
            end = limit - ROUNDING_BYTES
            refused = self._refusal_at(end)
            capacity = limit if refused is None else limit - (refused.used_bytes - end)
        known = (capacity - ROUNDING_BYTES) // _ALIGNMENT * _ALIGNMENT
        return max(target.hardware.fast_bytes, known)

    def _chip_bytes(self) -> int:
        """Returns the fast memory of the chip, as a refusal says it; 0: none does.

        A small program asks for all of the chip's, because of a whole model the question takes a
        minute.
        """
        compiler = self._crew.first.compiler
        kept = compiler.kept_phase(_CHIP_BYTES, [])
        if kept is not None:
            return int(kept[0])
        module = _SMALL.format(devices=compiler.target.devices)
        small = capture_module(module, compiler.target, "small", compiler)
        with Emitter(small, compiler, jobs=1) as emitter:
            refused = emitter._refusal_at(1 << 40)
        if refused is None:
            return 0
        compiler.keep_phase(_CHIP_BYTES, [], [str(refused.limit_bytes).encode()])
        return refused.limit_bytes

    def _refusal_at(self, end: int) -> CompilerRefusedError | None:
        """Returns what the compiler says to XLA's own plan moved so that it ends before `end`.

        None: it isn't refused for its bytes of fast memory.
        """
        program, plan = self.capture.program, self.capture.xla_plan
        hardware = program.hardware.replace(fast_bytes=end)
        residences = plan.residences.copy()
        residences["offset"] += (end - _end_of(program, plan)) // _ALIGNMENT * _ALIGNMENT
        moved = Plan.of(program, hardware, residences, plan.copies, plan.served_by)
        try:
            self.link(self.write(moved, hardware))
        except CompilerRefusedError as error:
            return error if error.rule == CAPACITY else None
        except (PlanRefusedError, CompilerEndedError):
            pass
        return None

    def _own_code(self, compiler: Compiler) -> dict["_Key", Lowered]:
        """Returns the code of XLA's own plan, as far as it is kept since the capture."""
        module, phases = self.capture.check_can_compile(), Phases(compiler)
        kept, in_main = phases.kept(module), self._crew.first.kept(module)
        for _, code in filter(None, (kept, in_main)):
            sizes = (one.scoped_bytes for one in code.values())
            self._most_scoped = max(self._most_scoped, *sizes, 0)
        if kept is None:
            return {}
        assigned, made = kept
        xla_end = _end_of(self.capture.program, self.capture.xla_plan)
        self._xla_bytes = xla_end + max((one.scoped_bytes for one in made.values()), default=0)
        lowered = phases.lower(assigned, kept=True)
        sites = _sites(lowered)
        placed = PlacedModule(assigned.module, assigned.assignment)
        return {
            _key(called, placed.placement(sites[called])): code
            for called, code in made.items()
            if called in sites and called in code.hashes
        }

    def link(self, written: Written) -> Written:
        """Returns a plan with its executable. CompilerError."""
        begin = time.monotonic()
        linked = self._crew.first.link(written.scheduled, written.lowered, written.isolated)
        self._link_seconds = time.monotonic() - begin
        return dataclasses.replace(written, executable=linked)

    def _lower_isolated(
        self, lowered: Lowered, placed: PlacedModule, gains: Mapping[str, int], until: float
    ) -> tuple[dict[str, Lowered], list[str]]:
        """Returns the code that a module calls, by hash, and the instructions that are late.

        gains: ps, by instruction. until: as for write().
        """
        sites = _sites(lowered)
        keys = {}
        missing: dict[_Key, PartialProgram] = {}
        worth = {wanted: -sum(gains[name] for name in at) for wanted, at in sites.items()}
        for wanted in sorted(sites, key=worth.__getitem__):
            placement = placed.placement(sites[wanted])
            keys[wanted] = key = _key(wanted, placement)
            if key not in self._lowered:
                missing[key] = self._isolated(sites[wanted][0], wanted, placement)
        late: list[_Key] | None = None if until == math.inf else []
        for key, made in self._crew.lower_isolated(
            self._scheduled, missing, called=lambda key: sites[key[0]][0], late=late, until=until
        ).items():
            self._check_is(key[0], made, sites[key[0]][0])
            self._lowered[key] = made
        code = {wanted: self._lowered[key] for wanted, key in keys.items() if key in self._lowered}
        return code, [name for wanted, at in sites.items() if wanted not in code for name in at]

    def _isolated(
        self, instruction: str, wanted: str, placement: InstructionPlacement
    ) -> PartialProgram:
        """Returns the isolated module of an instruction in a placement, called `wanted`."""
        own = self._calls.get(instruction, "")
        source = self._scheduled.isolated.get(own)
        if source is None:
            raise PlanRefusedError(
                f"{self.capture.name}: '{instruction}' has no isolated module to be lowered from"
            ).about("isolated", [instruction])
        name = source.name.replace(own, wanted)
        try:
            module = place_isolated_module(source.program, placement, name)
        except InvalidInputError as error:
            refused = _refused(f"{self.capture.name}: '{instruction}'", error)
            raise refused.about(error.rule, [instruction]) from None
        return dataclasses.replace(source, program=module, name=name)

    def _check_is(self, wanted: str, made: Lowered, instruction: str) -> None:
        """PlanRefusedError: it isn't the code that the compiler itself would make."""
        if wanted not in made.hashes:
            raise PlanRefusedError(
                f"{self.capture.name}: the isolated module of '{instruction}' has hash "
                f"{', '.join(sorted(made.hashes))}, the compiler wants {wanted}"
            ).about("code", [instruction])


_Key = tuple[str, tuple[tuple[int, ...], ...]]  # a hash, and the arrays that share bytes


def _key(called: str, placement: InstructionPlacement) -> _Key:
    return called, tuple(map(tuple, placement.shared))


def _end_of(program: Program, plan: Plan) -> int:
    at = plan.residences
    return int((at["offset"] + program.buffers["size_bytes"][at["buffer"]]).max(initial=0))


def _gains(program: Program, plan: Plan) -> dict[str, int]:
    """Returns how much less time each instruction takes than in main memory, by known prices."""
    main, own = (timeline(program, each)["compute_ps"] for each in (all_main_plan(program), plan))
    return dict(zip(program.instruction_names, (main - own).tolist(), strict=True))


def _sites(lowered: Lowered) -> dict[str, list[str]]:
    """Returns the instructions of a module that call each code that is not in it, by hash."""
    sites: dict[str, list[str]] = {}
    for instruction, wanted in lowered.calls.items():
        if wanted not in lowered.hashes:
            sites.setdefault(wanted, []).append(instruction)
    return sites


def _refused(where: str, error: MallocGameError) -> PlanRefusedError:
    """Returns what an error says of a plan."""
    return PlanRefusedError(f"{where}: {error}").about(
        error.rule, error.instructions, error.accesses, error.exceeded_bytes
    )
