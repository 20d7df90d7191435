// Validate says whether the hardware can carry out a plan, and if not, which rule is broken where.
// It shares no code with the game or a solver. It checks what the hardware requires, not the game's
// policies: XLA's own plans, with sliced copies or evictions at any later tick, are valid too.
#pragma once

#include <cstdint>
#include <string>

#include "mallocgame/hardware/hardware.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

enum class Rule : uint8_t {
  kNone,  // no rule is broken
  // The plan is of another program or hardware, an index is out of range, an interval is none, or
  // copies are out of order (CheckWellFormed).
  kMalformed,
  // What must be in main memory is not: a buffer has a residence, or an instruction a result. Or an
  // array is not where a kernel pins it.
  kEligible,
  // A residence lies outside fast memory or is not aligned, or its bytes belong to another one or
  // to an instruction at that time.
  kSpace,
  // An access is served by a residence that is not there, is not filled yet, or holds an old value;
  // or elsewhere than where a transfer holds its buffer.
  kServed,
  // A read or a prefetch wants a value from main memory that is not there or not there yet, or the
  // last value of an output never gets there.
  kMainValue,
  // A copy transfers what is not there, or fills what its residence does not need.
  kCopy,
  // At some time there are more copies, or more preloads, than the hardware allows.
  kOutstanding,
  // A copy window or a residence enters or leaves a loop or branch where it may not, or slices of
  // one prefetch begin in different ones.
  kRegion,
};
const char* RuleName(Rule rule);  // "space", "main-value" ...

struct Verdict {
  Rule rule = Rule::kNone;
  std::string message;  // what is broken, at which tick, with the names; empty for kNone
  bool ok() const { return rule == Rule::kNone; }
};

Verdict Validate(const Program& program, const Hardware& hardware, const Plan& plan);

}  // namespace mallocgame
