// A solver takes a program, hardware and limits and returns a plan. Every way of deciding is one,
// so one table compares everything.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/game/game.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/search/intent.h"
#include "mallocgame/search/plan_cost.h"
#include "mallocgame/simulator/report.h"

namespace mallocgame {

struct SolveLimits {
  // of wall time; a solver that needs less returns earlier. <= 0: no limit
  double seconds = 10;
  // how many complete games or plans are evaluated; 0: no limit. With this limit and none of time,
  // results depend on the seed only
  int64_t evaluations = 0;
  uint64_t seed = 0;
  const std::atomic<bool>* cancel = nullptr;  // set by another thread: return the best so far soon
  // called with each better plan; may be empty
  std::function<void(double seconds, int64_t latency_ps)> progress;
};

enum class SolveStatus : uint8_t {
  kHeuristic,  // a plan, nothing proven
  kOptimal,    // proven best of all plays of the game
  kStopped,    // limits or cancel ended it early; the plan is the best until then
};
const char* SolveStatusName(SolveStatus status);

struct Improvement {
  double seconds = 0;  // since the start
  int64_t latency_ps = 0;
  std::string solver;
};

// What the searches said that chose the decisions of a game: for each decision as many numbers as
// the game has actions, as in a game log (replay/game_log.h). They are 0 for decisions that were
// made without a search.
struct SearchStatistics {
  std::vector<int32_t> visits;
  std::vector<float> values;
};

// The play that made a plan.
struct Play {
  std::vector<uint8_t> actions;
  // the game they were played in: the problem's own, or one that asks about more buffers
  std::shared_ptr<const Game> game;
  // what a priority game of `styles` decided, in its order: it shows one run at a time in an order
  // of its own, so there are no actions and `game` is null; empty if the play is none of these
  Intent decided;
  SearchStatistics search;  // of the searches that chose `actions`; empty if none did
};

struct SolveResult {
  Plan plan;
  // Of a schedule game: the order of instructions that the plan is of (Position::InstructionOrder).
  // Else empty: the order of the game's program.
  std::vector<Tick> order;
  Report report;
  std::optional<Report> others;  // at the other prices of the program, where solvers go by both
  SolveStatus status = SolveStatus::kHeuristic;
  std::optional<int64_t> bound_ps;  // proven: no play of the game is faster
  std::optional<Play> play;         // none: the plan was not made by playing
  int64_t evaluations = 0;
  // the solver whose plan this is: a portfolio's member, else the solver itself
  std::string found_by;
  std::vector<Improvement> curve;  // each better plan, in time order
  // What ended in an error beside the search that found the plan, as "SOLVER: message": members of
  // a portfolio, and the last placement of a search for an order.
  std::vector<std::string> failures;
};

struct NamedSolver;

// What a solver may look at. `xla_plan` is XLA's own answer for this hardware, if the program came
// with one. `extra_solvers` stand beside the library's own, as agents do: Solve knows them by name,
// and portfolio takes those that ask for it.
struct SolveProblem {
  std::shared_ptr<const Game> game;
  const Plan* xla_plan = nullptr;
  absl::Span<const NamedSolver> extra_solvers = {};
};

struct NamedSolver {
  std::string name;
  std::function<absl::StatusOr<SolveResult>(const SolveProblem&, const SolveLimits&)> solve;
  // the share of a portfolio's time limit that it gets on one core; 0: it is no member
  double portfolio_share = 0;
  // the games that SolveProblem::game may be; it plays the first where nobody says which one
  std::vector<std::string> games = {"time"};
};

// What solvers make small (search/plan_cost.h).
inline PlanCost CostOf(const SolveResult& result) { return {result.report, result.others}; }

// `plan` as a result, judged by Simulate: one evaluation, nothing proven. InvalidArgument if the
// plan is not valid.
absl::StatusOr<SolveResult> JudgePlan(const Game& game, Plan plan);

// The plan of a whole game as a result, which has that play. The game and Simulate compute the
// latency each in its own way, so they check each other: Internal if they disagree.
// InvalidArgument: an action is illegal.
absl::StatusOr<SolveResult> JudgePlay(Play play);

}  // namespace mallocgame
