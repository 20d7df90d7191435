// What a checkpoint of the MuZero agent holds (training/checkpoint.h packs and unpacks it).
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/muzero/config.h"
#include "agents/muzero/task.h"
#include "agents/training/checkpoint.h"
#include "mallocgame/game/observation.h"

namespace mallocgame::muzero {

struct Checkpoint {
  static constexpr absl::string_view kAgent = "muzero";
  static constexpr int kFormatVersion = 12;
  static constexpr int kObservationVersion = mallocgame::kObservationVersion;

  struct Program {
    std::string name;  // as the caller knows it
    std::string fingerprint;
    std::string hardware;  // as JSON

    friend bool operator==(const Program&, const Program&) = default;
    template <class Self>
    static auto Fields(Self& self) {
      return std::tie(self.name, self.fingerprint, self.hardware);
    }
  };

  Config config;
  uint64_t seed = 0;
  int64_t iterations = 0;
  std::vector<Program> programs;
  std::string networks;  // what Learner::Save gave
  std::string training;  // what the trainer keeps beside that

  std::string game() const { return config.game; }
  template <class Self>
  static auto Fields(Self& self) {
    return std::tie(self.config, self.seed, self.iterations, self.programs, self.networks,
                    self.training);
  }
};

// How a checkpoint names the problems that it is of.
std::vector<Checkpoint::Program> Describe(const std::vector<TrainingProblem>& problems);

// training::UnpackCheckpoint, of which it has the errors. What was trained on a GPU goes on without
// one where there is none: `device` is then cpu.
absl::StatusOr<Checkpoint> ReadCheckpoint(absl::string_view bytes);

// InvalidArgument: a checkpoint is of other programs or hardware. The message names both.
absl::Status CheckProblems(const Checkpoint& checkpoint,
                           const std::vector<TrainingProblem>& problems);

}  // namespace mallocgame::muzero
