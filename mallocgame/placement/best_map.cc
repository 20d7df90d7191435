#include "mallocgame/placement/best_map.h"

#include <utility>

namespace mallocgame {

BestMap::BestMap(const PlacementProblem& problem) : problem_(problem) {
  Restore(PlacementMap(problem.map_size(), static_cast<uint8_t>(problem.levels() - 1)), {}, 0);
}

bool BestMap::Offer(absl::Span<const uint8_t> map, const PlacementOutcome& measured) {
  ++result_.evaluations;
  const bool fits = measured.moved == 0 || problem_.game() != nullptr;
  const bool better = fits && (measured_ps_ == 0 || measured.latency_ps < measured_ps_);
  if (better) {
    measured_ps_ = measured.latency_ps;
    result_.map.assign(map.begin(), map.end());
    result_.outcome = *problem_.Evaluate(map);
  }
  result_.best_ps.push_back(measured_ps_ == 0 ? 0 : result_.outcome.latency_ps);
  return better;
}

void BestMap::Restore(PlacementMap map, std::vector<int64_t> best_ps, int64_t measured_ps) {
  result_.map = std::move(map);
  result_.outcome = *problem_.Evaluate(result_.map);
  result_.evaluations = static_cast<int64_t>(best_ps.size());
  result_.best_ps = std::move(best_ps);
  measured_ps_ = measured_ps;
}

}  // namespace mallocgame
