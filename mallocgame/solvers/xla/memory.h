// What XLA's allocator has given away so far: bytes over ticks, and the service of copies. A
// Proposal is what it has decided for the current buffer, and can be taken back.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"
#include "mallocgame/solvers/xla/copy_resource.h"
#include "mallocgame/solvers/xla/cost.h"
#include "mallocgame/solvers/xla/heap.h"
#include "mallocgame/solvers/xla/interval_picker.h"
#include "mallocgame/solvers/xla/options.h"

namespace mallocgame {

// What stays the same while buffers are allocated.
struct XlaTables {
  // The time by which windows of a buffer of `size` bytes are measured.
  int64_t WindowPs(int64_t size) const {
    const int64_t one_for_all = program.data().window_bytes;
    return hardware.TransferPs(one_for_all > 0 ? one_for_all : size);
  }

  const Program& program;
  const Hardware& hardware;
  const XlaCost& cost;
  const IntervalPicker& picker;
  absl::Span<const Tick> defined;  // of XlaDefinitions
  XlaOptions options;
};

// Counts the copy windows of one direction.
class WindowCounter {
 public:
  explicit WindowCounter(Tick ticks) : begins_(ticks + 2), ends_(ticks + 2) {}
  void Add(Tick begin, Tick end) { Count(begin, end, 1); }
  // Takes away a window of just these ticks, if there is one.
  void Remove(Tick begin, Tick end);
  // How many windows share a tick with [begin, end], both included, or touch it.
  int32_t Overlapping(Tick begin, Tick end) const {
    return Sum(begins_, end) - Sum(ends_, begin - 1);
  }

 private:
  void Count(Tick begin, Tick end, int32_t count);
  static int32_t Sum(const std::vector<int32_t>& tree, Tick up_to);
  std::vector<int32_t> begins_, ends_;  // Fenwick trees
  absl::flat_hash_map<std::pair<Tick, Tick>, int32_t> windows_;
};

// The copies of one direction.
struct CopyLane {
  CopyLane(absl::Span<const int64_t> elapsed_ps, int32_t most)
      : resource(elapsed_ps), windows(static_cast<Tick>(elapsed_ps.size())), limit(most) {}
  CopyResource resource;
  WindowCounter windows;
  int32_t limit;
};

// A residence of the plan to be made. Its bytes may be held for longer than it lasts.
struct Stay {
  BufferId buffer;
  Tick begin = 0, end = 0;
  int32_t chunk = 0;  // id in the heap
};

struct StayCopy {
  CopyKind kind = CopyKind::kPrefetch;
  int32_t stay = 0;  // index into the proposal's stays
  Tick begin = 0, end = 0;
  bool preload = false;
  std::optional<Tick> replaces;  // the plain copy that it takes the place of
  CopyResource::Key key;
  std::optional<int> part;  // of the stay's chunk; none: all of it
};

struct Proposal {
  std::vector<Stay> stays;
  std::vector<StayCopy> copies;
  std::vector<std::pair<AccessId, int32_t>> served;  // by which of the stays
};

struct XlaMemory {
  XlaMemory(absl::Span<const int64_t> elapsed_ps, absl::Span<const int64_t> reserved,
            int64_t capacity, const Hardware& hardware);

  CopyLane& lane(CopyKind kind) { return kind == CopyKind::kPrefetch ? prefetches : evictions; }
  int32_t AddStay(Proposal& proposal, BufferId buffer, const Chunk& chunk);
  void ExtendStay(Stay& stay, Tick end);
  // Each slice of a prefetch has a window of its own.
  StayCopy& AddCopy(Proposal& proposal, CopyKind kind, int32_t stay, Tick begin, Tick end,
                    int64_t work_ps, std::optional<int> part = std::nullopt);
  // Gives everything back and empties the proposal. Windows of slices mostly count on, as in XLA.
  void Undo(Proposal& proposal);

  // Ticks right before or after a stay that is sure to be in the plan, at which there may be more
  // room than at the next tick.
  void AddEdges(const Proposal& proposal);
  // The last edge in [begin, end).
  std::optional<Tick> LastEdge(Tick begin, Tick end) const;

  ChunkHeap heap;
  CopyLane prefetches, evictions;

 private:
  std::vector<bool> is_edge_;
};

}  // namespace mallocgame
