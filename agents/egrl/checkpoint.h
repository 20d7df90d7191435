// What a checkpoint says of itself, before the networks and the training's state.
#ifndef AGENTS_EGRL_CHECKPOINT_H_
#define AGENTS_EGRL_CHECKPOINT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/egrl/config.h"
#include "mallocgame/placement/placement.h"

namespace mallocgame::egrl {

// What makes two placement problems the same one; as text, for messages.
std::string FingerprintOf(const PlacementProblem& problem);

struct Checkpoint {
  std::string name;  // of the problem, as the caller knows it
  std::string fingerprint;
  int levels = 0;
  Config config;
  uint64_t seed = 0;
  int64_t generations = 0;
  int64_t evaluations = 0;
  std::vector<float> actor;     // weights of the policy gradient's network; empty without
  std::vector<float> champion;  // of the population's best network; empty without
  std::string training;         // the trainer's own
};

std::string PackCheckpoint(const Checkpoint& checkpoint);
// InvalidArgument: the bytes are no checkpoint, damaged, or of another version (of the format, the
// rules, or the settings).
absl::StatusOr<Checkpoint> UnpackCheckpoint(absl::string_view bytes);

}  // namespace mallocgame::egrl

#endif  // AGENTS_EGRL_CHECKPOINT_H_
