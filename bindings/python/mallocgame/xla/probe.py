"""What the compiler would do with a request, without the wait for its code generation."""

import contextlib
import dataclasses
import functools
import itertools
import math
import pathlib
import re
import time
from collections.abc import Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from mallocgame._core import READ, Plan, Program, Report, find_uses, simulate
from mallocgame._jobs import cores
from mallocgame.programs import import_hlo
from mallocgame.xla.captures import Capture
from mallocgame.xla.claims import cost_ps
from mallocgame.xla.compiler import Compiler, CompilerError, CompilerRefusedError, ending_early
from mallocgame.xla.modules import Assigned
from mallocgame.xla.negotiate import PATIENCE, CarriedOut, Refusal, Tell, negotiate, quiet
from mallocgame.xla.overrides import SMALL_BYTES, Request
from mallocgame.xla.settings import Use

Key = TypeVar("Key")

_AVAILABLE = re.compile(r"^MemAvailable:\s*(\d+) kB$", re.MULTILINE)
_MEMORY_SHARE = 1 / 2  # of the memory that is available, for further compilers
_NEEDS = re.compile(r"total memory required[^(]*\(([\d.]+)([KMG])\)")
_MIB = {"K": 2.0**-10, "M": 1.0, "G": 2.0**10}
_REFUSALS_SHARE = 1 / 8  # of the probes for which there is time, for single copies of one request
_DOUBT = 0.02  # share of a predicted price that is added to it
_HOPE = 0.5  # share of a predicted price that it may be too high
# The shares of main memory that the compiler is told there is: too little, but not so little that
# it picks another schedule to save some.
_OF_ARGUMENTS, _OF_NEEDS = 0.9, (0.7, 0.95)


@dataclasses.dataclass(frozen=True)
class Probe:
    """What the compiler would do with a request."""

    program: Program
    plan: Plan  # of `program`
    request: Request = dataclasses.field(repr=False)  # what was granted
    refusals: tuple[Refusal, ...] = ()

    @functools.cached_property
    def report(self) -> Report:
        """What the plan costs by the prices of `program`.

        Prices of placements that no compile has seen are predicted.
        """
        return simulate(self.program, self.plan)

    @property
    def cost(self) -> float:
        """What searches compare: cost_ps(), and something more for what is predicted.

        A search picks predictions where they err.
        """
        return cost_ps(self.report) + _DOUBT * self.report.predicted_ps

    @property
    def hoped_ps(self) -> float:
        """What cost_ps() may be in truth, if what is predicted is far too high."""
        return cost_ps(self.report) - _HOPE * self.report.predicted_ps

    def exceeds(self, most: tuple[int, int]) -> bool:
        """Returns whether either latency is above its limit."""
        return self.report.latency_ps > most[0] or self.report.latency_cold_ps > most[1]

    def priced_by(self, capture: Capture) -> "Probe":
        """Returns the same with the prices that a capture knows by now."""
        plan = capture.as_plan_of(capture.program, self.plan, self.program)
        return dataclasses.replace(self, program=capture.program, plan=plan)


class _Looking:
    """One compiler that is asked for probes, by one thread at a time."""

    def __init__(self, compiler: Compiler, main_memory: int | str) -> None:
        self.compiler = compiler
        self._main_memory = main_memory
        self.asked, self.seconds = 0, 0.0  # all probes so far

    def compile(self, module: str, options: dict[str, str]) -> Assigned:
        """As Compiler.compile(), but without prices."""
        begin = time.monotonic()
        try:
            if isinstance(self._main_memory, str):
                return self.compiler.compile(module, options)
            return self.compiler.look(module, options, self._main_memory)
        finally:
            self.asked += 1
            self.seconds += time.monotonic() - begin


