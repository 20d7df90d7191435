// Whatever the weights, the games of the solver `learned` end in valid plans that cost what they
// say, and the same weights play the same games.
#include "mallocgame/solvers/learned/learned.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "mallocgame/game/order/order_state.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/simulator/simulate.h"
#include "mallocgame/solvers/learned/advised_game.h"
#include "mallocgame/solvers/learned/weights.h"
#include "mallocgame/solvers/playing/order_preferences.h"
#include "mallocgame/solvers/registry.h"
#include "tests/catch.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::RandomProgram;
using testing::TestHardware;

std::shared_ptr<const Game> RandomGame(Rng& rng, GameOptions options = {}) {
  options.min_buffer_bytes = 0;
  options.kind = GameKind::kOrder;
  auto program = RandomProgram(rng, {.instructions = 20, .loops = static_cast<int>(rng.Below(3))});
  return *Game::Create(std::move(program), TestHardware(6 + rng.Below(12)), options);
}

std::vector<float> RandomWeights(Rng& rng, int styles) {
  std::vector<float> weights(RunNetwork::kNumWeights + styles * Style::kNumbers);
  for (float& weight : weights) weight = static_cast<float>(rng.Uniform() * 2 - 1);
  return weights;
}

SolveLimits Limits(int64_t evaluations) {
  SolveLimits limits;
  limits.seconds = 0;
  limits.evaluations = evaluations;
  return limits;
}

void CheckPlan(const Game& game, const AdvisedPlan& found) {
  REQUIRE(Validate(game.program(), game.hardware(), found.plan).ok());
  const auto report = Simulate(game.cost_model(), found.plan);
  REQUIRE(report.ok());
  REQUIRE(report->latency_ps == found.latency_ps);
}

TEST_CASE("games by any advice end in valid plans that cost what they say") {
  Rng rng(3);
  for (int n = 0; n < 60; ++n) {
    const auto game = RandomGame(rng);
    const auto weights = RandomWeights(rng, 3);
    const AdvisedPlan found = PlayLearned(*game, weights, Deadline());
    CheckPlan(*game, found);
    REQUIRE(found.games > 3);  // some are packed anew
    const AdvisedPlan again = PlayLearned(*game, weights, Deadline());
    REQUIRE(again.plan == found.plan);
  }
}

TEST_CASE("learned's game can be played where all open runs are shown") {
  Rng rng(5);
  GameOptions options;
  options.candidates = kMaxCandidates;
  for (int n = 0; n < 60; ++n) {
    const auto game = RandomGame(rng, options);
    const AdvisedPlan found = PlayLearned(*game, RandomWeights(rng, 2), Deadline());
    OrderState again(game);
    PlayOrderOn(again, OrderPreferencesLike(*game, found.served));
    REQUIRE(again.ToPlan() == found.plan);
  }
}

TEST_CASE("what must be served from fast memory is, by any advice, where greedy does it too") {
  Rng rng(4);
  int required = 0;
  for (int n = 0; n < 60; ++n) {
    const auto any = RandomGame(rng);
    const int64_t accesses = static_cast<int64_t>(any->program().accesses().size());
    GameOptions options = any->options();
    options.required.emplace_back(static_cast<int64_t>(rng.Below(accesses)));
    options.forbidden.emplace_back(static_cast<int64_t>(rng.Below(accesses)));
    if (options.required == options.forbidden) continue;
    const auto created = Game::Create(any->shared_program(), any->hardware(), options);
    if (!created.ok()) continue;
    const auto& game = *created;
    const AdvisedPlan found = PlayLearned(*game, RandomWeights(rng, 2), Deadline());
    CheckPlan(*game, found);
    REQUIRE_FALSE(found.plan.served_by[options.forbidden[0].index()].valid());
    required += found.plan.served_by[options.required[0].index()].valid() ? 1 : 0;
  }
  CHECK(required > 20);
}

