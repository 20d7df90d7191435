// Bounds that no valid plan can beat, from the prices of the instructions alone: the
// *no-contention* bound, and the table of prices that stronger bounds are made of
// (bindings/python/mallocgame/bounds). proof.md there has the proofs.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/program/cost_model.h"

namespace mallocgame {

// At most this many slots of one instruction are tried in all combinations.
inline constexpr int kMaxEnumeratedSlots = 14;

// One way to place the arrays of the instruction at `tick`. In every valid plan that places them as
// `fast` says, the instruction takes some time t >= time_ps and leaves at most idle_ps + (t -
// time_ps) of the channel's time to copies.
struct PlacementPrice {
  Tick tick = 0;
  uint64_t fast = 0;    // bit i: the access in slot i is served from fast memory
  int64_t time_ps = 0;  // of one run of the instruction
  int64_t idle_ps = 0;
  // the plan replaces this plain copy: slot 0 in main memory, slot 1 in fast memory, no time
  bool replaced = false;
};

struct PlacementPrices {
  std::vector<PlacementPrice> rows;  // sorted by tick; the replaced row of a tick is its last
  // for each tick, the slots that its rows tell apart; the others may lie anywhere
  std::vector<uint64_t> decided;
};

// All placements of every instruction that fit into fast memory together, telling apart at most
// `max_slots` slots of an instruction, its largest (0 <= max_slots <= kMaxEnumeratedSlots). Over
// the other slots a row holds for all cases. Exact where at most kMaxEnumeratedSlots slots change
// the price; beyond, times are from below. InvalidArgument: max_slots, hardware.
absl::StatusOr<PlacementPrices> PricePlacements(const CostModel& cost_model, int max_slots);

// The no-contention bound: each instruction at its least price, no copies. No valid plan has a
// latency below. InvalidArgument if it exceeds 64 bits.
absl::StatusOr<int64_t> NoContentionPs(const CostModel& cost_model);

}  // namespace mallocgame
