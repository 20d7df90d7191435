#include "mallocgame/base/annealing.h"

#include <cmath>

#include "tests/catch.h"

namespace mallocgame {
namespace {

TEST_CASE("a change for the worse is taken as often as Metropolis' rule says") {
  Rng rng(1);
  constexpr int kDraws = 200000;
  for (const double ratio : {0.1, 1.0, 3.0}) {
    int taken = 0;
    for (int i = 0; i < kDraws; ++i) taken += AcceptWorse(ratio * 7, 7, rng);
    CHECK(std::abs(static_cast<double>(taken) / kDraws - std::exp(-ratio)) < 0.005);
  }
}

TEST_CASE("each question draws one number") {
  Rng asked(2), drawn(2);
  for (const double loss : {0.0, 1e-9, 1.0, 1e9}) {
    AcceptWorse(loss, 1, asked);
    drawn.Uniform();
    CHECK(asked.Next() == drawn.Next());
  }
}

}  // namespace
}  // namespace mallocgame
