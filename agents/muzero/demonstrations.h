// Games by other players that the agent learns from, and plans that it is compared with.
#ifndef AGENTS_MUZERO_DEMONSTRATIONS_H_
#define AGENTS_MUZERO_DEMONSTRATIONS_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mallocgame/solvers/solver.h"

namespace mallocgame::muzero {

struct Demonstration {
  std::vector<uint8_t> actions;  // a whole play of the problem's game
  int64_t latency_ps = 0;        // latency of that play
  SolveResult result;            // the demonstrator's own result, which no play need reach
};

// Demonstrates the games of greedy and rent and one like the plan of xla-heuristic. Unless
// `anneal_decisions` is 0, it adds the game of beam, that of annealing over games with so many
// decisions in total, and one like XLA's plan where problem.xla_plan is given. A plan that is not a
// play of the problem's game, such as XLA's, becomes the play that prefers the same memory at every
// access. The result depends on the seed only, unless `cancel`, which may be null, ends it early.
absl::StatusOr<std::vector<Demonstration>> Demonstrate(const SolveProblem& problem,
                                                       double anneal_decisions, uint64_t seed,
                                                       const std::atomic<bool>* cancel);

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_DEMONSTRATIONS_H_
