#include "mallocgame/solvers/learned/weights.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mallocgame/solvers/learned/advised_game.h"
#include "mallocgame/solvers/learned/run_network.h"

namespace mallocgame {
namespace {

// As the text has them: literals of float would need a suffix, which is no number elsewhere.
constexpr double kBundled[] = {
#include "mallocgame/solvers/learned/weights.csv"
};

}  // namespace

absl::Span<const float> BundledWeights() {
  static const std::vector<float> weights(std::begin(kBundled), std::end(kBundled));
  return weights;
}

absl::Status ValidateWeights(absl::Span<const float> weights) {
  const auto count = static_cast<int64_t>(weights.size()) - RunNetwork::kNumWeights;
  if (count < Style::kNumbers || count % Style::kNumbers != 0) {
    return absl::InvalidArgumentError(absl::StrCat("weights: found ", weights.size(),
                                                   " numbers, allowed: ", RunNetwork::kNumWeights,
                                                   " and ", Style::kNumbers, " for each style"));
  }
  const auto bad = std::find_if_not(weights.begin(), weights.end(),
                                    [](float weight) { return std::isfinite(weight); });
  if (bad == weights.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("weights: number ", bad - weights.begin(), " is ",
                                                 *bad, ", allowed: finite numbers"));
}

}  // namespace mallocgame
