// The acceptance rule of simulated annealing (Metropolis).
#ifndef MALLOCGAME_BASE_ANNEALING_H_
#define MALLOCGAME_BASE_ANNEALING_H_

#include <cmath>

#include "mallocgame/base/rng.h"

namespace mallocgame {

// Is a change taken that makes things worse by `loss`? With probability exp(-loss / temperature),
// temperature > 0, in the unit of the loss. Draws one number; a search that takes every change for
// the better asks only about the others.
inline bool AcceptWorse(double loss, double temperature, Rng& rng) {
  return rng.Uniform() < std::exp(-loss / temperature);
}

}  // namespace mallocgame

#endif  // MALLOCGAME_BASE_ANNEALING_H_
