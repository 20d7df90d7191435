// MakeGame, RandomAction, PlayOnAtRandom, PlayAtRandom, BestLatency.
#include "tests/support/play.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <utility>
#include <vector>

#include "mallocgame/base/error.h"

namespace mallocgame::testing {

std::shared_ptr<const Game> MakeGame(std::shared_ptr<const Program> program,
                                     const Hardware& hardware, GameOptions options) {
  options.min_buffer_bytes = 0;
  auto game = Game::Create(std::move(program), hardware, options);
  if (!game.ok()) std::fprintf(stderr, "%s\n", game.status().ToString().c_str());
  MG_CHECK(game.ok());
  return *std::move(game);
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
  State state = game.InitialState();
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
