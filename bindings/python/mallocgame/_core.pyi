"""The C++ core: sizes are bytes, times integer picoseconds, intervals half-open.

Users import `mallocgame`, which adds names of files and programs.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

# Actions of the time game.
DROP: int
COPY: int
NOCOPY: int
COPY_EARLY: int
# Modes of the priority game. Its actions are 5 * candidate + mode.
SKIP: int
LATE: int
EARLY: int
PRELOAD: int
SPLIT: int
MAX_CANDIDATES: int  # that a priority game may show
RULES_VERSION: int  # goes up when a rule of the time game changes
PRIORITY_RULES_VERSION: int  # of the priority game
SCHEDULE_RULES_VERSION: int  # of the schedule game
MAX_SCHEDULE_CANDIDATES: int  # of the schedule game
OBSERVATION_VERSION: int  # goes up when what an observation says changes

# Kinds of accesses: the column `kind` of Program.accesses.
READ: int
UPDATE: int
WRITE: int
LOOP_ENTRY: int
# Origins of buffers: the column `origin` of Program.buffers.
INSTRUCTION: int
PARAMETER: int
CONSTANT: int
UNDEFINED: int
# Kinds of copies: the column `kind` of Plan.copies.
PREFETCH: int
EVICTION: int
# Rows of Program.instructions, .buffers, .accesses and .loops, of Plan.residences and .copies, and
# of timeline(), which say what the columns are.
INSTRUCTION_ROW: np.dtype[np.void]
BUFFER_ROW: np.dtype[np.void]
ACCESS_ROW: np.dtype[np.void]
LOOP_ROW: np.dtype[np.void]
RESIDENCE_ROW: np.dtype[np.void]
COPY_ROW: np.dtype[np.void]
TICK_ROW: np.dtype[np.void]

@final
class Hardware:
    """The machine: two memories, and the rates that turn work into time."""

    @property
    def name(self) -> str:
        """The name of the preset, or that of the JSON file."""
    @property
    def fast_bytes(self) -> int:
        """The capacity of fast memory in bytes."""
    @property
    def alignment_bytes(self) -> int:
        """Offsets in fast memory are multiples of this, in bytes."""
    @property
    def main_bytes_per_second(self) -> int:
        """The rate of main memory, which copies have as well."""
    @property
    def fast_read_bytes_per_second(self) -> int:
        """The rate of reads from fast memory."""
    @property
    def fast_write_bytes_per_second(self) -> int:
        """The rate of writes to fast memory."""
    @property
    def flops_per_second(self) -> int:
        """The rate of floating-point operations."""
    @property
    def transcendentals_per_second(self) -> int:
        """The rate of transcendental functions such as exp."""
    @property
    def clock_hz(self) -> int:
        """Clock cycles in a second."""
    @property
    def max_outstanding_prefetches(self) -> int:
        """The most prefetches that may be under way at one time."""
    @property
    def max_outstanding_evictions(self) -> int:
        """The most evictions that may be under way at one time."""
    @property
    def max_preloads(self) -> int:
        """The most parameters that may be in fast memory before the program starts."""
    @property
    def fast_memory_space(self) -> int:
        """The n of the layout mark S(n) with which HLO names fast memory."""
    @property
    def copy_latency_ps(self) -> int:
        """What a copy takes beside the transfer of its bytes; 0 but for calibrated hardware."""
    def copy_ps(self, bytes: int) -> int:
        """The picoseconds for which a copy of so many bytes holds the channel."""
    def transfer_ps(self, bytes: int) -> int:
        """The picoseconds for which a transfer of so many bytes takes the channel."""
    def cycles_to_ps(self, cycles: int) -> int:
        """The picoseconds of so many clock cycles."""
    def replace(self, **fields: str | int) -> Hardware:
        """Returns the same hardware with other values of some fields, as in max_preloads=4.

        InvalidInputError: there is no such field, or the value is not allowed.
        """
    def to_json(self) -> str:
        """Returns JSON text with all fields."""
    @staticmethod
    def from_json(text: str) -> Hardware:
        """Makes it from JSON text with exactly the fields above.

        InvalidInputError names the wrong one.
        """
    @staticmethod
    def preset(name: str) -> Hardware:
        """Returns one of preset_names(), or one with less fast memory, such as tpu_v4i_16mib.

        InvalidInputError lists the names.
        """
    @staticmethod
    def preset_names() -> list[str]:
        """Returns the names of the whole chips."""

@final
class PriceLaw:
    """What a chip was measured to reach, and how much of the compiler's prices it needs.

    These figures make calibrated prices (calibrated()). Shares are at most 1.
    """

    def __init__(
        self,
        *,
        main_share: float = 1.0,
        copy_latency_ps: int = 0,
        speed: float = 1.0,
        kernel: float = 1.0,
    ) -> None:
        """Makes a law of these figures. InvalidInputError names one that is not allowed."""
    @staticmethod
    def of(hardware: str) -> PriceLaw:
        """Returns the law of the chip that a hardware is named after.

        InvalidInputError lists the chips.
        """
    @staticmethod
    def sources_of(hardware: str) -> dict[str, str]:
        """Returns where each figure of that law is from, by its name."""
    @property
    def main_share(self) -> float:
        """The bandwidth of main memory that is reached, over the hardware's."""
    @property
    def copy_latency_ps(self) -> int:
        """What a copy takes beside the transfer of its bytes."""
    @property
    def speed(self) -> float:
        """What the compiler's price of work is multiplied by."""
    @property
    def kernel(self) -> float:
        """The share of the chip's flops that a kernel without a price reaches."""
    def __eq__(self, other: object) -> bool:
        """Says whether all figures are the same."""

