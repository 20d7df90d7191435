// What has been trained: places the tensors of any program, also one that it has not seen, and
// trains on from there.
#ifndef AGENTS_EGRL_AGENT_H_
#define AGENTS_EGRL_AGENT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/egrl/config.h"
#include "mallocgame/placement/placement.h"
#include "mallocgame/placement/search.h"
#include "mallocgame/solvers/solver.h"

namespace mallocgame::egrl {

// Shared by threads; each call works on its own.
class Agent {
 public:
  // From what Trainer::Save wrote. InvalidArgument: damaged, or of another version.
  static absl::StatusOr<std::shared_ptr<const Agent>> Load(absl::string_view checkpoint);
  virtual ~Agent() = default;

  // Without training: the most likely map of the policy and that of the population's best graph
  // network, then `samples` maps drawn from each, all rectified, so that they fit. The best of
  // them. InvalidArgument: a problem with another number of levels than the agent was trained with,
  // samples < 0.
  virtual absl::StatusOr<PlacementSearchResult> Place(const PlacementProblem& problem, int samples,
                                                      uint64_t seed) const = 0;

  // As a solver: trains on the problem's game as EgrlSolver does, but begins with the agent's graph
  // networks. InvalidArgument: the agent was trained with another number of levels than two.
  virtual absl::StatusOr<SolveResult> Solve(const SolveProblem& problem,
                                            const SolveLimits& limits) const = 0;

  virtual const Config& config() const = 0;
  virtual const std::string& name() const = 0;  // of the problem it was trained on
  virtual int levels() const = 0;
  virtual int64_t generations() const = 0;  // of training
  virtual int64_t evaluations() const = 0;  // likewise
};

// The solver `egrl`: the game as a placement problem (XLA's latency counts as 1 if it is known),
// trained on from the start within the limits; the best map, played. Never worse than everything in
// main memory. With limits.evaluations and no seconds the result depends on the seed only; without
// either limit it ends after 4,000 evaluations.
NamedSolver EgrlSolver();

}  // namespace mallocgame::egrl

#endif  // AGENTS_EGRL_AGENT_H_