TEST_CASE("where each legal service is worth less than any number, one is taken all the same") {
  Rng rng(9);
  std::vector<float> weights(RunNetwork::kNumWeights + Style::kNumbers, 0.0F);
  // The network says this of Late, Early, Preload and Split, and the style turns it round.
  std::fill_n(weights.begin() + RunNetwork::kNumWeights - RunNetwork::kOutputs + 1, 4, 3e38F);
  weights.back() = -2;
  for (int n = 0; n < 60; ++n) {
    const auto any = RandomGame(rng);
    GameOptions options = any->options();
    for (size_t a = 0; a < any->program().accesses().size(); ++a) options.required.emplace_back(a);
    const auto game = Game::Create(any->shared_program(), any->hardware(), options);
    if (game.ok()) CheckPlan(**game, PlayLearned(**game, weights, Deadline()));
  }
}

TEST_CASE("what is placed before is placed again in another order, and ends as a game of its own") {
  Rng rng(5);
  int better = 0;
  for (int n = 0; n < 200; ++n) {
    const AdvisedGame advised(*RandomGame(rng));
    const auto weights = RandomWeights(rng, 0);
    const auto advice = Advise(advised.graph(), weights);
    const AdvisedEnd first = advised.Play(advice, Style());
    AdvisedPlan best;
    const AdvisedEnd second = advised.Repack(first, 1, 1, advice, Style(), &best);
    CheckPlan(advised.game(), best);
    REQUIRE(best.latency_ps == second.latency_ps);
    better += second.latency_ps < first.latency_ps ? 1 : 0;
  }
  CHECK(better > 0);
}

TEST_CASE("runs keep their ids in every order of importance") {
  Rng rng(6);
  for (int n = 0; n < 20; ++n) {
    const auto game = RandomGame(rng);
    const OrderTables& own = game->order_tables();
    std::vector<float> importance(own.runs.size());
    for (float& one : importance) one = static_cast<float>(rng.Uniform());
    const OrderTables other(own, importance);
    REQUIRE(std::is_sorted(other.runs.begin(), other.runs.end(),
                           [](const Run& a, const Run& b) { return a.importance > b.importance; }));
    for (const Run& run : other.runs) {
      REQUIRE(static_cast<float>(run.importance) == importance[run.id]);
      const auto same = std::find_if(own.runs.begin(), own.runs.end(),
                                     [&run](const Run& one) { return one.id == run.id; });
      REQUIRE(same->buffer == run.buffer);
      REQUIRE(same->first == run.first);
      REQUIRE(same->last == run.last);
      for (size_t p = 0; p < 2; ++p) {
        REQUIRE((same->parts[p] < 0) == (run.parts[p] < 0));
        if (run.parts[p] >= 0) {
          REQUIRE(own.runs[same->parts[p]].id == other.runs[run.parts[p]].id);
          REQUIRE(&other.runs[other.runs[run.parts[p]].parent] == &run);
        }
      }
    }
  }
}

TEST_CASE("learned ends after its games without limits, and goes on with them") {
  Rng rng(7);
  const auto game = RandomGame(rng);
  const auto alone = *Solve("learned", {game}, Limits(0));
  CHECK(alone.status == SolveStatus::kHeuristic);
  CHECK(alone.found_by == "learned");
  const SolveLimits limits = Limits(2000);
  const auto longer = *Solve("learned", {game}, limits);
  CHECK(longer.status == SolveStatus::kStopped);
  CHECK(longer.report.latency_ps <= alone.report.latency_ps);
  CHECK(longer.evaluations > alone.evaluations);
  CHECK(Solve("learned", {game}, limits)->plan == longer.plan);
}

TEST_CASE("weights of another size, or that are no numbers, are refused") {
  Rng rng(8);
  auto weights = RandomWeights(rng, 2);
  CHECK(ValidateWeights(weights).ok());
  CHECK(ValidateWeights(BundledWeights()).ok());
  CHECK_FALSE(ValidateWeights(absl::MakeSpan(weights).subspan(1)).ok());
  CHECK_FALSE(ValidateWeights(absl::MakeSpan(weights).subspan(0, RunNetwork::kNumWeights)).ok());
  weights[17] = std::numeric_limits<float>::infinity();
  const auto status = ValidateWeights(weights);
  CHECK(status.message() == "weights: number 17 is inf, allowed: finite numbers");
  SolveProblem problem{RandomGame(rng)};
  problem.weights = weights;
  CHECK(Solve("learned", problem, Limits(0)).status() == status);
}

}  // namespace
}  // namespace mallocgame
