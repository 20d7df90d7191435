#include "agents/egrl/best_map.h"

#include <utility>

namespace mallocgame::egrl {

BestMap::BestMap(const PlacementProblem& problem) : problem_(problem) {
  Restore(PlacementMap(problem.map_size(), static_cast<uint8_t>(problem.levels() - 1)), {});
}

bool BestMap::Offer(const PlacementMap& map, const PlacementOutcome& outcome) {
  ++result_.evaluations;
  int64_t best = result_.best_ps.empty() ? 0 : result_.best_ps.back();
  const bool fits = outcome.moved == 0 || problem_.game() != nullptr;
  const bool better = fits && (best == 0 || outcome.latency_ps < best);
  if (better) {
    best = outcome.latency_ps;
    result_.map = map;
    result_.outcome = outcome;
  }
  result_.best_ps.push_back(best);
  return better;
}

void BestMap::Restore(PlacementMap map, std::vector<int64_t> best_ps) {
  result_.map = std::move(map);
  result_.outcome = *problem_.Evaluate(result_.map);
  result_.evaluations = static_cast<int64_t>(best_ps.size());
  result_.best_ps = std::move(best_ps);
}

}  // namespace mallocgame::egrl
