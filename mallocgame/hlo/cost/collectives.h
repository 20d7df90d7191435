// Collectives: instructions by which several chips hand each other arrays. Private to the folder.
#ifndef MALLOCGAME_HLO_COST_COLLECTIVES_H_
#define MALLOCGAME_HLO_COST_COLLECTIVES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "mallocgame/hlo/cost/links.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/schedule.h"

namespace mallocgame::hlo {

// What a *-start of a collective holds: its operands again, and the result that its *-done gives.
struct HandedOver {
  size_t operand_count = 0;  // how many operands it holds, from the first on
  Module::ArrayRange operands;
  Module::ArrayRange result;
};

// None if `start` is no such instruction, or has another form.
std::optional<HandedOver> HandedOverBy(const Module& module, int32_t start);

// By array of the result: whether it is an operand that the instruction hands on as it is. So it
// is with what a collective still reads, in a *-start and in fusions that go on with one.
std::vector<bool> HandsOn(const Module& module, int32_t i);

// Whether it is a fusion in which a collective begins that another one ends.
bool BeginsCollectiveFusion(const Module& module, int32_t i);

// True for a start with a HandedOver, and for the instruction that ends it.
bool StartsOrEndsCollective(const Module& module, int32_t i);

// The transfers of a schedule. A transfer takes place at one instruction, or begins at one and ends
// at another, which waits for it:
// - all-reduce and the like, by themselves or in a fusion
// - *-start and *-done of them, and async-start and async-done of a computation with one in it
// - fusions with the custom calls AsyncCollectiveStart and AsyncCollectiveDone. Between them the
//   same collective, by its channel, stands in fusions that compute while it transfers.
class Collectives {
 public:
  Collectives(const Module& module, const Schedule& schedule);

  // Whether the instruction at a tick transfers, or begins or ends that. If it has no price, then
  // what it moves goes over links.
  bool Transfers(Tick tick) const { return role_[tick] != Role::kNothing; }

  // The begins and ends of those that end at another instruction, by begin.
  std::vector<std::pair<Tick, Tick>> Spans() const;

  // By tick: how long it waits for the links in one run (TransferWaits). `least_ps` is the least
  // time of a tick by itself.
  std::vector<int64_t> Waits(const Links& links,
                             const std::function<int64_t(Tick)>& least_ps) const;

 private:
  enum class Role : uint8_t { kNothing, kWhole, kBegins, kEnds };

  class Finder;
  struct Transfer {
    CollectiveKind kind = CollectiveKind::kAllGather;
    int64_t bytes = 0;
    int64_t members = 0;
    Tick begin = 0, end = 0;  // the same if it is synchronous
  };

  std::vector<Role> role_;           // by tick
  std::vector<Transfer> transfers_;  // by begin
};

}  // namespace mallocgame::hlo

#endif  // MALLOCGAME_HLO_COST_COLLECTIVES_H_
