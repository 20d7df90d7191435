// What a checkpoint of the EGRL agent holds (training/checkpoint.h packs and unpacks it).
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/string_view.h"
#include "agents/egrl/config.h"
#include "agents/egrl/trainer.h"
#include "agents/training/checkpoint.h"

namespace mallocgame::egrl {

// Identifies placement problems: problems with the same text are the same. Messages show it.
std::string FingerprintOf(const Problems& problems);

struct Checkpoint {
  static constexpr absl::string_view kAgent = "egrl";
  static constexpr int kFormatVersion = 5;

  std::string name;  // of the programs
  std::string fingerprint;
  int levels = 0;  // of memory
  Config config;
  uint64_t seed = 0;
  int64_t generations = 0;
  int64_t evaluations = 0;
  std::vector<float> actor;         // weights of the policy gradient's network, if there is one
  std::vector<float> critics;       // likewise of its critics
  std::vector<float> best_network;  // weights of the first population's best network, if any
  std::string training;             // what the trainer keeps beside that

  template <class Self>
  static auto Fields(Self& self) {
    return std::tie(self.name, self.fingerprint, self.levels, self.config, self.seed,
                    self.generations, self.evaluations, self.actor, self.critics, self.best_network,
                    self.training);
  }
};

}  // namespace mallocgame::egrl
