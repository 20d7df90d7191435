// Budget: what is counted, what is kept, and when it is used up.
#include "mallocgame/solvers/budget.h"

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "mallocgame/game/time/time_game.h"
#include "tests/catch.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::ProgramBuilder;
using testing::TestHardware;

// One read of a parameter: Drop takes 20 ps, Copy 13.
std::shared_ptr<const Game> OneRead() {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 4);
  b.Add({.name = "a", .cycles = {10}});
  b.Add({.name = "use", .reads = {p}, .cycles = {10, 3}});
  return testing::MakeGame(b.Build(), TestHardware(8));
}

State Played(const std::shared_ptr<const Game>& game, Action action) {
  State state(game);
  REQUIRE(state.Apply(action).ok());
  return state;
}

TEST_CASE("the best game is kept, and the curve has each better one") {
  const auto game = OneRead();
  SolveLimits limits;
  limits.evaluations = 4;
  std::vector<int64_t> progress;
  limits.progress = [&](double, int64_t latency_ps) { progress.push_back(latency_ps); };
  Budget budget(limits);
  CHECK(budget.Progress() == 0);
  budget.Finished(Played(game, Action::kDrop));
  CHECK(budget.best_play().actions == std::vector<uint8_t>{0});
  budget.Finished(Played(game, Action::kCopy));
  CHECK(budget.best_play().actions == std::vector<uint8_t>{1});
  budget.Finished(Played(game, Action::kNoCopy));  // as good, but not better
  CHECK(budget.best_play().actions == std::vector<uint8_t>{1});
  CHECK(progress == std::vector<int64_t>{20, 13});
  CHECK(budget.curve().size() == 2);
  CHECK(budget.best_play().game == game);
  CHECK(budget.evaluations() == 3);
  CHECK(budget.Progress() == 0.75);
  CHECK_FALSE(budget.Exhausted());
  budget.Looked();  // counts, and keeps nothing
  CHECK(budget.OutOfEvaluations());
  CHECK(budget.Exhausted());
  CHECK(budget.Progress() == 1);
}

TEST_CASE("a curve falls, is told, and ends with the latency of the result") {
  std::vector<int64_t> told;
  SolveLimits limits;
  limits.progress = [&](double, int64_t latency_ps) { told.push_back(latency_ps); };
  Recorder recorder(limits);
  CHECK(recorder.Found(9, "first"));
  CHECK_FALSE(recorder.Found(9, "second"));
  CHECK(recorder.Found(5, "second"));
  CHECK(told == std::vector<int64_t>{9, 5});
  recorder.Count(3);
  const auto curve_of = [&](int64_t latency_ps) {
    SolveResult result;
    result.report.latency_ps = latency_ps;
    result.found_by = "last";
    recorder.Finish(result);
    CHECK(result.evaluations == 3);
    std::vector<std::pair<int64_t, std::string>> curve;
    for (const Improvement& better : result.curve)
      curve.emplace_back(better.latency_ps, better.solver);
    return curve;
  };
  using Curve = std::vector<std::pair<int64_t, std::string>>;
  CHECK(curve_of(5) == Curve{{9, "first"}, {5, "second"}});
  CHECK(curve_of(4) == Curve{{9, "first"}, {5, "second"}, {4, "last"}});
  // What came to nothing is no part of it.
  CHECK(curve_of(9) == Curve{{9, "first"}});
  CHECK(curve_of(7) == Curve{{9, "first"}, {7, "last"}});
}

TEST_CASE("a game that was searched is kept with its statistics if it is as good") {
  const auto game = OneRead();
  SolveLimits limits;
  Budget budget(limits);
  budget.Finished(Played(game, Action::kCopy));
  budget.Searched(Played(game, Action::kDrop), {{7}, {0.5F}});
  CHECK(budget.best_play().search.visits.empty());
  budget.Searched(Played(game, Action::kNoCopy), {{8}, {0.25F}});
  CHECK(budget.best_play().actions == std::vector<uint8_t>{2});
  CHECK(budget.best_play().search.visits == std::vector<int32_t>{8});
  // A better game that was not searched has none.
  Budget other(limits);
  other.Searched(Played(game, Action::kDrop), {{7}, {0.5F}});
  other.Finished(Played(game, Action::kCopy));
  CHECK(other.best_play().search.visits.empty());
}

TEST_CASE("without limits nothing is used up, and cancelling ends it at once") {
  SolveLimits limits;
  limits.seconds = 0;
  std::atomic<bool> cancel = false;
  limits.cancel = &cancel;
  Budget budget(limits);
  budget.Looked();
  CHECK_FALSE(budget.limited());
  CHECK_FALSE(budget.Exhausted());
  CHECK(budget.Progress() == 0);
  CHECK(budget.Progress(1000) == 0);
  cancel = true;
  CHECK(budget.Exhausted());
  CHECK(budget.Progress(1000) == 1);
}

TEST_CASE("time counts where evaluations are not limited") {
  SolveLimits limits;
  limits.seconds = 1e-9;
  Budget budget(limits);
  while (budget.seconds() < 1e-6) {
  }
  CHECK(budget.Exhausted());
  CHECK(budget.Progress() == 1);
}

}  // namespace
}  // namespace mallocgame
