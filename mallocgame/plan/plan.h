// The common coin: what was decided, whoever decided it. The game, every solver and XLA's own
// assignment end in a Plan; Validate and Simulate judge all of them alike.
#ifndef MALLOCGAME_PLAN_PLAN_H_
#define MALLOCGAME_PLAN_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

// A buffer's stay in fast memory: bytes [offset, offset + size of the buffer) over ticks [begin,
// end). If the stay begins with a prefetch in slices, each slice's bytes are taken from the begin
// of its own copy only.
struct Residence {
  BufferId buffer;
  int64_t offset = 0;
  Tick begin = 0;
  Tick end = 0;
  friend bool operator==(const Residence&, const Residence&) = default;
};

enum class CopyKind : uint8_t { kPrefetch, kWriteBack };  // main to fast, fast to main

// An asynchronous transfer of bytes [part_begin, part_end) of a residence's buffer, whole unless
// sliced. It starts before the instruction at tick `begin` runs and is done before the one at tick
// `end` runs: begin == end hides nothing. An access that needs it may be at tick `end` or later.
// What is not done by `end` is a stall there.
struct Copy {
  CopyKind kind = CopyKind::kPrefetch;
  ResidenceId residence;  // filled by a prefetch, emptied by a write-back
  Tick begin = 0;
  Tick end = 0;
  int64_t part_begin = 0;
  int64_t part_end = 0;
  // of a prefetch of an entry parameter: issued by the previous run, done before tick 0
  bool preload = false;
  // of a prefetch: the plain copy instruction this takes the place of; the bytes come from the
  // buffer that instruction reads, in main memory; -1: none, they come from the buffer itself. The
  // residence serves that instruction's write, even if it begins after it
  Tick replaces = -1;
  friend bool operator==(const Copy&, const Copy&) = default;
};

struct Plan {
  std::string program_fingerprint;
  std::string hardware;  // name of the Hardware it was made for
  std::vector<Residence> residences;
  // in the order the channel serves them; begin never decreases
  std::vector<Copy> copies;
  // one an access: the residence that serves it; none = main memory
  std::vector<ResidenceId> served_by;
  friend bool operator==(const Plan&, const Plan&) = default;
};

// Everything in main memory.
Plan AllMainPlan(const Program& program, const Hardware& hardware);

// InvalidArgument unless the plan is one of this program and hardware, its indices are in range,
// its intervals are intervals inside the program and its copies in order: what everything that
// reads a plan relies on (Rule::kMalformed).
absl::Status CheckWellFormed(const Program& program, const Hardware& hardware, const Plan& plan);

// One line a residence and a copy, with names, ticks and bytes, in time order. For people; not read
// back. The plan must be well formed.
std::string PlanToString(const Program& program, const Plan& plan);

}  // namespace mallocgame

#endif  // MALLOCGAME_PLAN_PLAN_H_
