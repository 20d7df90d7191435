// What the rules look up at every step, computed once a game: the decisions in order, and the price
// of every instruction under every placement of the buffers the game asks about.
#ifndef MALLOCGAME_GAME_TABLES_H_
#define MALLOCGAME_GAME_TABLES_H_

#include <cstdint>
#include <vector>

#include "mallocgame/base/ids.h"
#include "mallocgame/game/game.h"

namespace mallocgame {

// One access the game may ask about. Decisions stand in the order of Program::accesses().
struct Decision {
  AccessId access;
  Tick tick = 0;
  int32_t buffer = 0;  // index into GameTables::buffers
  AccessKind kind = AccessKind::kRead;
  uint8_t bit = 0;  // its bit in the placement of its instruction
  // it changes the value: a write, an update, or the entry of a loop that does
  bool writes = false;
  bool first = false;             // the buffer's first access
  bool forbidden = false;         // the caller wants it in main memory
  bool required = false;          // the caller wants it in fast memory
  bool rest_forbidden = false;    // some later access of the buffer is forbidden
  bool inside_forbidden = false;  // of a loop entry: some access inside the loop is forbidden
  int32_t next = -1;              // the buffer's next decision
  Tick scope_end = 0;             // a residence that begins here ends at or before this tick
  // end of a residence from here over the buffer's last access, or kNever: not allowed
  Tick pin_end = 0;
  Tick loop_exit = 0;   // of a loop entry
  int32_t source = -1;  // of a write by a plain copy: the decision of its read
  // of an update right after such a write: the write, whose transfer this may still take over
  int32_t plain_copy = -1;
};

inline constexpr Tick kNever = INT32_MAX;

struct GameBuffer {
  BufferId id;
  int64_t size_bytes = 0;
  int64_t copy_ps = 0;     // one transfer of it
  bool undefined = false;  // no value before the first write
  bool preloadable = false;
};

// The prices of one instruction. Bit i of a placement: the i-th of its decisions is served from
// fast memory. A plain copy that the plan took over has the placement kReplaced, which no other
// placement of two accesses is.
struct InstructionPrices {
  // into GameTables::prices, 2^bits of them; not used if bits > kMaxTableBits
  uint32_t first = 0;
  uint8_t bits = 0;
  bool plain_copy = false;
  int64_t trips = 1;
};
inline constexpr uint8_t kMaxTableBits = 10;
inline constexpr uint8_t kFreeBits = 255;  // a loop's entry: no time wherever anything lies
inline constexpr uint64_t kReplaced = 4;

struct TimeAndIdle {
  int64_t time_ps = 0;
  int64_t idle_ps = 0;
};

inline bool IsReplaced(const InstructionPrices& instruction, uint64_t placement) {
  return instruction.plain_copy && placement == kReplaced;
}

struct GameTables {
  static GameTables Make(const Game& game);

  // Without the table: asks the cost model.
  TimeAndIdle PriceOf(const CostModel& model, const Program& program, Tick tick,
                      uint64_t placement) const;
  // Most bytes an instruction at ticks [begin, end) reserves for itself.
  int64_t ReservedBytes(Tick begin, Tick end) const;

  int64_t shortest_copy_ps = 0;
  std::vector<Decision> decisions;
  std::vector<GameBuffer> buffers;
  std::vector<InstructionPrices> instructions;  // one a tick
  std::vector<TimeAndIdle> prices;
  // one a tick and one more: decisions of tick t are [first[t], first[t + 1])
  std::vector<int32_t> first_decision;
  std::vector<int64_t>
      certain_idle_before;  // one a tick and one more: idle time before tick t whatever is decided
  std::vector<uint8_t> starts_segment;  // one a tick and one more
  // sparse table for ReservedBytes; empty: nothing is reserved
  std::vector<std::vector<int64_t>> reserved;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_GAME_TABLES_H_
