// Local search with a learned proposal: games that change one of the best games where the policy would, and follow it
// elsewhere. A game costs no more than playing it, for the policy is asked about the best game only.
#ifndef AGENTS_MUZERO_VARIATION_H_
#define AGENTS_MUZERO_VARIATION_H_

#include <optional>

#include "absl/status/statusor.h"
#include "agents/muzero/network.h"
#include "agents/muzero/replay.h"
#include "agents/muzero/task.h"
#include "mallocgame/base/rng.h"

namespace mallocgame::muzero {

// Plays `games` variations, accepting worse ones as annealing does: from a temperature that is drawn, falling. Returns the best
// if it beats `start`.
absl::StatusOr<std::optional<PlayedGame>> VaryGame(const Task& task, const PlayedGame& start, int games, Network& network, Rng& rng);

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_VARIATION_H_
