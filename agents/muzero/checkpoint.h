// What a checkpoint says of itself, before the networks and the training's state.
#ifndef AGENTS_MUZERO_CHECKPOINT_H_
#define AGENTS_MUZERO_CHECKPOINT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/muzero/config.h"

namespace mallocgame::muzero {

struct Checkpoint {
  struct Program {
    std::string name;
    std::string fingerprint;
    std::string hardware;  // as JSON
    friend bool operator==(const Program&, const Program&) = default;
  };
  Config config;
  uint64_t seed = 0;
  int64_t iterations = 0;
  std::vector<Program> programs;
  std::string networks;  // Learner::Save
  std::string training;  // the trainer's own
};

std::string PackCheckpoint(const Checkpoint& checkpoint);
// InvalidArgument: the bytes are no checkpoint, damaged, or of another version (of the format, the
// rules, or the settings).
absl::StatusOr<Checkpoint> UnpackCheckpoint(absl::string_view bytes);

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_CHECKPOINT_H_
