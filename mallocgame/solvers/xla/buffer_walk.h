// XLA's decision for one buffer: its values in time order, and of each value one use after the
// other (XLA reference 4.2 to 4.7).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/solvers/xla/memory.h"

namespace mallocgame {

// What stood in the way of fast memory. Only kMustUndo makes the attempt worthless.
enum XlaFailure : uint32_t {
  kNoFailure = 0,
  kOutOfMemory = 1,
  kPauseTooLong = 2,
  kWindowTooShort = 4,
  kOutOfCopies = 8,    // too many on their way
  kOutOfService = 16,  // copies would not be through in time
  kMustUndo = 32,      // a value that is needed in main memory can't get there
  kSameBegins = 64,    // slices would all begin at once
};

class XlaBufferWalk {
 public:
  // Both vectors have an entry for each access. `in_main`: main memory must serve it. `in_fast`: it
  // is of a buffer that was allocated before, and fast memory serves it. With `last_retry`
  // evictions need not be through in time.
  XlaBufferWalk(const XlaTables& tables, XlaMemory& memory, const std::vector<bool>& in_main,
                const std::vector<bool>& in_fast, BufferId buffer, int retry, bool last_retry,
                Proposal& proposal);

  // Returns the failures, or-ed together. After kMustUndo the proposal is not complete.
  uint32_t Run();

 private:
  // The current value, and where it is. Its newest place is `stay` if `newest_is_stay`, else main
  // memory if `main_from` is set, else nothing has been decided.
  struct Value {
    Tick defined = 0;
    AccessId written_by;            // an access that its first place serves too; may be none
    std::optional<Tick> main_from;  // it is in main memory behind this tick
    std::optional<int32_t> stay;    // the last one it was in
    bool newest_is_stay = false;
    Tick last_use = 0;
    // the plain copy that makes it from a buffer which is always in main memory
    std::optional<Tick> copied_at;
  };
  // One use; the entry of a loop counts as one, with all uses inside.
  struct Use {
    AccessId access;
    Tick tick = 0;       // a window ends here at the latest
    Tick counts_at = 0;  // pauses are measured up to this tick
    Tick stay_end = 0;   // a stay that serves it ends here or later
    int64_t saved_ps = 0;
    bool may_be_fast = true;
  };

  static Value InMain(Tick tick);

  void Walk(size_t first, size_t last);
  size_t WalkLoop(size_t entry);
  void Serve(size_t i);
  Use UseAt(size_t i) const;
  Use LoopUse(size_t entry, size_t end) const;
  bool LoopMayBeFast(size_t entry, size_t end, const Loop& loop) const;

  // Places one use; true if fast memory serves it. Allocate also forgets what failed before that.
  bool Allocate(const Use& use);
  bool Place(const Use& use);
  bool Stays(const Use& use);
  // Prefetches what is in main memory behind tick `from`, or, if `replaces` names a plain copy,
  // that copy's operand in its place.
  bool Prefetch(const Use& use, Tick from, std::optional<Tick> replaces);
  bool Replaceable(Tick copy) const;
  uint32_t PrefetchInSlices(const Use& use, Tick s, Tick end, std::optional<Tick> replaces);
  bool Eviction(Tick latest);
  void NeedInMain(Tick latest);

  // Gives a chunk that ends at use.stay_end the place at which it can stay for as many of the later
  // uses as possible. False: there is none.
  bool BestFit(Chunk& chunk, const Use& use) const;
  Chunk SlicesOf() const;
  std::vector<Tick> UseTicks() const;
  bool StayIsLegal(Tick begin, Tick end) const;
  const Access& access(size_t i) const { return tables_.program.access(accesses_[i]); }
  const Region& region(int32_t index) const { return tables_.program.regions()[index]; }
  int32_t RegionAt(Tick tick) const { return tables_.program.region_at(tick); }

  const XlaTables& tables_;
  XlaMemory& memory_;
  const std::vector<bool>& in_main_;
  const std::vector<bool>& in_fast_;
  const BufferId buffer_;
  const int64_t size_, copy_ps_;
  const int64_t window_ps_;  // the time that windows are measured by
  const int retry_;
  const bool last_retry_;
  Proposal& proposal_;
  absl::Span<const AccessId> accesses_;
  std::vector<Tick> use_ticks_;  // all that XLA counts as a use, in order
  std::vector<size_t> reach_;    // for each, the last one that may be reached without a copy
  Chunk slices_;
  Value value_;
  uint32_t failures_ = 0;
};

}  // namespace mallocgame
