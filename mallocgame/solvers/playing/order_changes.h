// The changes that local search tries in an order game.
#ifndef MALLOCGAME_SOLVERS_PLAYING_ORDER_CHANGES_H_
#define MALLOCGAME_SOLVERS_PLAYING_ORDER_CHANGES_H_

#include <cstdint>
#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/solvers/playing/order_search.h"

namespace mallocgame {

class OrderChanges {
 public:
  // `search` must outlive this.
  explicit OrderChanges(OrderSearch& search);

  // Sets up a trial of `search`, which must have decisions: a run is served otherwise, with another
  // one or alone, is taken earlier or later, changes roles with one of about its size, is served as
  // one where it was split, or a run and a few others give way to each other. Returns the decision
  // at which the trial leaves the accepted game.
  int32_t Propose(Rng& rng);
  // To be called when the trial has become the accepted game.
  void Accepted();

 private:
  OrderPreference preference(int32_t run) const { return search_.preferences()[run]; }
  int64_t saving_ps(int32_t decision) const {
    return tables_.runs[search_.run(decision)].saving_ps;
  }
  int32_t AnyDecision(Rng& rng) const;
  template <class Suits>
  int32_t Find(int rivals, const Suits& suits, Rng& rng) const;
  Service AnyService(const Run& run, Service now, Rng& rng) const;
  int32_t SimilarTo(int32_t at, Rng& rng) const;
  int32_t ProposeGivingWay(Rng& rng);

  OrderSearch& search_;
  const OrderTables& tables_;
  std::vector<int32_t> large_;  // decisions about buffers that are not small
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_PLAYING_ORDER_CHANGES_H_
