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
  int64_t latency_ps = 0;        // of that
  SolveResult result;            // the demonstrator's own, which a play can't always reach
};

// Greedy's game and one like the plan of xla-heuristic; and, unless `anneal_decisions` is 0, those
// of beam, of annealing over games with so many decisions in all, and of XLA where problem.xla_plan
// is given. A plan that is no play of the problem's game, such as XLA's, becomes the play that
// prefers the same memory at every access. Depends on the seed only, but for `cancel`, which ends
// it early.
absl::StatusOr<std::vector<Demonstration>> Demonstrate(const SolveProblem& problem,
                                                       double anneal_decisions, uint64_t seed,
                                                       const std::atomic<bool>* cancel);

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_DEMONSTRATIONS_H_
