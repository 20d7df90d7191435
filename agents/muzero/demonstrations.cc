#include "agents/muzero/demonstrations.h"

#include <algorithm>
#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/game/play_actions.h"
#include "mallocgame/solvers/playing/preference_search.h"
#include "mallocgame/solvers/registry.h"

namespace mallocgame::muzero {
namespace {

// What the demonstrator chose at each access. It is read from the demonstrator's game, or from its
// plan where it played no game.
absl::StatusOr<Preferences> PreferencesOf(const Game& game, const SolveResult& result) {
  if (result.game == nullptr) return mallocgame::PreferencesOf(game, result.plan);
  MG_ASSIGN_OR_RETURN(const std::unique_ptr<Position> end,
                      PlayActions(*result.game, result.actions));
  return mallocgame::PreferencesOf(*end);
}

int DecisionsOfAGame(const Game& game) {
  return PreferenceSearch(game, Preferences(game.program().accesses().size(), kUndecided))
      .decisions();
}

absl::StatusOr<Demonstration> Play(const Game& game, SolveResult result) {
  MG_ASSIGN_OR_RETURN(Preferences preferences, PreferencesOf(game, result));
  PreferenceSearch search(game, std::move(preferences));
  const State& end = search.GoTo(search.decisions());
  return Demonstration{
      {end.actions().begin(), end.actions().end()}, end.latency_ps(), std::move(result)};
}

}  // namespace

absl::StatusOr<std::vector<Demonstration>> Demonstrate(const SolveProblem& problem,
                                                       double anneal_decisions, uint64_t seed,
                                                       const std::atomic<bool>* cancel) {
  constexpr int64_t kBeamGames = 7;  // rent's, and those of widths 1 to 32
  struct Player {
    const char* solver;
    int64_t evaluations;
  };
  std::vector<Player> players = {{"greedy", 0}, {"rent", 0}, {"xla-heuristic", 0}};
  if (anneal_decisions > 0) {
    const double games = anneal_decisions / std::max(1, DecisionsOfAGame(*problem.game));
    players.insert(players.end(),
                   {{"beam", kBeamGames}, {"anneal", 1 + static_cast<int64_t>(games)}});
    if (problem.xla_plan != nullptr) players.push_back({"xla-assigned", 0});
  }
  std::vector<Demonstration> demonstrations;
  for (const Player& player : players) {
    SolveLimits limits;
    limits.seconds = 0;
    limits.evaluations = player.evaluations;
    limits.seed = seed;
    limits.cancel = cancel;
    MG_ASSIGN_OR_RETURN(SolveResult result, Solve(player.solver, problem, limits));
    MG_ASSIGN_OR_RETURN(Demonstration demonstration, Play(*problem.game, std::move(result)));
    demonstrations.push_back(std::move(demonstration));
  }
  return demonstrations;
}

}  // namespace mallocgame::muzero
