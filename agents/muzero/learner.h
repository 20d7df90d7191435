// Gradient descent on the networks. Torch stays behind this header.
#ifndef AGENTS_MUZERO_LEARNER_H_
#define AGENTS_MUZERO_LEARNER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/muzero/config.h"
#include "agents/muzero/network.h"

namespace mallocgame::muzero {

// What an update learns from: `rows` positions, each followed by `unroll` steps of its game (0: the
// true rules are searched, nothing is to be learned of them). Arrays are row-major; of [.., unroll
// + 1] element 0 is the position itself.
struct Batch {
  int rows = 0;
  int unroll = 0;
  std::vector<float> observations;    // [rows, unroll + 1, observation size]
  std::vector<int64_t> actions;       // [rows, unroll]
  std::vector<float> rewards;         // [rows, unroll], units
  std::vector<float> values;          // [rows, unroll + 1], units
  std::vector<float> policies;        // [rows, unroll + 1, actions]
  std::vector<float> policy_weights;  // [rows, unroll + 1] 1, or 0: no policy is known
  std::vector<float> alive;           // [rows, unroll + 1] 1, or 0: behind the end of the game
  std::vector<float> importance;      // [rows], at most 1
};

struct Losses {
  double policy = 0, value = 0, reward = 0, consistency = 0;  // before their weights
  double policy_entropy = 0;                                  // of the network's policy, in nats
  double gradient_norm = 0;                                   // before clipping
  double learning_rate = 0;
  std::vector<float> value_errors;  // [rows] units: predicted less target
};

// Belongs to one thread at a time. Deterministic: the same calls give the same bytes.
class Learner {
 public:
  // Internal: what Torch has to say, such as no CUDA.
  static absl::StatusOr<std::unique_ptr<Learner>> Create(const Config& config, int num_actions,
                                                         uint64_t seed);
  virtual ~Learner() = default;

  // FailedPrecondition: the loss is not finite; the networks are then as they were.
  virtual absl::StatusOr<Losses> Update(const Batch& batch) = 0;
  virtual int64_t updates() const = 0;

  // The networks as they are now; a copy.
  virtual absl::StatusOr<std::unique_ptr<Network>> Snapshot() const = 0;

  // Networks, optimizer and number of updates. InvalidArgument: the bytes are none of ours, or of
  // other networks.
  virtual absl::StatusOr<std::string> Save() const = 0;
  virtual absl::Status Load(absl::string_view bytes) = 0;

  virtual int64_t parameters() const = 0;
};

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_LEARNER_H_
