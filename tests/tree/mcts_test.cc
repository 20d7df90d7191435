// The solver `mcts`.
#include <memory>
#include <string>

#include "mallocgame/game/position.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/search/game_variants.h"
#include "mallocgame/solvers/registry.h"
#include "tests/catch.h"
#include "tests/tree/tiny_game.h"

namespace mallocgame::mcts {
namespace {

SolveLimits Evaluations(int64_t evaluations, uint64_t seed = 0) {
  SolveLimits limits;
  limits.seconds = 0;
  limits.evaluations = evaluations;
  limits.seed = seed;
  return limits;
}

TEST_CASE("finds the optimum of nearly all tiny programs, and nothing better") {
  Rng rng(3);
  int optimal = 0, games = 0;
  for (int i = 0; i < 40; ++i) {
    const auto game = TinyGame(rng, 3);
    SolveLimits exact_limits;
    exact_limits.seconds = 20;
    const auto exact = Solve("exact", {game}, exact_limits);
    const auto found = Solve("mcts", {game}, Evaluations(20000));
    REQUIRE(exact.ok());
    REQUIRE(found.ok());
    REQUIRE(exact->status == SolveStatus::kOptimal);
    REQUIRE(Validate(game->program(), game->hardware(), found->plan).ok());
    REQUIRE(found->report.latency_ps >= exact->report.latency_ps);
    ++games;
    optimal += found->report.latency_ps == exact->report.latency_ps;
  }
  INFO(optimal << " of " << games);
  CHECK(optimal >= games - 1);
}

TEST_CASE("never worse than greedy, and the same for the same seed") {
  const std::string kind = GENERATE(as<std::string>(), "time", "priority", "schedule");
  Rng rng(8);
  for (int i = 0; i < 20; ++i) {
    const auto game = TinyGame(rng, 14, kind);
    const SolveProblem problem = {game};
    const auto greedy = Solve("greedy", problem, Evaluations(1));
    const auto found = Solve("mcts", problem, Evaluations(300, 5)),
               again = Solve("mcts", problem, Evaluations(300, 5));
    REQUIRE(found.ok());
    CHECK(found->report.latency_ps <= greedy->report.latency_ps);
    CHECK(found->plan == again->plan);
    CHECK(found->play->actions == again->play->actions);
    CHECK(found->evaluations == again->evaluations);
    CHECK(found->found_by == "mcts");
    CHECK(found->play->game->options().game() == kind);
  }
}

TEST_CASE("the priority game of a tiny program often ends as well as the best time game") {
  Rng rng(3);
  int best = 0, games = 0;
  for (int i = 0; i < 40; ++i) {
    const auto game = TinyGame(rng, 3);
    SolveLimits exact_limits;
    exact_limits.seconds = 20;
    const auto exact = Solve("exact", {game}, exact_limits);
    const auto found = Solve("mcts", {PriorityGameOf(*game)}, Evaluations(5000));
    REQUIRE(exact.ok());
    REQUIRE(found.ok());
    REQUIRE(Validate(game->program(), game->hardware(), found->plan).ok());
    ++games;
    // The games differ, so one may have a better plan than the other.
    best += found->report.latency_ps <= exact->report.latency_ps;
  }
  INFO(best << " of " << games);
  CHECK(best >= 20);
}

TEST_CASE("a game comes with what its searches said") {
  const std::string kind = GENERATE(as<std::string>(), "time", "priority", "schedule");
  Rng rng(12);
  int whole = 0;
  for (int i = 0; i < 20; ++i) {
    const auto game = TinyGame(rng, 14, kind);
    const auto found = Solve("mcts", {game}, Evaluations(5000, 3));
    REQUIRE(found.ok());
    const int actions = found->play->game->num_actions();
    const size_t numbers = found->play->actions.size() * actions;
    REQUIRE(found->play->search.visits.size() == numbers);
    REQUIRE(found->play->search.values.size() == numbers);
    const std::unique_ptr<Position> position = found->play->game->NewInitialPosition();
    // Where the limits ended the last game, its later decisions were not searched.
    bool cut = false;
    for (size_t d = 0; d < found->play->actions.size(); ++d) {
      const int32_t* visits = &found->play->search.visits[d * actions];
      const float* values = &found->play->search.values[d * actions];
      int32_t all = 0;
      for (int a = 0; a < actions; ++a) {
        all += visits[a];
        REQUIRE(visits[a] >= 0);
        if (!position->legal_actions().Has(a)) REQUIRE(visits[a] == 0);
        if (visits[a] == 0) REQUIRE(values[a] == 0);
      }
      if (cut) REQUIRE(all == 0);
      cut = all == 0;
      const bool last = d + 1 == found->play->actions.size();
      const auto saved = position->Apply(found->play->actions[d]);
      if (!last || visits[found->play->actions[d]] == 0) continue;
      const double share = static_cast<double>(*saved) / static_cast<double>(game->all_main_ps());
      CHECK(static_cast<double>(values[found->play->actions[d]]) == Approx(share).margin(1e-6));
    }
    whole += static_cast<int>(!cut);
    CHECK(Solve("mcts", {game}, Evaluations(5000, 3))->play->search.visits ==
          found->play->search.visits);
    CHECK(Solve("greedy", {game}, Evaluations(1))->play->search.visits.empty());
  }
  CHECK(whole >= 15);
}

TEST_CASE(
    "solvers that come from outside are known by name, and join a portfolio if they ask for it") {
  Rng rng(6);
  const auto game = TinyGame(rng, 10);
  int calls = 0;
  const NamedSolver more[] = {{"mine",
                               [&calls](const SolveProblem& problem, const SolveLimits& limits) {
                                 ++calls;
                                 return Solve("greedy", problem, limits);
                               },
                               0.1}};
  CHECK(SolverNames(more).size() == SolverNames().size() + 1);
  CHECK(SolverNames(more).back() == "mine");
  REQUIRE(Solve("mine", {game, nullptr, more}, Evaluations(1)).ok());
  CHECK(calls == 1);
  REQUIRE(Solve("portfolio", {game, nullptr, more}, Evaluations(10)).ok());
  CHECK(calls == 2);
  const auto unknown = Solve("none", {game, nullptr, more}, Evaluations(1));
  CHECK(unknown.status().code() == absl::StatusCode::kNotFound);
  CHECK(std::string(unknown.status().message()).find("mcts, mine") != std::string::npos);
}

}  // namespace
}  // namespace mallocgame::mcts