@final
class Program:
    """A scheduled program, the hardware it was compiled for, and XLA's own plan if it is known."""

    @property
    def name(self) -> str:
        """The name of the program."""
    @property
    def hardware(self) -> Hardware:
        """The hardware that the program was compiled for."""
    @property
    def xla_plan(self) -> Plan | None:
        """The plan that XLA:TPU made on `hardware`, or None."""
    def xla_plan_for(self, hardware: Hardware) -> Plan | None:
        """Returns XLA's plan if it is one for this hardware.

        It is one for the program's own, also if that is allowed more preloads.
        """
    @property
    def origin(self) -> str:
        """Free text on where the program is from, such as compiler versions."""
    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits over everything that the program is made of."""
    @property
    def argument_bytes(self) -> int:
        """The bytes of the entry parameters."""
    @property
    def cost_model(self) -> str:
        """Where prices come from: "profile" (of the compiler) or "roofline"."""
    @property
    def ticks(self) -> int:
        """The number of instructions; a tick is an index of one."""
    @property
    def counts(self) -> dict[str, int]:
        """The numbers of instructions, buffers, accesses, prices and so on, by name."""
    @property
    def instructions(self) -> NDArray[np.void]:
        """A structured array with a row for each tick.

        kind u1 (0 ordinary, 1 loop entry, 2 loop exit), plain_copy, results_in_main bool (what it
        makes lies in main memory in every plan), region, logical_time, first_access, access_count
        i4, reserved_bytes, trips i8 (runs in one run of the program).
        """
    @property
    def instruction_names(self) -> list[str]:
        """The name of each instruction."""
    @property
    def instruction_opcodes(self) -> list[str]:
        """The HLO opcode of each instruction."""
    @property
    def buffers(self) -> NDArray[np.void]:
        """A structured array with a row for each buffer.

        size_bytes i8, origin u1 (INSTRUCTION, PARAMETER, CONSTANT or UNDEFINED), is_output,
        eligible bool (it may lie in fast memory).
        """
    @property
    def buffer_names(self) -> list[str]:
        """The name of each buffer: its instruction's, with its index there, as in fusion.7{0}."""
    @property
    def ineligible_because(self) -> list[str]:
        """For each buffer why it must stay in main memory; empty if it need not."""
    @property
    def accesses(self) -> NDArray[np.void]:
        """A structured array with a row for each access, in time order.

        tick, buffer i4, kind u1 (READ, UPDATE, WRITE or LOOP_ENTRY), writes_in_loop bool,
        held_until i4 (until that tick a transfer that it begins holds the buffer where it is; 0:
        it begins none), pin u1 (the memory that a kernel pins it to: 0 none, 1 main, 2 fast).
        """
    @property
    def has_dependences(self) -> bool:
        """Whether it is known what depends on what; else its own order is the only one."""
    @property
    def dependences(self) -> NDArray[np.int32]:
        """int32 [dependences, 2]: the first tick stands before the second in every order.

        A loop, conditional or call is named by its last tick.
        """
    @property
    def free_pairs(self) -> int:
        """How many pairs of instructions may stand in either order; 0: there is no other order."""
    @property
    def main_memory(self) -> dict[str, int]:
        """The bytes of main memory that the order of instructions needs.

        fixed_bytes: parameters, constants and results, which no order changes. live_bytes: the most
        that lives at one time besides. packed_bytes: what that needs at offsets. total_bytes: fixed
        and packed.
        """
    def reordered(self, order: Sequence[int] | NDArray[np.integer[Any]]) -> Program:
        """Returns the program with its instructions in another order.

        order: for each tick of the new program its tick now. InvalidInputError names what the order
        parts, or what stands before something that it depends on.
        """
    def list_order(self, rule: str) -> NDArray[np.int32]:
        """Returns the order of a list scheduler, as reordered() takes it.

        rule: "depth-first", "breadth-first", "least-memory" or "latency-hiding".
        """
    @property
    def pools(self) -> list[tuple[str, int, list[tuple[int, int, int]]]]:
        """For each pool of prices what its instructions do, their widest elements, and its rows.

        The class of work is "matmul", "reduction", "copy", "vector" or "kernel"; "unknown": the
        program was imported before classes were known, and calibrated() refuses it. The width is
        in bits. A row says which operands and which outputs lie in fast memory, as bits, and the
        cycles.
        """
    @property
    def pool_of(self) -> list[int]:
        """For each tick the index of its pool of prices, or -1."""
    @property
    def loops(self) -> NDArray[np.void]:
        """A structured array: entry, exit i4 (ticks), trips i8, trips_known bool.

        trips: of the body for each entry, 0 if it never runs. trips_known: they are what the HLO
        says, or what the import was told. The name of a loop is instruction_names[entry].
        """
    def to_bytes(self) -> bytes:
        """Returns the bytes of a .mgp file; equal programs give equal bytes."""
    @staticmethod
    def from_bytes(data: bytes) -> Program:
        """Makes it from the bytes of a .mgp file.

        InvalidInputError says what is wrong with them.
        """

@final
class Plan:
    """Which buffers lie in fast memory when, and the copies that bring them there."""

    @property
    def program_fingerprint(self) -> str:
        """The fingerprint of the program that the plan is of."""
    @property
    def hardware(self) -> str:
        """The name of the hardware that the plan was made for."""
    @property
    def residences(self) -> NDArray[np.void]:
        """A structured array with a row for each stay of a buffer in fast memory.

        offset i8 (bytes), buffer, begin, end i4 (ticks, half-open).
        """
    @property
    def copies(self) -> NDArray[np.void]:
        """A structured array with a row for each copy, in service order.

        part_begin, part_end i8 (bytes), residence, begin, end, replaces i4, kind u1 (PREFETCH or
        EVICTION), preload bool. replaces is the tick of the plain copy that the prefetch takes
        the place of, or -1.
        """
    @property
    def served_by(self) -> NDArray[np.int32]:
        """int32 [accesses]: the residence that serves each access, -1 for main memory."""
    def to_json(self, program: Program) -> str:
        """Returns JSON text with names beside the indices."""
    @staticmethod
    def from_json(text: str, program: Program) -> Plan:
        """Reads JSON text.

        InvalidInputError: it is malformed, or a plan of another program.
        """
    def to_ordered_json(
        self, program: Program, order: Sequence[int] | NDArray[np.integer[Any]], reordered: Program
    ) -> str:
        """Returns the plan of a reordered program as JSON text, with its order.

        order: the order that `reordered` has the instructions of `program` in.
        """
    @staticmethod
    def from_ordered_json(text: str, program: Program) -> tuple[Program, Plan, NDArray[np.int32]]:
        """Reads JSON text for a program in its own order: (program of the plan, plan, order).

        The order is empty if it is the program's own. InvalidInputError: the text is malformed, or
        of another program.
        """
    def rebased_on(self, program: Program) -> Plan:
        """Returns the same plan of a program that differs from its own in prices only.

        InvalidInputError: it is no plan of that program.
        """
    @staticmethod
    def of(
        program: Program,
        hardware: Hardware,
        residences: NDArray[np.void],
        copies: NDArray[np.void],
        served_by: NDArray[np.int32],
    ) -> Plan:
        """Makes a plan of arrays with the columns that a plan has; it need not be valid.

        InvalidInputError: an index is out of range, an interval is none, or copies are out of order
        (their begins must never fall).
        """
    def to_string(self, program: Program) -> str:
        """Returns a line for each residence and each copy, for people."""

@final
class Verdict:
    """Whether a plan is valid, and if not, which rule it breaks and where."""

    @property
    def ok(self) -> bool:
        """Whether the plan is valid."""
    @property
    def rule(self) -> str:
        """The name of the broken rule; "none" if the plan is valid."""
    @property
    def message(self) -> str:
        """What is wrong, in words; empty if the plan is valid."""
    def __bool__(self) -> bool:
        """The same as `ok`."""

