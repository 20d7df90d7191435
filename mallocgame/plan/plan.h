// A Plan says where each buffer lies when, and what is copied when. It is the common coin: the
// game, every solver and XLA's own assignment end in a Plan, and Validate and Simulate judge all of
// them alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

// A stay of a buffer in fast memory: it has the bytes [offset, offset + size of the buffer) over
// the ticks [begin, end). If the stay begins with a prefetch in slices, each slice takes its bytes
// only from the start of its own copy on.
struct Residence {
  BufferId buffer;
  int64_t offset = 0;
  Tick begin = 0;
  Tick end = 0;
  friend bool operator==(const Residence&, const Residence&) = default;
};

enum class CopyKind : uint8_t {
  kPrefetch,  // from main to fast memory
  kEviction,  // from fast to main memory
};

// An asynchronous transfer of the bytes [part_begin, part_end) of a residence's buffer, which are
// all of them unless the transfer is sliced. It starts before the instruction at tick `begin` runs
// and is done before the one at tick `end` runs, so begin == end hides nothing. An access that
// needs it is at tick `end` or later. If it is not done by then, the program stalls at `end`.
struct Copy {
  CopyKind kind = CopyKind::kPrefetch;
  ResidenceId residence;  // the residence that a prefetch fills or an eviction empties
  Tick begin = 0;
  Tick end = 0;
  int64_t part_begin = 0;
  int64_t part_end = 0;
  // For the prefetch of an entry parameter: it is issued by the previous run and done before tick
  // 0.
  bool preload = false;
  // For a prefetch: the tick of the plain copy instruction whose place it takes; -1 if there is
  // none. Its bytes then come from the buffer that this instruction reads, in main memory, instead
  // of from the residence's own buffer. The residence serves the instruction's write, even if it
  // begins after it.
  Tick replaces = -1;
  friend bool operator==(const Copy&, const Copy&) = default;
};

struct Plan {
  std::string program_fingerprint;
  std::string hardware;  // the name of the Hardware that it was made for
  std::vector<Residence> residences;
  // In the order in which the channel serves them; their begins never decrease.
  std::vector<Copy> copies;
  // For each access the residence that serves it; an invalid id if main memory does.
  std::vector<ResidenceId> served_by;
  friend bool operator==(const Plan&, const Plan&) = default;
};

// The plan with everything in main memory but what kernels pin to fast memory (plan/pinned.h).
Plan AllMainPlan(const Program& program, const Hardware& hardware);

// The same plan, but for one buffer, which main memory serves.
Plan InMainMemory(const Plan& plan, BufferId buffer);

// Checks what everything that reads a plan relies on (Rule::kMalformed). InvalidArgument unless the
// plan is one of this program and hardware, its indices are in range, its intervals are intervals
// inside the program and its copies in order.
absl::Status CheckWellFormed(const Program& program, const Hardware& hardware, const Plan& plan);

// A text for people, which cannot be read back: a line for each residence and copy, with names,
// ticks and bytes, in time order. The plan must be well formed.
std::string PlanToString(const Program& program, const Plan& plan);

}  // namespace mallocgame