class Prober:
    """Probes the compiler with requests for one captured program.

    Where the compiler can't be stopped early a probe is a whole compile.

    jobs: how many compilers are asked at the same time, if there are several requests; None is one
    for each processor, as far as there is memory for them. Close it to end all but `compiler`.
    """

    def __init__(
        self, capture: Capture, compiler: Compiler, tell: Tell = quiet, jobs: int | None = 1
    ) -> None:
        self.target = compiler.target
        self.until = math.inf  # time.monotonic() after which no probe begins
        self._tell = tell
        main_memory = find_main_memory(capture, compiler)
        count = _most_at_once(compiler) if jobs is None else jobs
        others = [compiler.another() for _ in range(count - 1)]
        self._lookers = [_Looking(one, main_memory) for one in (compiler, *others)]
        if isinstance(main_memory, str):
            tell(f"every look is a whole compile: {main_memory}")

    @property
    def jobs(self) -> int:
        """How many compilers are asked at the same time."""
        return len(self._lookers)

    def close(self) -> None:
        """Ends the compilers' processes, but for the one that it was given."""
        for looker in self._lookers[1:]:
            looker.compiler.close()

    def compile(self, module: str, options: dict[str, str]) -> Assigned:
        """As Compiler.compile(), but without prices."""
        return self._lookers[0].compile(module, options)

    @property
    def patience(self) -> int:
        """How many refusals of single copies there is time for; of a large program, few or none."""
        left = self.until - time.monotonic()
        seconds = sum(one.seconds for one in self._lookers)
        if seconds <= 0 or left == math.inf:
            return PATIENCE
        probes = max(0.0, left) * sum(one.asked for one in self._lookers) / seconds
        return int(min(float(PATIENCE), _REFUSALS_SHARE * probes))

    def ask(self, capture: Capture, wanted: Request) -> Probe:
        """Probes with as much of a request as the compiler grants.

        CompilerError: it grants nothing.
        """
        return self._ask(capture, wanted, self._lookers[0], self._tell)

    def ask_each(
        self, capture: Capture, requests: Iterable[tuple[Key, Request]]
    ) -> Generator[tuple[Key, Probe | None], None, None]:
        """Probes with each request, and gives the answers as they come; None: it grants nothing.

        requests: with whatever tells their answers apart. The next is drawn when a compiler is
        free, so that it may be made of the answers until then. None is drawn when the time is over.
        Close the generator to end what is under way.
        """
        waiting = iter(requests)
        free, running = list(self._lookers), dict[Future[Probe | None], tuple[Key, _Looking]]()
        with ThreadPoolExecutor(len(free)) as pool:
            try:
                while True:
                    while free and time.monotonic() < self.until:
                        drawn = next(waiting, None)
                        if drawn is None:
                            break
                        key, wanted = drawn
                        looker = free.pop(0)
                        answer = pool.submit(self._answer, capture, wanted, looker)
                        running[answer] = key, looker
                    if not running:
                        return
                    for answer in wait(running, return_when=FIRST_COMPLETED).done:
                        key, looker = running.pop(answer)
                        free.append(looker)
                        yield key, answer.result()
            finally:
                for _, looker in running.values():
                    looker.compiler.stop()
                wait(running)
                for _, looker in running.values():
                    looker.compiler.close()

    def verify(self, capture: Capture, probe: Probe) -> CarriedOut:
        """Compiles what was probed. CompilerError."""
        options = probe.request.options()
        compiler = self._lookers[0].compiler
        answer = compiler.compile(capture.check_can_compile(), options)
        granted = self.target.options | options
        predicted_ps = probe.report.latency_ps
        return CarriedOut(
            granted,
            capture.program_of(answer),
            answer,
            probe.request,
            probe.plan,
            predicted_ps,
            probe.refusals,
        )

    def _ask(self, capture: Capture, wanted: Request, looker: _Looking, tell: Tell) -> Probe:
        granted, answer, refusals = negotiate(
            capture, capture.program, wanted, looker, tell, self.until, self.patience
        )
        return Probe(capture.program, capture.plan_of(answer), granted, refusals)

    def _answer(self, capture: Capture, wanted: Request, looker: _Looking) -> Probe | None:
        """Probes in a thread, where nothing is told."""
        try:
            return self._ask(capture, wanted, looker, quiet)
        except CompilerError:
            return None


def _most_at_once(compiler: Compiler) -> int:
    """Returns how many compilers like this one there are processors and memory for."""
    needs, available = compiler.most_bytes, 0
    with contextlib.suppress(OSError):
        found = _AVAILABLE.search(pathlib.Path("/proc/meminfo").read_text())
        available = 0 if found is None else int(found[1]) << 10
    further = int(_MEMORY_SHARE * available / needs) if needs else 0
    return min(len(cores()), 1 + further)


def uses_of_large_buffers(program: Program, before: bytes) -> list[Use]:
    """Returns the uses that copies may serve. before: the HloProto that `program` was made of."""
    rows = program.accesses
    sizes = program.buffers["size_bytes"][rows["buffer"]]
    return [
        (program.instruction_names[rows["tick"][access]], operand)
        for access, operand, index, _ in find_uses(program, before)
        if operand >= 0
        and not index
        and rows["kind"][access] == READ
        and sizes[access] >= SMALL_BYTES
    ]


def most_doubtful(probes: Iterable[Probe], than_ps: float) -> Probe | None:
    """Returns the probe whose prices are most worth a compile; None: none can be faster.

    than_ps: the cost_ps() that it should go below.
    """
    doubtful = [
        probe for probe in probes if probe.report.predicted_ps > 0 and probe.hoped_ps < than_ps
    ]
    return min(doubtful, key=lambda probe: probe.hoped_ps, default=None)


def find_main_memory(capture: Capture, compiler: Compiler) -> int | str:
    """Finds so little main memory that the compiler ends after assigning this very schedule.

    Returns the MiB of it for Compiler.look(), or why there is no such size.
    """
    module = capture.check_can_compile()
    try:
        of_arguments = max(1, int(_OF_ARGUMENTS * capture.program.argument_bytes / 2**20))
        why = _other_schedule(capture, compiler, of_arguments)
        if why is None:
            return of_arguments
        for guess in _shares_of_needs(module, compiler, of_arguments):
            why = _other_schedule(capture, compiler, guess)
            if why is None:
                return guess
    except CompilerError as error:
        why = str(error)
    return why


def _shares_of_needs(module: str, compiler: Compiler, mib: int) -> list[int]:
    """Returns some MiB below those that the program needs, none if `mib` are enough for it."""
    try:
        compiler.compile(module, ending_early(mib))
    except CompilerRefusedError as error:
        needs = _NEEDS.search(str(error))
        if needs is not None:
            return [max(1, int(share * float(needs[1]) * _MIB[needs[2]])) for share in _OF_NEEDS]
    return []


def _other_schedule(capture: Capture, compiler: Compiler, main_mib: int) -> str | None:
    """Returns where the schedule of a look differs from that of the capture; None: nowhere."""
    answer = compiler.look(capture.check_can_compile(), {}, main_mib)
    there = import_hlo(answer.before, hardware=capture.target.hardware).instruction_names
    here = capture.program.instruction_names
    if there == here:
        return None
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(here, there, strict=False))
    tick = sum(1 for _ in same)
    return (
        f"with {main_mib} MiB of main memory the schedule has {len(there)} instructions, not "
        f"{len(here)}, and is another from number {tick} on"
    )