@final
class Report:
    """What a plan costs: picoseconds of one run of the program, loops included."""

    @property
    def latency_ps(self) -> int:
        """compute_ps + stall_ps; preloads are done before the start."""
    @property
    def latency_cold_ps(self) -> int:
        """The latency with preloads as copies issued at the start."""
    @property
    def compute_ps(self) -> int:
        """The time of the instructions."""
    @property
    def stall_ps(self) -> int:
        """The time for which instructions wait for copies."""
    @property
    def all_main_ps(self) -> int:
        """The latency with everything in main memory."""
    @property
    def prefetched_bytes(self) -> int:
        """Bytes copied from main to fast memory, loop trips included, preloads not."""
    @property
    def written_back_bytes(self) -> int:
        """Bytes copied from fast to main memory, loop trips included."""
    @property
    def preloaded_bytes(self) -> int:
        """Bytes in fast memory before the program starts."""
    @property
    def peak_fast_bytes(self) -> int:
        """The most bytes that lie in fast memory at one tick."""
    @property
    def exact_ps(self) -> int:
        """The part of compute_ps that the compiler itself priced."""
    @property
    def predicted_ps(self) -> int:
        """The part of compute_ps that is predicted from prices of other placements."""
    @property
    def unpriced_ps(self) -> int:
        """The part of compute_ps that has no price but that of the bytes moved."""
    @property
    def kernel_ps(self) -> int:
        """The part of compute_ps in kernels that the compiler didn't price, by a model."""
    @property
    def modelled_ps(self) -> int:
        """The part of compute_ps that waits for links between chips, by a model."""
    @property
    def stall_at_ps(self) -> NDArray[np.int64]:
        """int64 [ticks]: the stall before each instruction."""
    @property
    def fast_bytes_at(self) -> NDArray[np.int64]:
        """int64 [ticks]: the bytes in fast memory."""

@final
class Game:
    """A program, hardware and options; immutable."""

    def __init__(
        self,
        program: Program,
        hardware: Hardware | None = None,
        actions: str = "full",
        min_buffer_bytes: int | None = None,
        keep_free: float = 0.0,
        forbidden: Sequence[int] = (),
        seed: int = 0,
        game: str = "time",
        candidates: int = 4,
        bytes_weight: float = 1.0,
        time_weight: float = 1.0,
        main_bytes: int | None = None,
        exact_stalls: bool = False,
    ) -> None:
        """Makes a game.

        game: "time" asks about each access in the order of time. "priority" shows the most
        important open runs of accesses, `candidates` of them (1 to 51), and an action takes one and
        says how it is served. A run's importance is what it saves / (bytes^bytes_weight * time
        held^time_weight), each weight in [0, 2]. "schedule" decides the order of instructions
        first, and then is the priority game (`candidates` up to 47). main_bytes: the most main
        memory that an order may need, as Program.main_memory["total_bytes"] counts it; None is what
        the program's own order needs. exact_stalls: in the priority game, schedules the copies at
        each decision, so that its saving has all stalls; else it has a lower bound, and the last
        decision the rest.

        hardware: None is the program's own. actions: "full", or "paper" without COPY_EARLY.
        min_buffer_bytes: smaller buffers stay in main memory; None is 16384, or 512 where smaller
        buffers can save 1 % of the all-main latency. keep_free: the share of the capacity that is
        left free. forbidden: indices of accesses that must be served from main memory. seed: is
        named in logs; the rules have no chance in them.

        InvalidInputError: an option is out of range.
        """
    def initial_state(self) -> State:
        """Returns the state before the first decision."""
    @property
    def program(self) -> Program:
        """The program that is played."""
    @property
    def hardware(self) -> Hardware:
        """The hardware that is played on."""
    @property
    def num_actions(self) -> int:
        """4, or 3 without COPY_EARLY.

        In the priority game 5 for each candidate, and in the schedule game 17 more.
        """
    @property
    def action_names(self) -> list[str]:
        """What each action is called.

        "Drop", "Copy", "NoCopy" and "CopyEarly"; in the priority game the mode and the candidate,
        as in "Late 2"; in the schedule game "Take 0", "Next" and so on before these.
        """
    @property
    def kind(self) -> str:
        """ "time", "priority" or "schedule"."""
    @property
    def main_bytes(self) -> int | None:
        """The most main memory that an order of the schedule game may need.

        None: what the program's own order needs.
        """
    @property
    def candidates(self) -> int:
        """How many runs the priority game shows at a time."""
    @property
    def min_buffer_bytes(self) -> int:
        """Smaller buffers stay in main memory and are not asked about."""
    @property
    def exact_stalls(self) -> bool:
        """Whether each decision of the priority game has all stalls in its saving."""
    @property
    def max_decisions(self) -> int:
        """An upper limit of the length of a game."""
    @property
    def all_main_ps(self) -> int:
        """The latency with everything in main memory."""
    @property
    def seed(self) -> int:
        """The seed that logs name."""

@final
class State:
    """A game being played. It is a value: clone() copies it, undo() takes a decision back."""

    @property
    def game(self) -> Game:
        """The game that is played."""
    @property
    def last_saved_ps(self) -> int:
        """The picoseconds that the last apply() saved (negative: lost); 0 after undo()."""
    @property
    def num_decisions(self) -> int:
        """The number of decisions made so far."""
    @property
    def latency_ps(self) -> int:
        """The latency with everything undecided served from main memory."""
    @property
    def actions(self) -> NDArray[np.uint8]:
        """uint8 [decisions]: the decisions made so far."""
    def is_terminal(self) -> bool:
        """Returns whether the game is over."""
    def legal_actions(self) -> list[int]:
        """Returns the legal actions in increasing order; none when the game is over."""
    def legal_mask(self) -> NDArray[np.bool_]:
        """bool [actions of the game]: what is legal now."""
    def current_access(self) -> int | None:
        """The index in program.accesses of the access to decide.

        None when the game is over, and in the other games.
        """
    def asked_about(self) -> list[tuple[int, int]]:
        """Returns the accesses that are decided about now, as (first, last) in program.accesses.

        The time game's one access, twice. The priority game's candidates, runs of accesses of one
        buffer each, the most important first; so does the schedule game, in State.program. Empty
        when the game is over, and while the order is decided.
        """
    def apply(self, action: int) -> float:
        """Decides, and returns the reward: saved picoseconds / all-main picoseconds.

        InvalidActionError: the action is illegal. GameOverError: the game is over. Neither changes
        the state.
        """
    def undo(self) -> None:
        """Takes back the last decision. InvalidActionError: there is none."""
    def clone(self) -> State:
        """Returns an independent copy."""
    def __copy__(self) -> State:
        """Returns an independent copy."""
    def __deepcopy__(self, memo: dict[int, Any]) -> State:
        """Returns an independent copy."""
    def plan(self) -> Plan:
        """Returns the plan so far; what is undecided is served from main memory.

        It is a plan of State.program.
        """
    @property
    def order(self) -> NDArray[np.int32] | None:
        """int32 [ticks]: the schedule game's order that plan() is of; None in other games.

        Program.reordered takes it.
        """
    @property
    def program(self) -> Program:
        """The program that plan() is of.

        In the schedule game it is game.program with its instructions in `order`.
        """
    def to_string(self) -> str:
        """Returns the position as text for people."""

@final
class Observer:
    """Writes observations of the states of one game."""

    def __init__(
        self, game: Game, settings: dict[str, int] = {}, prices: Prices | None = None
    ) -> None:
        """Observes the positions of a game.

        settings: as MallocGameEnv's. prices: observations say what each action would pay at them;
        without, these columns are 0.
        InvalidInputError: a setting is out of range, or the prices are not of the program's ticks.
        """
    @property
    def size(self) -> int:
        """The number of float32 numbers in an observation."""
    def observe(self, state: State) -> NDArray[np.float32]:
        """Returns float32 [size]; observation_layout says where its parts lie.

        InvalidInputError: the state is of another game.
        """

