// Collectives: instructions by which several chips hand each other arrays. Private to the folder.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "mallocgame/hlo/cost/links.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/schedule.h"

namespace mallocgame::hlo {

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
  std::vector<Transfer> transfers_;  // by start
};

}  // namespace mallocgame::hlo
