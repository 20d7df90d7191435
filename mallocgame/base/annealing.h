// What simulated annealing needs: the acceptance rule (Metropolis) and a cooling schedule.
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

// The most that a change may make things worse to be taken, drawn so that it is taken with the same
// probability. Draws one number.
inline double AcceptedLoss(double temperature, Rng& rng) {
  return -temperature * std::log(1 - rng.Uniform());
}

// Temperatures that fall by the same factor in equal shares of a search, in units of some scale.
struct Cooling {
  double first, last;
  // The temperature when the share `used` of the search, in [0, 1], is over.
  double At(double scale, double used) const {
    return first * scale * std::pow(last / first, used);
  }
};

}  // namespace mallocgame

#endif  // MALLOCGAME_BASE_ANNEALING_H_