@final
class ProgramGraph:
    """The whole program as a graph of instructions and buffers.

    Node t is the instruction at tick t; the buffers stand behind the instructions. Edges go from
    what is read to its reader, from a writer to what it writes, and from each tick to the next.
    """

    def __init__(self, game: Game) -> None:
        """Makes the graph of a game's program."""
    @property
    def num_instructions(self) -> int:
        """The number of instruction nodes, which come first."""
    @property
    def num_buffers(self) -> int:
        """The number of buffer nodes."""
    @property
    def node_features(self) -> NDArray[np.float32]:
        """float32 [instructions + buffers, node_features()]."""
    @property
    def edge_index(self) -> NDArray[np.int32]:
        """int32 [2, edges]: from and to, as PyTorch Geometric has it."""
    @property
    def edge_features(self) -> NDArray[np.float32]:
        """float32 [edges, edge_features()]."""
    def buffer_states(self, state: State) -> NDArray[np.float32]:
        """Returns what changes during a time game: float32 [buffers, buffer_state_features()].

        InvalidInputError: the state is of another game, or of the priority game.
        """

@final
class Environment:
    """One game after the other, with observations; MallocGameEnv wraps it."""

    def __init__(
        self, games: Sequence[Game], settings: dict[str, int], as_dict: bool, names: Sequence[str]
    ) -> None:
        """Each episode draws one of the games.

        settings: of the observation. as_dict: named parts, else one flat array. names: what infos
        call the games.
        """
    @property
    def game_index(self) -> int:
        """Which of the games is played."""
    def reset(self, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins the first episode of a seed, or the next one; returns (observation, info)."""
    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Returns (observation, reward, terminated, False, info).

        InvalidActionError: the action is illegal. GameOverError: the episode is over. Neither
        changes anything.
        """
    def mask(self) -> NDArray[np.int8]:
        """int8 [actions]: 1 if legal."""
    def state(self) -> State:
        """Returns a copy of the state."""
    def point(self) -> tuple[int, int, bytes]:
        """Returns where it is: seed, episode of that seed, and its actions so far."""
    def fork(self) -> Environment:
        """Returns another one, which goes on from here and shares the games."""
    def resume(self, point: tuple[int, int, bytes]) -> None:
        """Goes on from a point of an environment with the same games.

        InvalidActionError: an action is illegal there; then nothing changes.
        """

@final
class EnvironmentBatch:
    """Environments stepped together into arrays of the caller's; VectorEnv wraps it."""

    def __init__(
        self,
        games: Sequence[Game],
        num_envs: int,
        settings: dict[str, int],
        autoreset_mode: str,
        fixed: bool,
        threads: int,
    ) -> None:
        """settings: of the observation. fixed: environment i always plays games[i % len(games)]."""
    @property
    def threads(self) -> int:
        """The number of threads beside the caller's."""
    def reset(
        self,
        seeds: Sequence[int | None] | None,
        which: NDArray[np.bool_] | None,
        observations: NDArray[np.float32],
        masks: NDArray[np.int8],
        latency_ps: NDArray[np.int64],
    ) -> None:
        """Begins an episode where `which` is True, or everywhere, and fills the arrays there.

        seeds: one for each environment; None goes on.
        """
    def step(
        self,
        actions: NDArray[np.int64],
        observations: NDArray[np.float32],
        masks: NDArray[np.int8],
        latency_ps: NDArray[np.int64],
        rewards: NDArray[np.float64],
        terminated: NDArray[np.bool_],
        final_observations: NDArray[np.float32] | None,
        final_masks: NDArray[np.int8] | None,
    ) -> None:
        """Steps all environments and fills the arrays.

        InvalidActionError, GameOverError name the environment; then none has moved.
        """
    def state(self, index: int) -> State:
        """Returns a copy of the state of one environment."""
    def game_indices(self) -> NDArray[np.int32]:
        """Returns for each environment the index of the game that it plays."""
    def fork(self) -> EnvironmentBatch:
        """Returns another one, which goes on from here and shares the games."""
    def points(self) -> list[tuple[int, int, bytes]]:
        """Returns where each is: seed, episode of that seed, and its actions so far."""
    def resume(
        self,
        points: Sequence[tuple[int, int, bytes]],
        observations: NDArray[np.float32],
        masks: NDArray[np.int8],
        latency_ps: NDArray[np.int64],
    ) -> None:
        """Goes on from the points of a batch with the same games, and fills the arrays.

        InvalidActionError names the first environment with an illegal action.
        """

@final
class Prices:
    """What fast memory and the copy channel are worth, for solvers that play at prices."""

    def __init__(
        self,
        space_ps_per_byte: Sequence[float] | NDArray[np.float64],
        channel_ps_per_ps: Sequence[float] | NDArray[np.float64] = ...,
    ) -> None:
        """Takes one number for each tick; of the channel also none, which makes it free."""
    @property
    def space_ps_per_byte(self) -> NDArray[np.float64]:
        """Of shape [ticks]: picoseconds of latency for a byte of fast memory over the tick.

        In a loop they are for all trips together.
        """
    @property
    def channel_ps_per_ps(self) -> NDArray[np.float64]:
        """Of shape [ticks]: picoseconds of latency for one of the channel's time in the tick.

        In a loop they are for one in each trip.
        """

@final
class NamedSolver:
    """A solver beside the library's own, such as a trained agent."""

    @property
    def name(self) -> str:
        """The name that solve() takes."""
    @property
    def game(self) -> str:
        """The game that it plays, "time" or "priority"."""

class SolveResult:
    """A solver's plan, and what is known about it."""

    @property
    def plan(self) -> Plan:
        """The best plan found."""
    @property
    def report(self) -> Report:
        """What the plan costs."""
    @property
    def status(self) -> str:
        """ "heuristic", "optimal" or "stopped"."""
    @property
    def bound_ps(self) -> int | None:
        """No play of the game is faster, with proof; None if nothing is proven.

        mallocgame.bounds.bound() knows more.
        """
    @property
    def actions(self) -> NDArray[np.uint8]:
        """uint8 [decisions]: the game that made the plan; empty if it was not made by playing."""
    @property
    def evaluations(self) -> int:
        """The number of complete games or plans that were looked at."""
    @property
    def game(self) -> Game:
        """The game of `actions`: the one given, or one that asks about smaller buffers too."""
    @property
    def search(self) -> tuple[NDArray[np.int32], NDArray[np.float32]] | None:
        """Visits and values of the searches that chose `actions`; None if none did.

        Each is [decisions, actions], as record() takes them.
        """
    @property
    def found_by(self) -> str:
        """The solver whose plan this is: a member of the portfolio, else the solver itself."""
    @property
    def curve(self) -> list[tuple[float, int, str]]:
        """(seconds, latency_ps, solver) of each better plan, in time order."""
    @property
    def failures(self) -> list[str]:
        """ "SOLVER: message" of each part of the search that ended in an error.

        Parts are the members of a portfolio, and the last placement of a search for an order.
        """
    @property
    def order(self) -> NDArray[np.int32] | None:
        """int32 [ticks]: the order of instructions that was found; None: it was not asked for."""
    @property
    def program(self) -> Program:
        """The program that the plan is of: its instructions in `order` if that was asked for."""
    @property
    def schedule(self) -> dict[str, Any] | None:
        """How the order of instructions was found; None if it was not asked for.

        has_freedom: whether there is another order. own_order_ps: the latency of the best plan
        found at the program's own. orders: how many were played. chains: (start, latency_ps) of
        each chain of annealing.
        """
    @property
    def solver(self) -> str:
        """The name of the solver."""
    @property
    def seed(self) -> int:
        """The seed of the solver."""
    @property
    def seconds(self) -> float:
        """The wall time that it took."""

@final
class GameLog:
    """A finished game: rules, decisions, every reward, the plan and its report."""

    @property
    def program_name(self) -> str:
        """The name of the program."""
    @property
    def program_fingerprint(self) -> str:
        """The fingerprint of the program."""
    @property
    def hardware(self) -> Hardware:
        """The hardware that was played on."""
    @property
    def rules_version(self) -> int:
        """The version of the rules that were played, of their game's own versions."""
    @property
    def solver(self) -> str:
        """The name of the solver that played; empty if it is not known."""
    @property
    def seed(self) -> int:
        """The seed of the game or of its solver."""
    @property
    def actions(self) -> NDArray[np.uint8]:
        """uint8 [decisions]."""
    @property
    def saved_ps(self) -> NDArray[np.int64]:
        """int64 [decisions]: the picoseconds that each saved."""
    @property
    def plan(self) -> Plan:
        """The plan that the game comes to."""
    @property
    def order(self) -> NDArray[np.int32] | None:
        """int32 [ticks]: the order that the plan is of, of a schedule game; None of others."""
    @property
    def report(self) -> Report:
        """Totals only: the arrays by tick are empty."""
    @property
    def search_visits(self) -> NDArray[np.int32]:
        """int32 [decisions, actions]: how often a search took each action; no rows if none was."""
    @property
    def search_values(self) -> NDArray[np.float32]:
        """float32 [decisions, actions]: the return that the search expects from there on."""
    def game(self, program: Program) -> Game:
        """Returns the game that was played, with its hardware and options.

        InvalidInputError: the log is of another program.
        """
    def to_bytes(self) -> bytes:
        """Returns the bytes of a .mgr file; equal games give equal bytes."""
    @staticmethod
    def from_bytes(data: bytes) -> GameLog:
        """Reads the bytes of a .mgr file. InvalidInputError says what is wrong with them."""

@final
class ReplayVerdict:
    """Whether a log came out the same, and if not, where."""

    @property
    def same(self) -> bool:
        """Whether everything came out as logged."""
    @property
    def step(self) -> int:
        """The index of the first decision that differs; -1 if it is not a decision."""
    @property
    def message(self) -> str:
        """What differs, in words; empty if nothing does."""
    def __bool__(self) -> bool:
        """The same as `same`."""

def action_returns(state: State, prices: Prices | None = None) -> NDArray[np.float64]:
    """Returns what each action leads to: float64 [actions of the game], read-only.

    It is 1 - latency / all-main latency of the game that takes the action and plays on, and NaN for
    an illegal action. prices: rent at these prices plays on; None lets greedy play on. The state
    stays as it is. It takes as long as playing a game for each legal action.

    InvalidInputError: the prices are not of the program's ticks, or the state is of the priority
    game, where only greedy plays.
    """

def all_main_plan(program: Program, hardware: Hardware | None = None) -> Plan:
    """Returns the plan with everything in main memory."""

def validate(program: Program, plan: Plan, hardware: Hardware | None = None) -> Verdict:
    """Judges whether the hardware (None: the program's own) can carry out a plan."""

def calibrated(
    program: Program, hardware: Hardware | None = None, law: PriceLaw | None = None
) -> Program:
    """Returns the program with calibrated prices, on calibrated hardware.

    These are the compiler's prices after a law that was fitted to published measurements
    (docs/results/measured.md). A plan of one program is one of the other (Plan.rebased_on).

    hardware: as of the compiler's prices; None is the program's own.
    law: None is that of the chip.

    InvalidInputError: the program has no prices of the compiler or is calibrated already, its file
    doesn't say what kind of work its instructions do, or there is no law of the chip.
    """

def simulate(
    program: Program, plan: Plan, hardware: Hardware | None = None, prices: str = "compiler"
) -> Report:
    """Returns what a plan costs.

    hardware: None is the program's own.
    prices: "compiler", those that the program has, or "calibrated"; calibrated() makes a program
    that keeps these.

    InvalidInputError: the plan is not one of this program, or that can't have calibrated prices.
    """

def timeline(program: Program, plan: Plan, hardware: Hardware | None = None) -> NDArray[np.void]:
    """Returns where the plan's time goes: a structured array with a row for each tick.

    All trips of a tick count together: compute_ps, stall_ps (before it), idle_ps (of compute_ps,
    left to copies), copied_ps (of idle_ps, used by copies) i8, source u1 (0 free, 1 exact, 2
    predicted, 3 unpriced, 4 roofline, 5 nothing but a wait for links, 6 kernel).
    """

def solver_names() -> list[str]:
    """Returns the names that solve() takes."""

def solver_game(solver: str, extra_solvers: Sequence[NamedSolver] = ()) -> str:
    """Returns the game that a solver plays where nobody says which one.

    InvalidInputError: there is no such solver.
    """

def no_contention_ps(program: Program, hardware: Hardware | None = None) -> int:
    """Adds up each instruction's least price, without copies: no valid plan has a lower latency."""

def placement_prices(
    program: Program, hardware: Hardware | None = None, max_slots: int = 6
) -> tuple[NDArray[np.void], NDArray[np.uint64]]:
    """Returns what lower bounds are made of: (rows, decided).

    rows is a structured array: time_ps, idle_ps i8, fast u8 (bit i: the access in slot i in fast
    memory), tick i4, replaced bool. decided is u8 [ticks]: the slots that its rows tell apart. A
    plan that agrees with a row takes t >= time_ps there and leaves the channel at most idle_ps + (t
    - time_ps).
    """

def solve_game(
    game: Game,
    solver: str,
    seconds: float,
    seed: int,
    evaluations: int,
    progress: Callable[[float, int], object] | None,
    extra_solvers: Sequence[NamedSolver] = ...,
    prices: Prices | None = ...,
    stop: Callable[[], bool] | None = ...,
    order: bool = ...,
    main_bytes: int | None = ...,
) -> SolveResult:
    """See mallocgame.solve."""

def plan_like_xla(game: Game) -> tuple[Plan, list[int]]:
    """What XLA's allocator decides: (plan, the order in which all buffers were decided)."""

def import_modules(
    module: bytes,
    hardware: Hardware,
    assigned: bytes | None,
    priced: Sequence[bytes],
    profile: bytes | None,
    name: str,
    default_trips: int,
    trips: Mapping[str, int],
    requires_schedule: bool,
    origin: str,
) -> Program:
    """See mallocgame.import_hlo."""

def reorder_module(program: Program, module: bytes) -> bytes:
    """Returns the module that a program was imported from, scheduled in the program's order.

    InvalidInputError: the module is damaged, or of another program.
    """

def write_plan(
    program: Program,
    plan: Plan,
    module: bytes,
    buffer_assignment: bytes,
    hardware: Hardware | None = None,
) -> tuple[bytes, bytes, Plan]:
    """Writes a plan into what the compiler's first phase gives with memory space assignment off.

    module, buffer_assignment: its `opt_hlo` and `buffer_assignment`, decompressed, of which
    `program` was imported. hardware: None is the program's own.

    Returns both anew, for the later phases, and the plan as they carry it out: without evictions of
    what nobody reads, and with buffers in main memory that a transfer couldn't hold where the plan
    has them. InvalidInputError: the plan breaks a rule, or the messages are damaged or of another
    program. MallocGameError names the instruction, and what of the plan can't be written there.
    """

def find_uses(
    program: Program, module: bytes
) -> list[tuple[int, int, tuple[int, ...], int | None]]:
    """Returns what HLO calls the accesses of a program that was made of `module`.

    module: its bytes, decompressed. Each is (access, operand number or -1 for the result, index of
    the array in a tuple, the memory space that a kernel requires or None). InvalidInputError: the
    program was made of another module.
    """

class InstructionPlacement:
    """Where the arrays of one instruction lie, and what else its isolated module depends on.

    operands: the memory spaces of each operand's arrays, depth first; results: those of the result.
    values: by operand, the first operand that is the same value. shared: (operand, array of it,
    array of the result) that lie in the same bytes; not in the hash, but in the code, so that what
    is kept by hash is kept by these too. backend_config, channel_id, frontend_attributes: those of
    the instruction in its scheduled module, the last also of all that it calls; empty and 0 leave
    those of the isolated module.
    """

    def __init__(
        self,
        *,
        operands: list[list[int]],
        results: list[int],
        values: list[int],
        shared: list[tuple[int, int, int]] = ...,
        backend_config: bytes = ...,
        channel_id: int = ...,
        frontend_attributes: list[bytes] = ...,
    ) -> None:
        """Describes a placement, as PlacedModule.placement() does."""
    @property
    def operands(self) -> list[list[int]]:
        """The memory spaces of each operand's arrays, depth first."""
    @property
    def results(self) -> list[int]:
        """The memory spaces of the result's arrays."""
    @property
    def values(self) -> list[int]:
        """By operand, the first operand that is the same value."""
    @property
    def shared(self) -> list[list[int]]:
        """(operand, array of it, array of the result) that lie in the same bytes."""
    @property
    def backend_config(self) -> bytes:
        """Of the instruction in its scheduled module; empty: that of the isolated one."""
    @property
    def channel_id(self) -> int:
        """Of the instruction in its scheduled module; 0: that of the isolated one."""
    @property
    def frontend_attributes(self) -> list[bytes]:
        """Of the instruction and of all that it calls; empty: those of the isolated one."""

class PlacedModule:
    """A scheduled module with its buffer assignment: where the arrays of each instruction lie."""

    def __init__(self, module: bytes, buffer_assignment: bytes) -> None:
        """Reads an HloModuleProtoWithConfig and a BufferAssignmentProto. InvalidInputError."""

    def placement(self, instructions: list[str]) -> InstructionPlacement:
        """Returns the placement of instructions that have one hash, and so one isolated module.

        It is that of the first of them in the module, with the arrays that any of them shares.
        InvalidInputError: there is no such instruction, or the list is empty.
        """

def place_isolated_module(isolated: bytes, placement: InstructionPlacement, name: str) -> bytes:
    """Returns the isolated module for another placement of its root.

    isolated: an HloModuleProtoWithConfig. name: the name of the module that is returned.
    InvalidInputError: it is no isolated module, or the placement is of another instruction.
    """

def read_lowered_program(isa_program_proto: bytes) -> tuple[str, dict[str, str]]:
    """Returns a program's name, a hash if others call it, and {instruction: hash that it calls}."""

def read_estimated_cycles(compiler_metadata: bytes) -> dict[str, int]:
    """Returns the compiler's estimate of cycles by instruction; those without one are left out."""

def check_phase_module(
    original_module: bytes,
    original_assignment: bytes,
    module: bytes,
    assignment: bytes,
    hardware: Hardware,
) -> None:
    """Says whether an assigned module may be linked.

    original_module, original_assignment: what the compiler's first phase gives with memory space
    assignment off (an HloModuleProtoWithConfig and a BufferAssignmentProto, decompressed). module,
    assignment: the same two, assigned. InvalidInputError: the message begins with the rule that is
    broken, such as "rule overlap: ".
    """

def read_file(path: str | bytes) -> bytes:
    """Returns the bytes of a file, unpacked if they are gzip. FileAccessError, MissingFileError."""

def write_file(path: str | bytes, data: bytes) -> None:
    """Writes all or nothing: a failure leaves what was there. FileAccessError."""

def record_game(
    game: Game,
    actions: Sequence[int],
    solver: str,
    seed: int,
    visits: Sequence[int],
    values: Sequence[float],
) -> GameLog:
    """See mallocgame.record."""

def replay_log(log: GameLog, program: Program) -> ReplayVerdict:
    """See mallocgame.replay."""

def observation_layout(
    settings: dict[str, int], num_actions: int, game: str = "time"
) -> list[tuple[str, int, tuple[int, ...]]]:
    """Returns (name, offset, shape) of each part of an observation.

    settings: as MallocGameEnv's.
    """

def access_features() -> list[tuple[str, str]]:
    """Returns (name, meaning) of each column of the part `accesses` of the time game."""

def candidate_features() -> list[tuple[str, str]]:
    """Returns (name, meaning) of each column of the part `candidates` of the priority game."""

def unit_features() -> list[tuple[str, str]]:
    """Returns (name, meaning) of each column of the part `units` of the schedule game."""

def action_features(game: str = "time") -> list[tuple[str, str]]:
    """Returns (name, meaning) of each column of the part `actions`."""

def scalar_features(game: str = "time") -> list[tuple[str, str]]:
    """Returns (name, meaning) of each number of the part `scalars`."""

def node_features() -> list[tuple[str, str]]:
    """Returns (name, meaning) of each column of ProgramGraph.node_features."""

def edge_features() -> list[tuple[str, str]]:
    """Returns (name, meaning) of each column of ProgramGraph.edge_features."""

def buffer_state_features() -> list[tuple[str, str]]:
    """Returns (name, meaning) of each column of ProgramGraph.buffer_states()."""

@final
class OffsetTable:
    """Intervals of known time and size that are to get offsets, as MiniMalloc's CSV has them."""

    def __init__(
        self,
        intervals: NDArray[np.int64],
        *,
        ids: list[str] | None = ...,
        alignments: NDArray[np.int64] | None = ...,
        given: NDArray[np.int64] | None = ...,
        gaps: NDArray[np.int64] | None = ...,
    ) -> None:
        """Makes a table of int64 rows (begin, end, size).

        ids: distinct texts, the numbers of the rows unless set. The other arrays are as in the
        attributes of these names.
        """
    @staticmethod
    def from_csv(text: bytes) -> OffsetTable:
        """Reads MiniMalloc's CSV. InvalidInputError names the line."""
    def to_csv(self, offsets: NDArray[np.int64] | None = None) -> bytes:
        """Returns the CSV, with all columns that were read.

        offsets: int64 [intervals], for the column `offset`, which is the last unless it was read.
        """
    def __len__(self) -> int:
        """The number of intervals."""
    @property
    def ids(self) -> list[str]:
        """What the intervals are called."""
    @property
    def intervals(self) -> NDArray[np.int64]:
        """int64 [intervals, 3]: begin, end, size."""
    @property
    def alignments(self) -> NDArray[np.int64]:
        """int64 [intervals]: what an interval's offset is a multiple of."""
    @property
    def given(self) -> NDArray[np.int64]:
        """int64 [intervals]: the offset that an interval keeps, or -1."""
    @property
    def gaps(self) -> NDArray[np.int64]:
        """int64 [gaps, 5]: interval, begin, end, low, high.

        Over the time [begin, end) the interval takes only its bytes [low, high), none if they are
        equal.
        """
    @property
    def lines(self) -> list[int]:
        """The line of each interval in the text, from 1; empty if it was not read."""
    @property
    def other_columns(self) -> list[str]:
        """The columns of the text that say nothing, but come out again."""

@final
class OffsetResult:
    """Offsets of intervals, and what is known about them."""

    @property
    def status(self) -> str:
        """ "feasible", "infeasible" (proven) or "stopped"."""
    @property
    def offsets(self) -> NDArray[np.int64]:
        """int64 [intervals]: bytes; they end above the capacity unless feasible."""
    @property
    def height(self) -> int:
        """The bytes that the offsets need."""
    @property
    def bound(self) -> int:
        """No offsets need fewer bytes than this; if it is `height`, that is the least."""
    @property
    def nodes(self) -> int:
        """The number of nodes of the search."""
    @property
    def seconds(self) -> float:
        """The wall time that it took."""

@final
class OffsetVerdict:
    """Whether offsets are a solution, and if not, which rule is broken where."""

    @property
    def ok(self) -> bool:
        """Whether no rule is broken."""
    def __bool__(self) -> bool:
        """The same as `ok`."""
    @property
    def rule(self) -> str:
        """ "none", "given", "bounds", "alignment" or "overlap"."""
    @property
    def message(self) -> str:
        """What is broken; empty if nothing is."""
    @property
    def intervals(self) -> tuple[int, ...]:
        """The intervals that break the rule: two that overlap, else one."""
    @property
    def time(self) -> tuple[int, int] | None:
        """The time [begin, end) over which two overlap."""
    @property
    def bytes(self) -> tuple[int, int] | None:
        """The bytes [low, high) that these share."""
    @property
    def height(self) -> int:
        """The highest end of an interval."""

def solve_offsets(
    intervals: OffsetTable | NDArray[np.int64],
    capacity: int | None = None,
    alignment: int = 1,
    seconds: float = 10.0,
    nodes: int = 0,
) -> OffsetResult:
    """Finds offsets for intervals such that none conflict and all end within the capacity.

    intervals: a table, or int64 [intervals, 3], rows of (begin, end, size). capacity: bytes; None:
    the offsets are as low as possible. alignment: every offset is a multiple of it. seconds: wall
    time, nodes: of the search; 0 means no limit.

    InvalidInputError: they are malformed, or given offsets conflict, are not aligned, or end above
    the capacity.
    """

def check_offsets(
    intervals: OffsetTable | NDArray[np.int64],
    offsets: NDArray[np.int64],
    capacity: int | None = None,
    alignment: int = 1,
) -> OffsetVerdict:
    """Says whether offsets that anyone has found are a solution.

    It shares no code with the solver. InvalidInputError: the intervals are malformed, or there is
    not one offset for each.
    """

@final
class Predictions:
    """What a model says of a batch of positions: arrays to be filled in. See mallocgame.mcts."""

    @property
    def logits(self) -> NDArray[np.float32]:
        """float32 [rows, actions], set to 0."""
    @property
    def values(self) -> NDArray[np.float32]:
        """float32 [rows], set to 0."""
    @property
    def rewards(self) -> NDArray[np.float32]:
        """float32 [rows], set to 0."""
    @property
    def discounts(self) -> NDArray[np.float32]:
        """float32 [rows], set to the search's discount."""
    @property
    def legal(self) -> NDArray[np.bool_]:
        """bool [rows, actions], set to True."""
    @property
    def terminal(self) -> NDArray[np.bool_]:
        """bool [rows], set to False."""

@final
class Search:
    """Monte Carlo tree search over many roots. See mallocgame.mcts."""

    def __init__(
        self,
        roots: int,
        num_actions: int,
        selection: str,
        simulations: int,
        max_nodes: int,
        leaves: int,
        max_batch: int,
        threads: int,
        discount: float,
        scaling: str,
        min_value: float,
        max_value: float,
        min_range: float,
        max_range: float,
        settings: dict[str, float],
    ) -> None:
        """mallocgame.mcts.search says what each means. InvalidInputError: one is out of range."""
    def run(self, model: object, seed: int | Sequence[int] = 0) -> None:
        """Searches every root.

        seed: one number, or one for each root. What the model raises comes through; then all trees
        are forgotten.
        """
    def advance(self, model: object, root: int, action: int) -> bool:
        """Says that the action was played: the next run starts from its subtree.

        Returns False if there is none, and then the root starts anew.
        """
    def forget(self, root: int | None = None) -> None:
        """Makes the next run start the root anew; None means all of them."""
    def sample_actions(self, temperature: float = 1.0, seed: int = 0) -> NDArray[np.int32]:
        """Draws with probability proportional to visits**(1 / temperature).

        Returns int32 [roots], -1 where nothing was visited.
        """
    @property
    def actions(self) -> NDArray[np.int32]:
        """int32 [roots]: what to play; -1 where the game is over."""
    @property
    def policy(self) -> NDArray[np.float32]:
        """float32 [roots, actions]: the improved policy, which a network should learn."""
    @property
    def visits(self) -> NDArray[np.int32]:
        """int32 [roots, actions]."""
    @property
    def q(self) -> NDArray[np.float32]:
        """float32 [roots, actions]: the mean return of each action; 0 without visits."""
    @property
    def priors(self) -> NDArray[np.float32]:
        """float32 [roots, actions]: the model's policy, noise included; -1 where illegal."""
    @property
    def values(self) -> NDArray[np.float32]:
        """float32 [roots]: the mean return over all visits."""
    @property
    def model_values(self) -> NDArray[np.float32]:
        """float32 [roots]: the model's own value."""
    @property
    def terminal(self) -> NDArray[np.bool_]:
        """bool [roots]."""
    @property
    def simulations(self) -> NDArray[np.int32]:
        """int32 [roots]: simulations that the last run did."""
    @property
    def depths(self) -> NDArray[np.int32]:
        """int32 [roots]: the greatest depth of a simulation of the last run."""
    @property
    def roots(self) -> int:
        """The number of roots."""
    @property
    def num_actions(self) -> int:
        """The number of actions."""
    @property
    def slots(self) -> int:
        """The number of slots that a model is handed."""

class Hierarchy:
    """A chip with several memories, the fastest first."""

    def __init__(
        self,
        name: str,
        levels: Sequence[tuple[str, int, int]],
        flops_per_second: int,
        engines: int = 1,
        staging_bytes: int = 0,
    ) -> None:
        """levels: 2 to 8 of (name, capacity_bytes, bytes_per_second), the fastest first.

        engines run the program at the same time and share all levels but the first.
        staging_bytes: of an engine, for weights of the last level that are fetched ahead.

        InvalidInputError: a number is out of range.
        """
    @staticmethod
    def preset(name: str) -> Hierarchy:
        """Returns a preset. InvalidInputError lists the names."""
    @staticmethod
    def preset_names() -> list[str]:
        """Returns the names of the presets."""
    @property
    def name(self) -> str:
        """The name of the chip."""
    @property
    def flops_per_second(self) -> int:
        """The rate of floating-point operations of an engine."""
    @property
    def engines(self) -> int:
        """How many engines run the program at the same time."""
    @property
    def staging_bytes(self) -> int:
        """The buffer of an engine for weights that are fetched ahead."""
    @property
    def levels(self) -> list[tuple[str, int, int]]:
        """(name, capacity_bytes, bytes_per_second) of each level."""

class PlacementOutcome(NamedTuple):
    """What a map came to."""

    latency_ps: int  # of the map as it was carried out
    moved: float  # share of the bytes that are not where the map wants them
    reward: float

class PlacementOutcomes(NamedTuple):
    """What many maps came to: a PlacementOutcome whose fields are arrays [count]."""

    latency_ps: NDArray[np.int64]
    moved: NDArray[np.float64]
    reward: NDArray[np.float64]

class FoundMap(NamedTuple):
    """The fastest map that fits."""

    map: NDArray[np.uint8]  # [num_nodes, 2]; everything in the slowest level if no map fitted
    latency_ps: int
    reward: float
    best_ps: NDArray[np.int64]  # for each evaluation the least latency so far, 0 if no map fitted

class Placement:
    """The placement problem of a program.

    Each node has one level for its weights and one for its activations, 0 the fastest. A map is
    uint8 [num_nodes, 2]. On a priority game a node is a run, whose level says how it is served.
    """

    def __init__(self, program: Program, hierarchy: Hierarchy) -> None:
        """InvalidInputError: the last level does not hold the program."""
    @staticmethod
    def of_game(game: Game, baseline_ps: int | None = None, plan: Plan | None = None) -> Placement:
        """A map is played as a game.

        On a time game level 0 is fast memory, 1 main memory. On a priority game the levels are
        modes: Late, Early, Preload, Split, Skip.
        plan: what baseline_map asks for; None: everything in level 0. baseline_ps: the latency
        whose speed-up counts as 1; None is that of baseline_map.

        InvalidInputError: the plan isn't well formed, or there is nothing to place.
        """
    def evaluate(self, map: NDArray[np.uint8]) -> PlacementOutcome:
        """Returns what a map comes to."""
    def evaluate_many(self, maps: NDArray[np.uint8], threads: int = 0) -> PlacementOutcomes:
        """Returns what maps, uint8 [count, num_nodes, 2], come to.

        threads: 0 is one for each core. The result does not depend on it.
        """
    def rectify(self, map: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Returns the map that is carried out."""
    def play(self, map: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Returns the actions of a map on a game.

        InvalidInputError: the problem is on a hierarchy.
        """
    def costs(self) -> dict[str, NDArray[Any]]:
        """Returns what a map that fits takes, as arrays.

        The latency is the sum over nodes of trips * max(compute_ps, fixed_ps + the sum of the
        node's terms at the level of their tensor). capacity_bytes int64 [levels]; alive int32
        [num_nodes, 2, 2]: the nodes [begin, end) over which each tensor takes its bytes,
        activations `engines` times in all levels but the first; staging_ps, and staged_term int32
        [num_nodes]: how long the last level may work ahead, and the term that this helps, -1 for
        none; trips, compute_ps, fixed_ps int64 [num_nodes]; term_node, term_tensor int32 [terms], a
        tensor being an index of the flat map; term_ps int64 [terms, levels]. InvalidInputError: the
        problem is on a game.
        """
    def search(
        self, name: str, evaluations: int = 4000, seed: int = 0, threads: int = 0
    ) -> FoundMap:
        """Returns the fastest map that the search finds.

        name: one of placement_searches().
        """
    @property
    def program(self) -> Program:
        """The program whose tensors are placed."""
    @property
    def game(self) -> Game | None:
        """The game that maps are played in; None on a hierarchy."""
    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
    @property
    def level_names(self) -> list[str]:
        """The names of the levels, the fastest first."""
    @property
    def baseline_map(self) -> NDArray[np.uint8]:
        """The compiler's map; of a game that of its plan, or everything in level 0."""
    @property
    def baseline_ps(self) -> int:
        """The latency that counts as 1."""
    @property
    def node_ticks(self) -> NDArray[np.int32]:
        """int32 [num_nodes]: the tick of each node's instruction, or of its run's first access."""
    @property
    def parents(self) -> NDArray[np.int32]:
        """int32 [num_nodes] on a priority game: the run that each is a part of, -1 of a whole life.

        A part counts only where its parent is Split. Else empty.
        """
    @property
    def features(self) -> list[tuple[str, str]]:
        """(name, meaning) of each column of node_features."""
    @property
    def node_features(self) -> NDArray[np.float32]:
        """float32 [num_nodes, features], standardised."""
    @property
    def edge_index(self) -> NDArray[np.int32]:
        """int32 [2, edges]: a node, and one that reads its activations.

        On a priority game a run, and one that is a part of it, follows from it or competes with it.
        """
    @property
    def tensor_bytes(self) -> NDArray[np.int64]:
        """int64 [num_nodes, 2]: the bytes of weights and of activations."""

def placement_searches() -> list[str]:
    """Returns the names that Placement.search takes."""

class PjrtCompiler:
    """A compiler behind the PJRT C API, such as libtpu, and the chips that it compiles for.

    It belongs in a process of its own, because it ends the process where a check of its own fails.
    What it refuses is a MallocGameError whose message begins with the code of its status.
    """

    def __init__(
        self, library: str, topology: str, options: Mapping[str, str | Sequence[int]]
    ) -> None:
        """library: path of the shared library. options: those of the topology."""
    @property
    def api_version(self) -> str:
        """The version of the PJRT C API, such as "0.90"."""
    @property
    def has_phases(self) -> bool:
        """Whether it can run phases of a compile one by one."""
    def compile(self, format: str, program: bytes, options: bytes) -> bytes:
        """Returns the serialized executable.

        format: "mlir", of StableHLO as a portable artifact, or "hlo", of a HloModuleProto.
        options: those of compile_options().
        """
    def run_phase(self, phase: str, programs: Sequence[bytes], options: bytes) -> list[bytes]:
        """Runs one phase on serialized partial programs, and returns those that it gives."""

def compile_options(
    num_partitions: int, overrides: Mapping[str, bool | int | float | str]
) -> bytes:
    """Returns XLA's serialized options for one partition on each of the first devices.

    overrides: the compiler's options by name. It reads a text as whatever the option is.
    """

def parse_partial_program(data: bytes) -> tuple[bytes, bool, str, str, tuple[str, ...], str, str]:
    """Returns the fields of mallocgame.xla.partial_programs.PartialProgram. InvalidInputError."""

def serialize_partial_program(
    program: bytes,
    compressed: bool,
    format: str,
    generating_phase: str,
    next_phases: Sequence[str],
    version: str,
    name: str,
) -> bytes:
    """Returns the bytes of a partial program that has these fields."""
