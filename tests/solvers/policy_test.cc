// Whatever the weights, games of the policy end in valid plans that cost what they say; and
// weights that are too few or no numbers are refused.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/game/time/time_game.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/simulator/simulate.h"
#include "mallocgame/solvers/policy/policy_game.h"
#include "mallocgame/solvers/registry.h"
#include "tests/catch.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::RandomProgram;
using testing::TestHardware;

std::shared_ptr<const Game> RandomGame(Rng& rng) {
  PriorityGameOptions options;
  options.min_buffer_bytes = 0;
  auto program = RandomProgram(rng, {.instructions = 20, .loops = static_cast<int>(rng.Below(3))});
  return *PriorityGame::Create(std::move(program), TestHardware(6 + rng.Below(12)), options);
}

std::vector<float> RandomWeights(Rng& rng) {
  std::vector<float> weights(kPolicyWeights);
  for (float& weight : weights) weight = static_cast<float>(rng.Uniform() * 2 - 1);
  return weights;
}

TEST_CASE("games with any weights end in valid plans that cost what they say") {
  Rng rng(3);
  for (int n = 0; n < 60; ++n) {
    const PolicyGame played(*RandomGame(rng));
    for (int i = 0; i < 3; ++i) {
      const std::vector<float> weights = RandomWeights(rng);
      const PolicyGame::Played found = played.Play(weights);
      REQUIRE(Validate(played.game().program(), played.game().hardware(), found.plan).ok());
      const auto report = Simulate(played.game().cost_model(), found.plan);
      REQUIRE(report.ok());
      REQUIRE(report->latency_ps == found.latency_ps);
      REQUIRE(played.Play(weights).plan == found.plan);
    }
  }
}

TEST_CASE("weights decide how a program is served") {
  Rng rng(5);
  int differ = 0;
  for (int n = 0; n < 20; ++n) {
    const PolicyGame played(*RandomGame(rng));
    std::vector<float> weights(kPolicyWeights);
    weights[kPlace] = weights[kSplit] = -100;
    const PolicyGame::Played nothing = played.Play(weights);
    REQUIRE(nothing.latency_ps == played.game().all_main_ps());
    differ += played.Play(LearnedPolicyWeights()).latency_ps < nothing.latency_ps;
  }
  REQUIRE(differ > 10);
}

TEST_CASE("threads play the same games") {
  Rng rng(7);
  const PolicyGame played(*RandomGame(rng));
  const Plan plan = played.Play(LearnedPolicyWeights()).plan;
  std::vector<Plan> plans(4);
  std::vector<std::thread> threads;
  for (Plan& own : plans)
    threads.emplace_back([&] { own = played.Play(LearnedPolicyWeights()).plan; });
  for (std::thread& thread : threads) thread.join();
  for (const Plan& own : plans) REQUIRE(own == plan);
}

TEST_CASE("weights are checked") {
  REQUIRE(CheckPolicyWeights(LearnedPolicyWeights()).ok());
  std::vector<float> weights(kPolicyWeights);
  REQUIRE(CheckPolicyWeights(weights).ok());
  weights[7] = std::numeric_limits<float>::infinity();
  REQUIRE(CheckPolicyWeights(weights).message() ==
          "weights of a policy: found inf as number 7, allowed: finite ones");
  weights.pop_back();
  REQUIRE(CheckPolicyWeights(weights).message() ==
          absl::StrCat("weights of a policy: found ", kPolicyWeights - 1,
                       " numbers, allowed: ", kPolicyWeights));
}

TEST_CASE("the solver plays one game, in any game that places") {
  Rng rng(17);
  const auto game = RandomGame(rng);
  const auto result = Solve("policy", {game, nullptr}, {});
  REQUIRE(result.ok());
  REQUIRE(result->evaluations == 1);
  REQUIRE(result->found_by == "policy");
  REQUIRE(result->status == SolveStatus::kHeuristic);
  REQUIRE(result->plan == PolicyGame(*game).Play(LearnedPolicyWeights()).plan);
}

}  // namespace
}  // namespace mallocgame
