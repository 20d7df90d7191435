// No play is below the Lagrangian dual, whatever the multipliers are; its supergradients are some;
// in integers it says the same as in floating point; and a damaged certificate is refused.
#include <cmath>
#include <vector>

#include "mallocgame/game/time/state.h"
#include "mallocgame/solvers/lagrangian/ascent.h"
#include "mallocgame/solvers/lagrangian/dual.h"
#include "tests/catch.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using lagrangian::Dual;
using lagrangian::Multiplier;
using lagrangian::Relaxed;

std::shared_ptr<const Game> GameOfInstructions(Rng& rng, int instructions) {
  testing::RandomProgramOptions program;
  program.instructions = instructions;
  program.loops = static_cast<int>(rng.Below(2));
  program.constrained = rng.Below(2) == 0;
  program.roofline = rng.Below(4) == 0;
  return testing::MakeGame(testing::RandomProgram(rng, program),
                           testing::TestHardware(6 + rng.Below(12)));
}

std::vector<double> RandomMultipliers(const Dual& dual, Rng& rng) {
  std::vector<double> at;
  for (const Multiplier& multiplier : dual.multipliers()) {
    const double share = static_cast<double>(rng.Below(1000)) / 1000;
    switch (multiplier.relaxed) {
      case Relaxed::kServed:
      case Relaxed::kReplaced: at.push_back(share * multiplier.scale_ps); break;
      case Relaxed::kSpace:
      case Relaxed::kPreload: at.push_back(3 * share); break;
      case Relaxed::kChannel: at.push_back(share); break;
      case Relaxed::kArrival: at.push_back(share / 10); break;
    }
  }
  dual.Project(absl::MakeSpan(at));
  return at;
}

TEST_CASE("no play is below the Lagrangian dual") {
  Rng rng(1);
  int compared = 0, better = 0;
  while (compared < 100) {
    const auto game = GameOfInstructions(rng, 5);
    if (game->max_decisions() > 9) continue;
    ++compared;
    State state(game);
    const int64_t best = testing::BestLatency(state);
    auto ascent = LagrangianAscent::Create(game->cost_model(), 0);
    REQUIRE(ascent.ok());
    REQUIRE(ascent->Run(Deadline()));
    const auto proven = ascent->ProvenPs(ascent->multipliers());
    REQUIRE(proven.ok());
    REQUIRE(*proven <= best);
    REQUIRE(std::abs(ascent->value_ps() - static_cast<double>(*proven)) <= 1.01);
    const auto no_contention = NoContentionPs(game->cost_model());
    REQUIRE(*proven >= *no_contention);
    better += *proven > *no_contention;
    const auto prices = PricePlacements(game->cost_model(), 8);
    Dual dual(game->cost_model(), *prices, 0);
    for (int n = 0; n < 5; ++n) {
      const auto any = dual.Exact(dual.Rounded(RandomMultipliers(dual, rng)));
      REQUIRE(any.ok());
      REQUIRE(*any <= best);
    }
  }
  REQUIRE(better > 50);
}

TEST_CASE("the dual is concave, and its supergradients lie above it") {
  Rng rng(2);
  for (int n = 0; n < 100; ++n) {
    const auto game = GameOfInstructions(rng, 12);
    const auto prices = PricePlacements(game->cost_model(), 8);
    Dual dual(game->cost_model(), *prices, 0);
    std::vector<double> at = RandomMultipliers(dual, rng), slope(at.size()), other(at.size());
    const double value = dual.Ascend(absl::MakeSpan(at), absl::MakeSpan(slope));
    for (int k = 0; k < 10; ++k) {
      std::vector<double> to = RandomMultipliers(dual, rng);
      const double there = dual.Ascend(absl::MakeSpan(to), absl::MakeSpan(other));
      double above = value;
      for (size_t i = 0; i < at.size(); ++i) above += slope[i] * (to[i] - at[i]);
      REQUIRE(there <= above + 1e-6);
    }
  }
}

TEST_CASE("a certificate that isn't one is refused") {
  Rng rng(3);
  const auto game = GameOfInstructions(rng, 12);
  auto ascent = LagrangianAscent::Create(game->cost_model(), 0);
  REQUIRE(ascent.ok());
  const auto prices = PricePlacements(game->cost_model(), 8);
  const Dual dual(game->cost_model(), *prices, 0);
  const std::vector<int64_t> none(dual.multipliers().size(), 0);
  REQUIRE(ascent->ProvenPs(none).ok());
  std::vector<int64_t> damaged = none;
  damaged.pop_back();
  REQUIRE(!ascent->ProvenPs(damaged).ok());
  for (size_t i = 0; i < none.size(); ++i) {
    const Multiplier& multiplier = dual.multipliers()[i];
    damaged = none;
    damaged[i] = -1;
    REQUIRE(ascent->ProvenPs(damaged).ok() == multiplier.is_signed);
    damaged[i] = (int64_t{1} << 30) + 1;
    const bool share =
        multiplier.relaxed == Relaxed::kChannel || multiplier.relaxed == Relaxed::kArrival;
    REQUIRE(ascent->ProvenPs(damaged).ok() == !share);
  }
}

}  // namespace
}  // namespace mallocgame
