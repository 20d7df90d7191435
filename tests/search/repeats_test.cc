// Repeats: what stands for layers that are the same, and what the others take over.
#include "mallocgame/search/repeats.h"

#include <string>
#include <vector>

#include "mallocgame/plan/validate.h"
#include "mallocgame/search/residence_search.h"
#include "tests/catch.h"
#include "tests/support/plans.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::LatencyOf;
using testing::MakeGame;
using testing::PlanBuilder;
using testing::ProgramBuilder;
using testing::TestHardware;

constexpr int kLayers = 7, kTicks = 12, kEvery = 4;

// Layers of kTicks instructions each. Every fourth of them reads a weight of its own, which fast
// memory saves time for. `odd` (-1: none) is a layer whose weights have another size.
struct Layers {
  explicit Layers(int odd = -1) {
    ProgramBuilder b;
    for (int i = 0; i < kLayers * kTicks; ++i) {
      const int layer = i / kTicks, at = i % kTicks;
      const std::string name = "i" + std::to_string(i);
      if (at % kEvery != 0) {
        b.Add({.name = name, .cycles = {10 + at}});
        continue;
      }
      weights.push_back(b.Constant("w" + std::to_string(i), layer == odd ? 16 : 8));
      b.Add({.name = name, .reads = {weights.back()}, .cycles = {40 + at, 5}});
    }
    program = b.Build();
  }
  std::vector<BufferId> weights;
  std::shared_ptr<const Program> program;
};

TEST_CASE("the layer in the middle stands for those that are the same") {
  const auto game = MakeGame(Layers().program, TestHardware(32));
  const Repeats repeats(*game);
  CHECK_FALSE(repeats.empty());
  for (Tick t = 0; t < kLayers * kTicks; ++t) {
    INFO(t);
    // What stands near the ends has other neighbours.
    const bool inside = t >= 8 && t + 8 < kLayers * kTicks;
    const Tick representative = repeats.representative(t);
    CHECK(representative % kTicks == t % kTicks);
    CHECK((representative == t) == (!inside || t / kTicks == representative / kTicks));
    if (inside) CHECK(repeats.representative(representative) == representative);
  }
  CHECK(repeats.representative(40) == repeats.representative(28));
}

TEST_CASE("a layer that is another stands for itself, and so do its neighbours' ends") {
  const auto game = MakeGame(Layers(2).program, TestHardware(32));
  const Repeats repeats(*game);
  for (Tick t = 2 * kTicks - 8; t < 3 * kTicks + 5; ++t) CHECK(repeats.representative(t) == t);
  CHECK(repeats.representative(4 * kTicks) == 5 * kTicks);
}

TEST_CASE("other layers take over what the one that stands for them does") {
  const Layers layers;
  const auto game = MakeGame(layers.program, TestHardware(32));
  PlanBuilder plan(*layers.program, game->hardware());
  const Repeats repeats(*game);
  for (size_t w = 0; w < layers.weights.size(); ++w) {
    const auto tick = static_cast<Tick>(w * kEvery);
    if (repeats.representative(tick) != tick || tick < 8 || tick + 8 >= kLayers * kTicks) continue;
    const ResidenceId r = plan.Reside(layers.weights[w], 0, tick - 1, tick + 1);
    plan.Prefetch(r, tick - 1, tick);
    plan.ServeAll(r);
  }
  REQUIRE(Validate(*layers.program, game->hardware(), plan.plan).ok());
  ResidenceSearch search(*game, plan.plan);
  const int64_t before = search.latency_ps();
  search.StartAtRepresentatives(true);
  const size_t representatives = search.accesses();
  search.StartAtRepresentatives(false);
  CHECK(representatives == 3 + 2 + 2);  // one layer, and the ends
  CHECK(search.accesses() == layers.weights.size());
  CHECK(search.TakeOver([] { return true; }) == 0);
  CHECK(search.TakeOver([] { return false; }) > 0);
  search.Remember();
  const Plan taken = search.Remembered();
  CHECK(Validate(*layers.program, game->hardware(), taken).ok());
  CHECK(LatencyOf(*game, taken) == search.latency_ps());
  CHECK(search.latency_ps() < before);
  CHECK(taken.residences.size() == layers.weights.size() - 4);
}

TEST_CASE("nothing repeats in a short program") {
  ProgramBuilder b;
  b.Add({.name = "a", .cycles = {10}});
  CHECK(Repeats(*MakeGame(b.Build(), TestHardware(8))).empty());
}

}  // namespace
}  // namespace mallocgame
