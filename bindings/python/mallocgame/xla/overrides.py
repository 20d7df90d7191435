"""A plan as compiler options.

There is one override for each buffer, or each use of one, that the plan decides about. What the
compiler does with them was found by trying (jax 0.10.2, libtpu 0.0.51):

- keep_in_default_memory on what a kernel requires in fast memory ends the compiler. On tpu7x it
  lets kernels require that of most of their operands.
- keep_in_default_memory on a buffer's definition keeps it in main memory, but not where loops and
  branches use it, nor behind a loop: there it is another value. A prefetch for one of its uses does
  nothing then. On one use it does so for that use, and for the results of the using instruction as
  well, unless a size tells them apart.
- pin_in_alternate_memory on a definition keeps the buffer in fast memory up to its first loop or
  update, as a rule for uses that are kept in main memory too. On a use it does nothing. On a
  parameter it makes the caller responsible, so it is never written for one.
- prefetch on a use brings the buffer in for it and as a rule keeps it there for later uses. With
  strict_timing the copy starts at `logical_time` or it is an error. Without, the compiler weighs
  the bandwidth, begins where it likes, or refuses.

A loop uses what it carries as one element of its operand. From text that does not parse the
compiler ignores the rest without a word.
"""

import collections
import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Mapping

import numpy as np

from mallocgame import _core
from mallocgame._core import (
    INSTRUCTION,
    LOOP_ENTRY,
    UNDEFINED,
    UPDATE,
    WRITE,
    Plan,
    Program,
    all_main_plan,
    find_uses,
)
from mallocgame.xla.settings import (
    ABOUT_PRELOADS,
    EAGERNESS,
    PRELOADS,
    WHOLE_COPIES,
    Use,
    check_settings,
    eagerness_text,
    exactly,
)

_Use = tuple[int, int, tuple[int, ...], int | None]  # a row of find_uses()
_RESULT = -1  # what find_uses gives in place of an operand's number
SMALL_BYTES = 16 * 1024  # The game does not ask about smaller buffers.
_TICKS_BEFORE_LOOP = 2  # the fewest that the compiler needs, as a rule

KEEP, PIN, PREFETCH = "keep_in_default_memory", "pin_in_alternate_memory", "prefetch"


@dataclasses.dataclass(frozen=True)
class Override:
    """One thing asked of the compiler."""

    action: str  # KEEP, PIN or PREFETCH
    buffer: int
    accesses: tuple[int, ...]  # those of the program that it is about
    instruction: str  # which defines the buffer (operand None), or uses it
    operand: int | None
    index: tuple[int, ...]  # of the array, if it is in a tuple
    time: int | None = None  # of a PREFETCH: the logical time of XLA after which the copy starts
    strict: bool = True  # of a PREFETCH: whether it starts at exactly that time
    size: int | None = None  # of a KEEP: bytes of the buffer, where they tell it from the results

    def text(self) -> str:
        """Returns it as text proto, for xla_tpu_msa_tensor_overrides."""
        fields = [f'instruction_name_regex: "{exactly(self.instruction)}"']
        if self.operand is not None:
            fields.append(f"operand_number: {self.operand}")
        if self.size is not None:
            fields.append(f"size_gte: {self.size} size_lte: {self.size}")
        filter_name = "hlo_position_matcher" if self.operand is None else "hlo_operand_filter"
        settings = ""
        if self.action == PREFETCH:
            settings = f" logical_time: {self.time} " + (
                "strict_timing: true " if self.strict else ""
            )
        matcher = f"{filter_name} {{ {' '.join(fields)}{_index_text(self.index)} }}"
        return f"overrides {{ {matcher} {self.action} {{{settings}}} }}"


