// What the rules look up at every step, computed once for a game: the decisions in order, and the
// price of every instruction under every placement of the buffers that the game asks about. Private
// to the folder. Of absent values, an index is -1; game/time/state_view.h names the others.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/game/game.h"
#include "mallocgame/plan/pinned.h"
#include "mallocgame/program/reserved_bytes.h"

namespace mallocgame {

// A number for tables of a game that no others of the process have, so that what a thread remembers
// of them is known by it.
uint64_t NextTablesId();

// An access that the game may ask about. Decisions stand in the order of Program::accesses().
struct Decision {
  AccessId access;
  Tick tick = 0;
  int32_t buffer = 0;  // index into GameTables::buffers
  AccessKind kind = AccessKind::kRead;
  uint8_t bit = 0;  // its bit in the placement of its instruction
  // Whether it changes the value: a write, an update, or what covers accesses one of which does.
  bool writes = false;
  bool first = false;      // the buffer's first access
  bool forbidden = false;  // it must be served from main memory
  // The write of a plain copy that can't write to fast memory itself: it is served from there only
  // by a transfer that takes the copy's place.
  bool replaced_only = false;
  // Some later access of the buffer, or some access that is covered, is forbidden or
  // replaced_only.
  bool rest_forbidden = false;
  bool inside_forbidden = false;
  int32_t next = -1;   // the buffer's next decision
  Tick scope_end = 0;  // a residence that begins here ends at or before this tick
  // Where a residence from here over the buffer's last access ends; kNever if none is allowed.
  Tick pin_end = 0;
  // For a loop's entry its exit, for what begins a transfer Access::held_until, else 0: a residence
  // that serves it stays until then and serves all of the buffer's accesses meanwhile.
  Tick covered_until = 0;
  // It begins a transfer: if main memory serves it, so it does all accesses that the transfer
  // covers.
  bool holds = false;
  bool held = false;    // a transfer that began before covers it
  int32_t source = -1;  // for the write of a plain copy: the decision of its read
  // The tick from which a residence that serves it alone may be evicted.
  Tick UsedUntil() const { return covered_until > 0 ? covered_until : tick + 1; }
  // For an update right after the write of a plain copy: the decision of that write. A transfer for
  // this update may still take the plain copy over.
  int32_t plain_copy = -1;
};

// A buffer that the game asks about.
struct GameBuffer {
  BufferId id;
  int64_t size_bytes = 0;
  int64_t copy_ps = 0;     // the time of one transfer
  bool undefined = false;  // it has no value before the first write
  bool preloadable = false;
};

// Where the prices of one instruction stand. Bit i of a placement is set if the instruction's i-th
// decision is served from fast memory. A plain copy that the plan takes over has the placement
// kReplaced, which two accesses cannot have.
struct InstructionPrices {
  // The first of its 2^bits prices in GameTables::prices, by placement, which instructions of the
  // same prices share. There are none if bits > kMaxTableBits.
  uint32_t first = 0;
  uint8_t bits = 0;  // the number of its decisions, or kFreeBits
  bool plain_copy = false;
  int64_t trips = 1;
};
inline constexpr uint8_t kMaxTableBits = 10;
inline constexpr uint8_t kFreeBits = 255;  // a loop's entry takes no time wherever anything lies
inline constexpr uint64_t kReplaced = 4;

struct TimeAndIdle {
  int64_t time_ps = 0;
  int64_t idle_ps = 0;
};

inline bool IsReplaced(const InstructionPrices& instruction, uint64_t placement) {
  return instruction.plain_copy && placement == kReplaced;
}

// Whether a loop around `tick` carries the buffer, so that its value must be in main memory at the
// loop's boundary unless a residence holds it there.
bool CarriedAround(const Program& program, BufferId buffer, Tick tick);

struct GameTables {
  // The prices are those of `known`, unless that is null: tables of a game with the same
  // instructions and options, in which tick t of this game is order[t].
  explicit GameTables(const Game& game, const GameTables* known = nullptr,
                      absl::Span<const Tick> order = {});

  // The price of the instruction at `tick` under a placement: looked up, or, where the table would
  // be too large, asked of the game's cost model, unless the thread remembers what that said.
  TimeAndIdle PriceAt(const CostModel& cost_model, Tick tick, uint64_t placement) const {
    const InstructionPrices& instruction = instructions[tick];
    if (instruction.bits == kFreeBits || IsReplaced(instruction, placement)) return {0, 0};
    if (instruction.bits <= kMaxTableBits) return prices[instruction.first + placement];
    return RememberedPrice(cost_model, tick, placement);
  }
  TimeAndIdle RememberedPrice(const CostModel& cost_model, Tick tick, uint64_t placement) const;
  // The same without the table; `placement` is not kReplaced.
  TimeAndIdle ComputePrice(const CostModel& cost_model, Tick tick, uint64_t placement) const;
  // The write of the plain copy that a transfer for `d` would take over: `d` itself, or the write
  // right before this update. Both ends of the plain copy must be in main memory so far; null if
  // there is no such write. `placements` are those of StateView.
  const Decision* ReplacedWrite(const Decision& d, absl::Span<const uint64_t> placements) const;
  // The placement of the instruction at `tick` with all of its decisions in fast memory.
  uint64_t AllFast(Tick tick) const {
    const int32_t count = first_decision[tick + 1] - first_decision[tick];
    return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
  }

  uint64_t id;  // another one for each game of the process
  int64_t shortest_copy_ps = 0;
  std::vector<Decision> decisions;
  std::vector<GameBuffer> buffers;
  std::vector<InstructionPrices> instructions;  // one for each tick
  std::vector<TimeAndIdle> prices;
  // The next five have one entry for each tick, and one for the program's end.
  // The decisions of tick t are [first_decision[t], first_decision[t + 1]).
  std::vector<int32_t> first_decision;
  // The channel's idle time before the tick that is certain whatever is decided.
  std::vector<int64_t> certain_idle_before;
  // The same with all decisions in fast memory.
  std::vector<int64_t> fast_idle_before;
  // The time before the tick, all trips, with everything in main memory.
  std::vector<int64_t> all_main_before;
  std::vector<uint8_t> starts_segment;
  // What instructions reserve, and pins (plan/pinned.h).
  ReservedBytes reserved;
  std::vector<PlacedPin> pins;
  // By tick: the slots of accesses that pins serve; empty if there are no pins. Their prices, and
  // the time of the copies that fill them, are in all_main_before.
  std::vector<uint64_t> pinned_slots;
  // The pins that copies fill, by tick, as indices into `pins`. They are the copies of AllMainPlan.
  std::vector<int32_t> fetched_pins;
  size_t FirstFetched(Tick tick) const;  // the first of them at `tick` or later
  Tick FetchedAt(size_t k) const { return pins[fetched_pins[k]].stay.begin; }
  int64_t FetchPs(const Game& game, size_t k) const {
    const BufferId buffer = pins[fetched_pins[k]].stay.buffer;
    return game.hardware().CopyPs(game.program().buffer(buffer).size_bytes);
  }
};

}  // namespace mallocgame
