// The solver `mcts`, beside the library's own.
#include "agents/mcts/mcts_solver.h"

#include <string>

#include "mallocgame/plan/validate.h"
#include "tests/catch.h"
#include "tests/support/programs.h"

namespace mallocgame::mcts {
namespace {

std::shared_ptr<const Game> TinyGame(Rng& rng, int instructions) {
  GameOptions options;
  options.min_buffer_bytes = 0;
  const auto program = mallocgame::testing::RandomProgram(rng, {.instructions = instructions, .loops = 1, .branches = 0});
  return *Game::Create(program, mallocgame::testing::TestHardware(6 + rng.Below(12)), options);
}

SolveLimits Evaluations(int64_t evaluations, uint64_t seed = 0) {
  SolveLimits limits;
  limits.seconds = 0;
  limits.evaluations = evaluations;
  limits.seed = seed;
  return limits;
}

TEST_CASE("finds the optimum of tiny programs, and nothing better") {
  const NamedSolver more[] = {MctsSolver()};
  Rng rng(3);
  int optimal = 0, games = 0;
  for (int i = 0; i < 40; ++i) {
    const auto game = TinyGame(rng, 3);
    SolveLimits exact_limits;
    exact_limits.seconds = 20;
    const auto exact = Solve("exact", {game}, exact_limits);
    const auto found = Solve("mcts", {game, nullptr, more}, Evaluations(20000));
    REQUIRE(exact.ok());
    REQUIRE(found.ok());
    REQUIRE(exact->status == SolveStatus::kOptimal);
    REQUIRE(Validate(game->program(), game->hardware(), found->plan).ok());
    REQUIRE(found->report.latency_ps >= exact->report.latency_ps);
    ++games;
    optimal += found->report.latency_ps == exact->report.latency_ps;
  }
  INFO(optimal << " of " << games);
  CHECK(optimal == games);
}

TEST_CASE("never worse than greedy, and the same for the same seed") {
  const NamedSolver more[] = {MctsSolver()};
  Rng rng(8);
  for (int i = 0; i < 20; ++i) {
    const auto game = TinyGame(rng, 14);
    const SolveProblem problem = {game, nullptr, more};
    const auto greedy = Solve("greedy", problem, Evaluations(1));
    const auto found = Solve("mcts", problem, Evaluations(300, 5)), again = Solve("mcts", problem, Evaluations(300, 5));
    REQUIRE(found.ok());
    CHECK(found->report.latency_ps <= greedy->report.latency_ps);
    CHECK(found->plan == again->plan);
    CHECK(found->actions == again->actions);
    CHECK(found->evaluations == again->evaluations);
    CHECK(found->found_by == "mcts");
  }
}

TEST_CASE("solvers that come from outside are known by name, and join a portfolio if they ask for it") {
  Rng rng(6);
  const auto game = TinyGame(rng, 10);
  int calls = 0;
  const NamedSolver more[] = {MctsSolver(),
                              {"mine",
                               [&calls](const SolveProblem& problem, const SolveLimits& limits) {
                                 ++calls;
                                 return Solve("greedy", problem, limits);
                               },
                               0.1}};
  CHECK(SolverNames(more).size() == SolverNames().size() + 2);
  CHECK(SolverNames(more).back() == "mine");
  REQUIRE(Solve("mine", {game, nullptr, more}, Evaluations(1)).ok());
  CHECK(calls == 1);
  REQUIRE(Solve("portfolio", {game, nullptr, more}, Evaluations(10)).ok());
  CHECK(calls == 2);
  const auto unknown = Solve("none", {game, nullptr, more}, Evaluations(1));
  CHECK(unknown.status().code() == absl::StatusCode::kNotFound);
  CHECK(std::string(unknown.status().message()).find("mcts, mine") != std::string::npos);
  CHECK(Solve("mcts", {game}, Evaluations(1)).status().code() == absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace mallocgame::mcts
