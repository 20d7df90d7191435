// Local search over packings, and its moves by their names in operations research. Each changes
// what is wanted for some accesses.
//
//   Reassign        an access goes to main memory or comes into fast memory: a 1-flip.
//   Cut, coalesce   the residence that serves the access before serves this one too, or no more:
//                   live-range splitting and its reverse (Cooper and Simpson 1998; Chaitin 1982).
//   Lead            the bytes are reserved for a prefetch earlier or later: a start is shifted.
//   Hold            the bytes of an eviction are held until it must be done, or no longer.
//   Insert          a residence has its turn at any place of the list (Taillard 1990).
//   Relocate        a residence gets the offset of another one, or any, and chooses early.
//   ReassignBuffer  all accesses of a buffer, or those from one on: a block move.
//   Preload         a parameter comes before the program starts, in place of another one.
#ifndef MALLOCGAME_SEARCH_PACKING_SEARCH_H_
#define MALLOCGAME_SEARCH_PACKING_SEARCH_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/search/intent.h"
#include "mallocgame/search/neighbourhood.h"
#include "mallocgame/search/packing.h"

namespace mallocgame {

class PackingSearch final : public Neighbourhood {
 public:
  // Packs what `plan`, which must be well formed, serves from fast memory. Buffers that the game's
  // options require there choose their places first, and are not moved.
  PackingSearch(const Game& game, const Plan& plan);

  const Intent& intent() { return packing_.intent(); }
  // The plan of an intent that was the accepted one.
  Plan PlanOf(const Intent& intent);

  bool empty() const override { return large_.empty(); }
  void Propose(Rng& rng) override;
  bool Try(int64_t most) override;
  // A residence keeps its offset unless another one takes the bytes first.
  void Accept() override;
  void Reject() override;
  int64_t latency_ps() const override { return latency_; }

 private:
  Segment& Changed(AccessId id);
  AccessId AnyAccess(Rng& rng) const;
  Tick AnyLead(AccessId id, Rng& rng) const;
  void Reassign(AccessId id, Rng& rng);
  void CutOrCoalesce(AccessId id);
  void Relocate(AccessId id, Rng& rng);
  void ReassignBuffer(AccessId id, Rng& rng);
  void Preload(BufferId buffer, Rng& rng);

  const Program& program_;
  size_t max_preloads_;
  Packing packing_;
  std::vector<AccessId> all_, large_;  // accesses that may be moved
  std::vector<AccessId> written_;      // those of large_ whose buffers are written
  int64_t latency_ = 0, trial_ = 0;
  std::vector<std::pair<AccessId, Segment>> changed_;  // as they were before this trial
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SEARCH_PACKING_SEARCH_H_
