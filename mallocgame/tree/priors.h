// A row of priors, one number for each action, as the tree keeps it for each node. It first holds
// the model's logits and, once it is needed, the policy that they stand for. Rows are padded to
// whole vectors, because most of the time of a shallow tree goes into these loops. The results are
// the same numbers on every machine. Private to the folder.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace mallocgame::mcts {

inline constexpr size_t kPriorLanes = 4;
// The length of a row for `count` actions.
constexpr size_t PaddedPriors(size_t count) {
  return (count + kPriorLanes - 1) / kPriorLanes * kPriorLanes;
}

// Writes the logits to a row: -infinity where the action is illegal and in the padding, the least
// finite number where the logit of a legal action is -infinity. False if a legal logit is NaN or
// +infinity, or if none is finite.
bool WriteLogits(absl::Span<const float> logits, absl::Span<const uint8_t> legal, float* row);

struct BestPrior {
  float prior;     // -1 if there is none
  int32_t action;  // the first action with this prior; -1 if there is none
};

// Turns a row of logits into the policy, with -1 where the action is illegal and in the padding. At
// least one action must be legal.
BestPrior Normalise(float* row, size_t count);

// Finds the greatest prior of a row that holds a policy, in which followed actions are -1 too.
BestPrior FindBest(const float* row, size_t count);

}  // namespace mallocgame::mcts
