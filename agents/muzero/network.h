// The networks of a trained agent, to be asked: by batches, on one thread at a time. Torch stays
// behind this header.
#ifndef AGENTS_MUZERO_NETWORK_H_
#define AGENTS_MUZERO_NETWORK_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace mallocgame::muzero {

// Values and rewards are in units (value_scale.h); logits are of all actions, illegal ones too. Row
// i of each array is about row i of the others. An error is what Torch has to say.
class Network {
 public:
  virtual ~Network() = default;

  virtual int num_actions() const = 0;
  virtual int observation_size() const = 0;

  // Of `observations`, [rows, observation_size].
  virtual absl::Status Predict(absl::Span<const float> observations, absl::Span<float> logits,
                               absl::Span<float> values) = 0;

  // The learned model: hidden states are kept under slots in [0, slots). FailedPrecondition where
  // the dynamics are not learned.
  virtual absl::Status Reserve(int slots) = 0;
  virtual absl::Status Start(absl::Span<const float> observations, absl::Span<const int32_t> slots,
                             absl::Span<float> logits, absl::Span<float> values) = 0;
  virtual absl::Status Step(absl::Span<const int32_t> parents, absl::Span<const int32_t> actions,
                            absl::Span<const int32_t> slots, absl::Span<float> logits,
                            absl::Span<float> values, absl::Span<float> rewards) = 0;
};

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_NETWORK_H_
