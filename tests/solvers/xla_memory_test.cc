// XlaMemory: windows are counted, and a proposal is taken back with all but windows of slices.
#include "mallocgame/solvers/xla/memory.h"

#include <vector>

#include "mallocgame/base/rng.h"
#include "tests/catch.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::TestHardware;

TEST_CASE("windows that share a tick or touch are counted") {
  WindowCounter windows(10);
  windows.Add(2, 4);
  windows.Add(4, 4);  // hides nothing, but is one
  windows.Add(7, 9);
  CHECK(windows.Overlapping(0, 1) == 0);
  CHECK(windows.Overlapping(0, 2) == 1);
  CHECK(windows.Overlapping(4, 7) == 3);
  CHECK(windows.Overlapping(5, 6) == 0);
  CHECK(windows.Overlapping(9, 10) == 1);
  windows.Remove(2, 4);
  CHECK(windows.Overlapping(0, 10) == 2);
  for (int k = 0; k < 2; ++k) windows.Remove(2, 4);  // there is none
  CHECK(windows.Overlapping(0, 10) == 2);
}

TEST_CASE("counting agrees with looking at every window") {
  Rng rng(1);
  constexpr Tick kTicks = 30;
  WindowCounter counter(kTicks);
  std::vector<std::pair<Tick, Tick>> windows;
  for (int step = 0; step < 500; ++step) {
    const auto begin = static_cast<Tick>(rng.Below(kTicks));
    const Tick end = begin + static_cast<Tick>(rng.Below(kTicks + 1 - begin));
    if (rng.Below(3) == 0 && !windows.empty()) {
      const auto gone = windows.begin() + static_cast<ptrdiff_t>(rng.Below(windows.size()));
      counter.Remove(gone->first, gone->second);
      windows.erase(gone);
    } else {
      counter.Add(begin, end);
      windows.emplace_back(begin, end);
    }
    int32_t overlapping = 0;
    for (const auto& [b, e] : windows) overlapping += b <= end && begin <= e;
    REQUIRE(counter.Overlapping(begin, end) == overlapping);
  }
}

TEST_CASE("a proposal takes bytes, time and windows, and gives all of them back") {
  const std::vector<int64_t> elapsed(10, 5), reserved(10, 0);
  Hardware hardware = TestHardware(16);
  XlaMemory memory(elapsed, reserved, 16, hardware);
  Proposal proposal;
  const int32_t stay = memory.AddStay(proposal, BufferId(3), {2, 6, 4, 8});
  CHECK(proposal.stays[stay].buffer == BufferId(3));
  CHECK_FALSE(memory.heap.IsFree(5, 6, 4, 1));
  memory.ExtendStay(proposal.stays[stay], 8);
  CHECK(proposal.stays[stay].end == 8);
  CHECK_FALSE(memory.heap.IsFree(7, 8, 4, 1));

  memory.AddCopy(proposal, CopyKind::kPrefetch, stay, 0, 2, 10);  // all the time of ticks 0 and 1
  CHECK_FALSE(memory.prefetches.resource.HasRoom(0, 2, 1));
  CHECK(memory.evictions.resource.HasRoom(0, 2, 1));  // evictions have a lane of their own
  CHECK(memory.prefetches.windows.Overlapping(0, 2) == 1);
  memory.AddCopy(proposal, CopyKind::kEviction, stay, 8, 9, 5);
  CHECK(memory.evictions.windows.Overlapping(8, 9) == 1);
  CHECK(memory.prefetches.windows.Overlapping(8, 9) == 0);

  memory.Undo(proposal);
  CHECK(proposal.stays.empty());
  CHECK(proposal.copies.empty());
  CHECK(memory.heap.IsFree(0, 10, 0, 16));
  CHECK(memory.prefetches.resource.HasRoom(0, 2, 10));
  CHECK(memory.evictions.resource.HasRoom(8, 9, 5));
  CHECK(memory.prefetches.windows.Overlapping(0, 9) == 0);
  CHECK(memory.evictions.windows.Overlapping(0, 9) == 0);
}

TEST_CASE("each slice of a prefetch counts as a window, from a tick earlier on, undone or not") {
  const std::vector<int64_t> elapsed(10, 5), reserved(10, 0);
  XlaMemory memory(elapsed, reserved, 16, TestHardware(16));
  Proposal proposal;
  const int32_t stay = memory.AddStay(proposal, BufferId(0), {0, 6, 0, 8});
  memory.AddCopy(proposal, CopyKind::kPrefetch, stay, 0, 4, 4, 0);
  memory.AddCopy(proposal, CopyKind::kPrefetch, stay, 2, 4, 4, 1);
  CHECK(memory.prefetches.windows.Overlapping(0, 0) == 1);
  CHECK(memory.prefetches.windows.Overlapping(1, 4) == 2);
  memory.Undo(proposal);
  CHECK(memory.prefetches.windows.Overlapping(1, 4) == 1);  // as in XLA, but for one at tick 0
}

TEST_CASE("edges lie right before and behind stays that are sure") {
  const std::vector<int64_t> elapsed(10, 5), reserved(10, 0);
  XlaMemory memory(elapsed, reserved, 16, TestHardware(16));
  CHECK(memory.LastEdge(0, 10) == std::nullopt);
  Proposal proposal;
  memory.AddStay(proposal, BufferId(0), {3, 6, 0, 8});
  memory.AddStay(proposal, BufferId(1), {0, 10, 8, 8});
  CHECK(memory.LastEdge(0, 10) == std::nullopt);
  memory.AddEdges(proposal);
  CHECK(memory.LastEdge(0, 10) == 6);
  CHECK(memory.LastEdge(0, 6) == 2);
  CHECK(memory.LastEdge(3, 6) == std::nullopt);
}

}  // namespace
}  // namespace mallocgame
