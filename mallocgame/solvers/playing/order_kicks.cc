#include "mallocgame/solvers/playing/order_kicks.h"

#include <cmath>
#include <limits>
#include <utility>

#include "mallocgame/base/annealing.h"

namespace mallocgame {
namespace {

// Temperatures, as shares of the latency: of the changes after a kick, and of what kicks lead to.
constexpr Cooling kChanges = {1e-4, 2e-6};
constexpr double kKicks = 1e-4;

}  // namespace

OrderKicks::OrderKicks(const Game& game, OrderPreferences preferences)
    : game_(game.shared_from_this()), kicked_{std::move(preferences)} {
  Begin();
  kicked_.latency_ps = search_->latency_ps();
}

void OrderKicks::Begin() {
  search_.emplace(*game_, kicked_.preferences);
  changes_.emplace(*search_);
  trial_ = 0;
}

bool OrderKicks::Try(Rng& rng) {
  const auto scale = static_cast<double>(kicked_.latency_ps);
  if (trial_ == kTrials) {
    const auto loss = static_cast<double>(found_.latency_ps - kicked_.latency_ps);
    if (loss <= 0 || AcceptWorse(loss, kKicks * scale, rng)) kicked_ = found_;
    Begin();
  }
  const bool kick = trial_ == 0;
  int64_t most = std::numeric_limits<int64_t>::max();
  if (kick) {
    from_ = changes_->Kick(rng);
  } else {
    const double temperature = kChanges.At(scale, static_cast<double>(trial_) / kTrials);
    from_ = changes_->Propose(rng);
    most = search_->latency_ps() - static_cast<int64_t>(temperature * std::log(1 - rng.Uniform()));
  }
  ++trial_;
  if (!search_->Play(most)) {
    search_->Reject();
    return false;
  }
  search_->Accept();
  changes_->Accepted();
  if (kick || search_->latency_ps() < found_.latency_ps)
    found_ = {search_->preferences(), search_->latency_ps()};
  return true;
}

}  // namespace mallocgame
