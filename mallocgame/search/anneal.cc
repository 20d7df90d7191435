#include "mallocgame/search/anneal.h"

namespace mallocgame {

void Anneal(Neighbourhood& search, const AnnealOptions& options, Rng& rng) {
  if (search.empty()) return;
  const auto scale = static_cast<double>(search.latency_ps());
  int64_t best_ps = search.latency_ps();
  double temperature = 0;
  for (int64_t trial = 0;; ++trial) {
    if (trial % options.trials_per_look == 0) {
      const double used = options.used(trial);
      if (used >= 1) return;
      temperature = options.cooling.At(scale, used);
    }
    bool accepted = false;
    if (search.Propose(rng)) {
      // What is accepted, drawn before: a trial beyond it need not be worked out to its end.
      const double loss = AcceptedLoss(temperature, rng);
      accepted = search.Try(search.latency_ps() + static_cast<int64_t>(loss));
      if (accepted) {
        search.Accept();
      } else {
        search.Reject();
      }
    }
    const bool last = options.tried && !options.tried(accepted);
    if (search.latency_ps() < best_ps) {
      best_ps = search.latency_ps();
      if (options.better) options.better();
    }
    if (last) return;
  }
}

}  // namespace mallocgame
