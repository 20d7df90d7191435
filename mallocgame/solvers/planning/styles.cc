#include <algorithm>
#include <utility>
#include <vector>

#include "mallocgame/base/error.h"
#include "mallocgame/solvers/pipeline.h"
#include "mallocgame/solvers/planning/planners.h"
#include "mallocgame/solvers/playing/players.h"
#include "mallocgame/solvers/styles/styles.h"

namespace mallocgame {
namespace {

// Shares of what the games leave of the limits: for packing each of the two starts, before it goes
// on with the better one, and for refining.
constexpr double kTrialShare = 0.15, kRefineShare = 0.1;

}  // namespace

absl::StatusOr<SolveResult> SolveStyles(const SolveProblem& problem, const SolveLimits& limits) {
  const Game& game = *problem.game;
  Pipeline pipeline(game, limits);
  const Budget& budget = pipeline.budget();
  std::vector<Improvement> curve;
  const auto tell = [&](int64_t latency_ps) {
    curve.push_back({budget.seconds(), latency_ps, {}});
    if (limits.progress) limits.progress(curve.back().seconds, latency_ps);
  };
  FoundPlan played = PlayStyles(game, budget.deadline(), tell);
  MG_ASSIGN_OR_RETURN(SolveResult result, JudgePlan(game, std::move(played.plan)));
  result.decided = std::move(played.decided);
  result.evaluations = played.evaluations;
  pipeline.Count(played.evaluations);
  const double begun = pipeline.used();
  const auto until = [begun](double share) { return begun + share * (1 - begun); };
  if (budget.limited() && begun < 1) {
    const auto offer = [&](const SolveResult& found) {
      if (found.report.latency_ps >= result.report.latency_ps) return;
      result = found;
      result.decided.clear();
      tell(result.report.latency_ps);
    };
    SolveResult best = result;
    MG_RETURN_IF_ERROR(pipeline.Pack(game, until(kTrialShare), best));
    offer(best);
    if (!budget.Exhausted()) {
      SolveLimits left = limits;
      left.seconds *= 1 - begun;
      if (limits.evaluations > 0) left.evaluations -= pipeline.evaluations();
      MG_ASSIGN_OR_RETURN(SolveResult annealed, AnnealedGame(game, left));
      pipeline.Count(annealed.evaluations);
      offer(annealed);
      MG_RETURN_IF_ERROR(pipeline.Pack(game, until(2 * kTrialShare + kAnnealShare), annealed));
      offer(annealed);
      if (annealed.report.latency_ps < best.report.latency_ps) best = std::move(annealed);
    }
    MG_RETURN_IF_ERROR(pipeline.Pack(game, until(1 - kRefineShare), best));
    offer(best);
    if (limits.evaluations <= 0 && !budget.Exhausted()) {
      MG_RETURN_IF_ERROR(pipeline.Refine(budget.deadline(), result));
      if (result.report.latency_ps < curve.back().latency_ps) tell(result.report.latency_ps);
    }
  }
  if (budget.limited()) result.status = SolveStatus::kStopped;
  result.evaluations = pipeline.evaluations();
  result.curve = std::move(curve);
  return result;
}

}  // namespace mallocgame
