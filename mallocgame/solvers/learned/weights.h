// The numbers that the solver `learned` plays by. docs/learned.md.
#ifndef MALLOCGAME_SOLVERS_LEARNED_WEIGHTS_H_
#define MALLOCGAME_SOLVERS_LEARNED_WEIGHTS_H_

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace mallocgame {

// Those that the library was built with: first the weights of the network, then one or more styles.
// `mallocgame train learned` makes them.
absl::Span<const float> BundledWeights();
// InvalidArgument: there are not as many numbers as the network and some styles have, or one of
// them is not finite.
absl::Status ValidateWeights(absl::Span<const float> weights);

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_LEARNED_WEIGHTS_H_
