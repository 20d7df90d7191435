#include "agents/muzero/demonstrations.h"

#include <algorithm>
#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/solvers/playing/preference_search.h"
#include "mallocgame/solvers/registry.h"

namespace mallocgame::muzero {
namespace {

// What the demonstrator chose at each access. It is read from the demonstrator's game, or from its
// plan where it played no game.
Preferences PreferencesOf(const Game& game, const SolveResult& result) {
  if (result.game == nullptr) return mallocgame::PreferencesOf(game, result.plan);
  Preferences preferences(game.program().accesses().size(), kUndecided);
  State state = result.game->InitialState();
  for (uint8_t action : result.actions) {
    preferences[state.current_access().index()] = action;
    MG_CHECK(state.Apply(static_cast<Action>(action)).ok());
  }
  return preferences;
}

int DecisionsOfAGame(const Game& game) {
  return PreferenceSearch(game, Preferences(game.program().accesses().size(), kUndecided))
      .decisions();
}

Demonstration Play(const Game& game, SolveResult result) {
  PreferenceSearch search(game, PreferencesOf(game, result));
  const State& end = search.GoTo(search.decisions());
  return {{end.actions().begin(), end.actions().end()}, end.latency_ps(), std::move(result)};
}

}  // namespace

absl::StatusOr<std::vector<Demonstration>> Demonstrate(const SolveProblem& problem,
                                                       double anneal_decisions, uint64_t seed,
                                                       const std::atomic<bool>* cancel) {
  constexpr int64_t kBeamWidths = 6;  // 1 to 32
  struct Player {
    const char* solver;
    int64_t evaluations;
  };
  std::vector<Player> players = {{"greedy", 0}, {"xla-heuristic", 0}};
  if (anneal_decisions > 0) {
    const double games = anneal_decisions / std::max(1, DecisionsOfAGame(*problem.game));
    players.insert(players.end(),
                   {{"beam", kBeamWidths}, {"anneal", 1 + static_cast<int64_t>(games)}});
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
    demonstrations.push_back(Play(*problem.game, std::move(result)));
  }
  return demonstrations;
}

}  // namespace mallocgame::muzero
