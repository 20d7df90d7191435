#include "mallocgame/search/anneal_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/search/anneal.h"
#include "mallocgame/search/game_variants.h"
#include "mallocgame/search/plan_cost.h"
#include "mallocgame/search/residence_search.h"

namespace mallocgame {
namespace {

// Temperatures of chains, one after the other. Where a few large buffers fill fast memory, several
// must change places before a plan is better, and no step on the way is small.
constexpr std::array<Cooling, 4> kCoolings = {
    {{1e-5, 1e-7}, {1e-4, 1e-7}, {1e-3, 1e-7}, {3e-3, 1e-7}}};
constexpr double kTrialsOfAChain = 64;  // for each access; a chain that is longer finds little more
constexpr double kMostChains = 64;
// This one goes without the buffers that fill most of fast memory: much has to change before a plan
// shows what it is worth to do without them, which no small change finds out.
constexpr int kWithoutLargest = 1;
constexpr int64_t kTrialsToCount = 256;  // after so many it is known how many there will be
// The share of the limits that each of several plans gets before one of them is chosen, and that
// all of them get at most.
constexpr double kToChoose = 0.08, kToChooseAll = 0.3;
// What stands for repeated layers gets this share of the limits, or half of what a plan gets that
// is to be chosen, but at most so many trials for each of its accesses.
constexpr double kDecidedOnce = 0.2;
constexpr double kTrialsOfARepresentative = 32;

class PlanAnnealing {
 public:
  PlanAnnealing(const Game& game, uint64_t seed, const std::function<double(int64_t)>& used)
      : game_(game), used_(used), rng_(seed, 4) {}

  // Begins with these plans, and anneals until the limits are used up.
  void Run(absl::Span<const Plan> plans) {
    Choose(plans);
    const double from = used();
    for (int chain = 0; !search_->empty() && used() < 1; ++chain) {
      const auto share_of_chain = [&] {
        if (chains_ == 0 && evaluations_ > kTrialsToCount) CountChains();
        const double chains = std::max(1.0, chains_);
        return Since(from + (1 - from) * chain / chains, (1 - from) / chains);
      };
      if (chain == kWithoutLargest) AnnealWithoutLargest(chain, share_of_chain);
      if (chain > 0) search_->Return();
      Chain(*search_, kCoolings[chain % kCoolings.size()], share_of_chain);
    }
  }

  Plan Found() const { return search_->Remembered(); }
  size_t start() const { return start_; }
  int64_t evaluations() const { return evaluations_; }

 private:
  double used() const { return used_(evaluations_); }
  // How much of a part of the limits that begins at the share `from` is used up.
  double Since(double from, double part) const {
    const double share = used();
    return share >= 1 ? 1 : (share - from) / part;
  }

  void CountChains() {
    const double share = used(), trials = static_cast<double>(evaluations_) / share * (1 - share),
                 of_each = trials / static_cast<double>(search_->accesses());
    chains_ = std::clamp(std::floor(of_each / kTrialsOfAChain), 1.0, kMostChains);
  }

  // With few trials nothing that is lost by heat would be found again.
  static Cooling WithTrials(Cooling cooling, double of_each) {
    cooling.first *= std::clamp(of_each / kTrialsOfAChain, 0.03, 1.0);
    return cooling;
  }

  // `share` is what the chain has used up of its own.
  void Chain(ResidenceSearch& residences, Cooling cooling, const std::function<double()>& share) {
    const int64_t before = evaluations_;
    AnnealOptions options;
    options.cooling = cooling;
    options.used = [&](int64_t trials) {
      const double used = share();
      if (trials > kTrialsToCount && options.cooling.first == cooling.first) {
        options.cooling = WithTrials(cooling, static_cast<double>(evaluations_ - before) / used /
                                                  static_cast<double>(residences.accesses()));
      }
      return used;
    };
    options.tried = [this](bool) {
      ++evaluations_;
      return true;
    };
    options.better = [&residences] { residences.Remember(); };
    Anneal(residences, options, rng_);
  }

  void Choose(absl::Span<const Plan> plans) {
    const double to_choose = std::min(kToChoose, kToChooseAll / static_cast<double>(plans.size()));
    for (size_t i = 0; i < plans.size() && (i == 0 || used() < 1); ++i) {
      auto search = std::make_unique<ResidenceSearch>(game_, plans[i]);
      const double from = used();
      if (search->has_repeats() && !search->empty())
        DecideOnce(*search, plans.size() > 1 ? to_choose / 2 : kDecidedOnce);
      if (plans.size() > 1) Chain(*search, kCoolings[0], [&] { return Since(from, to_choose); });
      if (search_ != nullptr && search->remembered_ps() >= search_->remembered_ps()) continue;
      search_ = std::move(search);
      start_ = i;
    }
    search_->Return();
  }

  // Anneals what stands for repeats, and has the others take it over.
  void DecideOnce(ResidenceSearch& residences, double part) {
    const double from = used();
    const auto accesses = static_cast<double>(residences.accesses());
    residences.StartAtRepresentatives(true);
    const auto representatives = static_cast<double>(residences.accesses());
    if (representatives < accesses / 2) {
      const int64_t before = evaluations_;
      Chain(residences, kCoolings[0], [&] {
        return std::max(Since(from, part), static_cast<double>(evaluations_ - before) /
                                               (kTrialsOfARepresentative * representatives));
      });
      evaluations_ += residences.TakeOver([this] { return used() >= 1; });
      residences.Remember();
    }
    residences.StartAtRepresentatives(false);
  }

  void AnnealWithoutLargest(int chain, const std::function<double()>& share) {
    const auto without = GameWithoutLargest(game_);
    if (without == nullptr) return;
    ResidenceSearch others(*without, search_->Remembered());
    if (!others.empty()) Chain(others, kCoolings[chain], share);
    if (others.remembered_ps() < search_->remembered_ps())
      search_ = std::make_unique<ResidenceSearch>(game_, others.Remembered());
  }

  const Game& game_;
  const std::function<double(int64_t)>& used_;
  Rng rng_;
  std::unique_ptr<ResidenceSearch> search_;
  size_t start_ = 0;
  int64_t evaluations_ = 1;
  double chains_ = 0;  // how many there are; 0: nobody knows yet
};

}  // namespace

absl::StatusOr<FoundPlan> AnnealPlan(const Game& game, absl::Span<const Plan> plans, uint64_t seed,
                                     const std::function<double(int64_t)>& used) {
  MG_CHECK(!plans.empty());
  PlanAnnealing annealing(game, seed, used);
  annealing.Run(plans);
  Plan found = annealing.Found();
  const auto latency_of = [&game](const Plan& judged) {
    const auto cost = CostOf(game, judged);
    MG_CHECK(cost.ok());
    return ValueOf(game.program(), *cost);
  };
  if (const Verdict verdict = Validate(game.program(), game.hardware(), found); !verdict.ok()) {
    return absl::InternalError(absl::StrCat(
        "a plan that annealing found broke a rule; please report this: ", verdict.message));
  }
  FoundPlan best = {.plan = std::move(found), .start = annealing.start()};
  best.latency_ps = latency_of(best.plan);
  best.evaluations = annealing.evaluations();
  for (size_t i = 0; i < plans.size(); ++i) {
    const int64_t latency_ps = latency_of(plans[i]);
    if (latency_ps > best.latency_ps || !Validate(game.program(), game.hardware(), plans[i]).ok())
      continue;
    best.plan = plans[i];
    best.latency_ps = latency_ps;
    best.start = i;
  }
  return best;
}

}  // namespace mallocgame
