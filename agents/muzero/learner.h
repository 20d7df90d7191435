// Gradient descent on the networks. Torch stays behind this header.
#pragma once

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

// What an update learns from: `rows` positions, each followed by `unroll` steps of its game. unroll
// is 0 where the true rules are searched, because nothing is to be learned of them. Arrays are
// row-major; along an axis of length unroll + 1, element 0 is the position itself. Units are
// thousandths of the baseline's latency. Only the position itself is observed.
struct Batch {
  int rows = 0;
  int unroll = 0;
  std::vector<float> observations;    // [rows, observation size]
  std::vector<int64_t> actions;       // [rows, unroll]
  std::vector<float> rewards;         // [rows, unroll], in units
  std::vector<float> reward_weights;  // [rows, unroll]: 1, or 0 where no reward is known
  std::vector<float> values;          // [rows, unroll + 1], in units
  std::vector<float> value_weights;   // [rows, unroll + 1]: of their losses, in [0, 1]
  std::vector<float> policies;        // [rows, unroll + 1, actions]
  std::vector<float> policy_weights;  // [rows, unroll + 1]: 1, or 0 where no policy is known
  std::vector<float> importance;      // [rows], at most 1
};

// What an update reports: means over the rows.
struct Losses {
  double policy = 0, value = 0, reward = 0;  // not yet multiplied by their weights
  double policy_entropy = 0;                 // entropy of the network's policy, in nats
  double gradient_norm = 0;                  // before clipping
  double learning_rate = 0;
  std::vector<float> value_errors;  // [rows]: predicted minus target value, in units
  // [rows]: the divergence KL(target || policy) in nats; 0 of a row without a policy to learn.
  std::vector<float> surprises;
};

// One thread at a time may use a learner. It is deterministic: the same calls give the same bytes.
class Learner {
 public:
  // Draws new networks from the seed. InvalidArgument: the settings ask for a GPU, and
  // there is none. Internal: Torch reports an error, such as a lack of memory.
  static absl::StatusOr<std::unique_ptr<Learner>> Create(const Config& config, uint64_t seed);
  virtual ~Learner() = default;

  // Does one step of gradient descent. FailedPrecondition: the loss is not finite; the networks are
  // unchanged then.
  virtual absl::StatusOr<Losses> Update(const Batch& batch) = 0;
  virtual int64_t updates() const = 0;  // number of updates done

  // A copy of the networks as they are now.
  virtual absl::StatusOr<std::unique_ptr<Network>> Snapshot() const = 0;

  // The same as bytes, and those bytes as networks to ask. InvalidArgument: the bytes are damaged,
  // or of networks that other settings make.
  virtual absl::StatusOr<std::string> Weights() const = 0;
  static absl::StatusOr<std::unique_ptr<Network>> NetworkOf(const Config& config,
                                                            absl::string_view weights);

  // InvalidArgument: `saved` has fewer bytes than the largest layers of these settings take. Asked
  // before Create, it keeps a few damaged bytes from taking gigabytes.
  static absl::Status CheckSize(const Config& config, absl::string_view saved);

  // The networks, the optimizer and the number of updates as bytes and back. InvalidArgument: Save
  // did not make the bytes, or they are of other networks.
  virtual absl::StatusOr<std::string> Save() const = 0;
  virtual absl::Status Load(absl::string_view bytes) = 0;
  // The networks alone of what Save made; the optimizer and the number of updates begin anew.
  virtual absl::Status LoadNetworks(absl::string_view bytes) = 0;

  virtual int64_t parameters() const = 0;  // number of weights
};

}  // namespace mallocgame::muzero
