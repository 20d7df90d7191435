// MakeGame, RandomAction, PlayOnAtRandom, PlayAtRandom, BestLatency.
#include "tests/support/play.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <utility>
#include <vector>

#include "mallocgame/base/error.h"
#include "mallocgame/game/games.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/game/time/time_game.h"

namespace mallocgame::testing {

std::unique_ptr<GameOptions> OptionsOf(
    absl::string_view game, const std::vector<std::pair<const char*, OptionValue>>& values) {
  auto options = OptionsOfGame(game);
  MG_CHECK(options.ok());
  (*options)->min_buffer_bytes = 0;
  for (const auto& [name, value] : values) {
    if (!(*options)->Has(name)) continue;
    const absl::Status set = (*options)->Set(name, value);
    if (!set.ok()) std::fprintf(stderr, "%s\n", set.ToString().c_str());
    MG_CHECK(set.ok());
  }
  return *std::move(options);
}

std::shared_ptr<const Game> MakeGame(std::shared_ptr<const Program> program,
                                     const Hardware& hardware, const GameOptions& options) {
  const std::unique_ptr<GameOptions> all = options.Clone();
  all->min_buffer_bytes = 0;
  auto game = Game::Create(std::move(program), hardware, *all);
  if (!game.ok()) std::fprintf(stderr, "%s\n", game.status().ToString().c_str());
  MG_CHECK(game.ok());
  return *std::move(game);
}

std::shared_ptr<const PriorityGame> MakeGame(std::shared_ptr<const Program> program,
                                             const Hardware& hardware,
                                             const PriorityGameOptions& options) {
  const GameOptions& any = options;
  return std::static_pointer_cast<const PriorityGame>(MakeGame(std::move(program), hardware, any));
}

std::shared_ptr<const Game> MakeGame(std::shared_ptr<const Program> program,
                                     const Hardware& hardware, std::vector<AccessId> forbidden) {
  TimeGameOptions options;
  options.forbidden = std::move(forbidden);
  return MakeGame(std::move(program), hardware, options);
}

int RandomAction(const Position& position, Rng& rng) {
  const ActionSet legal = position.legal_actions();
  return legal[rng.Below(legal.size())];
}

void PlayOnAtRandom(Position& position, Rng& rng) {
  while (!position.IsTerminal()) {
    MG_CHECK(!position.legal_actions().empty());
    MG_CHECK(position.Apply(RandomAction(position, rng)).ok());
  }
}

State PlayAtRandom(const Game& game, Rng& rng) {
  State state(game);
  PlayOnAtRandom(state, rng);
  return state;
}

int64_t BestLatency(State& state, int64_t* games) {
  if (state.IsTerminal()) {
    if (games != nullptr) ++*games;
    return state.latency_ps();
  }
  int64_t best = std::numeric_limits<int64_t>::max();
  for (const int action : state.legal_actions()) {
    MG_CHECK(state.Apply(action).ok());
    best = std::min(best, BestLatency(state, games));
    state.Undo();
  }
  return best;
}

}  // namespace mallocgame::testing
