// A row of priors, one number an action, as the tree keeps it for each node: first the model's
// logits, and, once they are needed, the policy that they mean. Padded to whole vectors, because
// most of a shallow tree's time goes into these loops. Private to the folder. Results are the same
// numbers on every machine.
#ifndef AGENTS_MCTS_PRIORS_H_
#define AGENTS_MCTS_PRIORS_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace mallocgame::mcts {

inline constexpr size_t kPriorLanes = 4;
// Numbers of a row for `count` actions.
constexpr size_t PaddedPriors(size_t count) {
  return (count + kPriorLanes - 1) / kPriorLanes * kPriorLanes;
}

// Writes the logits to a row: -infinity where illegal and in the padding, the least finite number
// where a legal one is -infinity. False if a legal one is NaN or +infinity, or none is finite.
bool WriteLogits(absl::Span<const float> logits, absl::Span<const uint8_t> legal, float* row);

struct BestPrior {
  float prior;     // -1 if there is none
  int32_t action;  // the first that has it; -1
};

// Makes the policy of a row of logits, -1 where illegal and in the padding; at least one is legal.
BestPrior Normalise(float* row, size_t count);

// The greatest prior of a row that is a policy, or what is left of one: followed actions are -1
// too.
BestPrior FindBest(const float* row, size_t count);

}  // namespace mallocgame::mcts

#endif  // AGENTS_MCTS_PRIORS_H_
