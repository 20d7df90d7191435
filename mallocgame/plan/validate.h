// Is this plan one the hardware can carry out, and if not, which rule is broken, where? Shares no
// code with the game or a solver. Checks what the hardware requires, not the game's policies: a
// plan of XLA's, with sliced copies or an eviction later on, is valid too.
#ifndef MALLOCGAME_PLAN_VALIDATE_H_
#define MALLOCGAME_PLAN_VALIDATE_H_

#include <cstdint>
#include <string>

#include "mallocgame/hardware/hardware.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

enum class Rule : uint8_t {
  kNone,  // nothing broken
  // of another program or hardware, an index out of range, an interval that isn't one, copies out
  // of order
  kMalformed,
  kEligible,  // a residence of a buffer that must stay in main memory
  // bytes outside fast memory, unaligned, shared by two residences at a time, or in an
  // instruction's own
  kSpace,
  // an access served by a residence that isn't there, isn't filled yet, or holds an old value
  kServed,
  // a read from main memory, or a prefetch, of a value that isn't there (yet); an output that never
  // gets back
  kMainValue,
  kCopy,         // a copy that transfers what isn't there, or fills what nobody asked for
  kOutstanding,  // more copies, or more preloads, at a time than the hardware has
  // a copy window or a residence that enters or leaves a loop or branch where it may not; slices of
  // one prefetch that begin in different ones
  kRegion,
};
const char* RuleName(Rule rule);  // "space", "main-value" ...

struct Verdict {
  Rule rule = Rule::kNone;
  std::string message;  // what is broken, at which tick, with the names, empty if nothing
  bool ok() const { return rule == Rule::kNone; }
};

Verdict Validate(const Program& program, const Hardware& hardware, const Plan& plan);

}  // namespace mallocgame

#endif  // MALLOCGAME_PLAN_VALIDATE_H_
