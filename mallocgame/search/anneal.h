// Simulated annealing (Kirkpatrick, Gelatt and Vecchi 1983) over any neighbourhood: the one loop of
// all solvers that anneal.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>

#include "mallocgame/base/rng.h"
#include "mallocgame/search/neighbourhood.h"

namespace mallocgame {

// The most that a move may make things worse to be accepted, in the unit of the temperature, drawn
// so that a loss is accepted with probability exp(-loss / temperature): Metropolis' rule, before
// the loss is known.
inline double AcceptedLoss(double temperature, Rng& rng) {
  return -temperature * std::log(1 - rng.Uniform());
}

// Temperatures that fall by the same factor in equal shares of a search, or where they are `linear`
// by the same amount. They are in units of some scale.
struct Cooling {
  double first, last;
  bool linear = false;
  // The temperature when the share `used` of the search, in [0, 1], is over.
  double At(double scale, double used) const {
    return scale * (linear ? first + (last - first) * used : first * std::pow(last / first, used));
  }
};

struct AnnealOptions {
  Cooling cooling;  // as shares of the latency at the beginning
  // Gets the number of trials so far, and says which share of what the search may use is used up;
  // at 1 it ends. Asked once in so many trials.
  std::function<double(int64_t trials)> used;
  int64_t trials_per_look = 16;
  // Told of each move, and of each accepted one that is the best so far; may be empty. If `tried`
  // returns false that was the last one.
  std::function<bool(bool accepted)> tried = {};
  std::function<void()> better = {};
};

// Ends at once if the neighbourhood is empty. What is accepted is where it ended, not the best.
void Anneal(Neighbourhood& search, const AnnealOptions& options, Rng& rng);

}  // namespace mallocgame
