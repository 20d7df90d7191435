// The networks of a trained agent as something to ask, by batches. One thread at a time may ask.
// Torch stays behind this header.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace mallocgame::muzero {

// Values and rewards are in units (task.h). Logits include those of illegal actions. Row i
// of each array is about row i of the others. An error is one that Torch reports.
class Network {
 public:
  virtual ~Network() = default;

  virtual int num_actions() const = 0;
  virtual int observation_size() const = 0;

  // Predicts policy and value of `observations`, [rows, observation_size].
  virtual absl::Status Predict(absl::Span<const float> observations, absl::Span<float> logits,
                               absl::Span<float> values) = 0;

  // The learned dynamics. Hidden states are kept under slots in [0, slots). FailedPrecondition: the
  // dynamics are not learned.
  virtual absl::Status Reserve(int slots) = 0;
  virtual absl::Status Start(absl::Span<const float> observations, absl::Span<const int32_t> slots,
                             absl::Span<float> logits, absl::Span<float> values) = 0;
  virtual absl::Status Step(absl::Span<const int32_t> parents, absl::Span<const int32_t> actions,
                            absl::Span<const int32_t> slots, absl::Span<float> logits,
                            absl::Span<float> values, absl::Span<float> rewards) = 0;
};

}  // namespace mallocgame::muzero
