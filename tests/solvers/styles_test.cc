// Whatever the priority rule, games end in valid plans that cost what they say, and the same rules
// play the same games.
#include "mallocgame/solvers/styles/styles.h"

#include <algorithm>
#include <vector>

#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/game/time/time_game.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/simulator/simulate.h"
#include "mallocgame/solvers/registry.h"
#include "mallocgame/solvers/styles/rule_game.h"
#include "tests/catch.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::RandomProgram;
using testing::TestHardware;

std::shared_ptr<const PriorityGame> RandomGame(Rng& rng, PriorityGameOptions options = {}) {
  options.min_buffer_bytes = 0;
  auto program = RandomProgram(rng, {.instructions = 20, .loops = static_cast<int>(rng.Below(3))});
  return *PriorityGame::Create(std::move(program), TestHardware(6 + rng.Below(12)), options);
}

PriorityRule RandomRule(Rng& rng) {
  const auto any = [&rng] { return static_cast<float>(rng.Uniform() * 2 - 1); };
  return {any(), any(), any(), any(), any(), any(), any()};
}

SolveLimits Limits(int64_t evaluations) {
  SolveLimits limits;
  limits.seconds = 0;
  limits.evaluations = evaluations;
  return limits;
}

void CheckPlan(const Game& game, const FoundPlan& found) {
  REQUIRE(Validate(game.program(), game.hardware(), found.plan).ok());
  const auto report = Simulate(game.cost_model(), found.plan);
  REQUIRE(report.ok());
  REQUIRE(report->latency_ps == found.latency_ps);
}

TEST_CASE("games by any rule end in valid plans that cost what they say") {
  Rng rng(3);
  for (int n = 0; n < 60; ++n) {
    const RuleGame ruled(*RandomGame(rng));
    FoundPlan found;
    for (int rule = 0; rule < 3; ++rule) ruled.Play(RandomRule(rng), &found);
    CheckPlan(ruled.game(), found);
    REQUIRE(found.evaluations == 3);
  }
}

constexpr int64_t kRules = 48;  // of the library

TEST_CASE("the library's rules play the same games again, some of them packed anew") {
  Rng rng(3);
  for (int n = 0; n < 30; ++n) {
    const auto game = RandomGame(rng);
    const FoundPlan found = PlayStyles(*game, Deadline());
    CheckPlan(*game, found);
    REQUIRE(found.evaluations > kRules);
    REQUIRE(PlayStyles(*game, Deadline()).plan == found.plan);
  }
}

TEST_CASE("a game by a rule can be played where all open runs are shown") {
  Rng rng(5);
  PriorityGameOptions options;
  options.candidates = kMaxCandidates;
  for (int n = 0; n < 60; ++n) {
    const auto game = RandomGame(rng, options);
    const FoundPlan found = PlayStyles(*game, Deadline());
    PriorityState again(game);
    again.PlayOn(IntentLike(*game, found.decided));
    REQUIRE(again.ToPlan() == found.plan);
  }
}

TEST_CASE("what must be served from main memory is, by any rule") {
  Rng rng(4);
  for (int n = 0; n < 60; ++n) {
    const auto any = RandomGame(rng);
    const int64_t accesses = static_cast<int64_t>(any->program().accesses().size());
    PriorityGameOptions options = any->options();
    options.forbidden.emplace_back(static_cast<int64_t>(rng.Below(accesses)));
    const auto created = PriorityGame::Create(any->shared_program(), any->hardware(), options);
    if (!created.ok()) continue;
    const auto& game = *created;
    const FoundPlan found = PlayStyles(*game, Deadline());
    CheckPlan(*game, found);
    REQUIRE_FALSE(found.plan.served_by[options.forbidden[0].index()].valid());
  }
}

TEST_CASE("what is placed before is placed again in another order, and ends as a game of its own") {
  Rng rng(5);
  int better = 0;
  for (int n = 0; n < 200; ++n) {
    const RuleGame ruled(*RandomGame(rng));
    const RuledEnd first = ruled.Play(RandomRule(rng));
    FoundPlan best;
    const RuledEnd second = ruled.Repack(first, 1, 1, PriorityRule(), &best);
    CheckPlan(ruled.game(), best);
    REQUIRE(best.latency_ps == second.latency_ps);
    better += second.latency_ps < first.latency_ps ? 1 : 0;
  }
  CHECK(better > 0);
}

TEST_CASE("runs keep their ids in every order of importance") {
  Rng rng(6);
  for (int n = 0; n < 20; ++n) {
    const auto game = RandomGame(rng);
    const PriorityTables& own = game->priority_tables();
    std::vector<float> importance(own.runs.size());
    for (float& one : importance) one = static_cast<float>(rng.Uniform());
    const PriorityTables other(own, importance);
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

TEST_CASE("styles ends after its games without limits, and goes on with them") {
  Rng rng(7);
  const auto game = RandomGame(rng);
  const auto alone = *Solve("styles", {game}, Limits(0));
  CHECK(alone.status == SolveStatus::kHeuristic);
  CHECK(alone.found_by == "styles");
  const SolveLimits limits = Limits(2000);
  const auto longer = *Solve("styles", {game}, limits);
  CHECK(longer.status == SolveStatus::kStopped);
  CHECK(longer.report.latency_ps <= alone.report.latency_ps);
  CHECK(longer.evaluations > alone.evaluations);
  CHECK(Solve("styles", {game}, limits)->plan == longer.plan);
}

}  // namespace
}  // namespace mallocgame
