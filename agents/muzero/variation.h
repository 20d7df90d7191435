// Local search with a learned proposal: games that change one of the best games where the policy
// would, and follow it elsewhere. A game costs no more than playing it, for the policy is asked
// about the best game only.
#ifndef AGENTS_MUZERO_VARIATION_H_
#define AGENTS_MUZERO_VARIATION_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "agents/muzero/network.h"
#include "agents/muzero/replay.h"
#include "agents/muzero/task.h"
#include "mallocgame/base/rng.h"

namespace mallocgame::muzero {

struct Varied {
  std::optional<PlayedGame> better;  // the best of them, if it beats `start`
  int64_t games = 0;
};
// Plays variations until about `decisions` decisions are played, accepting worse ones as annealing
// does: from a temperature that is drawn, falling.
absl::StatusOr<Varied> VaryGame(const Task& task, const PlayedGame& start, int64_t decisions,
                                Network& network, Rng& rng);

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_VARIATION_H_
