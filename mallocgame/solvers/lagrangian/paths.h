// The ways that one buffer can take through the schedule, and the cheapest at given prices.
//
// The dual prices what the buffers share: accesses served from fast memory, its bytes, the
// channel's time. Then each byte of a buffer goes its own way. At each point it is in one of a few
// *states*, and between two accesses it may be prefetched, evicted or dropped. proof.md says why
// every valid plan takes such a way for each byte.
#pragma once

#include <cstdint>
#include <vector>

#include "mallocgame/hardware/hardware.h"
#include "mallocgame/program/program.h"
#include "mallocgame/solvers/lagrangian/levels.h"

namespace mallocgame::lagrangian {

// Where the newest value of a byte is.
enum State : uint8_t {
  kNone,      // there is no value yet
  kMain,      // in main memory only
  kBoth,      // in both memories
  kFast,      // in fast memory only
  kOperand,   // result of a replaced plain copy: in the operand only
  kReplaced,  // the same: in the operand and in fast memory
  kStates
};

// What may serve an access.
enum Serves : uint8_t { kByMain = 1, kByFast = 2, kByReplacing = 4 };

struct Step {
  enum Kind : uint8_t { kGap, kSettle, kRead, kUpdate, kWrite, kLoop };
  Kind kind = kGap;
  uint8_t serves = kByMain | kByFast;
  // The gap begins behind an instruction that writes the value: the copies of it in the first
  // bucket don't fit into the time that its writer leaves idle.
  bool written = false;
  bool writes = false;  // kLoop: an access inside writes the buffer
  bool apart = false;   // kLoop: the value lives and dies in one pass
  int32_t access = -1;  // kRead, kUpdate, kWrite
  // kGap: copies are served in the buckets [from, to], and the points there looked at. kSettle:
  // copies are served in the bucket `to`. kWrite: the point is `to`, and a prefetch that replaces
  // the plain copy is served in [from, to]. kLoop: the loop's end is `to`, and the bucket in front
  // of it lies between the loop's entry and its end.
  int32_t from = 0, to = 0;
  int32_t inside = 0;  // kLoop: so many steps behind it are of accesses inside
};

// Copies are measured in 2^-10 ps, so that those of small buffers count.
inline constexpr int64_t kCopyUnits = 1024;

struct BufferSteps {
  BufferId buffer;
  int64_t copy_units = 0;  // the time of the channel for all of it, rounded down
  int64_t bytes = 0;
  bool constant = false;
  State begin = kNone;
  bool preloads = false;  // it may begin in kBoth
  bool ends_in_main = false;
  int32_t first = 0, last = 0;  // its steps
};

struct Paths {
  std::vector<BufferSteps> buffers;
  std::vector<Step> steps;
};

// `serves`: for each access, what its instruction lets serve it; 0: anything.
Paths FindPaths(const Program& program, const Levels& levels, const std::vector<uint8_t>& serves,
                int64_t least_bytes, const Hardware& hardware);

}  // namespace mallocgame::lagrangian
