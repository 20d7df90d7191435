// Every solver returns a valid plan with the report of that plan.
#include "mallocgame/solvers/registry.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mallocgame/game/play_actions.h"
#include "mallocgame/game/schedule/schedule_game.h"
#include "mallocgame/game/time/time_game.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/schedule/instruction_order.h"
#include "mallocgame/search/game_variants.h"
#include "tests/catch.h"
#include "tests/support/dependences.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::ProgramBuilder;
using testing::RandomProgram;
using testing::TestHardware;

std::shared_ptr<const Game> SmallGame(Rng& rng, int instructions) {
  const auto program =
      RandomProgram(rng, {.instructions = instructions, .loops = 1, .branches = 0});
  return testing::MakeGame(program, TestHardware(6 + rng.Below(12)));
}

TEST_CASE("solvers return valid plans and their reports, best first") {
  Rng rng(1);
  for (int i = 0; i < 60; ++i) {
    const auto game = SmallGame(rng, 10);
    SolveLimits limits;
    limits.evaluations = 8;
    limits.seconds = 0;
    const Plan xla = AllMainPlan(game->program(), game->hardware());
    std::vector<int64_t> progress;
    limits.progress = [&](double, int64_t latency_ps) { progress.push_back(latency_ps); };
    for (const std::string& name : SolverNames()) {
      progress.clear();
      // it counts games that are played to the end, and may not finish one for long
      limits.seconds = name == "exact" ? 0.05 : 0;
      const auto result = Solve(name, {GameNamed(*GamePlayedBy(name), *game), &xla}, limits);
      INFO(name << ": " << result.status());
      REQUIRE(result.ok());
      const Verdict verdict = Validate(game->program(), game->hardware(), result->plan);
      INFO(verdict.message);
      REQUIRE(verdict.ok());
      REQUIRE(result->report.all_main_ps == game->all_main_ps());
      REQUIRE(std::is_sorted(progress.rbegin(), progress.rend()));
      if (result->play) REQUIRE(progress.back() == result->report.latency_ps);
      REQUIRE(!result->found_by.empty());
      REQUIRE(result->curve.back().latency_ps == result->report.latency_ps);
      if (!result->play || result->play->game == nullptr) continue;
      const auto replay = PlayActions(*result->play->game, result->play->actions);
      REQUIRE(replay.ok());
      REQUIRE((*replay)->ToPlan() == result->plan);
    }
  }
}

TEST_CASE("solvers that play either game play the priority game that they are given") {
  Rng rng(7);
  for (int n = 0; n < 20; ++n) {
    const auto time_game = SmallGame(rng, 12);
    const std::shared_ptr<const Game> game = PriorityGameOf(*time_game);
    SolveLimits limits;
    limits.seconds = 0;
    limits.evaluations = 60;
    int64_t greedy_ps = 0;
    for (const char* name : {"greedy", "random", "anneal"}) {
      const auto result = Solve(name, {game, nullptr}, limits);
      INFO(name << ": " << result.status());
      REQUIRE(result.ok());
      REQUIRE(result->play->game->options().game() == std::string("priority"));
      const auto replay = PlayActions(*result->play->game, result->play->actions);
      REQUIRE(replay.ok());
      REQUIRE((*replay)->IsTerminal());
      REQUIRE((*replay)->latency_ps() == result->report.latency_ps);
      if (name == std::string("greedy")) greedy_ps = result->report.latency_ps;
      if (name == std::string("anneal")) REQUIRE(result->report.latency_ps <= greedy_ps);
      const auto again = Solve(name, {game, nullptr}, limits);
      REQUIRE(again->plan == result->plan);
    }
    for (const char* name : {"rent", "exact"}) {
      const absl::Status status = Solve(name, {game, nullptr}, limits).status();
      REQUIRE(status.code() == absl::StatusCode::kInvalidArgument);
      REQUIRE_THAT(std::string(status.message()),
                   Catch::Matchers::Contains("plays the time game only, found a priority game"));
    }
    REQUIRE(Solve("portfolio", {game, nullptr}, limits).ok());
    const auto priority = Solve("packing", {game, nullptr}, limits);
    REQUIRE(priority.ok());
    REQUIRE(priority->report.latency_ps <= greedy_ps);
  }
}

