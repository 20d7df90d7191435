// A trained agent. It places the tensors of any program, also one that it has not seen, and can
// continue training from there.
#pragma once

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

// Several threads may use an agent; each call works by itself.
class Agent {
 public:
  // Makes an agent of what Trainer::Save returned. InvalidArgument: the checkpoint is damaged or of
  // another version.
  static absl::StatusOr<std::shared_ptr<const Agent>> Load(absl::string_view checkpoint);
  virtual ~Agent() = default;

  // Finds the best of some maps, without training: the most likely map of the policy gradient's
  // network and that of the population's best network, and `samples` maps drawn from each. All are
  // rectified, so that they fit. InvalidArgument: the problem has another number of levels than the
  // agent was trained with, or `samples` is negative.
  virtual absl::StatusOr<PlacementSearchResult> Place(const PlacementProblem& problem, int samples,
                                                      uint64_t seed) const = 0;

  // Solves a problem: trains on its game as EgrlSolver does, but starts with the agent's networks.
  // InvalidArgument: the agent was trained with another number of levels than the problem has: two
  // on a time game, five on a priority game.
  virtual absl::StatusOr<SolveResult> Solve(const SolveProblem& problem,
                                            const SolveLimits& limits) const = 0;

  virtual const Config& config() const = 0;
  virtual const std::string& name() const = 0;  // name of the problem it was trained on
  virtual int levels() const = 0;               // number of levels of that problem
  virtual std::string game() const = 0;         // that Solve takes
  virtual int64_t generations() const = 0;      // number of generations it was trained for
  virtual int64_t evaluations() const = 0;      // number of maps graded in training
};

// The solver `egrl`. It sees the game as a placement problem, in which XLA's latency counts as 1 if
// it is known, trains on it within the limits, and plays the best map. A priority game may be
// played with other weights of importance, with small buffers, or without the largest ones; it is
// the one from which annealing begins, and so is the first map (PriorityStarts, search/starts.h).
// The result is never worse than everything in main memory. With limits.evaluations and without
// seconds it depends on the seed only. Without either limit the solver ends after 4,000
// evaluations.
NamedSolver EgrlSolver();

}  // namespace mallocgame::egrl
