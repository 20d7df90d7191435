// XLA's decision for one buffer: its values in time order, and of each value one use after the
// other (XLA reference 4.2 to 4.7).
#ifndef MALLOCGAME_SOLVERS_XLA_BUFFER_WALK_H_
#define MALLOCGAME_SOLVERS_XLA_BUFFER_WALK_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/solvers/xla/memory.h"

namespace mallocgame {

// What stood in the way of fast memory. Only the last one makes the proposal worthless.
enum XlaFailure : uint32_t {
  kNoFailure = 0,
  kOutOfMemory = 1,
  kPauseTooLong = 2,
  kWindowTooShort = 4,
  kOutOfCopies = 8,    // too many on their way
  kOutOfService = 16,  // copies would not be through in time
  kMustUndo = 32,      // a value that is needed in main memory can't get there
};

class XlaBufferWalk {
 public:
  // One an access: `in_main`, must be served from main memory; `in_fast`, of a buffer allocated
  // before, is served from fast memory. `last_retry`: write-backs need not be through in time.
  XlaBufferWalk(const XlaTables& tables, XlaMemory& memory, const std::vector<bool>& in_main,
                const std::vector<bool>& in_fast, BufferId buffer, int retry, bool last_retry,
                Proposal& proposal);

  // Failures, or-ed together. After kMustUndo the proposal is not complete.
  uint32_t Run();

 private:
  // The value at hand, and where it is. The newest place is a stay if `newest_is_stay`, else main
  // memory if `main_from` is set, else nothing has been decided.
  struct Value {
    Tick defined = 0;
    AccessId written_by;            // an access that its first place serves too
    std::optional<Tick> main_from;  // in main memory behind this tick
    int32_t stay = -1;
    bool newest_is_stay = false;
    bool worthless = false;  // nothing was written yet
    Tick last_use = 0;
    // by the plain copy at this tick, of a buffer that is always in main memory
    Tick copied_at = -1;
  };
  // One use, or the entry of a loop with all uses inside.
  struct Use {
    AccessId access;
    Tick tick = 0;       // a window ends here at the latest
    Tick counts_at = 0;  // where pauses are measured to
    Tick stay_end = 0;   // a stay that serves it reaches here
    int64_t saved_ps = 0;
    bool may_be_fast = true;
    size_t next = 0;  // index of the first access behind it
  };

  static Value InMain(Tick tick, bool worthless);

  void Walk(size_t first, size_t last);
  size_t WalkLoop(size_t entry);
  void Serve(size_t i);
  Use UseAt(size_t i) const;
  Use LoopUse(size_t entry, size_t end) const;
  bool LoopMayBeFast(size_t entry, size_t end, const Loop& loop) const;

  // Places one use; true: in fast memory.
  bool Allocate(const Use& use);
  bool Stays(const Use& use);
  // A prefetch of what is in main memory behind tick `from`, or, in place of the plain copy at
  // `replaces`, of its operand.
  bool Prefetch(const Use& use, Tick from, Tick replaces);
  bool Replaceable(Tick copy) const;
  bool PrefetchInSlices(const Use& use, Tick s, Tick end, Tick replaces);
  bool WriteBack(Tick latest);
  void NeedInMain(Tick latest);

  // An offset for a chunk that ends at use.stay_end, such that it will do for as many of the later
  // uses as possible.
  std::optional<int64_t> BestOffset(Chunk chunk, const Use& use) const;
  bool StayIsLegal(Tick begin, Tick end) const;
  // The largest end of a window that begins at `begin`, not beyond `end`, in one region; at least
  // `begin`.
  Tick WindowEndFrom(Tick begin, Tick end) const;
  Tick EndOf(const Access& a) const;
  const Access& access(size_t i) const { return tables_.program.access(accesses_[i]); }
  const Region& region(int32_t index) const { return tables_.program.regions()[index]; }
  int32_t RegionAt(Tick tick) const { return tables_.program.region_at(tick); }

  const XlaTables& tables_;
  XlaMemory& memory_;
  const std::vector<bool>& in_main_;
  const std::vector<bool>& in_fast_;
  const BufferId buffer_;
  const int64_t size_, copy_ps_;
  const int retry_;
  const bool last_retry_;
  Proposal& proposal_;
  absl::Span<const AccessId> accesses_;
  // one an access: the first one behind it whose pause before is too long
  std::vector<size_t> reach_;
  Value value_;
  uint32_t failures_ = 0;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_XLA_BUFFER_WALK_H_