TEST_CASE("solvers that play the schedule game find a plan at an order of their own") {
  Rng rng(8);
  int64_t reordered = 0;
  for (int n = 0; n < 20; ++n) {
    const auto time_game = SmallGame(rng, 12);
    const auto program = testing::WithDependences(time_game->program());
    ScheduleGameOptions options;
    options.TakeOver(time_game->options());
    const auto game = *Game::Create(program, time_game->hardware(), options);
    SolveLimits limits;
    limits.seconds = 0;
    limits.evaluations = 60;
    for (const char* name : {"greedy", "random"}) {
      const auto result = Solve(name, {game, nullptr}, limits);
      INFO(name << ": " << result.status());
      REQUIRE(result.ok());
      REQUIRE(result->play->game == game);
      const auto made = Reordered(*program, result->order);
      REQUIRE(made.ok());
      REQUIRE(Validate(*made->program, game->hardware(), result->plan).ok());
      REQUIRE(Solve(name, {game, nullptr}, limits)->plan == result->plan);
      reordered += !std::is_sorted(result->order.begin(), result->order.end());
    }
    for (const char* name : {"rent", "exact", "anneal", "portfolio"}) {
      REQUIRE_THAT(std::string(Solve(name, {game, nullptr}, limits).status().message()),
                   Catch::Matchers::Contains("only, found a schedule game"));
    }
    REQUIRE(std::string(Solve("anneal", {time_game, nullptr}, limits).status().message()) ==
            "solver 'anneal' plays the priority game only, found a time game; allowed for that: "
            "all-main, xla-assigned, xla-heuristic, styles, policy, packing, random, greedy, rent, "
            "portfolio, portfolio-xla, exact, mcts");
  }
  CHECK(reordered > 3);
}

TEST_CASE("the same seed gives the same plan") {
  Rng rng(3);
  for (int i = 0; i < 20; ++i) {
    const auto game = SmallGame(rng, 20);
    SolveLimits limits;
    limits.seconds = 0;
    limits.evaluations = 8;
    limits.seed = 7;
    for (const char* name : {"random", "greedy", "rent", "packing", "portfolio"}) {
      REQUIRE(Solve(name, {game, nullptr}, limits)->plan ==
              Solve(name, {game, nullptr}, limits)->plan);
    }
  }
}

TEST_CASE("greedy takes the best saving, and Drop where nothing is saved") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 4), q = b.Parameter("q", 4);
  b.Add({.name = "a", .cycles = {10}});
  b.Add({.name = "gains", .reads = {p}, .cycles = {10, 3}});
  b.Add({.name = "does not", .reads = {q}, .cycles = {10}});
  TimeGameOptions options;
  options.min_buffer_bytes = 0;
  const auto game = *Game::Create(b.Build(), TestHardware(8), options);
  const auto result = Solve("greedy", {game, nullptr}, {});
  REQUIRE(result->play->actions == std::vector<uint8_t>{2, 0});
  REQUIRE(result->report.latency_ps == 23);
}

TEST_CASE("limits: a solver stops at once and still has a plan; errors name what there is") {
  Rng rng(4);
  const auto game = SmallGame(rng, 40);
  const std::atomic<bool> cancel = true;
  SolveLimits limits;
  limits.cancel = &cancel;
  limits.seconds = 0;
  for (const char* name : {"random", "greedy", "packing", "portfolio"})
    REQUIRE(Solve(name, {game, nullptr}, limits).ok());
  const auto unknown = Solve("gredy", {game, nullptr}, {});
  REQUIRE(unknown.status().code() == absl::StatusCode::kNotFound);
  REQUIRE(std::string(unknown.status().message()).find("greedy") != std::string::npos);
  REQUIRE(Solve("xla-assigned", {game, nullptr}, {}).status().code() ==
          absl::StatusCode::kFailedPrecondition);
}

TEST_CASE("where members of a portfolio fail, the others' best plan is the result") {
  Rng rng(5);
  const auto game = SmallGame(rng, 10);
  const auto unfit = [](const SolveProblem&, const SolveLimits&) -> absl::StatusOr<SolveResult> {
    return absl::InvalidArgumentError("found another game");
  };
  int began = 0;
  const auto fit = [&began](const SolveProblem& problem, const SolveLimits&) {
    ++began;
    return JudgePlan(*problem.game, AllMainPlan(problem.game->program(), problem.game->hardware()));
  };
  const std::vector<NamedSolver> more = {{"unfit", unfit, 0.1}, {"fit", fit, 0.1}};
  SolveLimits limits;
  limits.seconds = 0;
  limits.evaluations = 50;
  const auto result = Solve("portfolio", {game, nullptr, more}, limits);
  REQUIRE(result.ok());
  REQUIRE(result->failures == std::vector<std::string>{"unfit: found another game"});
  REQUIRE(began == 1);
  REQUIRE(result->plan == Solve("portfolio", {game, nullptr, {}}, limits)->plan);
  REQUIRE(Solve("portfolio", {game, nullptr, {}}, limits)->failures.empty());
}

TEST_CASE("when its games have used up the limits, styles begins nothing else") {
  Rng rng(6);
  SolveLimits limits;
  limits.evaluations = 1;
  for (const double seconds : {0.0, 600.0}) {
    limits.seconds = seconds;
    const auto result = Solve("styles", {SmallGame(rng, 20), nullptr}, limits);
    REQUIRE(result.ok());
    REQUIRE(!result->play->decided.empty());
  }
}

}  // namespace
}  // namespace mallocgame
