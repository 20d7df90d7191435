// Plays for a trainer (trainer.h) that is in another process or on another machine. What it returns
// depends on what it is given only, so that a job that is lost can be done again by anybody.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/muzero/config.h"
#include "agents/muzero/trainer.h"

namespace mallocgame::muzero {

// The demonstrations of a problem, for Trainer::TakeDemonstrations. Cancelled: `cancel` was set (it
// may be null).
absl::StatusOr<std::string> PlayDemonstrations(const TrainingProblem& problem, const Config& config,
                                               uint64_t seed, const std::atomic<bool>* cancel);

// Several threads may use an actor.
class Actor {
 public:
  // `introduction` is what Trainer::Introduction returned. InvalidArgument: it is damaged, of
  // another version, or of other problems.
  static absl::StatusOr<std::unique_ptr<Actor>> Create(const std::vector<TrainingProblem>& problems,
                                                       absl::string_view introduction);
  virtual ~Actor() = default;

  // Plays what Trainer::Assign returned, with the networks that Trainer::Weights returned. It gives
  // what Trainer::Take takes. InvalidArgument: one of both is damaged. Cancelled: as above.
  virtual absl::StatusOr<std::string> Play(absl::string_view weights, absl::string_view assignment,
                                           const std::atomic<bool>* cancel) const = 0;
};

}  // namespace mallocgame::muzero