@dataclasses.dataclass(frozen=True)
class Request:
    """What a plan asks of the compiler."""

    overrides: tuple[Override, ...]
    preloads: tuple[str, ...]  # names of parameters
    # Of XLA's own method, other than it has by itself; names and values as in SETTINGS.
    settings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    # Whether a preload that can't be had is asked for as a copy at the start.
    fetched_preloads: bool = False
    # Names and bytes of buffers, in the order in which they get their places.
    order: tuple[tuple[str, int], ...] = ()
    # When copies for single uses begin, other than the setting says: late (0) to early (1).
    eagerness: Mapping[Use, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """InvalidInputError: a setting is none that a request may have."""
        check_settings(self.settings)

    def options(self) -> dict[str, str]:
        """Returns compiler options, as compile() and jax.jit() take them."""
        options = {PRELOADS: str(len(self.preloads)), **self.settings}
        if self.eagerness:
            options[EAGERNESS] = eagerness_text(self.eagerness, self.settings.get(EAGERNESS))
        if self.overrides:
            options["xla_tpu_msa_tensor_overrides"] = " ".join(one.text() for one in self.overrides)
        order = [_preload_text(name) for name in self.preloads]
        order += [
            _order_text(name, size, rank - len(self.order))
            for rank, (name, size) in enumerate(self.order)
        ]
        if order:
            options["xla_tpu_msa_sort_order_overrides"] = " ".join(order)
        return options

    def having(self, setting: str, value: str | None) -> "Request":
        """Returns the request with another value of a setting; None: XLA's own."""
        settings = {name: kept for name, kept in self.settings.items() if name != setting}
        if value is not None:
            settings[setting] = value
        preloads = self.preloads
        if setting in ABOUT_PRELOADS and preloads:  # It does nothing where they are named.
            settings.setdefault(PRELOADS, str(len(preloads)))
            preloads = ()
        return dataclasses.replace(self, preloads=preloads, settings=settings)

    def hurrying(self, use: Use, degree: str | None) -> "Request":
        """Returns the request with copies for a use at another time; None: as all others."""
        degrees = {one: kept for one, kept in self.eagerness.items() if one != use}
        if degree is not None:
            degrees[use] = degree
        return dataclasses.replace(self, eagerness=degrees)

    def without(self, refused: Iterable[Override]) -> "Request":
        """Returns the request without some overrides."""
        gone = set(refused)
        return dataclasses.replace(
            self, overrides=tuple(one for one in self.overrides if one not in gone)
        )


def request(program: Program, plan: Plan, before: bytes) -> Request:
    """Asks the compiler for `plan`. before: the HloProto that `program` was made of."""
    return _Translation(program, plan, before).run()


def as_xla_does(program: Program) -> Request:
    """Asks for XLA's own plan by saying only which parameters it preloads."""
    plan, names = _xla_plan(program), program.buffer_names
    preloaded = plan.residences["buffer"][plan.copies["residence"][plan.copies["preload"]]]
    return Request((), tuple(dict.fromkeys(names[buffer] for buffer in preloaded)))


def request_of(
    program: Program,
    before: bytes,
    kept: Mapping[int, Collection[int]],
    pinned: Iterable[int],
    prefetches: Iterable[tuple[int, int]],
    order: Iterable[int],
    preloads: Iterable[int],
    settings: Mapping[str, str],
) -> Request:
    """Asks for just this, and leaves all else to the compiler.

    kept: for buffers, accesses that main memory must serve; all of a buffer keep it there.
    pinned: buffers to be made in fast memory and to stay there. prefetches: accesses, and the ticks
    at which copies for them begin, at best. order: the buffers that come first. preloads: buffers.
    settings: of XLA's own method, as those of a Request.
    """
    translation = _Translation(program, None, before)
    for buffer, accesses in kept.items():
        if len(accesses) == len(translation.of_buffer[buffer]):
            translation.keep(buffer)
        else:
            for access in accesses:
                translation.keep_for_use(buffer, access)
    for buffer in pinned:
        translation.about_definition(PIN, buffer, translation.of_buffer[buffer])
    for access, begin in prefetches:
        translation.prefetch_at(access, begin)
    names, sizes = program.buffer_names, program.buffers["size_bytes"]
    return Request(
        tuple(translation.overrides),
        tuple(names[buffer] for buffer in preloads),
        settings,
        order=tuple((names[buffer], int(sizes[buffer])) for buffer in order),
    )


def ways_to_ask(program: Program, plan: Plan, before: bytes) -> tuple[Request, ...]:
    """Returns requests for `plan`, those that ask for least first.

    The first names only buffers that XLA by itself would place otherwise, the second gives the
    order of all beside, and the third names all. The less is named, the quicker the compiler
    answers and the less it refuses; but what is not named it may move.
    """
    whole = request(program, plan, before)
    unlike = differing_buffers(program, _xla_plan(program), plan)
    fewest = changed(as_xla_does(program), program, plan, before, unlike)
    return fewest, dataclasses.replace(fewest, order=whole.order), whole


def differing_buffers(program: Program, one: Plan, other: Plan) -> list[int]:
    """Returns the buffers, small ones left out, that two plans serve from different memory."""
    accesses = (one.served_by >= 0) != (other.served_by >= 0)
    buffers = np.unique(program.accesses["buffer"][accesses])
    large = program.buffers["size_bytes"][buffers] >= SMALL_BYTES
    return [int(buffer) for buffer in buffers[large]]


def bottom_up(plan: Plan) -> list[int]:
    """Returns the buffers in fast memory by their lowest offsets."""
    lowest: dict[int, int] = {}
    for row in plan.residences:
        buffer, offset = int(row["buffer"]), int(row["offset"])
        lowest[buffer] = min(lowest.get(buffer, offset), offset)
    return sorted(lowest, key=lambda buffer: (lowest[buffer], buffer))


def filled_by(plan: Plan) -> dict[int, np.void]:
    """Returns the copy that fills a residence first, by residence."""
    first: dict[int, np.void] = {}
    for copy in plan.copies[plan.copies["kind"] == _core.PREFETCH]:
        first.setdefault(int(copy["residence"]), copy)
    return first


def replaced_in(plan: Plan) -> set[int]:
    """Returns the ticks of plain copies that transfers take the place of.

    XLA replaces one by itself if its operand is free to be prefetched, so no request may keep that
    in main memory.
    """
    return {int(tick) for tick in plan.copies["replaces"] if tick >= 0}


def changed(
    old: Request, program: Program, plan: Plan, before: bytes, buffers: Collection[int]
) -> Request:
    """Returns `old`, but asks for these buffers as `plan` wants them."""
    wanted = _Translation(program, plan, before)
    for buffer in sorted(buffers):
        wanted.ask_for(buffer)
    names = {wanted.buffer_names[buffer] for buffer in buffers}
    preloads = (*wanted.preloads, *(name for name in old.preloads if name not in names))
    # Which parameters are preloaded is no longer left to XLA.
    settings = {
        name: kept for name, kept in old.settings.items() if name != PRELOADS or not preloads
    }
    return dataclasses.replace(
        old,
        overrides=tuple(one for one in old.overrides if one.buffer not in buffers)
        + tuple(wanted.overrides),
        preloads=preloads[: program.hardware.max_preloads],
        settings=settings,
        fetched_preloads=old.fetched_preloads or wanted.fetched_preloads,
    )


def loops_resident(program: Program, before: bytes) -> Request:
    """Asks for all that loops carry and use to be in fast memory before the loop.

    XLA hardly ever does so by itself.
    """
    translation = _Translation(program, all_main_plan(program), before)
    for access, row in enumerate(program.accesses):
        buffer = program.buffers[row["buffer"]]
        comes_in = (
            row["kind"] == LOOP_ENTRY
            and not row["writes_in_loop"]
            and buffer["origin"] != UNDEFINED
        )
        if comes_in and buffer["size_bytes"] >= SMALL_BYTES:
            translation.prefetch_before_loop(access)
    return Request(tuple(translation.overrides), (), WHOLE_COPIES)


def mostly_in_main(
    program: Program, before: bytes, share: float, chance: Callable[[], float]
) -> Request:
    """Asks for a share of the buffers to stay in main memory; XLA places the others.

    They are drawn by `chance`, which is uniform in [0, 1), from those that no kernel requires
    in fast memory. before: the HloProto that `program` was made of.
    """
    required = _required_in_fast(program, find_uses(program, before))
    in_fast = {int(program.accesses["buffer"][access]) for access in required}
    kept = []
    for buffer, name in enumerate(program.buffer_names):
        drawn = program.buffers[buffer]["eligible"] and chance() < share
        if drawn and buffer not in in_fast:
            instruction, index = _name_and_index(name)
            kept.append(Override(KEEP, buffer, (), instruction, None, index))
    return Request(tuple(kept), ())


def _required_in_fast(program: Program, uses: Iterable[_Use]) -> set[int]:
    """Returns the accesses that kernels require in fast memory. uses: as find_uses() gives them."""
    fast = program.hardware.fast_memory_space
    return {access for access, _, _, space in uses if space == fast}


def _xla_plan(program: Program) -> Plan:
    assert program.xla_plan is not None, "a captured program has XLA's own plan"
    return program.xla_plan


class _Translation:
    """A request under construction: what asks for a plan, or for single things if it is None."""

    def __init__(self, program: Program, plan: Plan | None, before: bytes) -> None:
        self._planned = plan is not None
        plan = plan or all_main_plan(program)
        self.accesses, self.instructions = program.accesses, program.instructions
        self.instruction_names, self.buffer_names = program.instruction_names, program.buffer_names
        self.buffers, self.served_by = program.buffers, plan.served_by
        self._tick_of = {name: tick for tick, name in enumerate(self.instruction_names)}
        self.uses = collections.defaultdict(list)
        uses = find_uses(program, before)
        for access, operand, index, _ in uses:
            self.uses[access].append((operand, index))
        self._in_fast = _required_in_fast(program, uses)
        self.filled_by = filled_by(plan)
        self.replaced = replaced_in(plan)
        prefetches = np.count_nonzero(plan.copies["kind"] == _core.PREFETCH)
        self.sliced = bool(prefetches > len(self.filled_by))
        self._from_below = bottom_up(plan)
        self.of_buffer = collections.defaultdict(list)
        for access, row in enumerate(self.accesses):
            self.of_buffer[int(row["buffer"])].append(access)
        self.overrides: list[Override] = []
        self.preloads: list[str] = []
        self.fetched_preloads = False

    def run(self) -> Request:
        """Asks for every buffer."""
        for buffer in self.of_buffer:
            self.ask_for(buffer)
        return Request(
            tuple(self.overrides),
            tuple(self.preloads),
            {} if self.sliced else WHOLE_COPIES,
            self.fetched_preloads,
            self._bottom_up(),
        )

    def _bottom_up(self) -> tuple[tuple[str, int], ...]:
        """Returns the names and sizes of the buffers in fast memory by their offsets in the plan.

        The compiler gives each the lowest range that holds it, or one that fits better. In this
        order all below it stand already, no higher than planned. So it comes to stand no higher
        either, and what fits in the plan fits here.
        """
        sizes = self.buffers["size_bytes"]
        return tuple(
            (self.buffer_names[buffer], int(sizes[buffer]))
            for buffer in self._from_below
            if sizes[buffer] >= SMALL_BYTES
        )

    def ask_for(self, buffer: int) -> None:
        """Adds what asks for a buffer where the plan has it."""
        accesses = self.of_buffer[buffer]
        served = {int(self.served_by[access]) for access in accesses}
        if served == {-1} and not self._feeds_replaced(accesses):
            self.keep(buffer)
        else:
            made_in = self._made_in(buffer, accesses)
            if made_in is not None:
                stays = [access for access in accesses if self.served_by[access] == made_in]
                self.about_definition(PIN, buffer, stays)
            self._ask_by_use(buffer, accesses)

    def _made_in(self, buffer: int, accesses: list[int]) -> int | None:
        """Returns the residence in which an instruction makes a buffer; None: there is none.

        The buffer may leave fast memory later. Then its later uses are asked for too.
        """
        residence = int(self.served_by[accesses[0]])
        made = (
            self.buffers[buffer]["origin"] == INSTRUCTION
            and self.accesses[accesses[0]]["kind"] == WRITE
            and residence >= 0
            and residence not in self.filled_by
        )
        return residence if made else None

    def _ask_by_use(self, buffer: int, accesses: list[int]) -> None:
        seen = set()
        for access in accesses:
            residence = int(self.served_by[access])
            copy = None if residence in seen else self.filled_by.get(residence)
            seen.add(residence)
            if self.accesses[access]["kind"] == WRITE:
                # A transfer that takes the place of this very instruction is asked for later.
                if copy is not None and copy["replaces"] >= 0:
                    seen.discard(residence)
            elif residence < 0:
                if int(self.accesses[access]["tick"]) not in self.replaced:
                    self.keep_for_use(buffer, access)
            elif copy is None or self.buffers[buffer]["size_bytes"] < SMALL_BYTES:
                continue
            elif copy["preload"] and not self._is_carried(accesses):
                self.preloads.append(self.buffer_names[buffer])
            else:
                self.fetched_preloads |= bool(copy["preload"])
                self._prefetch_for_use(buffer, access, copy)

    def about_definition(self, action: str, buffer: int, accesses: list[int]) -> None:
        """Asks for a buffer by what defines it."""
        instruction, index = _name_and_index(self.buffer_names[buffer])
        self.overrides.append(Override(action, buffer, tuple(accesses), instruction, None, index))

    def keep(self, buffer: int) -> None:
        """Asks for a buffer to stay in main memory throughout, but for where kernels forbid it."""
        accesses = self.of_buffer[buffer]
        if not self._in_fast.isdisjoint(accesses):
            for access in accesses:
                self.keep_for_use(buffer, access)
            return
        self.about_definition(KEEP, buffer, accesses)
        # What loops and branches use is defined anew in them, and behind a loop. Where a prefetch
        # takes the place of a plain copy, its uses are those of the copy's operand.
        ticks = self.accesses["tick"][accesses]
        regions = self.instructions["region"][ticks]
        written = self.accesses[accesses[0]]["kind"] == WRITE
        copied = written and self.instructions[ticks[0]]["plain_copy"]
        left_loop = np.cumsum(self.accesses["kind"][accesses] == LOOP_ENTRY)[:-1] > 0
        for access, region, anew in zip(accesses[1:], regions[1:], left_loop, strict=True):
            if copied or anew or region != regions[0]:
                self.keep_for_use(buffer, access)

    def keep_for_use(self, buffer: int, access: int) -> None:
        """Asks for one access to be served from main memory.

        It can't where that would put a result into main memory too, which may be in fast memory,
        nor where a kernel requires fast memory.
        """
        if access in self._in_fast:
            return
        tick = int(self.accesses[access]["tick"])
        size = int(self.buffers[buffer]["size_bytes"])
        others = [made for made in self._results(tick) if made != buffer]
        alike = any(self.buffers[other]["size_bytes"] == size for other in others)
        if alike and self._may_make_fast_result(tick):
            return
        for operand, index in self.uses[access]:
            if operand != _RESULT:
                self.overrides.append(
                    Override(
                        KEEP,
                        buffer,
                        (access,),
                        self.instruction_names[tick],
                        operand,
                        index,
                        size=size,
                    )
                )

    def _prefetch_for_use(self, buffer: int, access: int, copy: np.void) -> None:
        tick = int(self.accesses[access]["tick"])
        time = self._logical_time(int(copy["begin"])) - 1
        time = max(0, time) if copy["replaces"] >= 0 else max(self._born(buffer) + 1, time)
        # The copy must be done before the loop's condition begins.
        if self.accesses[access]["kind"] == LOOP_ENTRY:
            time = min(time, self._logical_time(tick) - 2)
        operand, index = next(use for use in self.uses[access] if use[0] != _RESULT)
        served = tuple(
            other
            for other, residence in enumerate(self.served_by)
            if residence == self.served_by[access]
        )
        name = self.instruction_names[tick]
        # What an instruction made may lie in fast memory from then on. Then there is no copy that
        # could be in time.
        strict = bool(self.buffers[buffer]["origin"] != INSTRUCTION)
        self.overrides.append(
            Override(PREFETCH, buffer, served, name, operand, index, time=time, strict=strict)
        )

    def prefetch_at(self, access: int, begin: int) -> None:
        """Asks for a copy that begins at this tick, if it can."""
        tick, buffer = int(self.accesses[access]["tick"]), int(self.accesses[access]["buffer"])
        time = max(0, self._logical_time(begin) - 1)
        operand, index = next(use for use in self.uses[access] if use[0] != _RESULT)
        name = self.instruction_names[tick]
        self.overrides.append(
            Override(PREFETCH, buffer, (access,), name, operand, index, time=time, strict=False)
        )

    def prefetch_before_loop(self, access: int) -> None:
        """Asks for what a loop carries to be fetched before it."""
        row = self.accesses[access]
        time = max(0, self._logical_time(int(row["tick"])) - 2 - _TICKS_BEFORE_LOOP)
        operand, index = next(use for use in self.uses[access] if use[0] != _RESULT)
        name = self.instruction_names[int(row["tick"])]
        self.overrides.append(
            Override(PREFETCH, int(row["buffer"]), (access,), name, operand, index, time=time)
        )

    def _results(self, tick: int) -> list[int]:
        row = self.instructions[tick]
        first, count = int(row["first_access"]), int(row["access_count"])
        written = (UPDATE, WRITE)
        return [
            int(a["buffer"]) for a in self.accesses[first : first + count] if a["kind"] in written
        ]

    def _may_make_fast_result(self, tick: int) -> bool:
        """Returns whether a result may be in fast memory, from then on or later."""
        return not self._planned or any(
            self.served_by[access] >= 0
            for buffer in self._results(tick)
            for access in self.of_buffer[buffer]
        )

    def _feeds_replaced(self, accesses: list[int]) -> bool:
        return any(int(self.accesses[access]["tick"]) in self.replaced for access in accesses)

    def _is_carried(self, accesses: list[int]) -> bool:
        """Returns whether a loop carries the buffer.

        The compiler ends by a failed check where such a parameter is preloaded.
        """
        return any(self.accesses[access]["kind"] == LOOP_ENTRY for access in accesses)

    def _born(self, buffer: int) -> int:
        """Returns the logical time of the definition; copies start after it."""
        instruction, _ = _name_and_index(self.buffer_names[buffer])
        return self._logical_time(self._tick_of.get(instruction, 0))

    def _logical_time(self, tick: int) -> int:
        return int(self.instructions[min(tick, len(self.instructions) - 1)]["logical_time"])


def _preload_text(name: str) -> str:
    return (
        f'overrides {{ hlo_position_matcher {{ instruction_name_regex: "{exactly(name)}" }} '
        "override_options { assign_first: true } apply_to_cross_program_prefetches: true }"
    )


def _order_text(name: str, size: int, value: int) -> str:
    """Returns the text that gives a buffer its turn.

    The compiler tries every entry on every buffer. The size spares it most of the comparisons of
    names, which are slow.
    """
    instruction, index = _name_and_index(name)
    position = (
        f'instruction_name_regex: "{exactly(instruction)}" size_gte: {size} size_lte: {size}'
        + _index_text(index)
    )
    return (
        f"overrides {{ hlo_position_matcher {{ {position} }} "
        f"override_options {{ assign_value: {value} }} }}"
    )


def _index_text(index: tuple[int, ...]) -> str:
    return " tuple_index { " + " ".join(f"index: {i}" for i in index) + " }" if index else ""


def _name_and_index(buffer_name: str) -> tuple[str, tuple[int, ...]]:
    """Splits a buffer's name such as fusion.7{0,1}.

    Returns the defining instruction and the index in its result.
    """
    match = re.fullmatch(r"(.*)\{([\d,]+)\}", buffer_name)
    if match is None:
        return buffer_name, ()
    return match[1], tuple(map(int, match[2].split(",")))
