// The pieces of XLA's allocator that a caller may replace. Each is a function that is asked a
// question and answers it; an empty function is XLA's own piece. The loop around them stays XLA's.
//
// A wrong answer, and an error that a piece returns, end the allocation with that error. A question
// and what it refers to must not be kept. docs/xla-heuristic.md has an example.
#ifndef MALLOCGAME_SOLVERS_XLA_PIECES_H_
#define MALLOCGAME_SOLVERS_XLA_PIECES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/program/program.h"
#include "mallocgame/solvers/xla/heap_view.h"

namespace mallocgame {

class IntervalPicker;

// In which order are buffers decided? (XLA: MsaSortOrder, BufferIntervalComparator.) Asked once.
struct XlaOrderQuestion {
  const Program& program;
  absl::Span<const BufferId> by_xla;  // the buffers to put in order, in XLA's order
  // for each of them what fast memory saves for all its uses, in ps per square root of a byte; not
  // above 0 where all uses are bound by compute
  absl::Span<const double> boundedness;
};
// Answers the same buffers, the first one to decide in front.
using XlaOrderPiece = std::function<absl::StatusOr<std::vector<BufferId>>(const XlaOrderQuestion&)>;

// When may the prefetch for a use begin? (XLA: PrefetchIntervalPicker.) Asked for each use that has
// to be prefetched.
struct XlaBeginsQuestion {
  BufferId buffer;
  AccessId access;  // the use
  int64_t size_bytes = 0;
  int retry = 0;  // how often this buffer has been undone before
  Tick first = 0,
       end = 0;         // the copy begins in [first, end), where MayBegin says so, ends at `end`
  Tick held_until = 0;  // and its bytes are taken until this tick, later uses not counted
  double preferred_ps = 0;  // the time of instructions in which XLA hides the copy best
  XlaHeapView memory;
  const IntervalPicker& picker;  // for the functions below

  // Says whether the window from `begin` lies in the loop or branch in which it ends.
  bool MayBegin(Tick begin) const;
  // The time of the instructions at [begin, end), weighted by loops, all in main memory.
  double HiddenPs(Tick begin) const;
  // XLA's answer: the begin that hides preferred_ps, and others around it in both directions, those
  // far before it thinned out. Empty: no window is long enough. With `start` those around `start`.
  std::vector<Tick> ByXla(std::optional<Tick> start = std::nullopt) const;

  int64_t window_ps = 0, saved_ps = 0;  // what ByXla goes by
};
// Answers the begins to try, the best first, at most the first 2,000 are. The first at which bytes
// and copies allow it is taken. As XLA does, the allocator gives up at a begin that is not after
// one for which there were no bytes, and at once if there are none for the latest of all.
using XlaBeginsPiece = std::function<absl::StatusOr<std::vector<Tick>>(const XlaBeginsQuestion&)>;

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

enum class XlaNext {
  kKeep,      // keeps what was found, and goes on to the next buffer
  kRetry,     // undoes it and tries the same buffer again; evictions get more time
  kRepack,    // undoes it, packs all bytes anew and tries again. If they don't fit: kRetry
  kLeaveOut,  // undoes it and leaves the buffer in main memory
};

// What follows an attempt to decide a buffer? (XLA: max_retries, max_repacks.)
struct XlaAttempt {
  BufferId buffer;
  int retry = 0;  // how often it has been undone before, not counting what repacking undid
  uint32_t failures = kNoFailure;  // XlaFailure or-ed
  int repacks_of_buffer = 0;       // how often bytes were packed anew for this buffer,
  int repacks = 0;                 // and in the program; attempts at it count
  XlaNext by_xla = XlaNext::kKeep;
};
// Answers what to do. kKeep is wrong after kMustUndo. A buffer is tried again at most 100 times.
using XlaRetryPiece = std::function<absl::StatusOr<XlaNext>(const XlaAttempt&)>;

// Which bytes does a buffer get? (XLA: FindChunkCandidate.) Asked for each new place, and also for
// longer times than `end` needs: XLA takes the place that reaches the most of the later uses.
struct XlaOffsetQuestion {
  BufferId buffer;
  Tick begin = 0, end = 0;
  int64_t size_bytes = 0;
  // The free ranges that are large enough, from the lowest on. Their begins are aligned. One that
  // ends at the capacity is the top of the heap, which XLA takes to be endless.
  absl::Span<const ByteRange> free;
  int64_t capacity_bytes = 0, alignment_bytes = 0;
};
// Answers an aligned offset in one of the ranges, or none: the buffer does not get bytes. A sliced
// copy for whose slices the offset is not free in time takes the next one above it in the same
// range; if there is none, the piece is asked again, without that range.
using XlaOffsetPiece =
    std::function<absl::StatusOr<std::optional<int64_t>>(const XlaOffsetQuestion&)>;

// Where do all bytes go when they are packed anew? (XLA: MemorySpaceAssignmentRepacker.) XLA
// measures how long a block is there by Instruction::logical_time.
struct XlaBlock {
  Tick begin = 0, end = 0;
  int64_t offset = 0, size_bytes = 0;
};
struct XlaRepackQuestion {
  // Their times stay. A copy in slices is one block from its first begin on, and its slices stay in
  // order.
  absl::Span<const XlaBlock> blocks;
  // for each tick so many bytes from 0 on are not free; empty: none at any tick
  absl::Span<const int64_t> reserved;
  int64_t capacity_bytes = 0, alignment_bytes = 0;
};
// Answers a new aligned offset for each block, or none: they don't fit, and stay where they are.
using XlaRepackPiece =
    std::function<absl::StatusOr<std::optional<std::vector<int64_t>>>(const XlaRepackQuestion&)>;

struct XlaPieces {
  XlaOrderPiece order;
  XlaBeginsPiece begins;
  XlaRetryPiece retry;
  XlaOffsetPiece offset;
  XlaRepackPiece repack;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_XLA_PIECES_H_
